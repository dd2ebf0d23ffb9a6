"""The rules: one by one, which of two decides, and that there is always one decision."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agents_loop import (
    Confidence,
    ConfigurationError,
    HallucinationFinding,
    HallucinationReport,
    IterationSignals,
    UnmetRequirement,
    UserFeedback,
    ValidationFailure,
)
from agents_loop.strategy import (
    Attempt,
    Flag,
    IterationBudget,
    IterationStrategy,
    Modification,
    StrategyDecision,
    StrategyThresholds,
    decide_strategy,
)
from agents_loop.strategy.triggers import triggers_of

FORM = ValidationFailure("MISSING_FIELD", "is missing", "$.price")
MISMATCH = ValidationFailure("TYPE_MISMATCH", "is a str", "$.price")
CLAIM = HallucinationFinding("the moon is made of cheese", "confirmed")
OPTIONAL = UnmetRequirement("a joke", required=False)
NEEDED = UnmetRequirement("the price")


def found(*parts: Any, **given: Any) -> IterationSignals:
    """Signals by the types of their parts."""
    return IterationSignals(
        validation_failures=[part for part in parts if isinstance(part, ValidationFailure)],
        confidence=next((part for part in parts if isinstance(part, Confidence)), None),
        hallucination=next((part for part in parts if isinstance(part, HallucinationReport)), None),
        unmet_requirements=[part for part in parts if isinstance(part, UnmetRequirement)],
        user_feedback=[part for part in parts if isinstance(part, UserFeedback)],
        **given,
    )


def history(*steps: tuple[IterationSignals, str]) -> list[Attempt]:
    """Iterations from 1, each with its signals and the strategy that was chosen."""
    return [
        Attempt(
            iteration=number,
            triggers=triggers_of(signals, StrategyThresholds()),
            quality=signals.quality,
            strategy=IterationStrategy(strategy),
        )
        for number, (signals, strategy) in enumerate(steps, start=1)
    ]


def decided(
    signals: IterationSignals, before: list[Attempt] | None = None, *, left: int = 6, **given: Any
) -> StrategyDecision:
    """The decision after these iterations, with so many left."""
    before = before or []
    of_budget = {name: given.pop(name) for name in list(given) if name in IterationBudget.__dataclass_fields__}
    iteration = len(before) + 1
    budget = IterationBudget(iteration=iteration, max_iterations=iteration + left, **of_budget)
    return decide_strategy(signals, budget, before, **given)


def word(decision: StrategyDecision) -> tuple[str, str]:
    return decision.strategy.value, decision.rule


# --- the tree


@pytest.mark.parametrize(
    ("signals", "strategy", "rule", "modifications"),
    [
        (found(FORM), "retry", "validation_first", ["fix_errors"]),
        (found(Confidence(0.74, "missing_evidence")), "expand", "missing_evidence", ["detail_requirements"]),
        (found(Confidence(0.74)), "expand", "missing_evidence", ["detail_requirements"]),
        (found(Confidence(0.74, "factual_uncertainty")), "retry", "factual_uncertainty", ["verification"]),
        (
            found(HallucinationReport([CLAIM])),
            "retry",
            "specific_claims",
            ["claim_removal", "verification", "source_restriction"],
        ),
        (
            found(HallucinationReport([CLAIM], systemic=True)),
            "refine",
            "systemic_hallucination",
            ["source_restriction"],
        ),
        (found(UserFeedback("Shorter, please.")), "refine", "clear_feedback", ["user_guidance"]),
        (
            found(UserFeedback("Shorter!"), UserFeedback("Hm.", actionable=False)),
            "refine",
            "clear_feedback",
            ["user_guidance"],
        ),
        (found(UserFeedback("Hm.", actionable=False), FORM, OPTIONAL), "escalate", "vague_feedback", []),
        (found(NEEDED), "retry", "requirement_first", ["meet_requirements"]),
        (found(quality=0.2), "retry", "quality_gap", ["raise_quality"]),
        (found(unclear="the judge is out"), "retry", "unclear", []),
    ],
)
def test_each_branch_of_the_tree(signals, strategy, rule, modifications):
    """Strategy: what is wrong chooses the strategy, and what the agent is asked to do differently."""
    decision = decided(signals)
    assert word(decision) == (strategy, rule)
    assert [each.value for each in decision.modifications] == modifications


def test_validation_that_fails_again():
    """Strategy: validation failures are met with a retry, and then, wherever they come up again, with a refinement."""
    once = history((found(FORM), "retry"))
    assert word(decided(found(FORM), once)) == ("refine", "validation_repeated")
    assert decided(found(FORM), once).modifications == (Modification.SCHEMA_GUIDANCE, Modification.FIX_ERRORS)
    assert word(decided(found(FORM), history((found(NEEDED), "retry")))) == ("retry", "validation_first")
    assert word(decided(found(NEEDED), history((found(NEEDED), "retry")))) == ("refine", "requirement_repeated")


def test_the_most_severe_trigger_leads():
    """Strategy: severity outranks the order of the tree, and the order of the tree breaks ties."""
    assert decided(found(FORM, NEEDED)).rule == "requirement_first"  # 0.7 and 0.9
    assert decided(found(ValidationFailure("X", "y", critical=True), NEEDED)).rule == "validation_first"
    assert decided(found(NEEDED, UserFeedback("Shorter."))).rule == "clear_feedback"  # 0.9 and 0.9


@pytest.mark.parametrize(
    ("report", "triggers"),
    [
        (HallucinationReport([CLAIM]), 1),
        (HallucinationReport([HallucinationFinding("a", "likely")]), 0),
        (HallucinationReport([HallucinationFinding("a", "likely")], "high"), 1),
        (HallucinationReport([CLAIM], "medium"), 0),
        (HallucinationReport([HallucinationFinding("a", "warning"), CLAIM]), 1),
        (HallucinationReport(risk="high"), 1),
        (HallucinationReport(risk="low"), 0),
    ],
)
def test_only_a_high_risk_of_hallucination_triggers(report, triggers):
    """Strategy: a risk above medium is a trigger; warnings are none; the gravest finding tells an unknown risk."""
    assert len(triggers_of(found(report), StrategyThresholds())) == triggers


def test_made_up_as_a_whole_is_not_fixable():
    """Strategy: hallucination without a claim that is known can't be mended, so a person is asked."""
    decision = decided(found(HallucinationReport(risk="high")))
    assert word(decision) == ("escalate", "not_fixable")


@pytest.mark.parametrize(
    ("part", "fixable"),
    [
        (FORM, True),
        (MISMATCH, False),
        (ValidationFailure("SCHEMA_VIOLATION", "no"), False),
        (Confidence(0.5), True),
        (Confidence(0.5, source_material_available=False), False),
        (HallucinationReport([CLAIM]), True),
        (HallucinationReport([HallucinationFinding(None, "confirmed")]), False),
        (NEEDED, True),
        (UnmetRequirement("the moon", fixable=False), False),
        (UserFeedback("Shorter."), True),
        (UserFeedback("Hm.", actionable=False), False),
    ],
)
def test_what_is_fixable(part, fixable):
    """Strategy: fixability, by type of trigger."""
    (trigger,) = triggers_of(found(part), StrategyThresholds())
    assert trigger.fixable is fixable


@pytest.mark.parametrize(
    ("part", "key", "blocks"),
    [
        (FORM, "MISSING_FIELD $.price", True),
        (ValidationFailure("LONG", "42 words"), "LONG 42 words", True),
        (Confidence(0.5), "", False),
        (Confidence(0.5, "factual_uncertainty"), "factual_uncertainty", False),
        (HallucinationReport([CLAIM]), "the moon is made of cheese", True),
        (HallucinationReport([HallucinationFinding("a", "likely")], "high"), "a", False),
        (HallucinationReport([HallucinationFinding(None, "confirmed")]), "", True),
        (HallucinationReport(risk="high"), "", False),
        (NEEDED, "the price", True),
        (UnmetRequirement("no price", key="price"), "price", True),
        (OPTIONAL, "a joke", False),
        (UserFeedback("Shorter."), "Shorter.", True),
    ],
)
def test_what_a_trigger_is_known_by(part, key, blocks):
    """Strategy: the key that tells a trigger from others, and whether it blocks acceptance, by type."""
    (trigger,) = triggers_of(found(part), StrategyThresholds())
    assert (trigger.key, trigger.blocks_acceptance) == (key, blocks)


def test_too_little_is_fixable():
    """Strategy: below 30 % fixable a person is asked; 30 % will do."""
    mixed = found(*[MISMATCH] * 7, *[FORM] * 3)
    assert decided(mixed).numbers["fixability"] == 0.3
    assert decided(mixed).strategy == IterationStrategy.RETRY
    decision = decided(found(*[MISMATCH] * 8, *[FORM] * 3))
    assert word(decision) == ("escalate", "not_fixable")
    assert decision.flags == (Flag.NOT_FIXABLE, Flag.SCHEMA_INCOMPATIBILITY)


# --- what is accepted


def test_nothing_wrong_is_accepted():
    """Strategy: an answer that nothing speaks against is accepted, also at the cap and without tokens."""
    assert word(decided(found())) == ("accept", "nothing_wrong")
    assert word(decided(found(quality=0.85), left=0, max_tokens=10, tokens_used=10)) == ("accept", "nothing_wrong")
    assert word(decided(found(Confidence(0.75), UserFeedback("Nice.", rejected=False)))) == ("accept", "nothing_wrong")


def test_the_matrix_accepts_only_what_nothing_blocks():
    """Strategy: a small gap is accepted, but not with a failure, a requirement, a lie or a rejection in the way."""
    assert word(decided(found(OPTIONAL, quality=0.8))) == ("accept", "good_enough")
    assert word(decided(found(OPTIONAL, quality=0.6), left=2)) == ("accept", "good_enough")
    for part in (FORM, NEEDED, HallucinationReport([CLAIM]), UserFeedback("Shorter.")):
        assert decided(found(part, quality=0.8)).strategy.goes_on
        assert decided(found(part, quality=0.99)).strategy.goes_on
    assert decided(found(quality=0.99, unclear="no verdict")).strategy == IterationStrategy.RETRY
    assert decided(found(OPTIONAL)).strategy == IterationStrategy.RETRY, "an unknown quality is no small gap"


def test_a_medium_gap_keeps_the_answer():
    """Strategy: with much left and a medium gap, what would be written anew is refined; nothing else changes."""
    assert word(decided(found(FORM, quality=0.6))) == ("refine", "validation_first")
    assert word(decided(found(FORM, quality=0.5))) == ("retry", "validation_first")
    assert word(decided(found(Confidence(0.5), quality=0.6))) == ("expand", "missing_evidence")


def test_a_final_attempt_mends_everything():
    """Strategy: with one or two left and a high gap, everything is mended at once, the most severe first."""
    decision = decided(found(FORM, NEEDED, Confidence(0.6), quality=0.2), left=2)
    assert word(decision) == ("final_retry", "final_attempt")
    assert decision.modifications == (
        Modification.MEET_REQUIREMENTS,
        Modification.FIX_ERRORS,
        Modification.DETAIL_REQUIREMENTS,
    )
    assert decided(found(FORM, quality=0.2), left=3, max_tokens=100, tokens_used=60).rule == "final_attempt"


# --- what ends it


def test_no_iterations_left():
    """Strategy: at the cap nothing goes on; a person hears what is wrong."""
    decision = decided(found(FORM, quality=0.8), left=0)
    assert word(decision) == ("escalate", "no_iterations")
    assert decision.reason == "this was iteration 1 of 1"


def test_the_last_iteration():
    """Strategy: with one left the trend decides: better than before, or without a before, it is tried; else not."""
    worse, same, better = found(FORM, NEEDED), found(FORM), found(OPTIONAL)
    assert word(decided(same, left=1)) == ("final_retry", "last_attempt")
    assert word(decided(same, history((worse, "retry")), left=1)) == ("final_retry", "last_attempt")
    stuck = decided(same, history((better, "retry")), left=1)
    assert word(stuck) == ("escalate", "last_attempt")
    assert stuck.flags == (Flag.FAILURE_SUMMARY,)
    was = history((found(NEEDED, quality=0.3), "retry"))
    assert word(decided(found(NEEDED, quality=0.32), was, left=1)) == ("escalate", "last_attempt")
    assert word(decided(found(NEEDED, quality=0.33), was, left=1)) == ("final_retry", "last_attempt")


@pytest.mark.parametrize(
    ("used", "next_tokens", "quality", "rule"),
    [
        (75, None, None, "validation_first"),
        (76, None, None, "budget_scarce"),
        (40, 61, None, "budget_insufficient"),
        (40, 60, None, "validation_first"),
    ],
)
def test_tokens(used, next_tokens, quality, rule):
    """Strategy: fewer than 25 % of the tokens, or fewer than the next iteration needs, are put before a person."""
    decision = decided(found(FORM, quality=quality), max_tokens=100, tokens_used=used, next_tokens=next_tokens)
    assert decision.rule == rule


def test_what_is_unclear():
    """Strategy: where a detector could tell nothing it is tried again, twice; what is known to be wrong goes first."""
    unclear = found(unclear="the judge is out")
    assert word(decided(unclear, history((unclear, "retry")), left=1)) == ("retry", "unclear")
    thrice = decided(unclear, history((unclear, "retry"), (unclear, "retry")))
    assert word(thrice) == ("escalate", "unclear")
    assert thrice.flags == (Flag.HUMAN_EVALUATION,)
    assert word(decided(found(unclear="so", quality=0.85))) == ("retry", "unclear")
    assert decided(found(unclear="so", quality=0.2)).rule == "quality_gap"
    assert decided(found(NEEDED, unclear="so")).rule == "requirement_first"


@pytest.mark.parametrize("numbers", [[3], [2], [1, 1], [0, 2]])
def test_a_history_that_is_none(numbers):
    """Strategy: a history that is not of iterations before this one, in order, is an error that says so."""
    attempts = [Attempt(iteration=number, quality=0.5) for number in numbers]
    with pytest.raises(ConfigurationError, match="history must hold the iterations before 2, in order"):
        decide_strategy(found(FORM, quality=0.5), IterationBudget(iteration=2, max_iterations=5), attempts)
    with pytest.raises(TypeError, match="history must hold Attempts"):
        decide_strategy(found(FORM), IterationBudget(iteration=2, max_iterations=5), [found(FORM)])  # type: ignore[list-item]


def test_time():
    """Strategy: time that does not suffice is put before a person."""
    assert decided(found(FORM), elapsed_s=50).numbers["elapsed_s"] is None
    decision = decided(found(FORM), max_s=60, elapsed_s=50, next_s=25)
    assert decision.numbers["elapsed_s"] == 50
    assert word(decision) == ("escalate", "budget_insufficient")
    assert decision.reason == "10 of 60 s are left, and the next iteration is expected to take 25 s"


def test_a_partial_answer_can_be_accepted():
    """Strategy: where the budget ends it, an answer without failures or lies is offered as a partial one."""
    assert decided(found(NEEDED), max_tokens=10, tokens_used=9).flags == (Flag.BUDGET, Flag.PARTIAL_ACCEPTANCE)
    assert decided(found(NEEDED, FORM), max_tokens=10, tokens_used=9).flags == (Flag.BUDGET,)


def test_budget_burn():
    """Strategy, failure mode 2: over 75 % of the tokens for less than 0.1 an iteration is named as such."""
    before = history((found(NEEDED, quality=0.3), "retry"), (found(NEEDED, quality=0.35), "refine"))
    decision = decided(found(NEEDED, quality=0.45), before, max_tokens=100, tokens_used=76)
    assert word(decision) == ("escalate", "budget_burn")
    assert decision.flags == (Flag.RESOURCE_EFFICIENCY, Flag.TASK_DECOMPOSITION)
    assert decided(found(NEEDED, quality=0.5), before, max_tokens=100, tokens_used=76).rule == "budget_scarce"
    assert decided(found(NEEDED, quality=0.45), before, max_tokens=100, tokens_used=75).rule != "budget_burn"
    assert decided(found(NEEDED, quality=0.31), before[:1], max_tokens=100, tokens_used=76).rule == "budget_burn"
    assert decided(found(NEEDED, quality=0.31), max_tokens=100, tokens_used=76).rule == "budget_scarce"


def test_a_task_that_is_impossible_and_a_question():
    """Strategy: what a detector knows to be impossible, or wants asked, outranks all else."""
    decision = decided(found(FORM, impossible="there is no such file"), left=0)
    assert word(decision) == ("escalate", "impossible")
    assert decision.reason == "the task can't be done: there is no such file"
    assert word(decided(found(question="Which price?"))) == ("escalate", "question")


# --- the other failure modes


def test_infinite_loop():
    """Strategy, failure mode 1: the same triggers in three iterations force the next strategy, and in the end a person."""
    same = found(NEEDED)
    assert decided(same, history((same, "retry"))).rule == "requirement_repeated"
    for was, following in (("retry", "refine"), ("refine", "expand"), ("expand", "escalate"), ("simplify", "escalate")):
        decision = decided(same, history((same, "final_retry"), (same, was)))
        assert word(decision) == (following, "infinite_loop")
    forced = decided(same, history((same, "retry"), (same, "refine")))
    assert forced.modifications == (Modification.MEET_REQUIREMENTS, Modification.VARY_APPROACH)


def test_no_infinite_loop():
    """Strategy, failure mode 1: another severity, another trigger, or other triggers earlier are no infinite loop."""
    same, other = found(NEEDED), found(UnmetRequirement("the date"))
    assert decided(same, history((other, "retry"), (same, "retry"))).rule != "infinite_loop"
    assert decided(other, history((same, "retry"), (same, "retry"))).rule != "infinite_loop"
    milder = found(UnmetRequirement("the price", severity=0.8))
    assert decided(milder, history((same, "retry"), (same, "retry"))).rule != "infinite_loop"
    assert decided(found(), history((found(), "accept"), (found(), "accept"))).rule == "nothing_wrong"


def test_a_vague_rejection_is_not_overridden():
    """Strategy: a forced strategy or a last try does not stand in for the question to a person."""
    vague = found(UserFeedback("Hm.", actionable=False), FORM)
    same = history((vague, "retry"), (vague, "retry"))
    assert word(decided(vague, same)) == ("escalate", "vague_feedback")
    assert word(decided(vague, left=1)) == ("escalate", "vague_feedback")
    assert word(decided(found(UserFeedback("Hm.", actionable=False), FORM, quality=0.1), left=2))[0] == "escalate"


@pytest.mark.parametrize(
    ("qualities", "is_flat"),
    [
        ((0.65, 0.67, 0.66), True),
        ((0.5, 0.5, 0.5), True),
        ((0.58, 0.68, 0.75), False),
        ((0.4, 0.45, 0.5), False),
        ((0.6, 0.65, 0.6), False),
        ((0.6, 0.6), False),
        ((0.6, None, 0.6), False),
        ((0.2, 0.65, 0.67, 0.66), True),
    ],
)
def test_false_improvement(qualities, is_flat):
    """Strategy, failure mode 3: three scores with a standard deviation below 0.02; a steady climb is none."""
    steps = [
        (found(UnmetRequirement(f"part {n}"), quality=each), "retry") for n, each in enumerate(qualities[:-1], start=1)
    ]
    decision = decided(found(NEEDED, quality=qualities[-1]), history(*steps))
    assert (decision.rule == "plateau") is is_flat


def test_cascade():
    """Strategy, failure mode 4: more triggers than 1.2 times those before halt the run; growth from none is none."""
    parts = [UnmetRequirement(f"part {n}") for n in range(7)]
    five = history((found(*parts[:5]), "retry"))
    assert decided(found(*parts[:6]), five).rule != "cascade"
    decision = decided(found(*parts), five)
    assert word(decision) == ("escalate", "cascade")
    assert decision.flags == (Flag.SCOPE_REDUCTION,)
    assert decided(found(NEEDED), history((found(), "accept"))).rule == "requirement_first"
    two = decided(found(*parts[:2]), history((found(*parts[:5]), "retry"), (found(*parts[:2]), "refine")))
    assert (two.rule, two.numbers["triggers"], two.numbers["triggers_before"]) == ("requirement_repeated", 2, 2)


def test_a_cascade_can_be_met_with_less():
    """Strategy: on request the agent is once asked to do less when triggers multiply, and then a person is asked."""
    more = found(NEEDED, FORM)
    once = decided(more, history((found(NEEDED), "retry")), simplify_on_cascade=True)
    assert word(once) == ("simplify", "cascade")
    assert once.modifications[-1] == Modification.REDUCE_SCOPE
    again = history((found(), "accept"), (found(NEEDED), "simplify"))
    assert word(decided(more, again, simplify_on_cascade=True)) == ("escalate", "cascade")
    dear = {"max_tokens": 100, "tokens_used": 50, "next_tokens": 60}
    assert decided(more, history((found(NEEDED), "retry")), simplify_on_cascade=True, **dear).rule == "cascade"
    assert not decided(more, history((found(NEEDED), "retry")), simplify_on_cascade=True, **dear).strategy.goes_on


def test_strategy_mismatch():
    """Strategy, failure mode 5: a strategy that failed twice is not used again; the next one is."""
    a, b, c = (found(UnmetRequirement(name)) for name in "abc")
    steps = [(a, "refine"), (b, "refine")]
    decision = decided(c, history(*steps))
    assert word(decision) == ("expand", "strategy_mismatch")
    assert decision.modifications == (Modification.MEET_REQUIREMENTS, Modification.VARY_APPROACH)
    steps += [(c, "expand"), (a, "expand")]
    decision = decided(b, history(*steps))
    assert word(decision) == ("simplify", "strategy_mismatch")
    assert decision.modifications[-1] == Modification.REDUCE_SCOPE
    steps += [(b, "simplify"), (c, "simplify")]
    decision = decided(a, history(*steps))
    assert word(decision) == ("escalate", "strategy_mismatch")
    assert decision.flags == (Flag.STRATEGIES_EXHAUSTED,)


def test_strategies_that_take_turns_are_given_up_too():
    """Strategy, failure mode 5: failures count where other strategies were tried in between."""
    a, b, form = (found(UnmetRequirement(name)) for name in ("a", "b", "form"))
    decision = decided(b, history((a, "retry"), (b, "refine"), (form, "retry"), (a, "refine")))
    assert word(decision) == ("expand", "strategy_mismatch")
    assert decision.numbers["given_up"] == ["refine", "retry"]
    helped = history((found(NEEDED, quality=0.1), "refine"), (found(NEEDED, quality=0.3), "retry"))
    assert decided(found(NEEDED, quality=0.3), helped).numbers["given_up"] == []


def test_what_helps_goes_on():
    """Strategy, failure mode 5: a strategy after which the answer was better did not fail."""
    qualities = (0.1, 0.2, 0.3, 0.4)
    before = history(*[(found(UnmetRequirement(f"{each}"), quality=each), "refine") for each in qualities])
    assert word(decided(found(NEEDED, quality=0.5), before)) == ("refine", "requirement_repeated")
    assert decided(found(NEEDED, quality=0.5), before).numbers["given_up"] == []


# --- all of it

_PARTS = st.sampled_from(
    [
        FORM,
        MISMATCH,
        NEEDED,
        OPTIONAL,
        UserFeedback("Shorter."),
        UserFeedback("Hm.", actionable=False),
        Confidence(0.3),
        Confidence(0.74, "factual_uncertainty", source_material_available=False),
        HallucinationReport([CLAIM]),
        HallucinationReport(risk="high"),
    ]
)
_QUALITY = st.none() | st.sampled_from([0.0, 0.3, 0.55, 0.75, 0.85, 1.0]) | st.floats(0, 1)
_NOTE = st.none() | st.just("so")
_SIGNALS = st.builds(
    lambda parts, quality, impossible, unclear: found(*parts, quality=quality, impossible=impossible, unclear=unclear),
    st.lists(_PARTS, max_size=5),
    _QUALITY,
    st.none() | st.none() | _NOTE,
    _NOTE,
)
_HISTORY = st.lists(st.tuples(_SIGNALS, st.sampled_from([each.value for each in IterationStrategy])), max_size=5)
_TOKENS = st.none() | st.sampled_from([0, 50, 75, 76, 100]) | st.integers(0, 120)


@settings(max_examples=400)
@given(_SIGNALS, _HISTORY, st.integers(0, 5), _TOKENS, _TOKENS, st.booleans())
def test_every_case_has_one_decision(signals, steps, left, used, next_tokens, simplify):
    """Strategy: every case has exactly one decision, always the same, with its rule and reason; with nothing left
    nothing goes on, and nothing unclear or blocked is accepted."""
    given = {"left": left, "max_tokens": 100, "tokens_used": used, "next_tokens": next_tokens}
    before = history(*steps)
    decision = decided(signals, before, simplify_on_cascade=simplify, **given)
    assert decision.strategy in IterationStrategy
    assert decision.rule
    assert decision.reason.strip()
    assert decision == decided(signals, before, simplify_on_cascade=simplify, **given)
    if left == 0 or (used is not None and used > 75):
        assert not decision.strategy.goes_on
    if decision.strategy == IterationStrategy.ACCEPT:
        assert not any(trigger.blocks_acceptance for trigger in decision.triggers)
        assert signals.unclear is None
        assert signals.impossible is None
    assert bool(decision.flags) == (decision.strategy == IterationStrategy.ESCALATE)
    assert not (decision.modifications and not decision.strategy.goes_on)


@settings(max_examples=100)
@given(_SIGNALS.filter(lambda signals: signals.unclear is None and signals.impossible is None), st.booleans())
def test_a_stuck_run_ends(signals, simplify):
    """Strategy: a run whose answers never change ends within six iterations, whatever is wrong and whatever the cap."""
    before: list[Attempt] = []
    for number in range(1, 8):
        budget = IterationBudget(iteration=number, max_iterations=1000)
        decision = decide_strategy(signals, budget, before, simplify_on_cascade=simplify)
        if not decision.strategy.goes_on:
            break
        before.append(
            Attempt(iteration=number, triggers=decision.triggers, quality=signals.quality, strategy=decision.strategy)
        )
    assert len(before) <= 5


def test_the_thresholds_check_themselves():
    """Strategy: a threshold that can't be is an error that names it."""
    with pytest.raises(ConfigurationError, match="min_confidence"):
        StrategyThresholds(min_confidence=1.1)
    with pytest.raises(ConfigurationError, match="cascade_factor"):
        StrategyThresholds(cascade_factor=0.9)
    with pytest.raises(TypeError, match="target_quality"):
        StrategyThresholds(target_quality=None)


def test_thresholds_are_the_callers():
    """Strategy: the thresholds that were given hold."""
    mine = StrategyThresholds(min_confidence=0.5, target_quality=0.6)
    assert decided(found(Confidence(0.6), quality=0.6), thresholds=mine).rule == "nothing_wrong"


def test_wrong_input_is_named():
    """Strategy: what is no signals or no budget is a TypeError that names it."""
    budget = IterationBudget(iteration=1, max_iterations=2)
    with pytest.raises(TypeError, match="signals"):
        decide_strategy(None, budget)
    with pytest.raises(TypeError, match="budget"):
        decide_strategy(found(), None)
