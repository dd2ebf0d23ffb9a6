"""What one run of an agent gives: a response, or its pieces as they come."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from copy import copy
from dataclasses import dataclass, field
from functools import partial
from types import TracebackType
from typing import Protocol, Self, Unpack

from agents_loop.chat_client import ChatResponse, ChatResponseUpdate
from agents_loop.errors import StreamClosedError
from agents_loop.messages import (
    ChatMessage,
    Content,
    UsageDetails,
)
from agents_loop.streams import close_stream
from agents_loop.updates import Response, ResponseUpdate, UpdateFields, merge_updates, split


@dataclass(slots=True, weakref_slot=True)
class AgentResponse(Response):
    """What one run of an agent gave.

    `loop_result` is set where the run was a loop's; read it with `LoopResult.of(response)`.
    """

    agent_id: str | None = field(default=None, kw_only=True)
    loop_result: object | None = field(default=None, init=False, compare=False, repr=False)

    @classmethod
    def from_chat(cls, answer: ChatResponse, messages: list[ChatMessage], *, agent_id: str | None) -> AgentResponse:
        """A model's answer as the answer of the agent that asked it.

        Args:
            answer: The model's.
            messages: Its messages, as the agent gives them; not looked at again.
            agent_id: The agent's.
        """
        response = object.__new__(cls)  # field by field: keywords would cost more than all the rest
        response.messages = messages
        response.response_id = answer.response_id
        response.usage = answer.usage
        response.finish_reason = answer.finish_reason
        response.created_at = answer.created_at
        response.additional_properties = answer.additional_properties
        response.agent_id, response.loop_result = agent_id, None
        return response

    @classmethod
    def from_updates(cls, updates: Iterable[AgentResponseUpdate]) -> AgentResponse:
        """The response that the pieces of a stream amount to."""
        listed = list(updates)
        agent_id = next((update.agent_id for update in reversed(listed) if update.agent_id), None)
        return cls([], agent_id=agent_id).take(merge_updates(listed))


@dataclass(slots=True, init=False)
class AgentResponseUpdate(ResponseUpdate):
    """A piece of an agent's streamed response.

    Args:
        role: Who speaks; `None` where an earlier piece said it.
        contents: A str, one content, or a sequence of both.
        agent_id: The agent that speaks; `None` for a message that was sent to it.
        **fields: As in `ResponseUpdate`.
    """

    agent_id: str | None

    def __init__(
        self,
        role: str | None = None,
        contents: str | Content | Sequence[str | Content] = (),
        *,
        agent_id: str | None = None,
        **fields: Unpack[UpdateFields],
    ) -> None:
        ResponseUpdate.__init__(self, role, contents, **fields)
        self.agent_id = agent_id

    @classmethod
    def from_chat(
        cls, piece: ChatResponseUpdate, *, agent_id: str | None, author_name: str | None = None
    ) -> AgentResponseUpdate:
        """A piece of a model's answer as a piece of the answer of the agent that asked it."""
        return cls(
            piece.role,
            piece.contents,
            author_name=piece.author_name or author_name,
            agent_id=agent_id,
            response_id=piece.response_id,
            message_id=piece.message_id,
            finish_reason=piece.finish_reason,
            created_at=piece.created_at,
            additional_properties=piece.additional_properties,
        )


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
            closed = StreamClosedError("the stream was closed before its end, so there is no final response")
            if self.run is not None:
                self.run.end(closed)
            raise closed
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


def updates_of(response: AgentResponse) -> list[AgentResponseUpdate]:
    """A response as the pieces of a stream: one for each message, and one for its usage and its other fields."""
    return split(response, partial(AgentResponseUpdate, agent_id=response.agent_id))


def with_fields(response: AgentResponse, messages: list[ChatMessage], usage: UsageDetails | None) -> AgentResponse:
    """A copy of a response, of the same type and with the same fields, but for its messages and usage."""
    if type(response) is not AgentResponse:
        changed = copy(response)
        changed.messages, changed.usage = messages, usage
        return changed
    changed = AgentResponse(messages, usage=usage, agent_id=response.agent_id, response_id=response.response_id)
    changed.finish_reason = response.finish_reason
    changed.created_at = response.created_at
    changed.additional_properties = response.additional_properties
    changed.loop_result = response.loop_result
    return changed
