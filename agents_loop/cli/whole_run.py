"""A run that a person was asked in, as one: the command tells all of it, not what came after the last answer alone."""

from __future__ import annotations

from dataclasses import replace

from agents_loop.loop.result import IterationRecord, LoopResult, MeteredCalls
from agents_loop.messages import sum_usage
from agents_loop.metering.ledger import Ledger


def whole_run(before: LoopResult | None, result: LoopResult | None) -> LoopResult | None:
    """How a run went, from its beginning.

    Args:
        before: Up to the question; `None` where there was none.
        result: Of what the answer led to; `None` where that could not begin.
    """
    if before is None or result is None:
        return result or before
    is_lost = not result.iterations and not result.output  # it failed with the answer: the draft at hand is the result
    return replace(
        result,
        iterations=_joined(before.iterations, result.iterations),
        output=before.output if is_lost else result.output,
        returned=result.returned or before.returned,
        usage=sum_usage([before.usage, result.usage]),
        duration_s=before.duration_s + result.duration_s,
        best_before=before.best_before,
        calls=MeteredCalls(None, Ledger([*before.ledger, *result.ledger])),
        report=result.report or before.report,
    )


def _joined(before: tuple[IterationRecord, ...], after: tuple[IterationRecord, ...]) -> tuple[IterationRecord, ...]:
    """All iterations. What a person said of the last answer before the question is said of that one, not of another."""
    if not before or not after or after[0].input or after[0].number != before[-1].number:
        return (*before, *after)
    judged = replace(before[-1], evaluations=(*before[-1].evaluations, *after[0].evaluations))
    return (*before[:-1], judged, *after[1:])
