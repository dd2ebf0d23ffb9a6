"""The iteration strategy: signals in, a decision out. All but the detectors are pure functions and values."""

from agents_loop.strategy.budget import IterationBudget, MatrixAction, matrix_action
from agents_loop.strategy.decision import Flag, Modification, StrategyDecision
from agents_loop.strategy.detectors import SignalDetector
from agents_loop.strategy.history import Attempt, IterationStrategy
from agents_loop.strategy.rules import decide_strategy
from agents_loop.strategy.signals import (
    Confidence,
    HallucinationFinding,
    HallucinationReport,
    IterationSignals,
    UnmetRequirement,
    UserFeedback,
    ValidationFailure,
)
from agents_loop.strategy.thresholds import StrategyThresholds
from agents_loop.strategy.triggers import Trigger, TriggerType

__all__ = [
    "Attempt",
    "Confidence",
    "Flag",
    "HallucinationFinding",
    "HallucinationReport",
    "IterationBudget",
    "IterationSignals",
    "IterationStrategy",
    "MatrixAction",
    "Modification",
    "SignalDetector",
    "StrategyDecision",
    "StrategyThresholds",
    "Trigger",
    "TriggerType",
    "UnmetRequirement",
    "UserFeedback",
    "ValidationFailure",
    "decide_strategy",
    "matrix_action",
]
