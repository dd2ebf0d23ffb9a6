"""The one loop. `run`, `run_streaming` and `events` all read the events that it yields."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Coroutine, Iterator, Sequence
from contextlib import aclosing
from contextvars import Token
from typing import Any, TypeVar

from agents_loop.agent import AgentResponse, AgentResponseStream, AgentRunOptions, AgentSession, AIAgent
from agents_loop.agent_response import updates_of
from agents_loop.errors import BudgetExceededError, ConfigurationError, EvaluatorFailedError
from agents_loop.loop.answer import answer_text
from agents_loop.loop.asking import Outcome, outcome_of
from agents_loop.loop.bad_response import NUDGES, BadResponse, bad_response_of
from agents_loop.loop.context import FeedbackLog, LoopContext
from agents_loop.loop.evaluator import LoopEvaluator
from agents_loop.loop.events import (
    AgentResponded,
    AgentUpdated,
    EvaluatorDecided,
    IterationStarted,
    LoopEvent,
    LoopStarted,
    LoopStopped,
)
from agents_loop.loop.judgment import Judgment
from agents_loop.loop.metered_run import MeteredRun
from agents_loop.loop.next_input import next_input, nudged_input
from agents_loop.loop.options import LoopAgentOptions
from agents_loop.loop.questions import Question, is_acceptance
from agents_loop.loop.result import (
    RUN_ORDERS,
    IterationRecord,
    LoopResult,
    StopReason,
    attach_result,
    best_of,
    inner_result,
)
from agents_loop.loop.resuming import STATE_KEY, PendingRun, StoppedRun, keep, pending_approvals, take
from agents_loop.loop.sessions import RunSessions
from agents_loop.loop.stalls.ladder import AnotherAgentStep, AskPersonStep, StopStep
from agents_loop.loop.stalls.watch import Stall, StallWatch
from agents_loop.loop.transcript import transcript_response
from agents_loop.messages import (
    ChatMessage,
    JsonValue,
    ToolApprovalRequestContent,
)
from agents_loop.metering.meter import PHASE, Phase
from agents_loop.metering.spending import LimitReachedError

T = TypeVar("T")

_GIVES_LAST = (StopReason.SATISFIED, StopReason.PENDING_APPROVAL, StopReason.PENDING_INPUT)
"""How a run ends that gives its last answer, also with `return_best`: what it waits for is about that one."""


class LoopRun:
    """One run of a loop: its state, and its events.

    Args:
        inner_agent: The agent that is run again and again.
        evaluators: Who judges it, in order.
        options: How the loop runs.
        max_iterations: The cap that holds.
        logger: Told when the cap ends the run.
        messages: The caller's.
        session: The caller's, if any.
        run_options: Handed to every inner run.
        streaming: Whether the inner agent is streamed: the engine's one switch.
        tells: Whether anybody hears of more events than the pieces of a stream, stalls and the end.
    """

    __slots__ = (
        "_agent",
        "_all_at_once",
        "_bad",
        "_began_at",
        "_best_before",
        "_context",
        "_earlier",
        "_ending",
        "_evaluators",
        "_feedback",
        "_has_phase",
        "_judgment",
        "_logger",
        "_max_iterations",
        "_memory",
        "_messages",
        "_metered",
        "_next",
        "_number",
        "_options",
        "_order",
        "_outcome",
        "_question",
        "_records",
        "_resumed_at",
        "_run_options",
        "_seconds",
        "_sessions",
        "_stall",
        "_stalls",
        "_started_at",
        "_stopped_run",
        "_streaming",
        "_tells",
        "_waiting",
        "result",
        "run_id",
    )

    def __init__(
        self,
        inner_agent: AIAgent,
        evaluators: Sequence[LoopEvaluator],
        options: LoopAgentOptions,
        max_iterations: int,
        logger: logging.Logger,
        *,
        messages: list[ChatMessage],
        session: AgentSession | None,
        run_options: AgentRunOptions | None,
        streaming: bool,
        tells: bool = True,
    ) -> None:
        self._agent: AIAgent = inner_agent
        self._evaluators = evaluators
        self._options = options
        self._max_iterations = max_iterations
        self._logger = logger
        self._messages = tuple(messages)
        self._sessions = RunSessions(inner_agent, options, session)
        self._run_options = run_options
        self._streaming = streaming
        self._tells = tells
        self._records: list[IterationRecord] = []
        self._feedback: list[str | None] = []
        self._waiting: tuple[AgentSession, JsonValue] | None = None
        self._question: Question | None = None
        self._stopped_run: StoppedRun | None = None
        self._earlier: AgentResponse | None = None
        self._best_before: IterationRecord | None = None
        self._memory: dict[str, JsonValue] = {}
        self._resumed_at = 0
        self._number = 0
        self._next: tuple[tuple[ChatMessage, ...], tuple[ChatMessage, ...]] = self._messages, ()
        """What the agent is sent in the iteration, and the part of it that the loop sends in the caller's place."""
        self._began_at = self._seconds = 0.0
        self._context: LoopContext | None = None
        self._judgment: Judgment | None = None
        """While the evaluators are asked."""
        self._all_at_once = options.evaluation_mode == "all" and len(evaluators) > 1
        self._outcome = Outcome()
        self._ending: tuple[StopReason, str | None] | None = None
        self._stall: Stall | None = None
        self._bad: BadResponse | None = None
        self._stalls = None if options.stall is None else StallWatch(options.stall)
        self._order = next(RUN_ORDERS)
        self.run_id = options.new_id()
        self._metered = MeteredRun(options)
        self._has_phase = False
        self._started_at = options.clock()
        self.result: LoopResult | None = None

    async def events(self) -> AsyncGenerator[LoopEvent, None]:
        """Run, and yield each fact as it happens. The result is set however the run ends."""
        try:
            yield LoopStarted(self.run_id, self._messages, self._max_iterations)
            question = await self._begin()
            for update in self._answer_at_hand(question) if self._streaming else ():
                yield update
            if question is not None:
                for event in self._accepted(question):
                    yield event
                return
            async with aclosing(self._iterations()) as iterations:
                async for event in iterations:
                    yield event
        except BaseException as error:
            if self.result is None:
                stopped = self._interrupted(error)
                if stopped is not None:
                    yield stopped
                    if stopped.response is not None:
                        return
            raise

    async def _iterations(self) -> AsyncGenerator[LoopEvent, None]:
        """One iteration after another, until the run ends by itself."""
        while self._ending is None:
            response = self._next_iteration()
            if response is None:
                sent, on_behalf_of = self._next
                session = self._agent_begins()
                if self._tells:
                    yield IterationStarted(self._number, sent, on_behalf_of)
                if self._streaming:
                    stream = self._stream(session)
                    async with aclosing(stream), aclosing(self._metered.pieces(stream)) as pieces:
                        async for update in pieces:
                            yield AgentUpdated(self._number, update)
                        response = await stream.final_response()
                else:
                    response = await self._part(self._agent.run(sent, session=session, options=self._run_options))
                self._agent_ran(response)
            self._records.append(self._record(response))
            if self._tells:
                yield AgentResponded(self._number, response)
            judgment = self._begin_judgment(response)
            while judgment is not None and judgment.goes_on:
                for evaluation in await self._part(judgment.next_words()):
                    yield EvaluatorDecided(self._number, evaluation)
            self._end_judgment(judgment)
            if self._stall is not None:
                yield self._stall.event(self._number)
                self._step(self._stall)
            await self._go_on()
        yield self._stopped(*self._ending)

    # --- the steps of an iteration

    async def _begin(self) -> Question | None:
        """Begin the run, or go on with the one that waits in the session; gives the question whose answer is accepted.

        What a person is asked is answered by the messages: they drive the next iteration.
        """
        given, metered = self._messages, self._metered
        self._number = self._resume()
        await metered.in_time(self._sessions.first())
        if self._stopped_run is not None:
            self._next = self._stopped_run.next_input
        if self._question is not None:
            if is_acceptance(given):
                return self._question
            self._next = self._answered(self._question, given)
            if self._options.fresh_context_per_iteration:
                await metered.in_time(self._sessions.replacement())
            self._number = min(self._number, self._max_iterations - 1)
        return None

    def _answer_at_hand(self, question: Question | None) -> list[AgentUpdated]:
        """The pieces of an answer that the run takes over from the one before it: accepted, or still to be judged."""
        stopped = self._stopped_run
        number, response = self._number, None if question is None else question.response
        if stopped is not None and not stopped.is_judged:
            number, response = number + 1, stopped.response
        return [] if response is None else [AgentUpdated(number, update) for update in updates_of(response)]

    def _next_iteration(self) -> AgentResponse | None:
        """Count the iteration; gives its answer where the run before this one had no budget left to judge it."""
        self._number += 1
        self._began_at = self._options.clock()
        self._seconds = 0.0
        self._metered.phase.iteration = self._number
        stopped, self._stopped_run = self._stopped_run, None
        return None if stopped is None or stopped.is_judged else stopped.response

    def _agent_begins(self) -> AgentSession:
        """See that the agent may be run; gives the session in which it is."""
        metered, phase = self._metered, self._metered.phase
        if metered.meter.is_guarded:
            metered.check_agent(is_judged=self._is_judged)
        metered.iterate(self._number, self._began_at)
        session = self._sessions.current
        assert session is not None  # noqa: S101 - the run has begun
        phase.session, phase.request = session, self._messages
        return session

    def _part(self, work: Coroutine[Any, Any, T]) -> Coroutine[Any, Any, T]:
        """A part of the run: its calls are in the ledger, and it ends at the deadline."""
        if self._metered.is_timed:
            work = self._metered.meter.in_time(work)
        return work if self._has_phase else self._metered.in_phase(work)

    def _stream(self, session: AgentSession) -> AgentResponseStream:
        token = PHASE.set(self._metered.phase)
        try:
            return self._agent.run_streaming(self._next[0], session=session, options=self._run_options)
        finally:
            PHASE.reset(token)

    def _agent_ran(self, response: AgentResponse) -> None:
        metered = self._metered
        phase = metered.phase
        self._seconds = self._options.clock() - self._began_at
        if not phase.has_usage and not (phase.has_calls and response.usage is None and response.loop_result is None):
            metered.agent_ran(self._agent, self._next[0], response, self._seconds)
        if metered.meter.is_guarded and response.loop_result is not None and not response.messages:
            metered.check_agent(is_judged=self._is_judged)  # a loop within did not begin

    def _record(self, response: AgentResponse) -> IterationRecord:
        metered, (sent, on_behalf_of) = self._metered, self._next
        usage = metered.iteration_usage() if metered.phase.has_usage else None
        return IterationRecord(self._number, sent, response, (), usage, self._seconds, on_behalf_of)

    def _begin_judgment(self, response: AgentResponse) -> Judgment | None:
        """Ask the evaluators about the answer, unless the run ends with it or asks the agent again."""
        self._ending = self._ending_before_evaluation(response)
        if self._ending is not None or self._bad is not None:
            return None
        metered = self._metered
        self._judgment = judgment = Judgment(
            self._evaluators, self._context_of(response), metered, all_at_once=self._all_at_once, tells=self._tells
        )
        metered.judge()
        if metered.meter.is_guarded:
            metered.check_time()
        return judgment

    def _end_judgment(self, judgment: Judgment | None) -> None:
        """The evaluators have spoken: see whether the run ends, or stalls."""
        self._stall = None
        if judgment is None:
            return
        failed = judgment.failed
        if failed is not None and not isinstance(failed, EvaluatorFailedError):
            raise failed
        self._complete(judgment)
        self._judgment = None
        if failed is not None:
            self._ending = StopReason.EVALUATOR_FAILED, str(failed)
            return
        self._outcome = outcome_of(judgment.evaluations)
        self._ending = self._ending_after_evaluation(self._outcome)
        if self._stalls is not None and self._ending is None:
            self._stall = self._stalls.after(self._records[-1])

    async def _go_on(self) -> None:
        """Say what the agent hears next, and in which session, unless the run ends."""
        if self._ending is not None:
            return
        is_fresh = self._options.fresh_context_per_iteration
        if self._bad is not None:
            self._feedback.append(None)
            self._next = nudged_input(NUDGES[self._bad], self._messages, self._feedback, self._options)
        else:
            is_fresh = is_fresh or (self._stall is not None and self._stall.renews_session)
            self._feedback.append(self._outcome.feedback)
            self._next = next_input(self._outcome, self._messages, self._feedback, self._options, is_fresh=is_fresh)
        if is_fresh:
            await self._metered.in_time(self._sessions.replacement())

    # --- the run as a whole

    def timer(self) -> asyncio.Timeout:
        """What bounds the current coroutine by the run's deadline, once there is one; it raises nothing."""
        timer = self._metered.timer = asyncio.timeout(None)
        return timer

    def take_phase(self) -> Token[Phase | None]:
        """Let all that the current coroutine waits for be metered: for a caller that reads the events by itself.

        The engine can't do so for others: what it sets stays set in the code that gets an event from it.
        """
        self._has_phase = True
        return PHASE.set(self._metered.phase)

    def end(self, error: BaseException) -> None:
        """Let the result be read from the exception with which a caller left the run."""
        if self.result is not None and LoopResult.of(error) is None:
            attach_result(error, self.result, self._order)

    def _resume(self) -> int:
        """Go on with the run that waits in the session, if the input answers it; gives the iterations so far."""
        session = self._sessions.current
        pending = None
        if session is not None and STATE_KEY in session.state:
            self._waiting = session, session.state[STATE_KEY]
            pending = take(session, self._messages)
        if pending is None or pending.question is None:
            if is_acceptance(self._messages):
                raise ConfigurationError("accept_answer() accepts nothing: no question waits in this session")
        else:
            self._earlier = pending.question.response
            if pending.inner is None:  # else the loop within this one takes the answer
                self._question = pending.question
        spent = None if pending is None else pending.spent
        self._metered.guard(self._options, self._agent, self._evaluators, spent, is_resumed=pending is not None)
        if pending is None:
            return 0
        self._resumed_at = pending.iteration
        if pending.stopped is not None:
            self._stopped_run, self._earlier = pending.stopped, pending.stopped.response
        self._messages = tuple(pending.messages)
        self._feedback += pending.feedback
        self._best_before, self._memory = pending.best, pending.memory
        self._sessions.resume(pending.snapshot)
        if self._stalls is not None:
            self._stalls.steps = pending.stall_steps
            agent = self._stalls.agent
            if agent is not None:
                self._agent = agent
                self._sessions.use(agent)
        return pending.iteration if self._question else min(pending.iteration, self._max_iterations - 1)

    def _accepted(self, question: Question) -> Iterator[LoopEvent]:
        """A person has accepted the answer at hand: the verdict of a run without an iteration of its own."""
        accepted = question.acceptance()
        self._records.append(IterationRecord(self._number, (), question.response, (accepted,), None, 0.0))
        yield EvaluatorDecided(self._number, accepted)
        yield self._stopped(StopReason.SATISFIED, None)

    def _answered(
        self, question: Question, answer: tuple[ChatMessage, ...]
    ) -> tuple[tuple[ChatMessage, ...], tuple[ChatMessage, ...]]:
        """The input of the iteration that a person's answer drives, and the part of it that the loop sends."""
        feedback = [*self._feedback, question.feedback]
        sent, on_behalf_of = next_input(question.outcome(), self._messages, feedback, self._options)
        self._feedback.append(question.feedback_with(answer))
        return (*sent, *answer), on_behalf_of

    def _keep_waiting(self) -> None:
        """Put back what waited in the session, where this run failed before its first answer: it can be tried again."""
        if self._waiting is not None and not self._records:
            session, self._sessions.current = self._waiting[0], self._waiting[0]
            session.state[STATE_KEY] = self._waiting[1]

    def _forget_run_within(self) -> None:
        """Drop what a loop within keeps for a resume: its answer was taken, and the next iteration runs it anew.

        Else a later run of this loop would take it for its own.
        """
        session = self._sessions.current
        if session is not None and STATE_KEY in session.state:
            del session.state[STATE_KEY]

    def _wait(
        self,
        number: int,
        inner: LoopResult | None,
        *,
        requests: Sequence[ToolApprovalRequestContent] = (),
        question: Question | None = None,
        stopped: StoppedRun | None = None,
    ) -> None:
        """Keep in the session what a run needs that continues this one; an inner loop may have replaced the session."""
        if inner is not None and inner.session is not None:
            self._sessions.current = inner.session
        session = self._sessions.current
        assert session is not None  # noqa: S101 - there has been an iteration
        is_unjudged = bool(requests) or (stopped is not None and not stopped.is_judged)  # or judged by half
        judged = self._records[:-1] if is_unjudged else self._records
        waits = PendingRun(
            request_ids=[request.request_id for request in requests],
            messages=list(self._messages),
            feedback=list(self._feedback),
            iteration=number,
            snapshot=self._sessions.snapshot,
            inner=session.state.get(STATE_KEY),
            question=question,
            stopped=stopped,
            spent=self._metered.spent,
            stall_steps=0 if self._stalls is None else self._stalls.steps,
            best=best_of(judged if self._best_before is None else [self._best_before, *judged]),
            memory=self._memory,
        )
        keep(session, waits)

    @property
    def _is_judged(self) -> bool:
        """Whether the iteration's answer is judged."""
        return self._number < self._max_iterations or self._options.evaluate_final_iteration

    def _out_of_budget(self, limit: LimitReachedError, unfinished: LoopResult | None) -> LoopStopped:
        """The run ends with its answer so far; where the budget is its own, a larger one can continue it."""
        if not self._records and self._earlier is not None:
            self._records.append(IterationRecord(self._resumed_at, (), self._earlier, (), None, 0.0))
        number = self._records[-1].number if self._records else self._resumed_at
        if limit.spending is self._metered.meter.spending and self._sessions.current is not None:
            response = self._records[-1].response if self._records else None
            stopped = StoppedRun(*self._next, response, is_judged=self._judgment is None)
            self._wait(number if self._judgment is None else number - 1, None, stopped=stopped)
        self._keep_answer_within(unfinished)
        reason = StopReason.DEADLINE if limit.is_deadline else StopReason.BUDGET_EXCEEDED
        return self._stopped(reason, str(limit), unfinished)

    def _keep_answer_within(self, unfinished: LoopResult | None) -> None:
        """Keep what a loop within had answered by the time the run was interrupted: finished work is never lost."""
        if unfinished is None or not unfinished.iterations or self._judgment is not None:
            return
        response = transcript_response(unfinished.iterations, unfinished, LoopAgentOptions(), streaming=self._streaming)
        self._seconds = self._options.clock() - self._began_at
        self._records.append(self._record(response))

    def _ending_before_evaluation(self, response: AgentResponse) -> tuple[StopReason, str | None] | None:
        pending = pending_approvals(response)
        if pending:
            self._wait(self._number, LoopResult.of(response), requests=pending)
            tools = ", ".join(request.tool_call.name for request in pending)
            return StopReason.PENDING_APPROVAL, f"waiting for approval of: {tools}"
        inner = None if response.loop_result is None else LoopResult.of(response)
        if inner is not None and inner.stop_reason == StopReason.PENDING_INPUT:
            question = inner.stop_detail or ""
            self._wait(self._number, inner, question=Question(text=question, response=response))
            return StopReason.PENDING_INPUT, question
        self._forget_run_within()
        if self._options.on_bad_response != "evaluate":
            self._bad = bad_response_of(response)
            if self._bad is not None and not self._may_ask_again(self._bad):
                return StopReason.FAILED, f"the agent's answer is no answer: {self._bad}"
        return None if self._is_judged else self._capped()

    def _may_ask_again(self, bad: BadResponse) -> bool:
        """Whether the agent is run once more, rather than the run ended; not if too many in a row were bad already."""
        earlier = self._records[-1 - self._options.bad_response_retries : -1]
        if len(earlier) == self._options.bad_response_retries and all(record.bad_response for record in earlier):
            return False
        return self._options.on_bad_response == "retry" and bad in NUDGES and self._number < self._max_iterations

    def _ending_after_evaluation(self, outcome: Outcome) -> tuple[StopReason, str | None] | None:
        if outcome.aborted is not None:
            return StopReason.ABORTED, outcome.aborted.reason
        if outcome.question is not None:
            self._ask(outcome, outcome.question)
            return StopReason.PENDING_INPUT, outcome.question
        if not outcome.goes_on:
            return StopReason.SATISFIED, None
        return self._capped() if self._number >= self._max_iterations else None

    def _ask(self, outcome: Outcome, text: str) -> None:
        response = self._records[-1].response
        question = Question(text=text, response=response, feedback=outcome.feedback, messages=outcome.messages)
        self._wait(self._number, None, question=question)

    def _step(self, stall: Stall) -> None:
        """Take the step of the ladder that a stall leads to: the run ends, or goes on in another way."""
        self._records[-1].stall = stall.signal.name
        step = stall.step
        if isinstance(step, StopStep):
            self._ending = StopReason.STALLED, stall.detail
        elif isinstance(step, AskPersonStep):
            question = step.text(stall.signal.observation, self._outcome.feedback)
            self._ask(self._outcome, question)
            self._ending = StopReason.PENDING_INPUT, question
        elif isinstance(step, AnotherAgentStep):
            self._agent = step.as_agent
            self._sessions.use(step.as_agent)
        self._outcome = stall.retold(self._outcome)

    def _capped(self) -> tuple[StopReason, str | None]:
        self._logger.info("Loop run %s ended at max_iterations=%d", self.run_id, self._number)
        detail = f"{self._number} of {self._max_iterations} iterations"
        if self._options.evaluate_final_iteration:
            number = self._number - 1  # the first answer is a draft
            revisions = f"{number} revision{'' if number == 1 else 's'}"
            detail += f": after {revisions} the answer still does not pass its check"
        return StopReason.MAX_ITERATIONS, detail

    def _context_of(self, response: AgentResponse) -> LoopContext:
        session, context = self._sessions.current, self._context
        assert session is not None  # noqa: S101 - the agent has been run
        if context is None:
            self._context = LoopContext(
                self._agent,
                session,
                self._messages,
                response,
                self._run_options,
                iteration=self._number,
                feedback=FeedbackLog(self._feedback),
                max_iterations=self._max_iterations,
                iterations=self._records,
                memory=self._memory,
                best_before=self._best_before,
            )
            return self._context
        context.agent = self._agent
        context.session = session
        context.last_response = response
        context.iteration = self._number
        return context

    def _complete(self, judgment: Judgment) -> None:
        """Keep in the iteration's record what was said of its answer."""
        record, metered = self._records[-1], self._metered
        record.evaluations = tuple(judgment.evaluations)
        record.duration_s = self._options.clock() - self._began_at
        if metered.judged(judgment.context):
            record.usage = metered.iteration_usage()

    def _interrupted(self, error: BaseException) -> LoopStopped | None:
        """The run ends by an exception: at a limit with a response, else without; `None` if nobody can hear of it."""
        if self._judgment is not None:
            self._complete(self._judgment)
        self._metered.agent_failed(self._agent, error)
        unfinished = inner_result(error, self._order)
        limit = self._metered.limit_behind(error)
        if limit is not None:
            return self._out_of_budget(limit, unfinished)
        self._keep_waiting()
        if not isinstance(error, Exception):  # it did not fail: somebody, or a deadline around it, has ended it
            self._keep_answer_within(unfinished)
        self.result = self._result(*self._failure(error), unfinished=unfinished)
        attach_result(error, self.result, self._order)
        return LoopStopped(self.result, None) if isinstance(error, Exception) else None

    def _failure(self, error: BaseException) -> tuple[StopReason, str | None]:
        if isinstance(error, asyncio.CancelledError | GeneratorExit | KeyboardInterrupt):
            return StopReason.CANCELLED, None
        said = f"{type(error).__name__}: {error}"
        if isinstance(error, BudgetExceededError):
            return StopReason.BUDGET_EXCEEDED, str(error)
        return (StopReason.FAILED if self._judgment is None else StopReason.EVALUATOR_FAILED), said

    def _stopped(self, reason: StopReason, detail: str | None, unfinished: LoopResult | None = None) -> LoopStopped:
        self.result = self._result(reason, detail, unfinished=unfinished)
        response = transcript_response(self._records, self.result, self._options, streaming=self._streaming)
        return LoopStopped(self.result, response)

    def _result(self, reason: StopReason, detail: str | None, *, unfinished: LoopResult | None = None) -> LoopResult:
        result = LoopResult(
            self.run_id,
            reason,
            detail,
            tuple(self._records),
            "",
            self._sessions.current,
            self._metered.usage,
            self._options.clock() - self._started_at,
            unfinished,
            best_before=self._best_before,
            calls=self._metered.calls,
        )
        if self._records:
            gives_best = self._options.return_best and reason not in _GIVES_LAST
            result.returned = (result.best if gives_best else None) or self._records[-1]
            result.output = answer_text(result.returned.response)
        return result
