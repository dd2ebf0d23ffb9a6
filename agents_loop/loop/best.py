"""How good an answer is, by what was said of it: which of a run's answers is its best."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple, cast

from agents_loop.loop.criteria import criteria_met
from agents_loop.loop.evaluation import LoopEvaluation
from agents_loop.loop.no_verdict import lacks_verdict

PREFERENCE: Final = "preference"
"""The key, in the details of an evaluation, of how the answer compares with the best one before it."""
DIGITS = 9
"""Scores that differ by less than a billionth are equal: means of decimals are not exact."""


def score_of(evaluations: Sequence[LoopEvaluation]) -> float | None:
    """An answer's score, from 0 to 1: the mean of the scores that its evaluators gave.

    `None` without any, and where one of them gave no verdict: the mean of the others is no measure beside answers that
    all of them judged.
    """
    if len(evaluations) == 1:
        return evaluations[0].score
    scores = [evaluation.score for evaluation in evaluations if evaluation.score is not None]
    if not scores or any(lacks_verdict(evaluation) for evaluation in evaluations):
        return None
    return sum(scores) / len(scores)


def is_preferred(evaluations: Sequence[LoopEvaluation]) -> bool | None:
    """Whether a comparison preferred the answer to the best one before it; `None` if there was no comparison."""
    for evaluation in evaluations:
        if isinstance(evaluation.details, dict):
            preference = cast("dict[str, Any]", evaluation.details).get(PREFERENCE)
            if isinstance(preference, dict):
                return cast("dict[str, Any]", preference).get("preferred") == "new"
    return None


class Rank(NamedTuple):
    """Where an answer stands among a run's answers; the highest is the best."""

    was_preferred: bool
    """By a comparison, which decides where there is one: the last one that was preferred is the best."""
    is_scored: bool
    score: float
    is_answer: bool
    """Among answers without a score: whether it is one at all, and not refused, filtered, cut off or empty."""
    criteria_met: int
    number: int

    @classmethod
    def of(cls, number: int, evaluations: Sequence[LoopEvaluation], score: float | None, *, is_bad: bool) -> Rank:
        """The rank of one iteration's answer.

        Args:
            number: Which iteration.
            evaluations: What was said of its answer.
            score: How good it is, if that is known.
            is_bad: Whether the answer is none: refused, filtered, cut off, or empty.
        """
        if is_preferred(evaluations):
            return cls(True, False, 0.0, True, 0, number)  # noqa: FBT003 - by position, as a tuple is made
        passed = sum(criteria_met(evaluations).values())
        return cls(False, score is not None, round(score or 0.0, DIGITS), not is_bad, passed, number)  # noqa: FBT003
