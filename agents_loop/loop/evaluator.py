"""The evaluator: pure judgment after an iteration."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

from agents_loop.chat_client import ChatClient, ChatOptions
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

    def model_calls(self) -> Sequence[tuple[ChatClient, ChatOptions | None]]:
        """Whom it will ask, and with which options: a money budget sees before the first call that each has a price.

        By default nobody; what is asked all the same is seen to before that call.
        """
        return ()
