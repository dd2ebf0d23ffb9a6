"""The end of a run: its result and its response, whether it ends by itself or by an exception."""

from __future__ import annotations

import asyncio

from agents_loop.errors import BudgetExceededError
from agents_loop.loop.answer import answer_text
from agents_loop.loop.events import EvaluatorDecided, LoopStopped
from agents_loop.loop.iteration import complete_record, record_of
from agents_loop.loop.options import LoopAgentOptions
from agents_loop.loop.pausing import keep_waiting, wait
from agents_loop.loop.questions import Question
from agents_loop.loop.result import IterationRecord, LoopResult, StopReason, attach_result, inner_result
from agents_loop.loop.resuming import StoppedRun
from agents_loop.loop.run_state import Ending, RunState
from agents_loop.loop.transcript import transcript_response
from agents_loop.metering.spending import LimitReachedError

_GIVES_LAST = (StopReason.SATISFIED, StopReason.PENDING_APPROVAL, StopReason.PENDING_INPUT)
"""How a run ends that gives its last answer, also with `return_best`: what it waits for is about that one."""


def stopped(run: RunState, ending: Ending, unfinished: LoopResult | None = None) -> LoopStopped:
    """The last event of a run that has a response."""
    run.result = _result(run, ending, unfinished)
    response = transcript_response(run.records, run.result, run.options, streaming=run.streaming)
    return LoopStopped(run.result, response)


def accepted(run: RunState, question: Question) -> EvaluatorDecided:
    """A person has accepted the answer at hand: the verdict that ends a run without an iteration of its own."""
    evaluation = question.acceptance()
    run.records.append(IterationRecord(run.number, (), question.response, (evaluation,), None, 0.0))
    run.ending = StopReason.SATISFIED, None
    return EvaluatorDecided(run.number, evaluation)


def interrupted(run: RunState, error: BaseException) -> LoopStopped | None:
    """The run ends by an exception: at a limit with a response, else without; `None` if nobody can hear of it."""
    if run.judgment.is_open and run.context is not None:
        complete_record(run, run.context)
        run.records[-1].is_half_judged = not run.judgment.is_complete
    unfinished = inner_result(error, run.order)
    limit = run.metered.limit_behind(error)
    if limit is not None:
        return _out_of_budget(run, limit, unfinished)
    keep_waiting(run)
    if not isinstance(error, Exception):  # it did not fail: somebody, or a deadline around it, has ended it
        _keep_answer_within(run, unfinished)
    run.result = _result(run, _failure(run, error), unfinished)
    attach_result(error, run.result, run.order)
    return LoopStopped(run.result, None) if isinstance(error, Exception) else None


def _out_of_budget(run: RunState, limit: LimitReachedError, unfinished: LoopResult | None) -> LoopStopped:
    """The run ends with its answer so far; where the budget is its own, a larger one can continue it."""
    if not run.records and run.earlier is not None:
        run.records.append(IterationRecord(run.resumed_at, (), run.earlier, (), None, 0.0))
    number = run.records[-1].number if run.records else run.resumed_at
    if limit.spending is run.metered.meter.spending and run.sessions.current is not None:
        response = run.records[-1].response if run.records else None
        is_judged = not run.judgment.is_open
        stopped_run = StoppedRun(*run.next_input, response, is_judged=is_judged)
        wait(run, number if is_judged else number - 1, None, stopped=stopped_run)
    _keep_answer_within(run, unfinished)
    reason = StopReason.DEADLINE if limit.is_deadline else StopReason.BUDGET_EXCEEDED
    return stopped(run, (reason, str(limit)), unfinished)


def _keep_answer_within(run: RunState, unfinished: LoopResult | None) -> None:
    """Keep what a loop within had answered by the time the run was interrupted: finished work is never lost."""
    if unfinished is None or not unfinished.iterations or run.judgment.is_open:
        return
    response = transcript_response(unfinished.iterations, unfinished, LoopAgentOptions(), streaming=run.streaming)
    run.seconds = run.clock() - run.began_at
    run.records.append(record_of(run, response))


def _failure(run: RunState, error: BaseException) -> Ending:
    if isinstance(error, asyncio.CancelledError | GeneratorExit | KeyboardInterrupt):
        return StopReason.CANCELLED, None
    said = f"{type(error).__name__}: {error}"
    if isinstance(error, BudgetExceededError):
        return StopReason.BUDGET_EXCEEDED, str(error)
    return (StopReason.EVALUATOR_FAILED if run.judgment.is_open else StopReason.FAILED), said


def _result(run: RunState, ending: Ending, unfinished: LoopResult | None) -> LoopResult:
    reason, detail = ending
    result = LoopResult(
        run.run_id,
        reason,
        detail,
        tuple(run.records),
        "",
        run.sessions.current,
        run.metered.usage,
        run.clock() - run.started_at,
        unfinished,
        best_before=run.best_before,
        calls=run.metered.calls,
    )
    if run.records:
        gives_best = run.options.return_best and reason not in _GIVES_LAST
        result.returned = (result.best if gives_best else None) or run.records[-1]
        result.output = answer_text(result.returned.response)
    return result
