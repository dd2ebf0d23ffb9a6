"""How votes are counted. Pure functions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal, TypeAlias

Vote: TypeAlias = Literal["majority", "unanimous", "weighted", "mean", "median"]
OnTie: TypeAlias = Literal["continue", "stop"]


def passes_by_weight(votes: Sequence[bool], weights: Sequence[float], on_tie: OnTie) -> bool:
    """Whether those in favour weigh more than those against.

    A difference below a billionth of the weights is a tie: sums of decimals are not exact.
    """
    pairs = list(zip(votes, weights, strict=True))
    in_favour = math.fsum(weight for vote, weight in pairs if vote)
    against = math.fsum(weight for vote, weight in pairs if not vote)
    if math.isclose(in_favour, against):
        return on_tie == "stop"
    return in_favour > against


def mean_score(scores: Sequence[float], weights: Sequence[float]) -> float:
    """The mean of scores from 0 to 1, which is from 0 to 1 too."""
    total = math.fsum(score * weight for score, weight in zip(scores, weights, strict=True))
    return min(1.0, max(0.0, total / math.fsum(weights)))


def median_score(scores: Sequence[float]) -> float:
    """The score in the middle; of an even number the mean of the two there."""
    ordered = sorted(scores)
    middle = len(ordered) // 2
    return ordered[middle] if len(ordered) % 2 else (ordered[middle - 1] + ordered[middle]) / 2


def reaches(score: float, threshold: float) -> bool:
    """Whether a score is at least the threshold; a sum of decimals that misses it by a billionth does too."""
    return score > threshold or math.isclose(score, threshold)
