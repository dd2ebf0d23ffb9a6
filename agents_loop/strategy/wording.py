"""A decision in words: for the agent that is run again, and for the person who is asked."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Final

from agents_loop.strategy.decision import Flag, Modification, StrategyDecision
from agents_loop.strategy.history import IterationStrategy
from agents_loop.templates import fill

ISSUES_PLACEHOLDER: Final = "{issues}"
"""What is wrong, one line each, the most severe first."""
MODIFICATIONS_PLACEHOLDER: Final = "{modifications}"
"""What is to be done differently, one line each."""
REASON_PLACEHOLDER: Final = "{reason}"
FLAGS_PLACEHOLDER: Final = "{flags}"
ITERATION_PLACEHOLDER: Final = "{iteration}"
MAX_ITERATIONS_PLACEHOLDER: Final = "{max_iterations}"

DEFAULT_FEEDBACK_MESSAGE_TEMPLATES: Final[Mapping[IterationStrategy, str]] = {
    IterationStrategy.RETRY: (
        "Your last answer can't stay as it is:\n\n{issues}\n\nWrite the answer anew.\n\n{modifications}"
    ),
    IterationStrategy.REFINE: (
        "Your last answer is a basis, and this is wrong with it:\n\n{issues}\n\n"
        "Keep what is right, change only what is not, and give the whole answer again.\n\n{modifications}"
    ),
    IterationStrategy.EXPAND: (
        "Your last answer says too little:\n\n{issues}\n\n"
        "Keep it, add what is missing, and give the whole answer again.\n\n{modifications}"
    ),
    IterationStrategy.SIMPLIFY: (
        "You have tried several ways, and this is still wrong:\n\n{issues}\n\n"
        "Now give a simpler answer: do the core of the task, and do that right.\n\n{modifications}"
    ),
    IterationStrategy.FINAL_RETRY: (
        "Treat your next answer as the final one. All of this must be mended in it:\n\n{issues}\n\n{modifications}"
    ),
}
"""What the agent hears, by strategy."""

DEFAULT_QUESTION_TEMPLATE: Final = (
    "The loop needs you, because {reason}.\n\nWhat is wrong with the answer at hand:\n\n{issues}\n\n"
    "{flags}\n\nHow is it to go on?"
)
"""What a person is asked."""

_ASKED: Final[Mapping[Modification, str]] = {
    Modification.FIX_ERRORS: "Correct each error that is named.",
    Modification.SCHEMA_GUIDANCE: "Go through the required form field by field: names, types, and what must be there.",
    Modification.DETAIL_REQUIREMENTS: "For each statement give the evidence, the source and the details it rests on.",
    Modification.VERIFICATION: "Check each fact before you state it, and say of what you can't check that it is open.",
    Modification.CLAIM_REMOVAL: "Leave out the claims that are named, and whatever depends on them.",
    Modification.SOURCE_RESTRICTION: "Use only the sources you were given or that are authoritative, and name them.",
    Modification.USER_GUIDANCE: "Do what the user says, even where you had reasons to do otherwise.",
    Modification.MEET_REQUIREMENTS: "Fulfil each requirement that is named.",
    Modification.RAISE_QUALITY: "Make it better as a whole: more exact, more complete, easier to use.",
    Modification.VARY_APPROACH: "What you did before did not help: go about it in another way.",
    Modification.REDUCE_SCOPE: "Leave out what is not essential, and say what you left out.",
}
_TOLD: Final[Mapping[Flag, str]] = {
    Flag.IMPOSSIBLE: "The task may have to be changed.",
    Flag.QUESTION: "Answer what is asked.",
    Flag.NO_ITERATIONS_LEFT: "No iterations are left.",
    Flag.BUDGET: "The budget does not allow another iteration.",
    Flag.RESOURCE_EFFICIENCY: "What was spent has hardly improved the answer.",
    Flag.TASK_DECOMPOSITION: "The task may be easier in smaller parts.",
    Flag.PARTIAL_ACCEPTANCE: "As far as it goes the answer is usable: it can be accepted, and completed by hand.",
    Flag.SCOPE_REDUCTION: "A smaller task may be within reach.",
    Flag.NOT_FIXABLE: "Most of what is wrong is not in the agent's power.",
    Flag.HUMAN_EVALUATION: "Judge the answer yourself: the scores no longer tell answers apart.",
    Flag.METRIC_GAMING_CHECK: "See whether the answers serve the score rather than the task.",
    Flag.MODEL_LIMITATION: "The model may not be able to do better.",
    Flag.SCHEMA_INCOMPATIBILITY: "The required form does not fit what the agent can write: one of them must change.",
    Flag.VAGUE_FEEDBACK: "Say what is to be changed.",
    Flag.STRATEGIES_EXHAUSTED: "Every strategy was tried.",
    Flag.FAILURE_SUMMARY: "The last answers were no better than those before.",
}


def feedback_text(decision: StrategyDecision, template: str, screen: Callable[[str], str]) -> str | None:
    """What the agent hears; `None` where all there is to say is that a detector could tell nothing.

    Args:
        decision: One that goes on.
        template: What the placeholders stand in.
        screen: What is left of texts that may come from a model or a user.
    """
    if decision.rule == "unclear":
        return None
    asked = _listed(_ASKED[each] for each in decision.modifications)
    return fill(template, {**_values(decision, screen), MODIFICATIONS_PLACEHOLDER: asked})


def question_text(decision: StrategyDecision, template: str, screen: Callable[[str], str]) -> str:
    """What a person is asked.

    Args:
        decision: One that escalates.
        template: What the placeholders stand in.
        screen: As for `feedback_text`.
    """
    told = _listed(_TOLD[flag] for flag in decision.flags)
    values = {REASON_PLACEHOLDER: screen(decision.reason), FLAGS_PLACEHOLDER: told}
    return fill(template, {**_values(decision, screen), **values})


def _values(decision: StrategyDecision, screen: Callable[[str], str]) -> dict[str, str]:
    issues = _listed(trigger.text for trigger in decision.triggers) or f"- {decision.reason}"
    return {
        ISSUES_PLACEHOLDER: screen(issues),
        ITERATION_PLACEHOLDER: str(decision.numbers["iteration"]),
        MAX_ITERATIONS_PLACEHOLDER: str(decision.numbers["max_iterations"]),
    }


def _listed(lines: Iterable[str]) -> str:
    """One line each; what a text quotes begins no line of its own."""
    return "\n".join("- " + line.strip().replace("\n", "\n  ") for line in lines)
