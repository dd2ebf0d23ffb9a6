"""The worked examples of the source."""

from __future__ import annotations

from agents_loop import (
    Confidence,
    HallucinationFinding,
    HallucinationReport,
    IterationSignals,
    UnmetRequirement,
    ValidationFailure,
)
from agents_loop.strategy import (
    Attempt,
    Flag,
    IterationBudget,
    IterationStrategy,
    Modification,
    StrategyThresholds,
    decide_strategy,
)
from agents_loop.strategy.triggers import triggers_of


def test_low_confidence_and_confirmed_hallucinations():
    """Strategy, example A: the most severe trigger decides, so the claims go first, and the low confidence second."""
    signals = IterationSignals(
        confidence=Confidence(0.68),
        hallucination=HallucinationReport(
            [
                HallucinationFinding("open() returns bytes", "confirmed"),
                HallucinationFinding("sort() returns a list", "confirmed"),
            ]
        ),
    )
    budget = IterationBudget(iteration=1, max_iterations=4, max_tokens=50_000, tokens_used=5_000)
    decision = decide_strategy(signals, budget)
    assert (decision.strategy, decision.rule) == (IterationStrategy.RETRY, "specific_claims")
    assert decision.modifications == (
        Modification.CLAIM_REMOVAL,
        Modification.VERIFICATION,
        Modification.SOURCE_RESTRICTION,
    )
    assert [(trigger.type.value, round(trigger.severity, 2)) for trigger in decision.triggers] == [
        ("hallucination_detected", 1.0),
        ("hallucination_detected", 1.0),
        ("low_confidence", 0.32),
    ]
    assert all(trigger.fixable for trigger in decision.triggers)
    assert decision.numbers["remaining_iterations"] == 3


def test_unmet_requirements_without_the_tokens_for_them():
    """Strategy, example B: where the tokens don't suffice a person is asked, with what is there, though it improves."""
    signals = IterationSignals(
        unmet_requirements=[
            UnmetRequirement(f"section {n} is missing", severity=s) for n, s in enumerate((0.6, 0.8, 0.9))
        ],
        quality=0.7,
    )
    budget = IterationBudget(iteration=4, max_iterations=5, max_tokens=50_000, tokens_used=42_000, next_tokens=12_000)
    before = IterationSignals(
        unmet_requirements=[UnmetRequirement(f"section {n} is missing") for n in range(5)], quality=0.55
    )
    history = [
        Attempt(
            iteration=3,
            triggers=triggers_of(before, StrategyThresholds()),
            quality=0.55,
            strategy=IterationStrategy.REFINE,
        )
    ]
    decision = decide_strategy(signals, budget, history)
    assert (decision.strategy, decision.rule) == (IterationStrategy.ESCALATE, "budget_scarce")
    assert decision.flags == (Flag.BUDGET, Flag.PARTIAL_ACCEPTANCE)
    assert decision.reason == "8000 of 50000 tokens are left (16%)"
    assert decision.numbers["is_improving"] is True
    assert decision.numbers["fixability"] == 1.0


def test_a_plateau_with_a_schema_that_does_not_fit():
    """Strategy, example C: a plateau is put before a person, although most of what is wrong could be mended."""
    signals = IterationSignals(
        validation_failures=[
            *(ValidationFailure("TYPE_MISMATCH", "is a str, not a number", f"$.{name}") for name in "ab"),
            *(ValidationFailure("MISSING_FIELD", "is missing", f"$.{name}") for name in "cde"),
        ],
        quality=0.66,
    )
    triggers = triggers_of(signals, StrategyThresholds())
    chosen = (IterationStrategy.RETRY, IterationStrategy.REFINE)
    history = [
        Attempt(iteration=number, triggers=triggers, quality=quality, strategy=strategy)
        for number, quality, strategy in zip((1, 2), (0.65, 0.67), chosen, strict=True)
    ]
    decision = decide_strategy(signals, IterationBudget(iteration=3, max_iterations=6), history)
    assert (decision.strategy, decision.rule) == (IterationStrategy.ESCALATE, "plateau")
    assert decision.flags == (
        Flag.HUMAN_EVALUATION,
        Flag.METRIC_GAMING_CHECK,
        Flag.MODEL_LIMITATION,
        Flag.SCHEMA_INCOMPATIBILITY,
    )
    assert decision.numbers["fixability"] == 0.6
    assert decision.numbers["likelihood"] == 0.3
    assert decision.numbers["expected_gain"] == 0.126
    assert decision.numbers["deviation"] == 0.008165
    assert "0.65, 0.67, 0.66" in decision.reason
