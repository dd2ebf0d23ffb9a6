"""The iterations before, as far as the strategy goes by them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise
from statistics import pstdev
from typing import Any

from agents_loop.messages import JsonValue
from agents_loop.strategy.thresholds import MOST_FAILURES, SAME_FOR, StrategyThresholds
from agents_loop.strategy.triggers import Trigger, TriggerType


class IterationStrategy(StrEnum):
    """What is done about an answer."""

    RETRY = "retry"
    """The agent writes the answer anew."""
    REFINE = "refine"
    """The agent keeps the answer and changes what is wrong."""
    EXPAND = "expand"
    """The agent keeps the answer and adds to it."""
    SIMPLIFY = "simplify"
    """The agent does less, and that right."""
    FINAL_RETRY = "final_retry"
    """The agent tries once more, and mends everything at once."""
    ACCEPT = "accept"
    """The loop asks for no more."""
    ESCALATE = "escalate"
    """A person is asked."""

    @property
    def goes_on(self) -> bool:
        """Whether the agent is run again."""
        return self not in (IterationStrategy.ACCEPT, IterationStrategy.ESCALATE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """An iteration, what was wrong with its answer, and the strategy that was chosen for the next one."""

    iteration: int
    triggers: tuple[Trigger, ...] = ()
    quality: float | None = None
    strategy: IterationStrategy | None = None
    """`None`: not chosen yet."""

    def to_json(self) -> dict[str, JsonValue]:
        """As a JSON value."""
        return {
            "iteration": self.iteration,
            "triggers": [{**trigger.to_json(), "severity": trigger.severity} for trigger in self.triggers],
            "quality": self.quality,
            "strategy": None if self.strategy is None else self.strategy.value,
        }

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Attempt:
        """What `to_json` gave.

        Raises:
            KeyError, TypeError, ValueError: It is not.
        """
        strategy, quality = stored["strategy"], stored["quality"]
        return cls(
            iteration=int(stored["iteration"]),
            triggers=tuple([Trigger.from_json(each) for each in stored["triggers"]]),
            quality=None if quality is None else float(quality),
            strategy=None if strategy is None else IterationStrategy(strategy),
        )


def is_better(later: Attempt, earlier: Attempt, thresholds: StrategyThresholds) -> bool:
    """Whether an answer is better: by its quality, or, where one of the two is not known, by the triggers' severity."""
    if later.quality is not None and earlier.quality is not None:
        return round(later.quality - earlier.quality, 9) > thresholds.min_improvement
    return round(_severity(later) - _severity(earlier), 9) < 0


def mean_gain(attempts: Sequence[Attempt]) -> float | None:
    """The gain of quality for each iteration, from the first that is known to the last; `None` with fewer than two."""
    known = [(attempt.iteration, attempt.quality) for attempt in attempts if attempt.quality is not None]
    if len(known) < 2:  # noqa: PLR2004 - a gain needs two
        return None
    (first, was), (last, now) = known[0], known[-1]
    return round((now - was) / (last - first), 9)


def deviation(attempts: Sequence[Attempt]) -> float | None:
    """The standard deviation of the last three scores; `None` if one of them is not known."""
    scores = [attempt.quality for attempt in attempts[-SAME_FOR:] if attempt.quality is not None]
    return pstdev(scores) if len(scores) == SAME_FOR else None


def have_same_triggers(attempts: Sequence[Attempt]) -> bool:
    """Whether the last three iterations have the same triggers, of the same severities, and not none."""
    last = [Counter(trigger.identity for trigger in attempt.triggers) for attempt in attempts[-SAME_FOR:]]
    return len(last) == SAME_FOR and bool(last[0]) and all(each == last[0] for each in last)


def was_retried(attempts: Iterable[Attempt], kind: TriggerType) -> bool:
    """Whether an earlier answer had such triggers, and the agent was run again because of it."""
    return any(
        attempt.strategy is not None
        and attempt.strategy.goes_on
        and any(trigger.type == kind for trigger in attempt.triggers)
        for attempt in attempts
    )


def given_up(attempts: Sequence[Attempt], thresholds: StrategyThresholds) -> frozenset[IterationStrategy]:
    """The strategies that failed twice in the run: the answer that they led to was no better than the one before.

    Others may have been tried in between: two that take turns, and both fail, would otherwise never be given up.

    Args:
        attempts: In order, the latest included.
        thresholds: What counts as better.
    """
    failures = Counter(
        earlier.strategy
        for earlier, later in pairwise(attempts)
        if earlier.strategy is not None and not is_better(later, earlier, thresholds)
    )
    return frozenset(strategy for strategy, times in failures.items() if times >= MOST_FAILURES)


def _severity(attempt: Attempt) -> float:
    return sum(trigger.severity for trigger in attempt.triggers)
