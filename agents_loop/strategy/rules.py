"""The rules, in order: the first that has something to say decides."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import TypeAlias

from agents_loop.errors import ConfigurationError
from agents_loop.strategy.budget import IterationBudget
from agents_loop.strategy.case import Case, Plan
from agents_loop.strategy.decision import Flag, Modification, StrategyDecision
from agents_loop.strategy.history import Attempt, IterationStrategy
from agents_loop.strategy.signals import IterationSignals
from agents_loop.strategy.thresholds import BURNT_TOKENS, SAME_FOR, StrategyThresholds
from agents_loop.strategy.tree import all_fixes, tree_plan
from agents_loop.strategy.triggers import SCHEMA_CODES, TriggerType

_LADDER = (IterationStrategy.RETRY, IterationStrategy.REFINE, IterationStrategy.EXPAND)
"""An infinite loop is broken by the next of these, and after the last a person is asked."""
_ROTATION = (*_LADDER, IterationStrategy.SIMPLIFY)
"""A strategy that failed is followed by the next of these that did not, and after the last a person is asked."""


def decide_strategy(
    signals: IterationSignals,
    budget: IterationBudget,
    history: Sequence[Attempt] = (),
    thresholds: StrategyThresholds | None = None,
    *,
    simplify_on_cascade: bool = False,
) -> StrategyDecision:
    """Decide what is done about an answer. A pure function; every input has one decision.

    With no iterations left it never goes on.

    Args:
        signals: What detectors found out about the answer.
        budget: What the run has used and may use.
        history: The iterations before this one, in order, with the strategies that were chosen.
        thresholds: The numbers that depend on the task.
        simplify_on_cascade: Whether, when triggers multiply, the agent is once asked to do less before a person is
            asked.

    Raises:
        TypeError: The signals, the budget or the history are none.
        ConfigurationError: The history is not in order, or has an iteration that is not before this one.
    """
    if not isinstance(signals, IterationSignals):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise TypeError(f"signals must be IterationSignals, not {type(signals).__name__}")
    if not isinstance(budget, IterationBudget):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise TypeError(f"budget must be an IterationBudget, not {type(budget).__name__}")
    _check_history(history, budget.iteration)
    case = Case(signals, budget, history, thresholds or StrategyThresholds())
    plan = next((plan for rule in RULES if (plan := rule(case)) is not None), None) or tree_plan(case)
    if plan.rule == "cascade" and simplify_on_cascade:
        plan = _simplified(case, plan)
    return StrategyDecision(
        strategy=plan.strategy,
        rule=plan.rule,
        reason=plan.reason,
        modifications=plan.modifications,
        flags=_flags(case, plan),
        triggers=case.triggers,
        numbers=case.numbers(),
    )


def _check_history(history: Sequence[Attempt], iteration: int) -> None:
    if not all(isinstance(each, Attempt) for each in history):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise TypeError("history must hold Attempts")
    numbers = [attempt.iteration for attempt in history] + [iteration]
    if any(later <= earlier for earlier, later in pairwise(numbers)):
        raise ConfigurationError(f"history must hold the iterations before {iteration}, in order, not {numbers[:-1]}")


def _impossible(case: Case) -> Plan | None:
    if case.signals.impossible is None:
        return None
    return _escalated("impossible", f"the task can't be done: {case.signals.impossible}", Flag.IMPOSSIBLE)


def _question(case: Case) -> Plan | None:
    asked = case.signals.question
    return None if asked is None else _escalated("question", f"a detector asks: {asked}", Flag.QUESTION)


def _nothing_wrong(case: Case) -> Plan | None:
    if case.triggers or case.signals.unclear is not None or (case.gap is not None and case.gap > 0):
        return None
    return Plan(IterationStrategy.ACCEPT, "nothing_wrong", "no detector found anything wrong")


def _no_iterations(case: Case) -> Plan | None:
    if case.budget.remaining_iterations:
        return None
    reason = f"this was iteration {case.budget.iteration} of {case.budget.max_iterations}"
    return _escalated("no_iterations", reason, Flag.NO_ITERATIONS_LEFT)


def _budget_burn(case: Case) -> Plan | None:
    left = case.budget.tokens_left
    if left is None or case.gain is None or 1 - left <= BURNT_TOKENS or case.gain >= case.thresholds.min_gain:
        return None
    reason = f"{1 - left:.0%} of the tokens are used, and an iteration gains {case.gain:.2f} of quality"
    return _escalated("budget_burn", reason, Flag.RESOURCE_EFFICIENCY, Flag.TASK_DECOMPOSITION)


def _budget_scarce(case: Case) -> Plan | None:
    left = case.budget.tokens_left
    if left is None or not case.budget.is_scarce:
        return None
    reason = f"{case.budget.remaining_tokens} of {case.budget.max_tokens} tokens are left ({left:.0%})"
    return _escalated("budget_scarce", reason, Flag.BUDGET)


def _cascade(case: Case) -> Plan | None:
    before = len(case.history[-1].triggers) if case.history else 0
    now = len(case.triggers)
    if not before or now <= round(before * case.thresholds.cascade_factor, 9):
        return None
    reason = f"{now} things are wrong, and {before} were before: mending some breaks others"
    return _escalated("cascade", reason, Flag.SCOPE_REDUCTION)


def _vague_feedback(case: Case) -> Plan | None:
    """The one branch of the tree that asks a person: no forced strategy and no last try stands in for that."""
    plan = tree_plan(case) if case.triggers else None
    return plan if plan is not None and not plan.strategy.goes_on else None


def _not_fixable(case: Case) -> Plan | None:
    if case.fixability >= case.thresholds.min_fixability:
        return None
    least = case.thresholds.min_fixability
    reason = f"only {case.fixability:.0%} of what is wrong can be mended by the agent, less than {least:.0%}"
    return _escalated("not_fixable", reason, Flag.NOT_FIXABLE)


def _plateau(case: Case) -> Plan | None:
    if not case.is_flat:
        return None
    scores = ", ".join(f"{attempt.quality:.2f}" for attempt in case.attempts[-SAME_FOR:])
    reason = f"the quality stays where it is: {scores} (standard deviation {case.deviation:.4f})"
    return _escalated("plateau", reason, Flag.HUMAN_EVALUATION, Flag.METRIC_GAMING_CHECK, Flag.MODEL_LIMITATION)


def _good_enough(case: Case) -> Plan | None:
    if not case.is_accepted_by_matrix:
        return None
    left = case.budget.remaining_iterations
    reason = f"the quality gap is {case.gap:.2f} with {left} left, and nothing that is wrong stands against it"
    return Plan(IterationStrategy.ACCEPT, "good_enough", reason)


def _budget_insufficient(case: Case) -> Plan | None:
    shortage = case.budget.shortage
    return None if shortage is None else _escalated("budget_insufficient", shortage, Flag.BUDGET)


def _unclear(case: Case) -> Plan | None:
    """Only a detector that could tell nothing stands against the answer: it is tried again, and not for ever."""
    unclear = case.signals.unclear
    if unclear is None or case.triggers or (case.gap is not None and case.gap > 0):
        return None
    reason = f"a detector could tell nothing: {unclear}"
    if IterationStrategy.RETRY in case.given_up:
        return _escalated("unclear", f"{reason}, again and again", Flag.HUMAN_EVALUATION)
    return Plan(IterationStrategy.RETRY, "unclear", reason)


def _infinite_loop(case: Case) -> Plan | None:
    if not case.is_stuck:
        return None
    reason = f"the same is wrong, as severely, for {SAME_FOR} iterations"
    last = case.last_strategy or tree_plan(case).strategy
    chosen = _next_after(last, _LADDER, case)
    if chosen is None:
        return _escalated("infinite_loop", f"{reason}, at last after {last}", Flag.STRATEGIES_EXHAUSTED)
    reason = f"{reason}: {last} is followed by {chosen}"
    return Plan(chosen, "infinite_loop", reason, (*all_fixes(case), Modification.VARY_APPROACH))


def _strategy_mismatch(case: Case) -> Plan | None:
    wanted = tree_plan(case).strategy
    if wanted not in case.given_up:
        return None
    reason = f"{wanted} made the answer no better twice"
    chosen = _next_after(wanted, _ROTATION, case)
    if chosen is None:
        return _escalated("strategy_mismatch", f"{reason}, and no other is left", Flag.STRATEGIES_EXHAUSTED)
    further = Modification.REDUCE_SCOPE if chosen == IterationStrategy.SIMPLIFY else Modification.VARY_APPROACH
    return Plan(chosen, "strategy_mismatch", f"{reason}: {chosen} is next", (*all_fixes(case), further))


def _last_attempt(case: Case) -> Plan | None:
    if case.budget.remaining_iterations != 1:
        return None
    reason = f"one iteration is left of {case.budget.max_iterations}"
    if case.is_improving is False:
        return _escalated("last_attempt", f"{reason}, and the answer is no better than before", Flag.FAILURE_SUMMARY)
    reason += (
        ", and the answer is better than before" if case.is_improving else ", and there is no earlier answer to compare"
    )
    return Plan(IterationStrategy.FINAL_RETRY, "last_attempt", reason, all_fixes(case))


Rule: TypeAlias = Callable[[Case], "Plan | None"]
RULES: tuple[Rule, ...] = (
    _impossible,
    _question,
    _nothing_wrong,
    _no_iterations,
    _budget_burn,
    _budget_scarce,
    _cascade,
    _vague_feedback,
    _not_fixable,
    _plateau,
    _good_enough,
    _budget_insufficient,
    _unclear,
    _infinite_loop,
    _strategy_mismatch,
    _last_attempt,
)
"""In order; where none of them has anything to say, the decision tree decides."""


def _escalated(rule: str, reason: str, *flags: Flag) -> Plan:
    return Plan(IterationStrategy.ESCALATE, rule, reason, flags=flags)


def _next_after(
    strategy: IterationStrategy, order: Sequence[IterationStrategy], case: Case
) -> IterationStrategy | None:
    """The next in order that was not given up; `None` after the last."""
    following = order[order.index(strategy) + 1 :] if strategy in order else ()
    return next((each for each in following if each not in case.given_up), None)


def _simplified(case: Case, plan: Plan) -> Plan:
    """One smaller task instead of a question, unless it was tried, or there is no budget for it."""
    was_tried = any(attempt.strategy == IterationStrategy.SIMPLIFY for attempt in case.history)
    if was_tried or case.budget.shortage is not None:
        return plan
    modifications = (*all_fixes(case), Modification.REDUCE_SCOPE)
    return Plan(IterationStrategy.SIMPLIFY, plan.rule, plan.reason, modifications)


def _flags(case: Case, plan: Plan) -> tuple[Flag, ...]:
    """The plan's, and what else a person should know of the answer."""
    if plan.strategy != IterationStrategy.ESCALATE:
        return ()
    flags = list(plan.flags)
    schema = any(failure.code in SCHEMA_CODES for failure in case.signals.validation_failures)
    if schema:
        flags.append(Flag.SCHEMA_INCOMPATIBILITY)
    unusable = {TriggerType.VALIDATION_FAILURE, TriggerType.HALLUCINATION_DETECTED, TriggerType.EXPLICIT_FEEDBACK}
    if Flag.BUDGET in flags and not any(trigger.type in unusable for trigger in case.triggers):
        flags.append(Flag.PARTIAL_ACCEPTANCE)
    return tuple(flags)
