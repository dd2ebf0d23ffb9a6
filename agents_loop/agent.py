"""Agents: what turns messages into a response, within a session."""

from __future__ import annotations

import asyncio
import json
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import aclosing
from copy import copy
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Protocol, Self, TypeAlias, TypeVar, cast

from agents_loop.chat_client import ChatOptions
from agents_loop.errors import ConfigurationError, SessionStateError, StreamClosedError
from agents_loop.ids import new_id
from agents_loop.message_json import message_from_json, message_to_json
from agents_loop.messages import (
    ChatMessage,
    ChatRole,
    Content,
    JsonValue,
    UsageContent,
    UsageDetails,
    as_messages,
    join_text,
)
from agents_loop.streams import close_stream
from agents_loop.updates import ResponseUpdate, merge_updates

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


class AgentSession:
    """The conversation state an agent keeps between runs. It compares by identity.

    Args:
        session_id: The conversation's id; drawn when there is none.
        state: A dict of JSON values for whatever an agent wants to remember.

    `messages` is the conversation so far, for agents that keep it on this side. Only what serialises is kept by
    `serialize_session`: the id, the state and the messages.
    """

    __slots__ = ("__weakref__", "messages", "session_id", "state")

    def __init__(self, *, session_id: str | None = None, state: dict[str, JsonValue] | None = None) -> None:
        if state is not None and not isinstance(state, dict):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise TypeError(f"state must be a dict of JSON values, not {type(state).__name__}")
        self.session_id = session_id or new_id()
        self.state: dict[str, JsonValue] = {} if state is None else state
        self.messages: list[ChatMessage] = []

    def __repr__(self) -> str:
        return f"AgentSession(session_id={self.session_id!r}, {len(self.messages)} messages)"


@dataclass(slots=True, weakref_slot=True)
class AgentResponse:
    """What one run of an agent gave.

    `loop_result` is set where the run was a loop's; read it with `LoopResult.of(response)`.
    """

    messages: list[ChatMessage]
    response_id: str | None = field(default=None, kw_only=True)
    agent_id: str | None = field(default=None, kw_only=True)
    usage: UsageDetails | None = field(default=None, kw_only=True)
    finish_reason: str | None = field(default=None, kw_only=True)
    created_at: float | None = field(default=None, kw_only=True)
    """Seconds since the epoch."""
    additional_properties: dict[str, JsonValue] | None = field(default=None, kw_only=True)
    loop_result: object | None = field(default=None, init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        given: object = self.messages
        if type(given) is not list:
            self.messages = [ChatMessage(ChatRole.ASSISTANT, given)] if isinstance(given, str) else as_messages(given)  # pyright: ignore[reportArgumentType]

    @property
    def text(self) -> str:
        """The messages' texts, a line break between them."""
        return join_text(self.messages)

    @classmethod
    def from_updates(cls, updates: Iterable[AgentResponseUpdate]) -> AgentResponse:
        """The response that the pieces of a stream amount to."""
        listed = list(updates)
        merged = merge_updates(listed)
        return cls(
            merged.messages,
            response_id=merged.response_id,
            agent_id=next((update.agent_id for update in reversed(listed) if update.agent_id), None),
            usage=merged.usage,
            finish_reason=merged.finish_reason,
            created_at=merged.created_at,
            additional_properties=merged.additional_properties,
        )


@dataclass(slots=True, init=False)
class AgentResponseUpdate(ResponseUpdate):
    """A piece of an agent's streamed response.

    Args:
        role: Who speaks; `None` where an earlier piece said it.
        contents: A str, one content, or a sequence of both.
        agent_id: The agent that speaks; `None` for a message that was sent to it.
        author_name: As in `ResponseUpdate`, like the rest.
    """

    agent_id: str | None

    def __init__(
        self,
        role: str | None = None,
        contents: str | Content | Sequence[str | Content] = (),
        *,
        author_name: str | None = None,
        agent_id: str | None = None,
        response_id: str | None = None,
        message_id: str | None = None,
        finish_reason: str | None = None,
        created_at: float | None = None,
        additional_properties: dict[str, JsonValue] | None = None,
    ) -> None:
        ResponseUpdate.__init__(
            self,
            role,
            contents,
            author_name=author_name,
            response_id=response_id,
            message_id=message_id,
            finish_reason=finish_reason,
            created_at=created_at,
            additional_properties=additional_properties,
        )
        self.agent_id = agent_id


class StreamedRun(Protocol):
    """The run behind a stream, where there is more to it than its pieces."""

    def end(self, error: BaseException) -> None:
        """Hear of the exception with which a caller left the stream."""


class AgentResponseStream:
    """The pieces of a run as they come.

    An async iterator, and an async context manager that closes the run. Nothing starts until it is iterated.
    Closing it early closes what the agent had open; it does not finish the run.

    Args:
        updates: The pieces, usually an async generator.
        final: Gives the whole response once the pieces are exhausted; by default the pieces are merged.
        run: The run behind the stream, if there is more to it than its pieces.
    """

    def __init__(
        self,
        updates: AsyncIterator[AgentResponseUpdate],
        final: Callable[[], AgentResponse] | None = None,
        *,
        run: StreamedRun | None = None,
    ) -> None:
        self._updates = updates
        self._final = final
        self._seen: list[AgentResponseUpdate] = []
        self._is_whole = False
        self._is_closed = False
        self._error: BaseException | None = None
        self.run = run

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> AgentResponseUpdate:
        try:
            update = await anext(self._updates)
        except StopAsyncIteration:
            self._is_whole = self._is_whole or not self._is_closed
            raise
        except BaseException as error:
            self._error = error
            raise
        if self._final is None:
            self._seen.append(update)
        return update

    async def final_response(self) -> AgentResponse:
        """Run to the end, if it is not there yet, and give the whole response.

        Raises:
            StreamClosedError: The stream was closed before its end.
            Exception: What ended the run, also when it is asked for again.
        """
        if self._error is None:
            async for _ in self:
                pass
        if self._error is not None:
            raise self._error
        if not self._is_whole:
            raise StreamClosedError("the stream was closed before its end, so there is no final response")
        return AgentResponse.from_updates(self._seen) if self._final is None else self._final()

    async def aclose(self) -> None:
        """Close the run. Whatever the agent had open is closed before this returns."""
        self._is_closed = True
        await close_stream(self._updates)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()
        if error is not None and self.run is not None:
            self.run.end(error)


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
        stored: dict[str, JsonValue] = {
            "session_id": session.session_id,
            "state": session.state,
        }
        try:
            stored["messages"] = [message_to_json(message) for message in session.messages]
            return json.loads(json.dumps(stored, allow_nan=False))
        except (TypeError, ValueError) as error:
            raise SessionStateError(
                f"session {session.session_id!r} holds what is not a JSON value: {error}"
            ) from error

    async def deserialize_session(self, state: JsonValue) -> AgentSession:
        """A new session from what `serialize_session` gave.

        Raises:
            SessionStateError: The value is not one of `serialize_session`.
        """
        if not isinstance(state, Mapping):
            raise SessionStateError(f"a stored session must be an object, not {type(state).__name__}")
        try:
            stored: dict[str, Any] = json.loads(json.dumps(state))
        except (TypeError, ValueError) as error:
            raise SessionStateError(f"a stored session holds what is not a JSON value: {error}") from error
        session_id, kept, messages = stored.get("session_id"), stored.get("state", {}), stored.get("messages", [])
        if not isinstance(session_id, str | None) or not isinstance(kept, dict) or not isinstance(messages, list):
            raise SessionStateError("a stored session needs a str `session_id`, an object `state`, a list `messages`")
        session = AgentSession(session_id=session_id, state=cast("dict[str, JsonValue]", kept))
        session.messages = [message_from_json(message) for message in cast("list[Any]", messages)]
        return session

    def get_service(self, service_type: type[Service], key: object | None = None) -> Service | None:
        """What this agent offers of a type: itself if it is of that type, otherwise `None`."""
        return self if key is None and isinstance(self, service_type) else None


def updates_of(response: AgentResponse) -> list[AgentResponseUpdate]:
    """A response as the pieces of a stream: one for each message, and one for its usage and its other fields."""
    pieces = [
        AgentResponseUpdate(
            message.role,
            message.contents,
            author_name=message.author_name,
            agent_id=response.agent_id,
            response_id=response.response_id,
            message_id=message.message_id or new_id(),
        )
        for message in response.messages
    ]
    closing = AgentResponseUpdate(
        contents=[] if response.usage is None else [UsageContent(response.usage)],
        agent_id=response.agent_id,
        response_id=response.response_id,
        finish_reason=response.finish_reason,
        created_at=response.created_at,
        additional_properties=response.additional_properties,
    )
    has_more = closing.contents or closing.finish_reason or closing.created_at or closing.additional_properties
    return [*pieces, closing] if has_more else pieces


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
        """Stream as `run_core_streaming` says; where it is not overridden this is the inner agent's own stream."""
        if type(self).run_core_streaming is DelegatingAIAgent.run_core_streaming:
            return self.inner_agent.run_streaming(messages, session=session, options=options)
        return super().run_streaming(messages, session=session, options=options)

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

    def get_service(self, service_type: type[Service], key: object | None = None) -> Service | None:
        """This agent if it is of that type, otherwise what the inner agent offers."""
        own = super().get_service(service_type, key)
        return self.inner_agent.get_service(service_type, key) if own is None else own


def with_fields(response: AgentResponse, messages: list[ChatMessage], usage: UsageDetails | None) -> AgentResponse:
    """A copy of a response, of the same type and with the same fields, but for its messages and usage."""
    changed = copy(response)
    changed.messages = messages
    changed.usage = usage
    return changed
