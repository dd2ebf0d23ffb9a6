"""The parameters of a tool's function: the model that reads their values, and its JSON schema."""

from __future__ import annotations

import functools
import inspect
import types
import typing
from collections.abc import Callable, Iterable
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, create_model
from pydantic.fields import FieldInfo
from pydantic.json_schema import GenerateJsonSchema

from agents_loop.errors import ConfigurationError
from agents_loop.messages import JsonValue


class _Schema(GenerateJsonSchema):
    ignored_warning_kinds = {*GenerateJsonSchema.ignored_warning_kinds, "non-serializable-default"}  # noqa: RUF012 - as in the parent


def arguments_model(name: str, function: Callable[..., Any], context: type) -> tuple[type[BaseModel], str | None]:
    """The model that reads a call's arguments, and the parameter that takes the context.

    Its fields are numbered and have the parameters' names as aliases, for a parameter may be called `json` or `_x`.

    Args:
        name: The tool's name.
        function: The tool's function.
        context: The type of the context.

    Raises:
        ConfigurationError: The parameters can't be filled, or have no schema.
    """
    hints = _hints(name, function)
    parameters = _parameters(name, function)
    bound = function.keywords if isinstance(function, functools.partial) else {}
    fields: dict[str, Any] = {}
    context_parameter: str | None = None
    for number, parameter in enumerate(parameters):
        if parameter.name in bound:
            continue
        if parameter.kind not in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
            raise ConfigurationError(f"tool {name!r}: a model passes arguments by name, so {parameter} can't be filled")
        if parameter.name == "self" and number == 0:
            raise ConfigurationError(
                f"tool {name!r}: it is a method without its object; pass the bound method, obj.{name}"
            )
        hint = hints.get(parameter.name, Any)
        if _is_context(hint, context):
            context_parameter = parameter.name
        else:
            fields[f"argument_{number}"] = _field(parameter, hint)
    try:
        model = create_model(name, __config__=ConfigDict(extra="forbid"), **fields)
    except Exception as error:  # pydantic raises several kinds for a type it does not know
        raise ConfigurationError(f"tool {name!r}: its parameters have no JSON schema: {error}") from error
    return model, context_parameter


def parameters_schema(arguments: type[BaseModel]) -> dict[str, JsonValue]:
    """The JSON schema of a model that `arguments_model` gave.

    Raises:
        ConfigurationError: It has none.
    """
    try:
        schema = arguments.model_json_schema(schema_generator=_Schema)
    except Exception as error:  # pydantic raises several kinds for a type it can't describe
        raise ConfigurationError(f"tool {arguments.__name__!r}: its parameters have no JSON schema: {error}") from error
    del schema["title"]
    for described in schema.setdefault("properties", {}).values():
        described.pop("title", None)
    return schema


def _parameters(name: str, function: Callable[..., Any]) -> Iterable[inspect.Parameter]:
    try:
        return inspect.signature(function).parameters.values()
    except (TypeError, ValueError) as error:
        raise ConfigurationError(f"tool {name!r}: Python does not say what its parameters are: {error}") from error


def _is_context(hint: Any, context: type) -> bool:
    """Whether an annotation is the context's type, also as `Annotated` or beside `None`."""
    origin = typing.get_origin(hint)
    if origin is Annotated:
        return _is_context(typing.get_args(hint)[0], context)
    if origin in (typing.Union, types.UnionType):
        rest = [each for each in typing.get_args(hint) if each is not types.NoneType]
        return len(rest) == 1 and _is_context(rest[0], context)
    return hint is context


def _field(parameter: inspect.Parameter, hint: Any) -> tuple[Any, Any]:
    default = parameter.default
    if isinstance(default, FieldInfo):
        return Annotated[hint, default], Field(alias=parameter.name)
    required = default is parameter.empty
    return hint, Field(... if required else default, alias=parameter.name)


def _hints(name: str, function: Callable[..., Any]) -> dict[str, Any]:
    inner: Any = function.func if isinstance(function, functools.partial) else function
    inner = inspect.unwrap(inner)
    if not inspect.isroutine(inner):
        inner = type(inner).__call__
    try:
        return typing.get_type_hints(inner, include_extras=True)
    except Exception as error:  # an annotation that is a str may be any expression
        raise ConfigurationError(f"tool {name!r}: an annotation can't be read: {error}") from error
