"""Function tools: typed Python functions that a model may ask to be called."""

from __future__ import annotations

import asyncio
import functools
import inspect
import logging
import re
from collections.abc import Callable, Mapping
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any, TypeAlias, cast, overload

from pydantic import ValidationError
from pydantic_core import from_json, to_json

from agents_loop.agent import AgentSession, AIAgent
from agents_loop.call_json import require_keys_once
from agents_loop.errors import BudgetExceededError, ConfigurationError
from agents_loop.messages import FunctionCallContent, FunctionResultContent, JsonValue
from agents_loop.tool_parameters import arguments_model, parameters_schema
from agents_loop.well_formed import well_formed

_LOGGER = logging.getLogger("agents_loop")
_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolContext:
    """The call that a tool answers. A parameter of this type is filled in, and is not shown to the model."""

    agent: AIAgent
    session: AgentSession
    """The conversation the call belongs to; its `state` is kept with it."""
    call: FunctionCallContent


class FunctionTool:
    """A function that a model may ask to be called. `FunctionTool.of(function)` and `@tool` make one.

    Args:
        function: Sync or async. A sync one runs in a thread, so that it does not hold up the event loop. What a
            generator yields, sync or async, is collected. What a `functools.partial` binds is not the model's to say.
        name: What the model calls it: letters, digits, `_` and `-`; by default the function's name.
        description: What it is for, to the model; by default the function's docstring.
        approval_required: Whether a person must agree to each call before it runs.

    The parameters' schema comes from their annotations, `Annotated[..., Field(description=...)]` and defaults. The
    arguments a model wrote are validated, and converted, before the function sees them.

    Raises:
        TypeError: The function is not callable.
        ConfigurationError: The name can't be sent, or the parameters can't be described.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        *,
        name: str | None = None,
        description: str | None = None,
        approval_required: bool = False,
    ) -> None:
        if not callable(function):
            raise TypeError(f"function must be callable, not {function!r}")
        self.function = function
        self.name = name if name is not None else _name_of(function)
        if not _NAME.fullmatch(self.name):
            raise ConfigurationError(f"a tool's name must be 1 to 64 of a-z, A-Z, 0-9, _ and -, not {self.name!r}")
        self.description = description if description is not None else _documentation(function)
        self.approval_required = approval_required
        self._arguments, self._context_parameter = arguments_model(self.name, function, ToolContext)
        self.parameters: dict[str, JsonValue] = parameters_schema(self._arguments)
        """The JSON schema of the arguments: an object."""

    @classmethod
    def of(
        cls,
        function: Callable[..., Any],
        *,
        name: str | None = None,
        description: str | None = None,
        approval_required: bool = False,
    ) -> FunctionTool:
        """The tool of a function."""
        return cls(function, name=name, description=description, approval_required=approval_required)

    def __repr__(self) -> str:
        return f"FunctionTool({self.name!r})"

    async def run(self, call: FunctionCallContent, context: ToolContext | None = None) -> FunctionResultContent:
        """Answer a call. Wrong arguments and a function that raises give an error for the model to read.

        Only a cancellation of the run, a limit on spending, and what ends the process (`SystemExit`,
        `KeyboardInterrupt`) are raised. A sync function that is running when the run is cancelled runs to its end in
        its thread; nobody waits for it.

        Args:
            call: What the model wants.
            context: For functions that have a parameter for it.
        """
        try:
            given = self._validated(call.arguments)
        except Exception as error:  # noqa: BLE001 - a validator of the caller's may raise anything
            return error_result(call, f"the arguments of {self.name!r} are wrong: {_said(error)}")
        if self._context_parameter is not None:
            given[self._context_parameter] = context
        try:
            return FunctionResultContent(call.call_id, _json_value(await self._called(given)))
        except BudgetExceededError:
            raise
        except asyncio.CancelledError as error:
            if _is_cancelled():
                raise
            return self._failed(call, error)
        except Exception as error:  # noqa: BLE001 - a tool may raise anything
            return self._failed(call, error)

    def _failed(self, call: FunctionCallContent, error: BaseException) -> FunctionResultContent:
        _LOGGER.warning("Tool %s failed", self.name, exc_info=error)
        return error_result(call, f"{self.name!r} failed: {_named(error)}")

    def _validated(self, arguments: Mapping[str, JsonValue] | str | None) -> dict[str, Any]:
        if isinstance(arguments, str):
            require_keys_once(arguments)
            nothing = arguments.strip() in ("", "null")
            read = self._arguments.model_validate_json("{}" if nothing else arguments)
        else:
            read = self._arguments.model_validate({} if arguments is None else arguments)
        fields = self._arguments.model_fields
        return {str(info.alias): getattr(read, field) for field, info in fields.items()}

    async def _called(self, given: dict[str, Any]) -> Any:
        if _is_async(self.function):
            result = self.function(**given)
        else:
            result = await asyncio.to_thread(_in_thread, self.function, given)
        if inspect.isawaitable(result):
            result = await result
        if inspect.isasyncgen(result):
            async with aclosing(result) as items:
                return [item async for item in items]
        return result


Tool: TypeAlias = FunctionTool | Callable[..., Any] | Mapping[str, JsonValue]
"""A tool, a function that becomes one, or a declaration that is sent to the provider as it stands."""


@overload
def tool(function: Callable[..., Any], /) -> FunctionTool: ...
@overload
def tool(
    *, name: str | None = None, description: str | None = None, approval_required: bool = False
) -> Callable[[Callable[..., Any]], FunctionTool]: ...
def tool(
    function: Callable[..., Any] | None = None,
    /,
    *,
    name: str | None = None,
    description: str | None = None,
    approval_required: bool = False,
) -> FunctionTool | Callable[[Callable[..., Any]], FunctionTool]:
    """Make a function a tool: `@tool`, or `@tool(approval_required=True)`."""
    made = functools.partial(FunctionTool, name=name, description=description, approval_required=approval_required)
    return made if function is None else made(function)


def as_tool(value: Tool) -> FunctionTool | Mapping[str, JsonValue]:
    """A tool from what callers pass in `tools`: a plain function is wrapped.

    Raises:
        TypeError: It is something else.
    """
    if isinstance(value, FunctionTool):
        return value
    if isinstance(value, Mapping):
        return cast("Mapping[str, JsonValue]", value)
    if callable(value):
        return FunctionTool(value)
    raise TypeError(f"a tool must be a FunctionTool, a function or a mapping, not {value!r}")


def error_result(call: FunctionCallContent, said: str) -> FunctionResultContent:
    """The result of a call that did not do what it should, as the model reads it."""
    return FunctionResultContent(call.call_id, well_formed(f"Error: {said}"))


def _name_of(function: Callable[..., Any]) -> str:
    inner = function.func if isinstance(function, functools.partial) else function
    return str(getattr(inner, "__name__", type(inner).__name__))


def _documentation(function: Callable[..., Any]) -> str:
    inner = function.func if isinstance(function, functools.partial) else function
    return inspect.getdoc(inner) or ""


def _is_async(function: Callable[..., Any]) -> bool:
    inner = function.func if isinstance(function, functools.partial) else function
    called = (inner, getattr(inner, "__call__", None))  # noqa: B004 - it is inspected, not tested
    return any(inspect.iscoroutinefunction(each) or inspect.isasyncgenfunction(each) for each in called)


def _is_cancelled() -> bool:
    """Whether the run itself is cancelled: a tool may raise the same error, where something that it awaited was."""
    task = asyncio.current_task()
    return task is None or task.cancelling() > 0


def _in_thread(function: Callable[..., Any], given: dict[str, Any]) -> Any:
    try:
        result = function(**given)
        return list(result) if inspect.isgenerator(result) else result
    except StopIteration as error:  # a future can't carry it
        raise RuntimeError("StopIteration was raised") from error


def _json_value(result: Any) -> JsonValue:
    """What a function gave as a JSON value: models and dataclasses as objects, what JSON does not know as its text."""
    if isinstance(result, str):
        return well_formed(str(result))
    return from_json(to_json(result, fallback=str, bytes_mode="base64", inf_nan_mode="null"))


def _named(error: BaseException) -> str:
    """An exception's type, and what it says, if it can say it."""
    try:
        return f"{type(error).__name__}: {error}"
    except Exception:  # noqa: BLE001 - its `__str__` is the tool's
        return type(error).__name__


def _said(error: Exception) -> str:
    """What a model can do something with: each place and what is wrong there."""
    if not isinstance(error, ValidationError):
        return _named(error)
    details = error.errors(include_url=False, include_context=False, include_input=False)
    places = [(".".join(str(part) for part in detail["loc"]), detail["msg"]) for detail in details]
    return "; ".join(f"{place}: {message}" if place else message for place, message in places)
