"""The agent of a loop, as a file says it, and what adds to its runs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agents_loop.adapting import as_agent
from agents_loop.agent import AIAgent
from agents_loop.chat_client import ChatOptions
from agents_loop.chat_client_agent import ChatClientAgent
from agents_loop.context_providers.agent_mode import AgentModeProvider
from agents_loop.context_providers.background_agents import BackgroundAgentsProvider
from agents_loop.context_providers.provider import ContextProvider, ProvidedContext, ProviderContext
from agents_loop.context_providers.todo import TodoProvider
from agents_loop.errors import AgentsLoopError
from agents_loop.files.native.building import Building
from agents_loop.files.native.kinds import (
    IMPORTED,
    MODEL,
    TEMPLATE,
    Kind,
    Reference,
    imported,
    many,
    mapping,
    optional,
)
from agents_loop.files.native.parts import Part, Table
from agents_loop.files.native.shared import CHAT_OPTION_KINDS, OWN_CHAT_OPTION_LEFT_OUT
from agents_loop.files.native.writing import CannotWriteError, Writing
from agents_loop.tools import FunctionTool, as_tool


def _stand_in_named(reference: str) -> Any:
    """A tool that stands in for one that is not imported; its name tells it from others."""

    def stand_in() -> None:
        """Nothing."""

    stand_in.__name__ = reference.rpartition(":")[2].rpartition(".")[2]
    return stand_in


def _built_tool(building: Building, reference: str) -> Any:
    found = building.materials.imported(building.path, reference, _stand_in_named(reference))
    try:
        as_tool(found)
    except (AgentsLoopError, TypeError, ValueError) as error:
        raise building.error(str(error)) from error
    return found


def _written_tool(writing: Writing, tool: Any) -> str:
    if not isinstance(tool, FunctionTool):
        raise writing.error("a tool that is a declaration can't stand in a file: name a function")
    function: Any = tool.function
    plain = FunctionTool(function)
    is_plain = (plain.name, plain.description) == (tool.name, tool.description) and not tool.approval_required
    try:
        return writing.reference(tool, named_as=function)
    except CannotWriteError:
        if not is_plain:
            raise
    return writing.reference(function)


TOOL = Kind(Reference, _built_tool, _written_tool)


class _StandInProvider(ContextProvider):
    """Stands in for a provider that is not imported."""

    async def provide(self, context: ProviderContext) -> ProvidedContext:
        del context
        return ProvidedContext()


def python_provider(target: Any) -> ContextProvider:
    """A context provider of your own: an instance, or a class of one.

    Args:
        target: Where it is.
    """
    made = target() if isinstance(target, type) else target
    if not isinstance(made, ContextProvider):
        raise TypeError(f"object must be a ContextProvider or a class of one, not {made!r:.80}")
    return made


_CHAT = {"chat_client": MODEL, "instructions": optional(TEMPLATE), **CHAT_OPTION_KINDS}
_NAMES: Mapping[str, str] = {"chat_client": "model"}

HELPER = Part(
    ChatClientAgent,
    options=ChatOptions,
    names=_NAMES,
    kinds={**_CHAT, "tools": many(TOOL), "auto_approve": optional(IMPORTED)},
    left_out=OWN_CHAT_OPTION_LEFT_OUT,
    left_out_of_maker={"context_providers": "they are the loop's own agent's"},
)
"""An agent that works for another."""
PROVIDERS = Table(
    "ContextProvider",
    (
        Part(
            TodoProvider,
            "todo",
            read=lambda target: _unless(target, {"instructions": TodoProvider.DEFAULT_INSTRUCTIONS}),
        ),
        Part(
            AgentModeProvider,
            "agent_mode",
            read=lambda target: {
                **_unless(target, {"modes": AgentModeProvider.DEFAULT_MODES}),
                **_unless(target, {"default_mode": next(iter(target.modes))}),
                "model_may_change": target.model_may_change,
            },
        ),
        Part(BackgroundAgentsProvider, "background_agents", kinds={"agents": mapping(HELPER.kind)}),
        Part(
            python_provider,
            "python",
            names={"target": "object"},
            kinds={"target": imported(_StandInProvider)},
            is_made=lambda _: False,
        ),
    ),
)
CHAT_AGENT = Part(
    ChatClientAgent,
    options=ChatOptions,
    names=_NAMES,
    kinds={
        **_CHAT,
        "tools": many(TOOL),
        "context_providers": many(PROVIDERS.kind),
        "auto_approve": optional(IMPORTED),
    },
    left_out=OWN_CHAT_OPTION_LEFT_OUT,
)
"""An agent with a conversation."""


def python_agent(target: Any) -> AIAgent:
    """An agent of your own, or whatever `as_agent` makes one of.

    Args:
        target: Where it is.
    """
    return as_agent(target, name="object")


PYTHON_AGENT = Part(python_agent, names={"target": "object"}, kinds={"target": IMPORTED}, is_made=lambda _: False)


def _unless(target: object, defaults: Mapping[str, Any]) -> dict[str, Any]:
    """The attributes that are not as they are by default."""
    given = {name: getattr(target, name) for name in defaults}
    return {name: value for name, value in given.items() if value != defaults[name]}
