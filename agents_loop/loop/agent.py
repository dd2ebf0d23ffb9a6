"""The agent that re-invokes another until its evaluators stop asking for more."""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Sequence
from contextlib import aclosing, asynccontextmanager
from typing import ClassVar, Protocol, Self

from agents_loop.adapting import AgentLike, as_agent
from agents_loop.agent import (
    AgentResponse,
    AgentResponseStream,
    AgentResponseUpdate,
    AgentRunOptions,
    AgentSession,
    AIAgent,
    DelegatingAIAgent,
    Messages,
)
from agents_loop.errors import ConfigurationError
from agents_loop.loop.engine import LoopRun
from agents_loop.loop.evaluator import LoopEvaluator
from agents_loop.loop.events import AgentResponded, AgentUpdated, IterationStarted, LoopEvent, LoopStopped
from agents_loop.loop.options import DEFAULT_MAX_ITERATIONS, LoopAgentOptions
from agents_loop.loop.result import LoopResult
from agents_loop.loop.transcript import on_behalf_of_updates
from agents_loop.messages import ChatMessage, as_messages
from agents_loop.metering.meter import PHASE

_LOGGER = logging.getLogger("agents_loop")


class HasResult(Protocol):
    """A run."""

    @property
    def result(self) -> LoopResult | None:
        """How it went; `None` while it goes on."""
        ...


class LoopEvents:
    """The events of a run, as they happen: an async iterator. `result` is set once the run is over."""

    def __init__(self, run: HasResult, events: AsyncIterator[LoopEvent]) -> None:
        self._run = run
        self._events = events

    @property
    def result(self) -> LoopResult | None:
        """How the run went; `None` while it goes on."""
        return self._run.result

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> LoopEvent:
        return await anext(self._events)


class LoopAgent(DelegatingAIAgent):
    """Runs an agent again and again until its evaluators stop asking for more.

    It holds no state of a run, so one instance serves any number of runs at once. Why a run ended, and everything else
    about it, stands in its `LoopResult`: `LoopResult.of(response)`, or `LoopResult.of(error)` where it raised.

    Args:
        inner_agent: The agent to run: an `AIAgent`, or whatever `as_agent` makes one of.
        evaluators: One evaluator, or several in order.
        options: How the loop runs.
        logger: Told when the cap ends a run; by default the logger `agents_loop`.

    Raises:
        TypeError: The agent or an evaluator is `None` or of another type.
        ConfigurationError: There is no evaluator.
    """

    DEFAULT_MAX_ITERATIONS: ClassVar[int] = DEFAULT_MAX_ITERATIONS

    def __init__(
        self,
        inner_agent: AgentLike,
        evaluators: LoopEvaluator | Sequence[LoopEvaluator],
        options: LoopAgentOptions | None = None,
        *,
        logger: logging.Logger | None = None,
    ) -> None:
        super().__init__(as_agent(inner_agent, name="inner_agent"))
        self.evaluators = _checked_evaluators(evaluators)
        self.options = LoopAgentOptions() if options is None else options
        if not isinstance(self.options, LoopAgentOptions):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise TypeError(f"options must be LoopAgentOptions, not {type(options).__name__}")
        self._logger = _LOGGER if logger is None else logger

    @property
    def max_iterations(self) -> int:
        """How often the inner agent is run at most."""
        cap = self.options.max_iterations
        return self.DEFAULT_MAX_ITERATIONS if cap is None else cap

    async def run_core(
        self, messages: list[ChatMessage], *, session: AgentSession | None, options: AgentRunOptions | None
    ) -> AgentResponse:
        """Run the loop. The response holds the transcript; its usage is the agent's, summed."""
        run = self._new_run(messages, session, options, streaming=False, tells=False)
        token = run.take_phase()
        try:
            if not self.options.budget and not self.options.resume_budget:
                return await _response_of(run)
            async with run.timer():
                return await _response_of(run)
        finally:
            PHASE.reset(token)

    def run_streaming(
        self,
        messages: Messages = None,
        *,
        session: AgentSession | None = None,
        options: AgentRunOptions | None = None,
    ) -> AgentResponseStream:
        """Run the loop and give each iteration's response in pieces, as they come."""
        if type(self).run_core_streaming is not LoopAgent.run_core_streaming:
            return AIAgent.run_streaming(self, messages, session=session, options=options)
        return self._stream(as_messages(messages), session, options)

    def _stream(
        self, messages: list[ChatMessage], session: AgentSession | None, options: AgentRunOptions | None
    ) -> AgentResponseStream:
        run = self._new_run(messages, session, options, streaming=True)
        stopped: list[AgentResponse] = []
        return AgentResponseStream(_updates(run, self.options, stopped), lambda: stopped[0], run=run)

    async def run_core_streaming(
        self, messages: list[ChatMessage], *, session: AgentSession | None, options: AgentRunOptions | None
    ) -> AsyncIterator[AgentResponseUpdate]:
        """The pieces of `run_streaming`."""
        async with aclosing(self._stream(messages, session, options)) as stream:
            async for update in stream:
                yield update

    @asynccontextmanager
    async def events(
        self,
        messages: Messages = None,
        *,
        session: AgentSession | None = None,
        options: AgentRunOptions | None = None,
        streaming: bool = False,
    ) -> AsyncGenerator[LoopEvents, None]:
        """Run the loop and give its events as they happen.

            async with loop.events("Write a haiku") as events:
                async for event in events: ...

        Leaving the block early closes the run.

        Args:
            messages: The caller's.
            session: The conversation, if there is one already.
            options: Handed to every inner run.
            streaming: Whether the inner agent is streamed, so that there are `AgentUpdated` events.
        """
        run = self._new_run(as_messages(messages), session, options, streaming=streaming)
        try:
            async with aclosing(run.events()) as events:
                yield LoopEvents(run, events)
        except BaseException as error:
            run.end(error)
            raise

    def _new_run(
        self,
        messages: list[ChatMessage],
        session: AgentSession | None,
        options: AgentRunOptions | None,
        *,
        streaming: bool,
        tells: bool = True,
    ) -> LoopRun:
        return LoopRun(
            self.inner_agent,
            self.evaluators,
            self.options,
            self.max_iterations,
            self._logger,
            messages=messages,
            session=session,
            run_options=options,
            streaming=streaming,
            tells=tells,
        )


async def _response_of(run: LoopRun) -> AgentResponse:
    """The response with which a run ends; one without raises."""
    response: AgentResponse | None = None
    async for event in run.events():
        if isinstance(event, LoopStopped):
            response = event.response
    assert response is not None  # noqa: S101 - the run would have raised
    return response


async def _updates(
    run: LoopRun, options: LoopAgentOptions, stopped: list[AgentResponse]
) -> AsyncGenerator[AgentResponseUpdate, None]:
    """The pieces of a run, from its events: each inner update, and before an iteration's first what drove it."""
    waiting: tuple[ChatMessage, ...] = ()
    async with aclosing(run.events()) as events:
        async for event in events:
            match event:
                case IterationStarted():
                    waiting = () if options.exclude_on_behalf_of_messages else event.on_behalf_of
                case AgentUpdated():
                    for update in on_behalf_of_updates(waiting, event.update.response_id):
                        yield update
                    waiting = ()
                    yield event.update
                case AgentResponded():
                    for update in on_behalf_of_updates(waiting, event.response.response_id or options.new_id()):
                        yield update
                    waiting = ()
                case LoopStopped(response=AgentResponse() as response):
                    stopped.append(response)
                case _:
                    pass


def _checked_evaluators(evaluators: LoopEvaluator | Sequence[LoopEvaluator]) -> tuple[LoopEvaluator, ...]:
    if evaluators is None:  # pyright: ignore[reportUnnecessaryComparison]
        raise TypeError("evaluators must not be None: pass one evaluator, or several in order")
    if isinstance(evaluators, LoopEvaluator):
        return (evaluators,)
    if not isinstance(evaluators, Iterable):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise TypeError(f"evaluators must be a LoopEvaluator or several in order, not {evaluators!r}")
    listed = tuple(evaluators)
    if not listed:
        raise ConfigurationError("evaluators must not be empty: a loop needs at least one")
    for evaluator in listed:
        if not isinstance(evaluator, LoopEvaluator):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise TypeError(f"evaluators must hold LoopEvaluator, not {type(evaluator).__name__}: {evaluator!r}")
    return listed
