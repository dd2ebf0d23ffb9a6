"""Asking the evaluators, and what their words amount to."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from agents_loop.gathering import error_of, settled
from agents_loop.loop.context import LoopContext
from agents_loop.loop.evaluation import LoopEvaluation
from agents_loop.loop.evaluator import LoopEvaluator
from agents_loop.messages import ChatMessage


async def ask(evaluator: LoopEvaluator, context: LoopContext) -> LoopEvaluation:
    """One evaluator's word, with its name on it.

    Raises:
        TypeError: The evaluator gave something else than a `LoopEvaluation`.
    """
    given: Any = evaluator.evaluate(context)
    return named(evaluator, await given if hasattr(given, "__await__") else given)


def named(evaluator: LoopEvaluator, evaluation: Any) -> LoopEvaluation:
    """What an evaluator gave, with its name on it.

    Raises:
        TypeError: It is something else than a `LoopEvaluation`.
    """
    if not isinstance(evaluation, LoopEvaluation):
        raise TypeError(
            f"{type(evaluator).__name__}.evaluate must give a LoopEvaluation, not {type(evaluation).__name__}: "
            "return LoopEvaluation.stop() or LoopEvaluation.continue_(...)"
        )
    name = type(evaluator).__name__
    if evaluation.evaluator is None:
        evaluation.evaluator = name
    return evaluation if evaluation.evaluator == name else replace(evaluation, evaluator=name)


async def ask_all(
    evaluators: Sequence[LoopEvaluator], context: LoopContext, answers: list[LoopEvaluation]
) -> BaseException | None:
    """Ask all of them at once: their answers go into `answers`, in their order; gives what one of them raised.

    As soon as one raises, the others are cancelled and awaited; what was answered by then is kept. Of several
    exceptions it is the first evaluator's. A cancellation of the caller cancels them all.
    """
    tasks = [asyncio.ensure_future(ask(evaluator, context)) for evaluator in evaluators]
    try:
        return await settled(tasks)
    finally:
        answers += [task.result() for task in tasks if task.done() and error_of(task) is None]


@dataclass(slots=True)
class Outcome:
    """What the evaluators' words amount to."""

    goes_on: bool = False
    aborted: LoopEvaluation | None = None
    question: str | None = None
    """What a person is asked first."""
    messages: tuple[ChatMessage, ...] | None = None
    """Explicit messages for the next input; `None` when no evaluator gave any."""
    feedback: str | None = None


def outcome_of(evaluations: Sequence[LoopEvaluation]) -> Outcome:
    """An abort outranks a question, and that every wish to go on; without any of them the run is satisfied.

    The question must come before the next iteration, since its answer is what that needs: what the others want the
    agent to hear waits for it.
    """
    if len(evaluations) == 1 and (only := evaluations[0]).decision == "continue":  # as most iterations end
        return Outcome(True, None, None, only.messages, None if only.messages is not None else only.feedback)  # noqa: FBT003
    outcome = Outcome()
    feedback: list[str] = []
    questions: dict[str, None] | None = None
    for evaluation in evaluations:
        if evaluation.decision == "abort":
            return Outcome(aborted=evaluation)
        if evaluation.question is not None:
            questions = {} if questions is None else questions
            questions.setdefault(evaluation.question)
        if evaluation.decision != "stop":
            outcome.goes_on = True
            if evaluation.messages is not None:
                outcome.messages = (outcome.messages or ()) + evaluation.messages
            elif evaluation.feedback is not None:
                feedback.append(evaluation.feedback)
    if feedback:
        outcome.feedback = "\n\n".join(feedback)
    if questions:
        outcome.question = "\n\n".join(questions)
    return outcome
