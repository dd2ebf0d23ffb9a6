"""What a check of a judge comes to. Pure functions over what was seen."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Literal, TypeAlias

from agents_loop.files.counting import counted
from agents_loop.judge_check.cases import JudgeCase
from agents_loop.judge_check.running import Ending, Verdict, revisions_of, words_of
from agents_loop.judging.voting import reaches
from agents_loop.loop.result import LoopResult, StopReason
from agents_loop.message_json import usage_to_json
from agents_loop.messages import JsonValue
from agents_loop.metering.ledger import LedgerSum

Status: TypeAlias = Literal["passed", "failed", "noted", "skipped"]
_ENDED = (StopReason.MAX_ITERATIONS, StopReason.STALLED, StopReason.ABORTED)


@dataclass(slots=True)
class Seen:
    """What was seen so far, by case."""

    verdicts: list[tuple[JudgeCase, list[Verdict]]] = field(default_factory=list[tuple[JudgeCase, list[Verdict]]])
    revised: list[tuple[JudgeCase, LoopResult]] = field(default_factory=list[tuple[JudgeCase, LoopResult]])
    endings: list[tuple[JudgeCase, Ending]] = field(default_factory=list[tuple[JudgeCase, Ending]])


@dataclass(frozen=True, slots=True)
class CheckResult:
    """One of the four checks."""

    name: str
    status: Status
    """`noted`: it measures a gap, and has nothing to pass; `skipped`: there was no case for it."""
    detail: str
    """For people."""
    figures: dict[str, JsonValue]

    def to_json(self) -> dict[str, JsonValue]:
        """It as a JSON value."""
        return {"name": self.name, "status": self.status, "detail": self.detail, **self.figures}


@dataclass(frozen=True, slots=True)
class JudgeReport:
    """What a check of a file's judge comes to."""

    name: str
    """What the file calls itself."""
    checks: tuple[CheckResult, ...]
    cases: tuple[dict[str, JsonValue], ...]
    """What was seen of each case, with the judge's words as they were."""
    total: LedgerSum
    """What the calls used that reached a model."""
    ended_early: str | None
    """Why it is not whole; `None`: it is."""

    @property
    def passed(self) -> bool:
        """Whether it is whole, and no check failed."""
        return self.ended_early is None and all(check.status != "failed" for check in self.checks)

    def to_json(self) -> dict[str, JsonValue]:
        """It as a JSON value."""
        return {
            "name": self.name,
            "passed": self.passed,
            "partial": self.ended_early is not None,
            "ended_early": self.ended_early,
            "checks": [check.to_json() for check in self.checks],
            "cases": list(self.cases),
            "model_calls": self.total.calls,
            "usage": None if self.total.usage is None else usage_to_json(self.total.usage),
            "cost_usd": self.total.cost_usd,
        }


def check_results(seen: Seen, *, min_agreement: float) -> tuple[CheckResult, ...]:
    """The four checks, from what was seen."""
    return (
        _agreement(_of_kind(seen, "repeat"), min_agreement),
        _blind_spots(_of_kind(seen, "blind_spot")),
        _never_passes([ending for _, ending in seen.endings]),
        _trivial_and_serious(seen.revised),
    )


def cases_seen(seen: Seen) -> tuple[dict[str, JsonValue], ...]:
    """What was seen of each case."""
    judged = [_judged(case, verdicts) for case, verdicts in seen.verdicts]
    revised = [_revised(case, result) for case, result in seen.revised]
    return (*judged, *revised, *[_ended(case, ending) for case, ending in seen.endings])


# --- the four checks


def _agreement(cases: Sequence[tuple[JudgeCase, list[Verdict]]], least: float) -> CheckResult:
    pairs = [pair for _, verdicts in cases for pair in combinations([verdict.passes for verdict in verdicts], 2)]
    if not pairs:
        return _skipped("agreement", "repeat")
    agreed = sum(first is not None and first == second for first, second in pairs)
    given = [verdict.passes for _, verdicts in cases for verdict in verdicts]
    labelled = [(case.passes, verdict.passes) for case, verdicts in cases for verdict in verdicts]
    right = [known == passes for known, passes in labelled if known is not None]
    rate = agreed / len(pairs)
    figures: dict[str, JsonValue] = {
        "cases": len(cases),
        "agreement_rate": round(rate, 4),
        "without_verdict": given.count(None),
        "right_rate": round(sum(right) / len(right), 4) if right else None,
    }
    times = max(len(verdicts) for _, verdicts in cases)
    detail = f"{counted(len(cases), 'draft')}, judged {times} times each: {rate:.0%} agree"
    if right:
        detail += f", {sum(right) / len(right):.0%} of the verdicts are right"
    if None in given:
        detail += f", {given.count(None)} without a verdict"
    passes = reaches(rate, least)
    return CheckResult("agreement", "passed" if passes else "failed", detail, figures)


def _blind_spots(cases: Sequence[tuple[JudgeCase, list[Verdict]]]) -> CheckResult:
    if not cases:
        return _skipped("blind_spots", "blind_spot")
    given = [verdict.passes for _, verdicts in cases for verdict in verdicts]
    rate = given.count(True) / len(given)
    figures: dict[str, JsonValue] = {
        "cases": len(cases),
        "pass_rate": round(rate, 4),
        "without_verdict": given.count(None),
    }
    wrong = counted(len(cases), "wrong draft")
    said = f"{rate:.0%} of {wrong} passed, whose fault the criterion is not made to see: a gap to know of"
    return CheckResult("blind_spots", "noted", said, figures)


def _never_passes(endings: Sequence[Ending]) -> CheckResult:
    if not endings:
        return _skipped("never_passes", "never_passes")
    wrong = [ending for ending in endings if not _says_so(ending)]
    shown = (wrong or list(endings))[0]
    result = shown.result
    figures: dict[str, JsonValue] = {
        "runs": len(endings),
        "ended": len(endings) - len(wrong),
        "stop_reason": result.stop_reason.value,
        "stop_detail": result.stop_detail,
        "iterations": len(result.iterations),
        "recorded": shown.is_recorded,
    }
    said = f"{len(endings) - len(wrong)} of {counted(len(endings), 'run')} ended with an answer and said so: "
    said += f"{result.stop_reason.value}, {result.stop_detail or 'without a detail'}"
    return CheckResult("never_passes", "failed" if wrong else "passed", said, figures)


def _says_so(ending: Ending) -> bool:
    """Whether a run that never passed ended as one, with a reason, an event of its own, and its answer."""
    result = ending.result
    has_ended = result.stop_reason in _ENDED and bool(result.stop_detail) and ending.is_recorded
    return has_ended and bool(result.output.strip())


def _trivial_and_serious(revised: Iterable[tuple[JudgeCase, LoopResult]]) -> CheckResult:
    listed = list(revised)
    trivial = [result for case, result in listed if case.kind == "trivial"]
    serious = [result for case, result in listed if case.kind == "serious"]
    if not trivial or not serious:
        return _skipped("trivial_and_serious", "trivial" if not trivial else "serious")
    figures: dict[str, JsonValue] = {
        "trivial": _revision_figures(trivial),
        "serious": _revision_figures(serious),
    }
    of_trivial, of_serious = _mean_revisions(trivial), _mean_revisions(serious)
    if of_trivial is None or of_serious is None:
        kind, results = ("trivial", trivial) if of_trivial is None else ("serious", serious)
        why = ", ".join(dict.fromkeys([result.stop_reason.value for result in results]))
        return CheckResult("trivial_and_serious", "failed", f"no {kind} draft was judged to its end: {why}", figures)
    said = f"trivial faults take {of_trivial:.2f} revisions, serious ones {of_serious:.2f}"
    if left_out := len(listed) - len(_judged_to_the_end([*trivial, *serious])):
        said += f", without {counted(left_out, 'draft')} not judged to the end"
    if of_trivial < of_serious:
        return CheckResult("trivial_and_serious", "passed", said, figures)
    why = "the criterion may be too literal" if of_trivial > 0 else "the judge lets serious faults pass"
    return CheckResult("trivial_and_serious", "failed", f"{said}: {why}", figures)


def _revision_figures(results: Sequence[LoopResult]) -> JsonValue:
    judged, mean = _judged_to_the_end(results), _mean_revisions(results)
    capped = sum(result.stop_reason == StopReason.MAX_ITERATIONS for result in judged)
    return {
        "cases": len(results),
        "not_judged": len(results) - len(judged),
        "mean_revisions": None if mean is None else round(mean, 4),
        "cap_hit_rate": round(capped / len(judged), 4) if judged else None,
    }


def _mean_revisions(results: Sequence[LoopResult]) -> float | None:
    """Of the runs that say something of the judge; `None` if there is none."""
    judged = _judged_to_the_end(results)
    return sum(revisions_of(result) for result in judged) / len(judged) if judged else None


def _judged_to_the_end(results: Sequence[LoopResult]) -> list[LoopResult]:
    """Without runs that a failure, a limit or an open question ended: nobody knows what they would have taken."""
    return [result for result in results if result.stop_reason in (StopReason.SATISFIED, *_ENDED)]


def _skipped(name: str, kind: str) -> CheckResult:
    return CheckResult(name, "skipped", f"there is no case of the kind {kind!r} that was seen", {})


def _of_kind(seen: Seen, kind: str) -> list[tuple[JudgeCase, list[Verdict]]]:
    return [(case, verdicts) for case, verdicts in seen.verdicts if case.kind == kind and verdicts]


# --- the cases


def _judged(case: JudgeCase, verdicts: Iterable[Verdict]) -> dict[str, JsonValue]:
    given: list[JsonValue] = [{"passes": verdict.passes, "said": verdict.said} for verdict in verdicts]
    return {"id": case.id, "kind": case.kind, "should_pass": case.passes, "verdicts": given}


def _revised(case: JudgeCase, result: LoopResult) -> dict[str, JsonValue]:
    return {
        "id": case.id,
        "kind": case.kind,
        "revisions": revisions_of(result),
        "stop_reason": result.stop_reason.value,
        "stop_detail": result.stop_detail,
        "drafts": [{"text": each.response.text, "said": words_of(each)} for each in result.iterations],
    }


def _ended(case: JudgeCase, ending: Ending) -> dict[str, JsonValue]:
    return {
        **_revised(case, ending.result),
        "kind": "never_passes",
        "recorded": ending.is_recorded,
    }
