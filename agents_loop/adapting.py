"""Any agent as an `AIAgent`, any chat client as a `ChatClient`: which adapter wraps a foreign object.

Nothing is imported to find out: the modules of an object's classes say where it comes from, and only the adapter of
that framework is then imported. Others join through the entry-point group `agents_loop.adapters`: an entry's name is
the module prefix it is for, its value a module with `adapt_agent(x) -> AIAgent | None`,
`adapt_chat_client(x) -> ChatClient | None`, or both.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from importlib import import_module
from typing import Any, Literal, TypeAlias

from agents_loop.agent import AIAgent
from agents_loop.callable_agent import CallableAgent
from agents_loop.chat_client import ChatClient

ENTRY_POINT_GROUP = "agents_loop.adapters"
"""Where other packages name the modules that adapt their objects."""
AgentLike: TypeAlias = Any
"""An `AIAgent`, an agent of a framework that is known, or a callable `(messages) -> reply`."""
ChatClientLike: TypeAlias = Any
"""A `ChatClient`, or one of a framework that is known."""

_Door = Literal["adapt_agent", "adapt_chat_client"]
_ADAPTERS = {
    "semantic_kernel": "agents_loop.integrations.semantic_kernel",
    "agent_framework": "agents_loop.integrations.agent_framework",
    "agents": "agents_loop.integrations.openai_agents",
    "pydantic_ai": "agents_loop.integrations.pydantic_ai",
    "langgraph": "agents_loop.integrations.langgraph",
}
"""Module prefixes of frameworks, and the modules that adapt their objects."""
_CALLED = {
    "semantic_kernel": "Semantic Kernel (semantic_kernel)",
    "agent_framework": "Microsoft Agent Framework (agent_framework)",
    "agents": "OpenAI Agents SDK (agents)",
    "pydantic_ai": "Pydantic AI (pydantic_ai)",
    "langgraph": "LangGraph (langgraph)",
}


def as_agent(x: AgentLike, *, name: str = "agent") -> AIAgent:
    """An agent from whatever is one.

    An `AIAgent` is returned as it is. An agent of a known framework, or of a class derived from one, is wrapped by
    that framework's adapter. Any other callable becomes a `CallableAgent`.

    Args:
        x: The agent.
        name: What the caller calls it, for the error.

    Raises:
        TypeError: It is `None`, a class, or nothing that is known; the message lists what is.
    """
    if isinstance(x, AIAgent):
        return x
    adapted = _adapted(x, "adapt_agent", name)
    if isinstance(adapted, AIAgent):
        return adapted
    if isinstance(x, ChatClient):
        raise TypeError(f"{name} must be an agent, and a chat client is none: wrap it in ChatClientAgent(client)")
    if callable(x) and not isinstance(x, type):
        return CallableAgent(x)
    raise TypeError(f"{name} must be an agent, not {_described(x)}. Known: AIAgent, {_known()}, or a callable")


def as_chat_client(x: ChatClientLike, *, name: str = "chat_client") -> ChatClient:
    """A chat client from whatever is one.

    A `ChatClient` is returned as it is; one of a known framework is wrapped by that framework's adapter.

    Args:
        x: The chat client.
        name: What the caller calls it, for the error.

    Raises:
        TypeError: It is `None`, a class, an SDK client that names no model, or nothing that is known; the message says
            what is.
    """
    if isinstance(x, ChatClient):
        return x
    adapted = _adapted(x, "adapt_chat_client", name)
    if isinstance(adapted, ChatClient):
        return adapted
    if any(_is_within(module, "openai") for module in _modules_of(x)):
        raise TypeError(
            f"{name} must be a chat client: {_described(x)} names no model. "
            "Use OpenAIChatClient(model, openai_client=...) with an openai.AsyncOpenAI"
        )
    raise TypeError(f"{name} must be a chat client, not {_described(x)}. Known: ChatClient, {_known()}")


def _adapted(x: object, door: _Door, name: str) -> object | None:
    if x is None:
        raise TypeError(f"{name} must not be None")
    if isinstance(x, type):
        raise TypeError(f"{name} must be an object, not the class {x.__qualname__}: create one")
    for module in _candidates(x):
        adapt: Callable[[object], object | None] | None = getattr(import_module(module), door, None)
        adapted = None if adapt is None else adapt(x)
        if adapted is not None:
            return adapted
    return None


def _candidates(x: object) -> Iterator[str]:
    """The adapter modules that may know the object: ours first, of its nearest class first."""
    modules = _modules_of(x)
    for adapters in (lambda: _ADAPTERS, _of_others):
        known = adapters()
        tried: set[str] = set()
        for module in modules:
            for prefix, adapter in known.items():
                if _is_within(module, prefix) and adapter not in tried:
                    tried.add(adapter)
                    yield adapter


def _modules_of(x: object) -> list[str]:
    return [kind.__module__ for kind in type(x).__mro__[:-1]]


def _is_within(module: str, prefix: str) -> bool:
    return module == prefix or module.startswith(f"{prefix}.")


@cache
def _of_others() -> dict[str, str]:
    """The adapters that other installed packages bring, by module prefix."""
    metadata = import_module("importlib.metadata")  # slow to import, and rarely asked
    return {entry.name.rstrip("."): entry.value for entry in metadata.entry_points(group=ENTRY_POINT_GROUP)}


def _described(x: object) -> str:
    return f"{type(x).__module__}.{type(x).__qualname__}"


def _known() -> str:
    return ", ".join([*_CALLED.values(), *sorted(_of_others())])
