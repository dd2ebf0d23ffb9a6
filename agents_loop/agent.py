"""Agents: what turns messages into a response, within a session."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any, TypeAlias, TypeVar

from agents_loop.agent_response import AgentResponse, AgentResponseStream, AgentResponseUpdate, updates_of
from agents_loop.agent_session import AgentSession, session_from_json, session_to_json
from agents_loop.chat_client import ChatOptions
from agents_loop.errors import ConfigurationError
from agents_loop.ids import new_id
from agents_loop.messages import ChatMessage, JsonValue, as_messages

__all__ = [
    "AIAgent",
    "AgentResponse",
    "AgentResponseStream",
    "AgentResponseUpdate",
    "AgentRunOptions",
    "AgentSession",
    "DelegatingAIAgent",
    "Messages",
    "Service",
]

Messages: TypeAlias = str | ChatMessage | Sequence[str | ChatMessage] | None
"""What a caller may pass: nothing, a str (a user message), one message, or several of both."""

Service = TypeVar("Service")


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentRunOptions:
    """What a caller asks of one run."""

    chat_options: ChatOptions | None = None
    """For agents that call a chat client: laid over the agent's own options."""
    additional_properties: Mapping[str, Any] | None = None
    """Whatever a caller and an agent agree on."""


class AIAgent(ABC):
    """Something that turns messages into a response.

    A subclass implements `run_core` alone. `name` and `description` may be set on the class or the instance.
    """

    name: str | None = None
    description: str | None = None
    _id: str | None = None

    @property
    def id(self) -> str:
        """The agent's id: drawn when it is first asked for, and kept."""
        if self._id is None:
            self._id = new_id()
        return self._id

    @id.setter
    def id(self, value: str) -> None:
        self._id = value

    async def run(
        self,
        messages: Messages = None,
        *,
        session: AgentSession | None = None,
        options: AgentRunOptions | None = None,
    ) -> AgentResponse:
        """Run once and give the whole response.

        Args:
            messages: What is new in the conversation.
            session: The conversation; without one the agent runs as in a conversation of its own.
            options: What the caller asks of this run.
        """
        return await self.run_core(as_messages(messages), session=session, options=options)

    def run_streaming(
        self,
        messages: Messages = None,
        *,
        session: AgentSession | None = None,
        options: AgentRunOptions | None = None,
    ) -> AgentResponseStream:
        """Run once and give the response in pieces, as they come. Nothing starts until it is iterated."""
        listed = as_messages(messages)
        if type(self).run_core_streaming is AIAgent.run_core_streaming:
            return _stream_of_run(self, listed, session, options)
        return AgentResponseStream(self.run_core_streaming(listed, session=session, options=options))

    def run_sync(
        self,
        messages: Messages = None,
        *,
        session: AgentSession | None = None,
        options: AgentRunOptions | None = None,
    ) -> AgentResponse:
        """`run`, for scripts.

        Raises:
            ConfigurationError: An event loop is running in this thread; `await agent.run(...)` there.
        """
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            return asyncio.run(self.run(messages, session=session, options=options))
        raise ConfigurationError("run_sync() can't be used inside a running event loop: await run() instead")

    @abstractmethod
    async def run_core(
        self, messages: list[ChatMessage], *, session: AgentSession | None, options: AgentRunOptions | None
    ) -> AgentResponse:
        """What the agent does: one run. `messages` is a list of its own."""

    async def run_core_streaming(
        self, messages: list[ChatMessage], *, session: AgentSession | None, options: AgentRunOptions | None
    ) -> AsyncIterator[AgentResponseUpdate]:
        """The same run in pieces. By default: one update a message of `run_core`."""
        for update in updates_of(await self.run_core(messages, session=session, options=options)):
            yield update

    async def create_session(self) -> AgentSession:
        """A new conversation with this agent."""
        return AgentSession()

    async def serialize_session(self, session: AgentSession) -> JsonValue:
        """The session as a JSON value. Later changes of the session don't reach it.

        Raises:
            SessionStateError: The session's state holds something that is not a JSON value.
        """
        return session_to_json(session)

    async def deserialize_session(self, state: JsonValue) -> AgentSession:
        """A new session from what `serialize_session` gave.

        Raises:
            SessionStateError: The value is not one of `serialize_session`.
        """
        return session_from_json(state)

    async def restore_session(self, session: AgentSession, state: JsonValue) -> None:
        """Make a session what `serialize_session` gave of another, or of itself earlier; it stays the same object.

        An agent whose sessions hold more than an id, a state and messages overrides it.

        Raises:
            SessionStateError: The value is not one of `serialize_session`. Then the session is as it was.
        """
        read = await self.deserialize_session(state)
        session.session_id, session.state, session.messages = read.session_id, read.state, read.messages

    def get_service(self, service_type: type[Service], key: object | None = None) -> Service | None:
        """What this agent offers of a type: itself if it is of that type, otherwise `None`."""
        return self if key is None and isinstance(self, service_type) else None


def _stream_of_run(
    agent: AIAgent, messages: list[ChatMessage], session: AgentSession | None, options: AgentRunOptions | None
) -> AgentResponseStream:
    """Stream an agent that can't: its whole response, in pieces; the final response is the very one it gave."""
    given: list[AgentResponse] = []

    async def updates() -> AsyncGenerator[AgentResponseUpdate, None]:
        given.append(await agent.run_core(messages, session=session, options=options))
        for update in updates_of(given[0]):
            yield update

    return AgentResponseStream(updates(), lambda: given[0])


class DelegatingAIAgent(AIAgent):
    """An agent that wraps another: the way to extend one. Its identity, sessions and services are the inner agent's.

    Args:
        inner_agent: The agent that is wrapped.
    """

    def __init__(self, inner_agent: AIAgent) -> None:
        if not isinstance(inner_agent, AIAgent):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise TypeError(f"inner_agent must be an AIAgent, not {type(inner_agent).__name__}")
        self.inner_agent = inner_agent

    @property
    def id(self) -> str:  # pyright: ignore[reportIncompatibleVariableOverride, reportIncompatibleMethodOverride]
        """The inner agent's id."""
        return self.inner_agent.id

    @property
    def name(self) -> str | None:  # pyright: ignore[reportIncompatibleVariableOverride]
        """The inner agent's name."""
        return self.inner_agent.name

    @property
    def description(self) -> str | None:  # pyright: ignore[reportIncompatibleVariableOverride]
        """The inner agent's description."""
        return self.inner_agent.description

    async def run_core(
        self, messages: list[ChatMessage], *, session: AgentSession | None, options: AgentRunOptions | None
    ) -> AgentResponse:
        """Run the inner agent."""
        return await self.inner_agent.run(messages, session=session, options=options)

    def run_streaming(
        self,
        messages: Messages = None,
        *,
        session: AgentSession | None = None,
        options: AgentRunOptions | None = None,
    ) -> AgentResponseStream:
        """Stream as `run_core_streaming` says; where it is not overridden this is the inner agent's own stream.

        A subclass that overrides `run_core` alone is not bypassed: its whole response is what is streamed.
        """
        if type(self).run_core_streaming is not DelegatingAIAgent.run_core_streaming:
            return super().run_streaming(messages, session=session, options=options)
        if type(self).run_core is not DelegatingAIAgent.run_core:
            return _stream_of_run(self, as_messages(messages), session, options)
        return self.inner_agent.run_streaming(messages, session=session, options=options)

    async def run_core_streaming(
        self, messages: list[ChatMessage], *, session: AgentSession | None, options: AgentRunOptions | None
    ) -> AsyncIterator[AgentResponseUpdate]:
        """Stream the inner agent."""
        async with aclosing(self.inner_agent.run_streaming(messages, session=session, options=options)) as stream:
            async for update in stream:
                yield update

    async def create_session(self) -> AgentSession:
        """A new conversation with the inner agent."""
        return await self.inner_agent.create_session()

    async def serialize_session(self, session: AgentSession) -> JsonValue:
        """The session as the inner agent writes it."""
        return await self.inner_agent.serialize_session(session)

    async def deserialize_session(self, state: JsonValue) -> AgentSession:
        """A session as the inner agent reads it."""
        return await self.inner_agent.deserialize_session(state)

    async def restore_session(self, session: AgentSession, state: JsonValue) -> None:
        """Make a session what the inner agent wrote of another."""
        await self.inner_agent.restore_session(session, state)

    def get_service(self, service_type: type[Service], key: object | None = None) -> Service | None:
        """This agent if it is of that type, otherwise what the inner agent offers."""
        own = super().get_service(service_type, key)
        return self.inner_agent.get_service(service_type, key) if own is None else own
