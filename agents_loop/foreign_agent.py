"""What adapters of other frameworks' agents share: their conversation in a session, and one door to streaming."""

from __future__ import annotations

import asyncio
import json
from abc import abstractmethod
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import aclosing
from dataclasses import replace
from typing import Any, ClassVar, Generic, TypeVar, cast
from weakref import WeakKeyDictionary, WeakValueDictionary

from agents_loop.agent import (
    AgentResponse,
    AgentResponseStream,
    AgentResponseUpdate,
    AgentRunOptions,
    AgentSession,
    AIAgent,
    Messages,
)
from agents_loop.errors import SessionStateError
from agents_loop.ids import new_id
from agents_loop.messages import ChatMessage, JsonValue, as_messages
from agents_loop.metering.unseen import UnseenRun, length

Conversation = TypeVar("Conversation")

_conversations: WeakKeyDictionary[AgentSession, dict[str, Any]] = WeakKeyDictionary()
"""The live conversations of each session, by framework. They go with their session."""
_readings: WeakKeyDictionary[AgentSession, WeakValueDictionary[str, asyncio.Lock]] = WeakKeyDictionary()
"""What lets one run at a time read a conversation. A lock is there for as long as a run uses it."""


class ForeignAgent(AIAgent, Generic[Conversation]):
    """An agent of another framework.

    A session holds the framework's own conversation: any adapter of the same framework finds it there again. It is
    written with the session by `serialize_session`, and read back when a session that was written is first used.

    A subclass says how a conversation is made, written and read, and implements `run_core` and `stream`. A message
    whose id the framework does not give gets one, the same that its pieces had.
    """

    framework: ClassVar[str]
    """Under which key of a session's state the conversation is written."""

    @abstractmethod
    def new_conversation(self) -> Conversation:
        """A conversation that has not begun."""

    @abstractmethod
    async def write_conversation(self, conversation: Conversation) -> JsonValue:
        """The conversation as a JSON value that shares nothing with it."""

    @abstractmethod
    async def read_conversation(self, state: JsonValue) -> Conversation:
        """A conversation from what `write_conversation` gave."""

    @abstractmethod
    def stream(
        self,
        messages: list[ChatMessage],
        *,
        session: AgentSession | None,
        options: AgentRunOptions | None,
        given: list[AgentResponse],
    ) -> AsyncGenerator[AgentResponseUpdate, None]:
        """One run in pieces. At its end it puts the whole response, as `run_core` would give it, into `given`."""

    async def run(
        self, messages: Messages = None, *, session: AgentSession | None = None, options: AgentRunOptions | None = None
    ) -> AgentResponse:
        """Run once and give the whole response. Within a run of a loop it is a call of that run, whoever makes it."""
        listed = as_messages(messages)
        sent, call = length(listed), UnseenRun()
        try:
            with call.under_way():
                response = await self.run_core(listed, session=session, options=options)
        except BaseException as error:
            call.fail(error)
            raise
        call.end(response.usage, lambda: (sent, length(response.messages)))
        return response

    def run_streaming(
        self, messages: Messages = None, *, session: AgentSession | None = None, options: AgentRunOptions | None = None
    ) -> AgentResponseStream:
        """Run once and give the response in pieces. The final response is the framework's own."""
        given: list[AgentResponse] = []
        seen: dict[str, None] = {}
        listed = as_messages(messages)

        async def updates() -> AsyncGenerator[AgentResponseUpdate, None]:
            sent, call = length(listed), UnseenRun()
            try:
                async with aclosing(self.stream(listed, session=session, options=options, given=given)) as pieces:
                    while True:
                        try:
                            with call.under_way():
                                update = await anext(pieces)
                        except StopAsyncIteration:
                            break
                        if update.message_id:
                            seen[update.message_id] = None
                        yield update
            except BaseException as error:
                call.fail(error)
                raise
            call.end(given[0].usage, lambda: (sent, length(given[0].messages)))

        return AgentResponseStream(updates(), lambda: with_ids(given[0], list(seen)))

    async def run_core_streaming(
        self, messages: list[ChatMessage], *, session: AgentSession | None, options: AgentRunOptions | None
    ) -> AsyncIterator[AgentResponseUpdate]:
        """The pieces of `run_streaming`."""
        async with aclosing(self.run_streaming(messages, session=session, options=options)) as stream:
            async for update in stream:
                yield update

    async def conversation(self, session: AgentSession | None) -> Conversation:
        """The framework's conversation of a session; a new one where there is no session, or none in it yet.

        What was written stays in the session until it has been read, so a read that fails can be tried again.
        """
        if session is None:
            return self.new_conversation()
        kept = _conversations.setdefault(session, {})
        if self.framework not in kept:
            reading = _readings.setdefault(session, WeakValueDictionary()).setdefault(self.framework, asyncio.Lock())
            async with reading:
                if self.framework not in kept:
                    read = await self._read(session.state.get(self.framework))
                    kept.setdefault(self.framework, read)  # another may have been put there meanwhile
                    session.state.pop(self.framework, None)
        return cast("Conversation", kept[self.framework])

    def keep(self, session: AgentSession | None, conversation: Conversation) -> None:
        """Let a session hold a conversation in place of the one it has."""
        if session is not None:
            _conversations.setdefault(session, {})[self.framework] = conversation

    async def serialize_session(self, session: AgentSession) -> JsonValue:
        """The session, with the framework's conversation in its state."""
        written = await super().serialize_session(session)
        kept = _conversations.get(session, {})
        if self.framework in kept:
            written["state"][self.framework] = await self.write_conversation(kept[self.framework])
        return written

    async def restore_session(self, session: AgentSession, state: JsonValue) -> None:
        """The session as it was written; its conversation is read from that when it is next used."""
        await super().restore_session(session, state)
        _conversations.get(session, {}).pop(self.framework, None)

    async def _read(self, state: JsonValue) -> Conversation:
        if state is None:
            return self.new_conversation()
        if not isinstance(state, Mapping):
            raise SessionStateError(f"the session's {self.framework!r} is no conversation that was written: {state!r}")
        return await self.read_conversation(state)


def json_copy(value: object) -> JsonValue:
    """A copy of a value that is JSON.

    Raises:
        SessionStateError: It is not.
    """
    try:
        return json.loads(json.dumps(value, allow_nan=False))
    except (TypeError, ValueError) as error:
        raise SessionStateError(f"the conversation holds what is not a JSON value: {error}") from error


def with_ids(response: AgentResponse, ids: list[str] | None = None) -> AgentResponse:
    """A response whose messages all have ids: those of the stream's messages, if there are as many, else new ones."""
    messages = response.messages
    known: list[str | None] = list(ids) if ids is not None and len(ids) == len(messages) else [None] * len(messages)
    response.messages = [
        message if message.message_id else replace(message, message_id=known_id or new_id())
        for message, known_id in zip(messages, known, strict=True)
    ]
    return response
