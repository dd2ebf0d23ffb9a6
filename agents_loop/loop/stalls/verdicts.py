"""Signals of stuck verdicts."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import ClassVar

from agents_loop.loop.stalls.facts import IterationFacts, comes_closer, is_better_beside_scores
from agents_loop.loop.stalls.signal import StallSignal, check_fraction


class SameFeedbackSignal(StallSignal):
    """The evaluators say the same again and again, but for case, and it comes no closer.

    Evaluators whose feedback never changes (a marker that is missing) trigger it while the agent works on: leave it out
    for those, or raise `repeats`.

    Args:
        repeats: How many times in a row.
    """

    name: ClassVar[str] = "same_feedback"

    def __init__(self, repeats: int = 5) -> None:
        super().__init__(repeats)

    def is_alike(self, iterations: Sequence[IterationFacts]) -> bool:
        """Whether all feedback is the same, and there is some."""
        last = iterations[-1].feedback
        if not last or last != iterations[-2].feedback:
            return False
        return all(each.feedback == last for each in iterations) and not comes_closer(iterations)

    @property
    def observation(self) -> str:
        """What has been seen."""
        return f"the evaluators said the same {self.repeats} times in a row"


class SameFailingCriteriaSignal(StallSignal):
    """The same criteria fail with the same scores again and again, whatever the answers and the judge's words.

    Criteria are those of a rubric, and the checks beside a judge; a check that finds something else (5 tests fail, then
    3) does not fail in the same way. An evaluation without any does not count.

    Args:
        repeats: How many times in a row.
    """

    name: ClassVar[str] = "same_failing_criteria"

    def __init__(self, repeats: int = 3) -> None:
        super().__init__(repeats)

    def is_alike(self, iterations: Sequence[IterationFacts]) -> bool:
        """Whether all fail in the same criteria and have the same score."""
        last = iterations[-1]
        if not last.failing_criteria:
            return False
        earlier = iterations[:-1]
        for each in earlier:
            if each.failing_criteria != last.failing_criteria or each.score != last.score:
                return False
        return not is_better_beside_scores(iterations)

    @property
    def observation(self) -> str:
        """What has been seen."""
        return f"the same criteria failed with the same scores {self.repeats} times in a row"


class FlatScoreSignal(StallSignal):
    """The score does not move: the standard deviation of the last scores is small, and they do not rise step by step.

    Nor does it count where fewer criteria fail, since the least of several scores says nothing of how many are low, or
    where a comparison prefers a new answer.

    It is the standard deviation, not the variance: scores that climb from 0.58 over 0.68 to 0.75 have a variance of
    0.005 and a deviation of 0.07. A threshold of 0.02 for the variance would call that flat.

    Args:
        repeats: How many scores it looks at.
        deviation: Below which standard deviation (of the scores as a population) they are flat.

    Raises:
        ConfigurationError: `deviation` is not above 0 and up to 1.
    """

    name: ClassVar[str] = "flat_score"

    def __init__(self, repeats: int = 3, *, deviation: float = 0.02) -> None:
        super().__init__(repeats)
        self.deviation = check_fraction("deviation", deviation)

    def is_alike(self, iterations: Sequence[IterationFacts]) -> bool:
        """Whether the scores are flat."""
        if iterations[-1].score is None:
            return False
        scores = _scores(iterations)
        if (
            not scores
            or all(later > earlier for earlier, later in pairwise(scores))
            or is_better_beside_scores(iterations)
        ):
            return False
        mean = sum(scores) / len(scores)
        return math.sqrt(sum((score - mean) ** 2 for score in scores) / len(scores)) < self.deviation

    @property
    def observation(self) -> str:
        """What has been seen."""
        return f"the last {self.repeats} scores are about the same"


class FallingScoreSignal(StallSignal):
    """The score falls from answer to answer, and nothing else gets better.

    Args:
        repeats: How many scores it looks at, each lower than the one before it.
        fall: How much lower the last is than the first at least.

    Raises:
        ConfigurationError: `fall` is not above 0 and up to 1.
    """

    name: ClassVar[str] = "falling_score"

    def __init__(self, repeats: int = 3, *, fall: float = 0.05) -> None:
        super().__init__(repeats)
        self.fall = check_fraction("fall", fall)

    def is_alike(self, iterations: Sequence[IterationFacts]) -> bool:
        """Whether the scores fall."""
        if iterations[-1].score is None:
            return False
        scores = _scores(iterations)
        if (
            not scores
            or any(later >= earlier for earlier, later in pairwise(scores))
            or is_better_beside_scores(iterations)
        ):
            return False
        fell = scores[0] - scores[-1]
        return fell > self.fall or math.isclose(fell, self.fall)

    @property
    def observation(self) -> str:
        """What has been seen."""
        return f"the last {self.repeats} scores fall"


def _scores(iterations: Sequence[IterationFacts]) -> list[float]:
    """Their scores; none if one has none."""
    scores = [each.score for each in iterations]
    return [] if None in scores else [score for score in scores if score is not None]
