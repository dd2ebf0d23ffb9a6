"""A case: one answer with all that the rules go by."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from agents_loop.messages import JsonValue
from agents_loop.strategy.budget import IterationBudget, MatrixAction, matrix_action
from agents_loop.strategy.decision import Flag, Modification
from agents_loop.strategy.history import (
    Attempt,
    IterationStrategy,
    deviation,
    given_up,
    have_same_triggers,
    is_better,
    mean_gain,
)
from agents_loop.strategy.signals import IterationSignals
from agents_loop.strategy.thresholds import GAIN_SHARE, LIKELIHOOD, StrategyThresholds
from agents_loop.strategy.triggers import Trigger, fixability, triggers_of


@dataclass(frozen=True, slots=True)
class Plan:
    """What a rule says."""

    strategy: IterationStrategy
    rule: str
    reason: str
    modifications: tuple[Modification, ...] = ()
    flags: tuple[Flag, ...] = ()


class Case:
    """One answer with all that the rules go by.

    Args:
        signals: What detectors found out.
        budget: What is left.
        history: The iterations before, in order.
        thresholds: The numbers that depend on the task.
    """

    def __init__(
        self,
        signals: IterationSignals,
        budget: IterationBudget,
        history: Sequence[Attempt],
        thresholds: StrategyThresholds,
    ) -> None:
        self.signals = signals
        self.budget = budget
        self.thresholds = thresholds
        self.triggers: tuple[Trigger, ...] = triggers_of(signals, thresholds)
        self.history = tuple(history)
        now = Attempt(iteration=budget.iteration, triggers=self.triggers, quality=signals.quality)
        self.attempts = (*self.history, now)
        quality = signals.quality
        self.gap = None if quality is None else round(thresholds.target_quality - quality, 9)
        self.fixability = fixability(self.triggers)
        self.matrix = matrix_action(budget.remaining_iterations, budget.tokens_left, self.gap)
        self.gain = mean_gain(self.attempts)
        self.deviation = deviation(self.attempts)
        self.is_stuck = have_same_triggers(self.attempts)
        self.given_up = given_up(self.attempts, thresholds)

    @property
    def last_strategy(self) -> IterationStrategy | None:
        """The strategy that led to this answer; `None` for the first."""
        return self.history[-1].strategy if self.history else None

    @property
    def is_improving(self) -> bool | None:
        """Whether the answer is better than the one before; `None` without one."""
        return is_better(self.attempts[-1], self.attempts[-2], self.thresholds) if self.history else None

    @property
    def is_accepted_by_matrix(self) -> bool:
        """Whether the matrix accepts the answer, and nothing stands against it."""
        return self.matrix == MatrixAction.ACCEPT and not self.blockers and self.signals.unclear is None

    @property
    def blockers(self) -> tuple[Trigger, ...]:
        """The triggers with which no answer is accepted for its quality."""
        return tuple(trigger for trigger in self.triggers if trigger.blocks_acceptance)

    @property
    def is_flat(self) -> bool:
        """Whether the last three scores are the same but for noise."""
        return self.deviation is not None and self.deviation < self.thresholds.plateau_deviation

    def numbers(self) -> dict[str, JsonValue]:
        """What the rules went by, as JSON values; what is not known is `None`."""
        budget = self.budget
        return {
            "iteration": budget.iteration,
            "max_iterations": budget.max_iterations,
            "remaining_iterations": budget.remaining_iterations,
            "tokens_used": budget.tokens_used,
            "max_tokens": budget.max_tokens,
            "tokens_left": budget.tokens_left,
            "next_tokens": budget.next_tokens,
            "elapsed_s": None if budget.max_s is None else budget.elapsed_s,
            "max_s": budget.max_s,
            "quality": self.signals.quality,
            "quality_gap": self.gap,
            "matrix": self.matrix.value,
            "fixability": round(self.fixability, 6),
            "likelihood": round(self.fixability * LIKELIHOOD[self.is_flat], 6),
            "expected_gain": round(self.fixability * self._mean_severity * GAIN_SHARE[self.is_flat], 6),
            "triggers": len(self.triggers),
            "triggers_before": len(self.history[-1].triggers) if self.history else None,
            "is_improving": self.is_improving,
            "mean_gain": self.gain,
            "deviation": None if self.deviation is None else round(self.deviation, 6),
            "last_strategy": None if self.last_strategy is None else self.last_strategy.value,
            "given_up": sorted(strategy.value for strategy in self.given_up),
        }

    @property
    def _mean_severity(self) -> float:
        return sum(trigger.severity for trigger in self.triggers) / len(self.triggers) if self.triggers else 0.0
