"""The evaluators' words on one answer after another, as they come."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from agents_loop.errors import EvaluatorFailedError
from agents_loop.loop.asking import ask_all, named
from agents_loop.loop.context import LoopContext
from agents_loop.loop.evaluation import LoopEvaluation
from agents_loop.loop.evaluator import LoopEvaluator
from agents_loop.loop.metered_run import MeteredRun


class Judgment:
    """Asks the evaluators about an answer: in order until one wants to go on, or all of them at once.

    Args:
        evaluators: Who is asked.
        metered: The run's meter.
        all_at_once: Whether all are asked at once.
        tells: Whether anybody wants to hear each word as it comes.
    """

    __slots__ = ("_all_at_once", "_evaluators", "_metered", "_tells", "evaluations", "failed", "goes_on", "is_open")

    def __init__(
        self, evaluators: Sequence[LoopEvaluator], metered: MeteredRun, *, all_at_once: bool, tells: bool
    ) -> None:
        self._evaluators = evaluators
        self._metered = metered
        self._all_at_once = all_at_once
        self._tells = tells
        self.is_open = False
        """While an answer is judged; the engine takes it back once it has heard what was said."""
        self.goes_on = False
        """Whether somebody is still to be asked."""
        self.evaluations: list[LoopEvaluation] = []
        """What they have said of the answer."""
        self.failed: BaseException | None = None
        """What one of them raised instead of a word, or with which it gave up."""

    @property
    def is_complete(self) -> bool:
        """Whether all that were to speak on the answer have spoken."""
        if self.failed is not None or self.goes_on:
            return False
        return not self._all_at_once or len(self.evaluations) == len(self._evaluators)

    def begin(self) -> None:
        """Another answer is to be judged."""
        self.is_open = self.goes_on = True
        self.evaluations = []
        self.failed = None

    async def next_words(self, context: LoopContext) -> Sequence[LoopEvaluation]:
        """Ask the next evaluator, or all; gives what is said, if anybody wants to hear it now.

        Args:
            context: What they see.

        Raises:
            LimitReachedError: A budget is used up.
            BaseException: What an evaluator raised that is asked by itself, unless it gave up.
        """
        if self._metered.evaluators_report or self._all_at_once:
            self._metered.check_evaluators()
        evaluators, evaluations = self._evaluators, self.evaluations
        try:
            if self._all_at_once:
                self.goes_on = False
                self.failed = await ask_all(evaluators, context, evaluations)
                return evaluations if self._tells else ()
            evaluator = evaluators[len(evaluations)]
            given: Any = evaluator.evaluate(context)  # as `ask` does, without a coroutine of its own
            evaluation = named(evaluator, await given if hasattr(given, "__await__") else given)
        except EvaluatorFailedError as error:
            self.failed, self.goes_on = error, False
            return ()
        evaluations.append(evaluation)
        self.goes_on = evaluation.decision == "stop" and len(evaluations) < len(evaluators)
        return (evaluation,) if self._tells else ()
