"""The evaluator: pure judgment after an iteration."""

from __future__ import annotations

from abc import ABC, abstractmethod

from agents_loop.loop.context import LoopContext
from agents_loop.loop.evaluation import LoopEvaluation


class LoopEvaluator(ABC):
    """Judges an iteration.

    An evaluator keeps no state of its own: what it needs stands in the context, and what it wants to remember
    during a run goes into `context.additional_properties`. One instance may serve any number of runs at once.
    """

    @abstractmethod
    async def evaluate(self, context: LoopContext) -> LoopEvaluation:
        """Say whether the agent is to be run again, and what it is to hear.

        What this raises ends the run, and reaches the loop's caller as it was raised.
        """
