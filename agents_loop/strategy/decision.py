"""The decision: which strategy, and why."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from agents_loop.messages import JsonValue
from agents_loop.strategy.history import IterationStrategy
from agents_loop.strategy.triggers import Trigger


class Modification(StrEnum):
    """What the agent is asked to do differently."""

    FIX_ERRORS = "fix_errors"
    SCHEMA_GUIDANCE = "schema_guidance"
    DETAIL_REQUIREMENTS = "detail_requirements"
    VERIFICATION = "verification"
    CLAIM_REMOVAL = "claim_removal"
    SOURCE_RESTRICTION = "source_restriction"
    USER_GUIDANCE = "user_guidance"
    MEET_REQUIREMENTS = "meet_requirements"
    RAISE_QUALITY = "raise_quality"
    VARY_APPROACH = "vary_approach"
    REDUCE_SCOPE = "reduce_scope"


class Flag(StrEnum):
    """What the person is told in whose hands a run is put."""

    IMPOSSIBLE = "impossible"
    QUESTION = "question"
    NO_ITERATIONS_LEFT = "no_iterations_left"
    BUDGET = "budget"
    RESOURCE_EFFICIENCY = "resource_efficiency"
    TASK_DECOMPOSITION = "task_decomposition"
    PARTIAL_ACCEPTANCE = "partial_acceptance"
    SCOPE_REDUCTION = "scope_reduction"
    NOT_FIXABLE = "not_fixable"
    HUMAN_EVALUATION = "human_evaluation"
    METRIC_GAMING_CHECK = "metric_gaming_check"
    MODEL_LIMITATION = "model_limitation"
    SCHEMA_INCOMPATIBILITY = "schema_incompatibility"
    VAGUE_FEEDBACK = "vague_feedback"
    STRATEGIES_EXHAUSTED = "strategies_exhausted"
    FAILURE_SUMMARY = "failure_summary"


@dataclass(frozen=True, slots=True, kw_only=True)
class StrategyDecision:
    """What is done about an answer, by which rule, and with which numbers."""

    strategy: IterationStrategy
    rule: str
    """The name of the rule that decided: the first in order that had something to say."""
    reason: str
    """Why, in a sentence, with the numbers."""
    modifications: tuple[Modification, ...] = ()
    """What the agent is asked to do differently, where it is run again."""
    flags: tuple[Flag, ...] = ()
    """What a person is told, where one is asked."""
    triggers: tuple[Trigger, ...] = ()
    """What is wrong, the most severe first."""
    numbers: dict[str, JsonValue]
    """What the rules went by."""

    def to_json(self) -> dict[str, JsonValue]:
        """As a JSON value."""
        return {
            "strategy": self.strategy.value,
            "rule": self.rule,
            "reason": self.reason,
            "modifications": [each.value for each in self.modifications],
            "flags": [each.value for each in self.flags],
            "triggers": [trigger.to_json() for trigger in self.triggers],
            "numbers": dict(self.numbers),
        }
