"""How a run went."""

from __future__ import annotations

import itertools
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import cast

from agents_loop.agent import AgentResponse, AgentResponseStream, AgentSession
from agents_loop.loop.answer import answer_text
from agents_loop.loop.bad_response import BadResponse, bad_response_of
from agents_loop.loop.best import Rank, score_of
from agents_loop.loop.evaluation import LoopEvaluation
from agents_loop.message_json import usage_to_json
from agents_loop.messages import ChatMessage, JsonValue, UsageDetails
from agents_loop.metering.ledger import Ledger
from agents_loop.metering.meter import RunMeter

RUN_ORDERS = itertools.count()
"""Runs in the order in which they began: what a run within another attached to an exception began later than it."""

_ATTACHED = "__agents_loop_result__"


class StopReason(StrEnum):
    """Why a run ended."""

    SATISFIED = "satisfied"
    """No evaluator asked for more."""
    MAX_ITERATIONS = "max_iterations"
    """The cap on iterations was reached."""
    PENDING_APPROVAL = "pending_approval"
    """A tool call waits for a person's approval."""
    PENDING_INPUT = "pending_input"
    """A person is asked something else; the question is in `stop_detail`."""
    ABORTED = "aborted"
    """An evaluator ended the run; the why is in `stop_detail`."""
    STALLED = "stalled"
    """The iterations no longer change anything."""
    BUDGET_EXCEEDED = "budget_exceeded"
    """A limit on spending was reached."""
    DEADLINE = "deadline"
    """The time was up."""
    EVALUATOR_FAILED = "evaluator_failed"
    """An evaluator raised, or gave up."""
    FAILED = "failed"
    """The inner agent raised, or gave a bad response where `on_bad_response` says to stop."""
    CANCELLED = "cancelled"
    """The run was cancelled, or its stream closed early."""


class MeteredCalls:
    """The calls of a run up to now, as a ledger once it is asked for.

    Args:
        meter: The run's; `None` where the ledger is there already.
        ledger: The ledger, if it is.
    """

    __slots__ = ("_ledger", "_length", "_meter")

    def __init__(self, meter: RunMeter | None, ledger: Ledger | None = None) -> None:
        self._meter = meter
        self._length = 0 if meter is None else len(meter.calls)
        self._ledger = ledger

    @property
    def ledger(self) -> Ledger:
        """The entries."""
        if self._ledger is None:
            assert self._meter is not None  # noqa: S101 - it goes when the ledger comes
            self._ledger, self._meter = self._meter.ledger(self._length), None
        return self._ledger

    def __reduce__(self) -> tuple[type[MeteredCalls], tuple[None, Ledger]]:
        """A copy has the entries, and no clients."""
        return MeteredCalls, (None, self.ledger)


@dataclass(slots=True)
class IterationRecord:
    """One completed run of the inner agent, and what was said of it."""

    number: int
    """Counted from 1."""
    input: tuple[ChatMessage, ...]
    """All that the agent was sent."""
    response: AgentResponse
    """The inner agent's response, as it gave it."""
    evaluations: tuple[LoopEvaluation, ...]
    """What the evaluators that were asked said, in order; `evaluator` names them."""
    usage: UsageDetails | None
    """What the iteration used: the agent's calls and the evaluators', as far as they were reported."""
    duration_s: float
    on_behalf_of: tuple[ChatMessage, ...] = ()
    """The part of the input that the loop sent in the caller's place."""
    stall: str | None = None
    """The name of the stall signal that was true after it, if one was looked for and was."""
    is_half_judged: bool = False
    """Whether its judgment broke off: an evaluator failed, or was interrupted, before all had spoken."""

    @property
    def bad_response(self) -> BadResponse | None:
        """What is wrong with the response as such: it was refused, filtered, cut off, or is empty; else `None`."""
        return bad_response_of(self.response)

    @property
    def score(self) -> float | None:
        """How good the answer is, from 0 to 1: the mean of the scores that its evaluators gave.

        `None` without any, and where one of the evaluators failed, was interrupted or gave no verdict: what the others
        gave is no measure beside answers that all of them judged.
        """
        return None if self.is_half_judged else score_of(self.evaluations)


@dataclass(slots=True)
class LoopResult:
    """How a run went: why it stopped, each iteration, what it cost. Not to be changed."""

    run_id: str
    stop_reason: StopReason
    stop_detail: str | None
    """More about the reason, for people."""
    iterations: tuple[IterationRecord, ...]
    """The completed iterations, in order."""
    output: str
    """The last answer's text; with `return_best` the best answer's, unless the run is satisfied. Empty when there is
    none."""
    session: AgentSession | None
    """The session in use when the run ended."""
    usage: UsageDetails | None
    """What the run used: the sum of the ledger. The response's `usage` is the agent's."""
    duration_s: float
    unfinished: LoopResult | None = None
    """Where an exception ended the run from within a loop inside it: the result of that loop."""
    returned: IterationRecord | None = None
    """The iteration whose answer the run gives: the last, or with `return_best` the best."""
    best_before: IterationRecord | None = None
    """In a run that continues another: the best iteration before the pause, with its answer and evaluations."""
    calls: MeteredCalls | None = field(default=None, repr=False, compare=False)
    """What the ledger is made of."""
    report: dict[str, JsonValue] = field(default_factory=dict[str, JsonValue])
    """What the run of a file gives beside the rest, by key: the `context` of a flow, the `nodes` of a graph."""

    @property
    def ledger(self) -> Ledger:
        """Each model call of the run: of the agent, the evaluators and all within them; failed attempts too.

        It is made when it is first asked for. Costs are then looked up, in the loop's `prices` and, if the extra
        `prices` is installed, in its list.
        """
        return Ledger() if self.calls is None else self.calls.ledger

    @property
    def best(self) -> IterationRecord | None:
        """The iteration with the best answer so far; `None` if there is none.

        It is the one with the highest score. Of equal scores it is the one that met more criteria, and then the later
        one. An answer without a score comes after all that have one; without any score it is the last answer that is
        one (`bad_response`), or the last of all. Where answers were compared (`PreferenceLoopEvaluator`), it is the one
        that the comparisons preferred, whatever the scores. In a run that continues another it may be `best_before`.
        """
        return best_of(self.iterations if self.best_before is None else (self.best_before, *self.iterations))

    @staticmethod
    def of(source: object) -> LoopResult | None:
        """The result of the run behind a response, a stream, an event iterator or an exception; `None` without one.

        An exception's causes are searched too, so the `TimeoutError` of a timeout around a run has one. Where loops
        nest it is the outer loop's; the inner ones are those of `iterations[n].response`.
        """
        if isinstance(source, BaseException):
            return _of_exception(source)
        if isinstance(source, AgentResponse):
            found = source.loop_result
        elif isinstance(source, AgentResponseStream):
            found = getattr(source.run, "result", None)
        else:
            found = getattr(source, "result", None)
        return found if isinstance(found, LoopResult) else None

    def to_json(self) -> str:
        """The result as one JSON object; messages are reduced to their role and text."""
        return json.dumps(result_to_json(self), ensure_ascii=False)


def best_of(records: Sequence[IterationRecord]) -> IterationRecord | None:
    """The iteration with the best answer, as `LoopResult.best` says; `None` without any."""
    ranked = [(Rank.of(each.number, each.evaluations, each.score, is_bad=_is_bad(each)), each) for each in records]
    return max(ranked, key=lambda pair: pair[0])[1] if ranked else None


def _is_bad(record: IterationRecord) -> bool:
    """Whether the answer is none; what evaluators gave a score is one."""
    return record.score is None and record.bad_response is not None


def attach_result(error: BaseException, result: LoopResult, order: int) -> None:
    """Let a result be read from an exception. An outer loop's replaces the inner one's.

    Args:
        error: What ended the run.
        result: The run's.
        order: When the run began, among all runs.
    """
    error.__dict__[_ATTACHED] = _Attached(result, order)


def inner_result(error: BaseException, order: int) -> LoopResult | None:
    """The result that a run within attached: one that began after `order`, not one of an earlier raise."""
    attached = _attached_to(error)
    return attached.result if attached is not None and attached.order > order else None


class _Attached:
    """Holds a result, but for a pickled exception: that stays as picklable as it was without one."""

    def __init__(self, result: LoopResult | None, order: int) -> None:
        self.result = result
        self.order = order

    def __reduce__(self) -> tuple[type[_Attached], tuple[None, int]]:
        return _Attached, (None, self.order)


def _of_exception(error: BaseException) -> LoopResult | None:
    attached = _attached_to(error)
    return None if attached is None else attached.result


def _attached_to(error: BaseException) -> _Attached | None:
    """What the exception carries, or one of its causes."""
    seen: set[int] = set()
    current: BaseException | None = error
    while current is not None and id(current) not in seen:
        seen.add(id(current))
        found = current.__dict__.get(_ATTACHED)
        if isinstance(found, _Attached) and found.result is not None:
            return found
        if isinstance(current, BaseExceptionGroup):
            members = cast("BaseExceptionGroup[BaseException]", current).exceptions
            return next((found for member in members if (found := _attached_to(member)) is not None), None)
        current = current.__cause__ or (None if current.__suppress_context__ else current.__context__)
    return None


def result_to_json(result: LoopResult) -> dict[str, JsonValue]:
    """The result as a JSON value."""
    best = result.best
    fields: dict[str, JsonValue] = {
        "run_id": result.run_id,
        "stop_reason": result.stop_reason.value,
        "stop_detail": result.stop_detail,
        "output": result.output,
        "best": None if best is None else best.number,
        "iterations": [_iteration_to_json(record) for record in result.iterations],
        "usage": _usage_or_none(result.usage),
        "ledger": result.ledger.to_json(),
        "duration_s": result.duration_s,
    }
    fields |= result.report
    if result.unfinished is not None:
        fields["unfinished"] = result_to_json(result.unfinished)
    return fields


def _iteration_to_json(record: IterationRecord) -> dict[str, JsonValue]:
    fields: dict[str, JsonValue] = {
        "number": record.number,
        "input": [{"role": str(message.role), "text": message.text} for message in record.input],
        "output": answer_text(record.response),
        "evaluations": [evaluation_to_json(evaluation) for evaluation in record.evaluations],
        "usage": _usage_or_none(record.usage),
        "duration_s": record.duration_s,
    }
    if record.bad_response is not None:
        fields["bad_response"] = record.bad_response
    if record.stall is not None:
        fields["stall"] = record.stall
    if record.is_half_judged:
        fields["half_judged"] = True
    return fields


def evaluation_to_json(evaluation: LoopEvaluation) -> dict[str, JsonValue]:
    """An evaluation as a JSON value; `reason`, `question`, `messages` and `details` only where there are any."""
    fields: dict[str, JsonValue] = {
        "evaluator": evaluation.evaluator,
        "decision": evaluation.decision,
        "feedback": evaluation.feedback,
        "score": evaluation.score,
        "note": evaluation.note,
    }
    if evaluation.reason is not None:
        fields["reason"] = evaluation.reason
    if evaluation.question is not None:
        fields["question"] = evaluation.question
    if evaluation.messages is not None:
        fields["messages"] = [{"role": str(m.role), "text": m.text} for m in evaluation.messages]
    if evaluation.details is not None:
        fields["details"] = evaluation.details
    return fields


def _usage_or_none(usage: UsageDetails | None) -> JsonValue:
    return None if usage is None else usage_to_json(usage)
