"""Several evaluators' wishes to go on as one: for evaluators that ask others."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from agents_loop.loop.evaluation import LoopEvaluation
from agents_loop.messages import ChatMessage, ChatRole, JsonValue


def joined_wish(
    evaluations: Iterable[LoopEvaluation],
    *,
    score: float | None = None,
    note: str | None = None,
    details: JsonValue = None,
) -> LoopEvaluation:
    """One wish to go on, with what those among the evaluations that want to go on have to say.

    As in `evaluation_mode="all"` the explicit messages come first, and then one feedback, in order, with a blank line
    between one and the next. What two of them say in the same words is said once.
    """
    messages: list[ChatMessage] = []
    feedback: dict[str, None] = {}
    questions: dict[str, None] = {}
    for evaluation in evaluations:
        if evaluation.decision not in ("continue", "ask"):
            continue
        if evaluation.question is not None:
            questions.setdefault(evaluation.question)
        if evaluation.messages is not None:
            messages += evaluation.messages
        elif evaluation.feedback is not None:
            feedback.setdefault(evaluation.feedback.strip())
    text = "\n\n".join(feedback)
    if messages and text:
        messages.append(ChatMessage(ChatRole.USER, text))
    if questions:
        asked = LoopEvaluation.ask("\n\n".join(questions), text, score=score, note=note, details=details)
        return replace(asked, feedback=None, messages=tuple(messages)) if messages else asked
    if not messages:
        return LoopEvaluation.continue_(text, score=score, note=note, details=details)
    return LoopEvaluation.continue_with_messages(messages, score=score, note=note, details=details)
