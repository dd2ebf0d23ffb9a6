"""The decision tree: which strategy fits what is wrong."""

from __future__ import annotations

from collections.abc import Callable

from agents_loop.strategy.budget import MatrixAction
from agents_loop.strategy.case import Case, Plan
from agents_loop.strategy.decision import Flag, Modification
from agents_loop.strategy.history import IterationStrategy, was_retried
from agents_loop.strategy.triggers import Trigger, TriggerType


def tree_plan(case: Case) -> Plan:
    """What the tree says, by the most severe trigger, and what the matrix makes of it.

    The matrix does not undo a question to a person.
    """
    plan = _branch(case)
    if not plan.strategy.goes_on:
        return plan
    if case.matrix == MatrixAction.FINAL_ATTEMPT:
        left = case.budget.remaining_iterations
        reason = f"the quality gap is {case.gap:.2f} with {left} left: everything is mended at once"
        return Plan(IterationStrategy.FINAL_RETRY, "final_attempt", reason, all_fixes(case))
    if case.matrix == MatrixAction.REFINE and plan.strategy == IterationStrategy.RETRY:
        reason = f"{plan.reason}; the quality gap is {case.gap:.2f}, so the answer is kept"
        return Plan(IterationStrategy.REFINE, plan.rule, reason, plan.modifications)
    return plan


def all_fixes(case: Case) -> tuple[Modification, ...]:
    """What all triggers ask of the agent, the most severe first."""
    found: dict[Modification, None] = {}
    for trigger in case.triggers:
        found.update(dict.fromkeys(_BRANCHES[trigger.type](case, trigger).modifications))
    return tuple(found) or (Modification.RAISE_QUALITY,)


def _branch(case: Case) -> Plan:
    if case.triggers:
        lead = case.triggers[0]
        return _BRANCHES[lead.type](case, lead)
    reason = f"the quality is {case.signals.quality:.2f}, and {case.thresholds.target_quality:.2f} is wanted"
    return Plan(IterationStrategy.RETRY, "quality_gap", reason, (Modification.RAISE_QUALITY,))


def _validation(case: Case, lead: Trigger) -> Plan:
    if was_retried(case.history, TriggerType.VALIDATION_FAILURE):
        reason = f"validation still fails after an earlier attempt to mend it: {lead.text}"
        modifications = (Modification.SCHEMA_GUIDANCE, Modification.FIX_ERRORS)
        return Plan(IterationStrategy.REFINE, "validation_repeated", reason, modifications)
    reason = f"validation fails, and nothing was done about it yet: {lead.text}"
    return Plan(IterationStrategy.RETRY, "validation_first", reason, (Modification.FIX_ERRORS,))


def _confidence(case: Case, lead: Trigger) -> Plan:
    if case.signals.confidence is not None and case.signals.confidence.cause == "factual_uncertainty":
        reason = f"{lead.text}: its facts are uncertain"
        return Plan(IterationStrategy.RETRY, "factual_uncertainty", reason, (Modification.VERIFICATION,))
    reason = f"{lead.text}: evidence is missing"
    return Plan(IterationStrategy.EXPAND, "missing_evidence", reason, (Modification.DETAIL_REQUIREMENTS,))


def _hallucination(case: Case, lead: Trigger) -> Plan:
    report = case.signals.hallucination
    claims = [trigger for trigger in case.triggers if trigger.type == TriggerType.HALLUCINATION_DETECTED]
    if report is None or report.systemic or not any(trigger.fixable for trigger in claims):
        reason = f"the answer is made up as a whole: {lead.text}"
        return Plan(IterationStrategy.REFINE, "systemic_hallucination", reason, (Modification.SOURCE_RESTRICTION,))
    reason = f"the risk of hallucination is high, and the claims are known: {lead.text}"
    modifications = (Modification.CLAIM_REMOVAL, Modification.VERIFICATION, Modification.SOURCE_RESTRICTION)
    return Plan(IterationStrategy.RETRY, "specific_claims", reason, modifications)


def _feedback(case: Case, lead: Trigger) -> Plan:
    del case
    if lead.fixable:
        reason = f"the answer was rejected, with words that say what to do: {lead.text}"
        return Plan(IterationStrategy.REFINE, "clear_feedback", reason, (Modification.USER_GUIDANCE,))
    reason = f"the answer was rejected, and the words do not say what to do: {lead.text}"
    return Plan(IterationStrategy.ESCALATE, "vague_feedback", reason, flags=(Flag.VAGUE_FEEDBACK,))


def _requirement(case: Case, lead: Trigger) -> Plan:
    if was_retried(case.history, TriggerType.REQUIREMENT_UNMET):
        reason = f"requirements are unmet after an earlier attempt to meet them: {lead.text}"
        return Plan(IterationStrategy.REFINE, "requirement_repeated", reason, (Modification.MEET_REQUIREMENTS,))
    reason = f"a requirement is unmet, and nothing was done about it yet: {lead.text}"
    return Plan(IterationStrategy.RETRY, "requirement_first", reason, (Modification.MEET_REQUIREMENTS,))


_BRANCHES: dict[TriggerType, Callable[[Case, Trigger], Plan]] = {
    TriggerType.VALIDATION_FAILURE: _validation,
    TriggerType.LOW_CONFIDENCE: _confidence,
    TriggerType.HALLUCINATION_DETECTED: _hallucination,
    TriggerType.EXPLICIT_FEEDBACK: _feedback,
    TriggerType.REQUIREMENT_UNMET: _requirement,
}
