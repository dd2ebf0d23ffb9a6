"""The tools of one run: what is offered, which calls need a person's word, and how calls are run."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from inspect import isawaitable
from typing import Any, TypeAlias, cast

from agents_loop.agent import AgentSession, AIAgent
from agents_loop.errors import ConfigurationError
from agents_loop.gathering import gathered
from agents_loop.ids import new_id
from agents_loop.messages import (
    Content,
    FunctionCallContent,
    FunctionResultContent,
    JsonValue,
    ToolApprovalRequestContent,
)
from agents_loop.tools import FunctionTool, Tool, ToolContext, as_tool, error_result

AutoApprove: TypeAlias = Callable[[FunctionCallContent], Awaitable[bool] | bool]
"""Says `True` for a call that needs no person's word; sync or async."""
Finished: TypeAlias = Callable[[int, FunctionResultContent], None]
"""Takes a call's place among those that were to run, and its result."""


class Toolbox:
    """What a model is offered in one run.

    Args:
        tools: The tools in order. A mapping is a declaration: it is offered, and its calls are the caller's to answer.
        auto_approve: Asked about each call that would need approval.

    Raises:
        TypeError: Something is no tool.
        ConfigurationError: Two tools have one name.
    """

    def __init__(self, tools: Iterable[Tool], auto_approve: AutoApprove | None = None) -> None:
        self.offered = tuple([as_tool(given) for given in tools])
        self._auto_approve = auto_approve
        self._functions: dict[str, FunctionTool] = {}
        self._declared: set[str] = set()
        for offered in self.offered:
            name = offered.name if isinstance(offered, FunctionTool) else _declared_name(offered)
            if name is None:
                continue
            if name in self._functions or name in self._declared:
                raise ConfigurationError(f"two tools are called {name!r}: give one of them another name")
            if isinstance(offered, FunctionTool):
                self._functions[name] = offered
            else:
                self._declared.add(name)

    def leaves_open(self, call: FunctionCallContent) -> bool:
        """Whether a call is the caller's to answer: of a declaration, or where nothing was offered at all."""
        return call.name in self._declared or not self.offered

    async def marked(self, contents: Sequence[Content]) -> list[Content]:
        """The contents, with a request in place of each call that needs a person's word."""
        return [await self._marked(c) if isinstance(c, FunctionCallContent) else c for c in contents]

    async def _marked(self, call: FunctionCallContent) -> Content:
        function = self._functions.get(call.name)
        if function is None or not function.approval_required or await self._is_auto_approved(call):
            return call
        return ToolApprovalRequestContent(new_id(), call)

    async def _is_auto_approved(self, call: FunctionCallContent) -> bool:
        if self._auto_approve is None:
            return False
        said: Any = self._auto_approve(call)
        return (await said if isawaitable(said) else said) is True

    async def run(
        self,
        calls: Sequence[FunctionCallContent],
        agent: AIAgent,
        session: AgentSession,
        finished: Finished | None = None,
    ) -> list[FunctionResultContent]:
        """Run calls, several at once, and give their results in the calls' order.

        If one can't go on (it was cancelled, a limit was reached), the others are cancelled and awaited.

        Args:
            calls: What to run.
            agent: Whose calls they are.
            session: The conversation.
            finished: Told of each call as it finishes, also where another can't go on.
        """

        async def run_one(number: int, call: FunctionCallContent) -> FunctionResultContent:
            result = await self._run(call, agent, session)
            if finished is not None:
                finished(number, result)
            return result

        if len(calls) == 1:
            return [await run_one(0, calls[0])]
        return await gathered([run_one(number, call) for number, call in enumerate(calls)])

    async def _run(self, call: FunctionCallContent, agent: AIAgent, session: AgentSession) -> FunctionResultContent:
        function = self._functions.get(call.name)
        if function is None:
            known = ", ".join(self._functions) or "none"
            return error_result(call, f"there is no tool {call.name!r}; there are: {known}")
        return await function.run(call, ToolContext(agent=agent, session=session, call=call))


def _declared_name(declaration: Mapping[str, JsonValue]) -> str | None:
    """The name under which a model calls what a declaration declares, if it is a function."""
    function = declaration.get("function")
    body = cast("Mapping[str, Any]", function) if isinstance(function, Mapping) else declaration
    name = body.get("name")
    return name if isinstance(name, str) else None
