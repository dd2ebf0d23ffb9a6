"""Stand-ins that record: an agent, an evaluator, and the two ways of running an agent."""

from __future__ import annotations

import asyncio
import gc
import sys
import weakref
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from agents_loop import (
    AgentResponse,
    AgentResponseStream,
    AgentResponseUpdate,
    AgentRunOptions,
    AgentSession,
    AIAgent,
    ChatMessage,
    LoopContext,
    LoopEvaluation,
    LoopEvaluator,
    TextContent,
    UsageContent,
    UsageDetails,
)


@dataclass
class Call:
    """One run of a recording agent, as it was asked for."""

    messages: list[ChatMessage]
    session: AgentSession | None
    options: AgentRunOptions | None
    streaming: bool

    @property
    def texts(self) -> list[str]:
        return [message.text for message in self.messages]


class Updates(list[AgentResponseUpdate]):
    """A reply as the pieces of a stream, yielded as they stand."""


Reply: TypeAlias = str | ChatMessage | AgentResponse | Updates | BaseException
"""What one run gives; an exception is raised, in a stream after its first piece."""


class RecordingAgent(AIAgent):
    """Answers from a script, run or streamed, and records how it was called and what was closed.

    Args:
        replies: One for each call, or one function of a call and its number; without any, `reply 1`, `reply 2`, ...
        usage: What each call reports.
        hang_at: The call that waits for `release`, in a stream after its first piece.
    """

    name = "recorder"

    def __init__(
        self,
        *replies: Reply,
        answer: Callable[[Call, int], Reply] | None = None,
        usage: UsageDetails | None = None,
        hang_at: int | None = None,
    ) -> None:
        self.id = "the-agent"
        self._replies = replies
        self._answer = answer
        self._usage = usage
        self._hang_at = hang_at
        self.calls: list[Call] = []
        self.closed: list[int] = []
        self.created: list[AgentSession] = []
        self.serialized: list[AgentSession] = []
        self.deserialized: list[AgentSession] = []
        self.reached, self.release = asyncio.Event(), asyncio.Event()

    @property
    def inputs(self) -> list[list[str]]:
        """The texts each call was sent."""
        return [call.texts for call in self.calls]

    @property
    def sessions(self) -> list[AgentSession | None]:
        return [call.session for call in self.calls]

    async def run_core(
        self, messages: list[ChatMessage], *, session: AgentSession | None, options: AgentRunOptions | None
    ) -> AgentResponse:
        number = self._record(messages, session, options, streaming=False)
        try:
            await self._hang(number)
            reply = self._reply(number)
            if isinstance(reply, BaseException):
                raise reply
            response = self._response(reply, number)
            self._remember(session, response)
            return response
        finally:
            self.closed.append(number)

    async def run_core_streaming(
        self, messages: list[ChatMessage], *, session: AgentSession | None, options: AgentRunOptions | None
    ) -> AsyncIterator[AgentResponseUpdate]:
        number = self._record(messages, session, options, streaming=True)
        try:
            reply = self._reply(number)
            if isinstance(reply, BaseException):
                yield AgentResponseUpdate("assistant", "half an ans", response_id=f"response-{number}")
                raise reply
            pieces = reply if isinstance(reply, Updates) else pieces_of(self._response(reply, number))
            for position, piece in enumerate(pieces):
                if position == 1:
                    await self._hang(number)
                yield piece
            self._remember(session, AgentResponse.from_updates(pieces))
        finally:
            self.closed.append(number)

    async def create_session(self) -> AgentSession:
        self.created.append(AgentSession())
        return self.created[-1]

    async def serialize_session(self, session: AgentSession) -> Any:
        self.serialized.append(session)
        return await super().serialize_session(session)

    async def deserialize_session(self, state: Any) -> AgentSession:
        self.deserialized.append(await super().deserialize_session(state))
        return self.deserialized[-1]

    def _record(
        self,
        messages: list[ChatMessage],
        session: AgentSession | None,
        options: AgentRunOptions | None,
        *,
        streaming: bool,
    ) -> int:
        self.calls.append(Call(list(messages), session, options, streaming))
        messages.clear()  # it is a list of its own: what the agent does with it is nobody's business
        return len(self.calls)

    async def _hang(self, number: int) -> None:
        if number == self._hang_at:
            self.reached.set()
            await self.release.wait()

    def _reply(self, number: int) -> Reply:
        if self._answer is not None:
            return self._answer(self.calls[number - 1], number)
        if not self._replies:
            return f"reply {number}"
        assert number <= len(self._replies), f"call {number}, and there are {len(self._replies)} replies"
        return self._replies[number - 1]

    def _response(self, reply: Reply, number: int) -> AgentResponse:
        if isinstance(reply, AgentResponse):
            return reply
        if isinstance(reply, Updates):
            return AgentResponse.from_updates(reply)
        message = reply if isinstance(reply, ChatMessage) else ChatMessage("assistant", reply)
        return AgentResponse([message], response_id=f"response-{number}", agent_id=self.id, usage=self._usage)

    def _remember(self, session: AgentSession | None, response: AgentResponse) -> None:
        if session is not None:
            session.state["runs"] = session.state.get("runs", 0) + 1
            session.messages += response.messages


def pieces_of(response: AgentResponse) -> list[AgentResponseUpdate]:
    """A response as a real stream brings it: texts in halves, why it ended, the usage last."""
    pieces: list[AgentResponseUpdate] = []
    for position, message in enumerate(response.messages):
        shared = {
            "author_name": message.author_name,
            "agent_id": response.agent_id,
            "response_id": response.response_id,
            "message_id": message.message_id or f"{response.response_id}/{position}",
        }
        for content in message.contents or [None]:
            if isinstance(content, TextContent):
                middle = len(content.text) // 2
                halves = [TextContent(content.text[:middle]), TextContent(content.text[middle:])]
                pieces += [AgentResponseUpdate(message.role, half, **shared) for half in halves]
            else:
                pieces.append(AgentResponseUpdate(message.role, content or [], **shared))
    if response.finish_reason is not None:
        pieces.append(AgentResponseUpdate(response_id=response.response_id, finish_reason=response.finish_reason))
    if response.usage is not None:
        pieces.append(AgentResponseUpdate(contents=UsageContent(response.usage), response_id=response.response_id))
    return pieces


@dataclass
class Seen:
    """What an evaluator saw when it was asked."""

    iteration: int
    session: AgentSession
    response: AgentResponse
    feedback: list[str | None]
    context: LoopContext


Word: TypeAlias = LoopEvaluation | BaseException


@dataclass
class ScriptedEvaluator(LoopEvaluator):
    """Says `words[n - 1]` after iteration n, and stop after the last of them. It records what it saw."""

    words: Sequence[Word] = ()
    seen: list[Seen] = field(default_factory=list)

    async def evaluate(self, context: LoopContext) -> LoopEvaluation:
        self.seen.append(
            Seen(context.iteration, context.session, context.last_response, list(context.feedback), context)
        )
        if context.iteration > len(self.words):
            return LoopEvaluation.stop()
        word = self.words[context.iteration - 1]
        if isinstance(word, BaseException):
            raise word
        return word

    @property
    def asked_at(self) -> list[int]:
        return [seen.iteration for seen in self.seen]


class HangingEvaluator(LoopEvaluator):
    """Never answers; it says when it was asked and how it ended."""

    def __init__(self) -> None:
        self.asked = asyncio.Event()
        self.ended_by: BaseException | None = None

    async def evaluate(self, context: LoopContext) -> LoopEvaluation:
        self.asked.set()
        try:
            await asyncio.Event().wait()
        except BaseException as error:
            self.ended_by = error
            raise
        raise AssertionError


def says(*words: str | LoopEvaluation | BaseException | None) -> ScriptedEvaluator:
    """An evaluator: a str goes on with that feedback, `None` goes on without."""
    return ScriptedEvaluator(
        [LoopEvaluation.continue_(word) if word is None or isinstance(word, str) else word for word in words]
    )


def always(word: LoopEvaluation) -> ScriptedEvaluator:
    """An evaluator that says the same a hundred times."""
    return ScriptedEvaluator([word] * 100)


@dataclass(frozen=True)
class Way:
    """One of the two ways to run an agent to its end."""

    streaming: bool

    async def __call__(self, agent: AIAgent, messages: Any = "the request", **given: Any) -> AgentResponse:
        if self.streaming:
            return await agent.run_streaming(messages, **given).final_response()
        return await agent.run(messages, **given)


WAYS = [Way(streaming=False), Way(streaming=True)]


async def drain(stream: AgentResponseStream) -> list[AgentResponseUpdate]:
    """All the pieces."""
    return [update async for update in stream]


def texts(messages: Sequence[ChatMessage]) -> list[tuple[str, str]]:
    """Roles and texts."""
    return [(str(message.role), message.text) for message in messages]


@asynccontextmanager
async def time_runs_out(after: Coroutine[Any, Any, object]) -> AsyncIterator[None]:
    """Moves the event loop's clock past every limit as soon as `after` is done: a limit is reached there, and nowhere else."""
    loop = asyncio.get_running_loop()
    real = loop.time

    async def jump() -> None:
        await after
        while all(timer.cancelled() for timer in loop._scheduled):  # type: ignore[attr-defined]  # noqa: ASYNC110 - no limit is set yet
            await asyncio.sleep(0)
        loop.time = lambda: real() + 1_000_000  # type: ignore[method-assign]

    jumping = asyncio.create_task(jump())
    try:
        yield
    finally:
        jumping.cancel()
        await asyncio.wait([jumping])
        vars(loop).pop("time", None)


@asynccontextmanager
async def leaving_nothing() -> AsyncIterator[None]:
    """Fails if a task is left when the block ends, or an async generator that is open or was left to the collector."""
    loop = asyncio.get_running_loop()
    hooks = sys.get_asyncgen_hooks()
    started: weakref.WeakSet[AsyncGenerator[Any, Any]] = weakref.WeakSet()
    abandoned: list[str] = []
    closing: list[asyncio.Task[None]] = []

    def finalizer(generator: AsyncGenerator[Any, Any]) -> None:
        abandoned.append(repr(generator))
        closing.append(loop.create_task(generator.aclose()))

    gc.collect()  # what earlier tests left may start tasks when it is collected: not within this block
    before = asyncio.all_tasks()
    sys.set_asyncgen_hooks(firstiter=started.add, finalizer=finalizer)
    try:
        yield
    finally:
        gc.collect()
        sys.set_asyncgen_hooks(*hooks)
    assert abandoned == []
    assert [generator for generator in started if generator.ag_frame is not None] == []
    assert asyncio.all_tasks() - before == set()
