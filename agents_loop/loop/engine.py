"""The one loop. `run`, `run_streaming` and `events` all read the events that it yields.

What it does step by step stands in the files beside it: `pausing` begins a run or goes on with one, `iteration` runs
the agent and asks the evaluators (`judgment`), `ending` says whether that was the last one, and `stopping` makes the
result. What they share is the `RunState`.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Coroutine
from contextlib import aclosing
from contextvars import Token
from typing import Any, TypeVar

from agents_loop.agent import AgentResponse, AgentSession
from agents_loop.loop.ending import take_step
from agents_loop.loop.events import (
    AgentResponded,
    AgentUpdated,
    EvaluatorDecided,
    IterationStarted,
    LoopEvent,
    LoopStarted,
)
from agents_loop.loop.iteration import (
    begin_agent,
    begin_iteration,
    begin_judgment,
    end_agent,
    end_judgment,
    prepare_next,
    record_of,
)
from agents_loop.loop.pausing import answer_at_hand, begin
from agents_loop.loop.result import LoopResult, attach_result
from agents_loop.loop.run_state import RunState
from agents_loop.loop.stopping import accepted, interrupted, stopped
from agents_loop.metering.meter import PHASE, Phase

T = TypeVar("T")


class LoopRun(RunState):
    """One run of a loop: its events. `RunState` says what it is made from."""

    __slots__ = ()

    async def events(self) -> AsyncGenerator[LoopEvent, None]:  # noqa: C901, PLR0912 - the one loop, in one piece
        """Run, and yield each fact as it happens. The result is set however the run ends."""
        tells, records, judgment = self.tells, self.records, self.judgment
        try:
            if tells:
                yield LoopStarted(self.run_id, self.messages, self.max_iterations)
            question = await begin(self)
            for update in answer_at_hand(self, question) if self.streaming else ():
                yield update
            if question is not None:
                yield accepted(self, question)
            is_plain = self.has_phase and not self.metered.is_timed
            while self.ending is None:
                response = begin_iteration(self)
                if response is None:
                    session = begin_agent(self)
                    if tells:
                        yield IterationStarted(self.number, *self.next_input)
                    if self.streaming:
                        given: list[AgentResponse] = []
                        async with aclosing(self._streamed(session, given)) as updates:
                            async for update in updates:
                                yield update
                        response = given[0]
                    else:
                        sent = list(self.next_input[0])
                        work = self.run_agent(sent, session=session, options=self.run_options)
                        response = await (work if is_plain else self._part(work))
                    end_agent(self, response)
                records.append(record_of(self, response))
                if tells:
                    yield AgentResponded(self.number, response)
                context = begin_judgment(self, response)
                if context is not None:
                    while judgment.goes_on:
                        words = judgment.next_words(context)
                        for evaluation in await (words if is_plain else self._part(words)):
                            yield EvaluatorDecided(self.number, evaluation)
                    end_judgment(self, context)
                    if self.stall is not None:
                        yield self.stall.event(self.number)
                        take_step(self, self.stall)
                if self.ending is None and prepare_next(self):
                    await self.metered.in_time(self.sessions.replacement())
            yield stopped(self, self.ending)
        except BaseException as error:
            if self.result is None:
                end = interrupted(self, error)
                if end is not None:
                    yield end
                    if end.response is not None:
                        return
            raise

    def _part(self, work: Coroutine[Any, Any, T]) -> Coroutine[Any, Any, T]:
        """A part of the run: its calls are in the ledger, and it ends at the deadline."""
        if self.metered.is_timed:
            work = self.metered.meter.in_time(work)
        return work if self.has_phase else self.metered.in_phase(work)

    async def _streamed(self, session: AgentSession, given: list[AgentResponse]) -> AsyncGenerator[AgentUpdated, None]:
        """The pieces of the agent's answer, as they come, and at their end the whole of it in `given`."""
        token = PHASE.set(self.metered.phase)
        try:
            stream = self.agent.run_streaming(self.next_input[0], session=session, options=self.run_options)
        finally:
            PHASE.reset(token)
        async with aclosing(stream), aclosing(self.metered.pieces(stream)) as pieces:
            async for update in pieces:
                yield AgentUpdated(self.number, update)
            given.append(await stream.final_response())

    # --- for who reads the events

    def timer(self) -> asyncio.Timeout:
        """What bounds the current coroutine by the run's deadline, once there is one; it raises nothing."""
        timer = self.metered.timer = asyncio.timeout(None)
        return timer

    def take_phase(self) -> Token[Phase | None]:
        """Let all that the current coroutine waits for be metered: for a caller that reads the events by itself.

        The engine can't do so for others: what it sets stays set in the code that gets an event from it.
        """
        self.has_phase = True
        return PHASE.set(self.metered.phase)

    def end(self, error: BaseException) -> None:
        """Let the result be read from the exception with which a caller left the run."""
        if self.result is not None and LoopResult.of(error) is None:
            attach_result(error, self.result, self.order)
