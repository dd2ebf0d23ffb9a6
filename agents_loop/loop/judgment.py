"""The evaluators' words on one answer, as they come."""

from __future__ import annotations

from collections.abc import Sequence

from agents_loop.errors import EvaluatorFailedError
from agents_loop.loop.asking import ask, ask_all
from agents_loop.loop.context import LoopContext
from agents_loop.loop.evaluation import LoopEvaluation
from agents_loop.loop.evaluator import LoopEvaluator
from agents_loop.loop.metered_run import MeteredRun


class Judgment:
    """Asks the evaluators about one answer: in order until one wants to go on, or all of them at once.

    Args:
        evaluators: Who is asked.
        context: What they see.
        metered: The run's meter.
        all_at_once: Whether all are asked at once.
        tells: Whether anybody wants to hear each word as it comes.
    """

    __slots__ = ("_all_at_once", "_evaluators", "_metered", "_tells", "context", "evaluations", "failed", "goes_on")

    def __init__(
        self,
        evaluators: Sequence[LoopEvaluator],
        context: LoopContext,
        metered: MeteredRun,
        *,
        all_at_once: bool,
        tells: bool,
    ) -> None:
        self._evaluators = evaluators
        self._metered = metered
        self._all_at_once = all_at_once
        self._tells = tells
        self.context = context
        self.evaluations: list[LoopEvaluation] = []
        """What they have said."""
        self.failed: BaseException | None = None
        """What one of them raised instead of a word, or with which it gave up."""
        self.goes_on = True
        """Whether somebody is still to be asked."""

    async def next_words(self) -> Sequence[LoopEvaluation]:
        """Ask the next evaluator, or all; gives what is said, if anybody wants to hear it now.

        Raises:
            LimitReachedError: A budget is used up.
            BaseException: What an evaluator raised that is asked by itself, unless it gave up.
        """
        if self._metered.evaluators_report or self._all_at_once:
            self._metered.check_evaluators()
        evaluations = self.evaluations
        try:
            if self._all_at_once:
                self.goes_on = False
                self.failed = await ask_all(self._evaluators, self.context, evaluations)
                return evaluations if self._tells else ()
            evaluation = await ask(self._evaluators[len(evaluations)], self.context)
        except EvaluatorFailedError as error:
            self.failed, self.goes_on = error, False
            return ()
        evaluations.append(evaluation)
        self.goes_on = evaluation.decision == "stop" and len(evaluations) < len(self._evaluators)
        return (evaluation,) if self._tells else ()
