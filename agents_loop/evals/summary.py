"""What the records of an evaluation come to."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from statistics import fmean
from typing import TypeVar, cast

from agents_loop.evals.grading import Grade
from agents_loop.evals.record import CallSum, QuestionRecord, Stored
from agents_loop.loop.result import StopReason

_DIGITS = 4
_Number = TypeVar("_Number", int, float)


class Side(Stored):
    """The first draft, or the whole loop."""

    score: float | None
    """The share of right answers, among those that are graded; `None` without any. Failures are wrong answers."""
    graded: int
    ungraded: int
    citation_coverage: float | None
    """The mean share of the citations asked for that the answers have."""
    citation_hit_rate: float | None
    """The share of answers that have all citations asked for."""
    tokens_in: int | None
    tokens_out: int | None
    tokens_per_question: float | None
    cost_usd: float | None
    """`None` as soon as one question's is not known."""
    cost_usd_per_question: float | None


class KindScore(Stored):
    """The questions of one kind."""

    n: int
    ungraded: int
    failed: int
    score: float | None
    first_draft_score: float | None


class Lift(Stored):
    """What the loop adds to the first draft, on questions of which both are graded."""

    n: int
    first_draft_score: float | None
    loop_score: float | None
    difference: float | None
    token_ratio: float | None
    """How many times the first draft's tokens the loop takes."""
    extra_cost_usd: float | None
    """What the loop costs more, of all these questions."""


class Summary(Stored):
    """What the records come to. Questions that are unfinished are in no figure but their own."""

    n: int
    """Questions that were run to their end, failed ones included."""
    failed: int
    unfinished: int
    loop: Side
    first_draft: Side
    lift: Lift
    by_kind: dict[str, KindScore]
    mean_revisions: float | None
    cap_hit_rate: float | None
    """The share that ended at the cap, unsatisfied."""
    satisfied_share: float | None
    stalled_share: float | None
    stop_reasons: dict[str, int]
    grader_failures: int
    calls: int
    """Calls that were made."""
    cached_calls: int
    """Calls of finished questions that the cache answered."""


def summarize(records: Sequence[QuestionRecord]) -> Summary:
    """The figures of records."""
    done = [record for record in records if record.is_finished]
    kinds = dict.fromkeys([record.kind for record in done])
    ran = [record for record in done if record.stop_reason is not None]
    reasons = [record.stop_reason for record in ran if record.stop_reason is not None]
    return Summary(
        n=len(done),
        failed=sum(record.status == "failed" for record in done),
        unfinished=len(records) - len(done),
        loop=_side(
            done,
            lambda record: record.grade,
            lambda record: record.usage,
            lambda record: record.citation_coverage,
        ),
        first_draft=_side(
            done,
            lambda record: record.first_draft_grade,
            lambda record: record.first_draft_usage,
            lambda record: record.first_draft_citation_coverage,
        ),
        lift=_lift(done),
        by_kind={kind: _kind([record for record in done if record.kind == kind]) for kind in kinds},
        mean_revisions=_mean([record.revisions for record in ran]),
        cap_hit_rate=_mean([record.hit_cap for record in ran]),
        satisfied_share=_mean([reason == StopReason.SATISFIED for reason in reasons]),
        stalled_share=_mean([reason == StopReason.STALLED for reason in reasons]),
        stop_reasons={reason: reasons.count(reason) for reason in sorted(set(reasons))},
        grader_failures=sum(grade.grader_failed for grade in _grades(done)),
        calls=sum(record.calls_made for record in records),
        cached_calls=sum(max(0, each.usage.calls + each.grading_usage.calls - each.calls_made) for each in done),
    )


def _side(
    records: Sequence[QuestionRecord],
    grade_of: Callable[[QuestionRecord], Grade | None],
    usage_of: Callable[[QuestionRecord], CallSum],
    coverage_of: Callable[[QuestionRecord], float | None],
) -> Side:
    verdicts = _verdicts(map(grade_of, records))
    coverages = [coverage for record in records if (coverage := coverage_of(record)) is not None]
    sums = [usage_of(record) for record in records]
    tokens_in, tokens_out = _sum([each.tokens_in for each in sums]), _sum([each.tokens_out for each in sums])
    cost_usd = _sum([each.cost_usd for each in sums])
    return Side(
        score=_mean(verdicts),
        graded=len(verdicts),
        ungraded=len(records) - len(verdicts),
        citation_coverage=_mean(coverages),
        citation_hit_rate=_mean([coverage == 1.0 for coverage in coverages]),
        tokens_in=tokens_in,
        tokens_out=tokens_out,
        tokens_per_question=_mean([each.tokens for each in sums]),
        cost_usd=cost_usd,
        cost_usd_per_question=None if cost_usd is None or not records else cost_usd / len(records),
    )


def _kind(records: Sequence[QuestionRecord]) -> KindScore:
    verdicts = _verdicts([record.grade for record in records])
    return KindScore(
        n=len(records),
        ungraded=len(records) - len(verdicts),
        failed=sum(record.status == "failed" for record in records),
        score=_mean(verdicts),
        first_draft_score=_mean(_verdicts([record.first_draft_grade for record in records])),
    )


def _lift(records: Sequence[QuestionRecord]) -> Lift:
    both = [
        (record, drafted, looped)
        for record in records
        if (drafted := _passed(record.first_draft_grade)) is not None and (looped := _passed(record.grade)) is not None
    ]
    first, loop = _mean([drafted for _, drafted, _ in both]), _mean([looped for _, _, looped in both])
    drafts, loops = _sum([r.first_draft_usage.tokens for r, _, _ in both]), _sum([r.usage.tokens for r, _, _ in both])
    paid = _sum([r.first_draft_usage.cost_usd for r, _, _ in both]), _sum([r.usage.cost_usd for r, _, _ in both])
    return Lift(
        n=len(both),
        first_draft_score=first,
        loop_score=loop,
        difference=None if first is None or loop is None else round(loop - first, _DIGITS),
        token_ratio=round(loops / drafts, 2) if loops is not None and drafts else None,
        extra_cost_usd=None if paid[0] is None or paid[1] is None else paid[1] - paid[0],
    )


def _grades(records: Iterable[QuestionRecord]) -> list[Grade]:
    """Each grade once, where the first draft's is the loop's."""
    pairs = [(record.grade, record.first_draft_grade) for record in records]
    return [
        grade for loop, draft in pairs for grade in ([loop] if draft is loop else [loop, draft]) if grade is not None
    ]


def _passed(grade: Grade | None) -> bool | None:
    return None if grade is None else grade.passed


def _verdicts(grades: Iterable[Grade | None]) -> list[bool]:
    return [grade.passed for grade in grades if grade is not None and grade.passed is not None]


def _mean(numbers: Sequence[float | None]) -> float | None:
    known = [number for number in numbers if number is not None]
    return round(fmean(known), _DIGITS) if known and len(known) == len(numbers) else None


def _sum(numbers: Sequence[_Number | None]) -> _Number | None:
    known = [number for number in numbers if number is not None]
    return cast("_Number", sum(known)) if len(known) == len(numbers) else None
