"""What several replies about one answer come to. Pure functions; nothing unclear is a pass."""

from __future__ import annotations

import math
from collections.abc import Sequence

from agents_loop.judging.contradictions import says_nothing_missing
from agents_loop.judging.full_reading import FullReading
from agents_loop.judging.verdict import UNKNOWN_GAP
from agents_loop.judging.voting import reaches


def mean_probability(readings: Sequence[FullReading]) -> float | None:
    """The mean of the probabilities of those that have one; `None` where none has."""
    return _mean([reading.probability for reading in readings])


def score_of(
    deciding: Sequence[FullReading], of_judge: Sequence[FullReading], threshold: float | None, *, answered: bool
) -> float | None:
    """The mean of the deciding ones' own scores; where there is none, of the judge's probabilities.

    A probability on the wrong side of the threshold is moved to it, so that no answer that did not pass is above one
    that did. What contradicts itself has no score.
    """
    clear = [reading for reading in deciding if reading.contradiction is None]
    own = _mean([reading.score for reading in clear])
    if own is not None or not clear:
        return own
    sure = mean_probability([reading for reading in of_judge if reading.contradiction is None])
    if sure is None or threshold is None:
        return sure
    return max(sure, threshold) if answered else min(sure, threshold)


def _mean(numbers: Sequence[float | None]) -> float | None:
    known = [number for number in numbers if number is not None]
    return min(1.0, math.fsum(known) / len(known)) if known else None


def passes(readings: Sequence[FullReading], threshold: float | None) -> bool:
    """Whether more than half of them pass, and the mean of the probabilities, if there is one, reaches the threshold.

    A high probability alone passes nothing: the replies' booleans do, and the threshold takes passes away.
    """
    in_favour = sum(reading.passes for reading in readings)
    if 2 * in_favour <= len(readings):
        return False
    sure = mean_probability(readings)
    return threshold is None or sure is None or reaches(sure, threshold)


def ends(readings: Sequence[FullReading]) -> bool:
    """Whether more than half of them say that the request can't be met."""
    return 2 * sum(reading.ends for reading in readings) > len(readings)


def is_unsure(readings: Sequence[FullReading], threshold: float | None, margin: float) -> bool:
    """Whether they tie, or are near the threshold, or all contradict themselves."""
    if all(reading.contradiction is not None for reading in readings):
        return True
    for votes in ([reading.passes for reading in readings], [reading.ends for reading in readings]):
        if 2 * sum(votes) == len(readings):
            return True
    sure = mean_probability(readings)
    return threshold is not None and sure is not None and reaches(margin, abs(sure - threshold))


def gap_of(readings: Sequence[FullReading]) -> str:
    """The first gap that is named, of those that don't pass before the others; else `<unknown>`."""
    ordered = sorted(readings, key=lambda reading: reading.verdict.answered)
    named = (reading.verdict.gap for reading in ordered if _names_a_gap(reading))
    return next(named, UNKNOWN_GAP)


def _names_a_gap(reading: FullReading) -> bool:
    """What stands beside a marker that passes is prose, and no gap."""
    is_prose = reading.verdict.answered and reading.verdict.fields is None
    return not is_prose and not says_nothing_missing(reading.verdict.gap)
