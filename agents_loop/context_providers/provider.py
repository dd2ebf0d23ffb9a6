"""The interface of what adds to an agent's runs."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

from agents_loop.agent import AgentResponse, AgentSession, AIAgent, Messages, Service
from agents_loop.messages import ChatMessage, JsonValue
from agents_loop.tools import Tool


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderContext:
    """The run that a provider is asked about, before it begins."""

    agent: AIAgent
    """The agent that runs."""
    session: AgentSession
    """The conversation. A run that was given none has one of its own, which is dropped after it."""
    messages: tuple[ChatMessage, ...]
    """What is new in the conversation: the run's input. Empty, or approvals alone, where a run is resumed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProvidedContext:
    """What a provider adds to one run. Nothing of it is kept in the conversation."""

    instructions: str | None = None
    """Added to the system message, after the agent's own instructions and those of earlier providers."""
    messages: Messages = None
    """Sent after the history and before the run's input; a str speaks as the user."""
    tools: Sequence[Tool] = ()
    """Offered to the model next to the agent's own. A name that is taken is an error."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FinishedRun:
    """A run that is over, as its providers hear of it."""

    agent: AIAgent
    session: AgentSession
    messages: tuple[ChatMessage, ...]
    """The run's input."""
    response: AgentResponse | None
    """What the run gave; `None` where it failed, was cancelled, or its stream was closed early."""
    error: BaseException | None
    """What ended the run, if it did not end well."""


class ContextProvider(ABC):
    """Adds instructions, messages and tools to an agent's runs, and keeps its state in the session.

    One instance serves any number of sessions at once: what it remembers of a conversation stands in
    `self.state(session)`, which is JSON and is stored with the session. `agent.get_service(Type)` finds it.

    A provider is asked once a run, before the model's first call; also where a run is resumed after an approval.
    Providers are asked in order. What `provide` raises fails the run before the model is called.
    """

    @property
    def state_key(self) -> str:
        """Where the provider's state stands in `session.state`: by default the name of its class."""
        return type(self).__name__

    def state(self, session: AgentSession) -> dict[str, JsonValue]:
        """The provider's state in a session: a dict of JSON values to read and change, empty at first."""
        return session.state.setdefault(self.state_key, {})

    @abstractmethod
    async def provide(self, context: ProviderContext) -> ProvidedContext | None:
        """What this run gets in addition; `None` for nothing."""

    async def finished(self, run: FinishedRun) -> None:  # noqa: B027 - most providers need not hear of it
        """Hear that a run is over, however it ended. Called in order, for each provider that was asked."""

    def get_service(self, service_type: type[Service], key: object | None = None) -> Service | None:
        """What this provider offers of a type: itself if it is of that type, otherwise `None`."""
        return self if key is None and isinstance(self, service_type) else None
