"""Asking the evaluators, and what their words amount to."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

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
    evaluation = await given if hasattr(given, "__await__") else given
    if not isinstance(evaluation, LoopEvaluation):
        raise TypeError(
            f"{type(evaluator).__name__}.evaluate must give a LoopEvaluation, not {type(evaluation).__name__}: "
            "use LoopEvaluation.stop() or LoopEvaluation.continue_(...)"
        )
    name = type(evaluator).__name__
    if evaluation.evaluator is None:
        evaluation.evaluator = name
        return evaluation
    return evaluation if evaluation.evaluator == name else replace(evaluation, evaluator=name)


async def ask_all(evaluators: Sequence[LoopEvaluator], context: LoopContext, answers: list[LoopEvaluation]) -> None:
    """Ask all of them at once, into `answers`, in their order.

    If one raises, the others are cancelled and awaited, what was answered is kept, and that very exception is raised;
    of several, the first evaluator's. A cancellation of the caller does the same.
    """
    coroutines = [cast("Coroutine[Any, Any, LoopEvaluation]", ask(evaluator, context)) for evaluator in evaluators]
    tasks = [asyncio.ensure_future(coroutine) for coroutine in coroutines]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_EXCEPTION)
        failed = next((task for task in tasks if task.done() and (task.cancelled() or task.exception())), None)
    finally:
        unfinished = [task for task in tasks if not task.done()]
        for task in unfinished:
            task.cancel()
        if unfinished:
            await asyncio.gather(*unfinished, return_exceptions=True)
        answers += [task.result() for task in tasks if not task.cancelled() and task.exception() is None]
    if failed is not None:
        failed.result()


@dataclass(slots=True)
class Outcome:
    """What the evaluators' words amount to."""

    goes_on: bool = False
    aborted: LoopEvaluation | None = None
    messages: tuple[ChatMessage, ...] | None = None
    """Explicit messages for the next input; `None` when no evaluator gave any."""
    feedback: str | None = None


def outcome_of(evaluations: Sequence[LoopEvaluation]) -> Outcome:
    """An abort outranks every wish to go on; else any wish to go on wins; else the run is satisfied."""
    outcome = Outcome()
    feedback: list[str] = []
    for evaluation in evaluations:
        if evaluation.decision == "abort":
            return Outcome(aborted=evaluation)
        if evaluation.decision == "continue":
            outcome.goes_on = True
            if evaluation.messages is not None:
                outcome.messages = (outcome.messages or ()) + evaluation.messages
            elif evaluation.feedback is not None:
                feedback.append(evaluation.feedback)
    if feedback:
        outcome.feedback = "\n\n".join(feedback)
    return outcome
