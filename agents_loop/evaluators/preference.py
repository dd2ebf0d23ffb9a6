"""An evaluator that records which answer is the best so far, by comparing."""

from __future__ import annotations

from collections.abc import Sequence

from agents_loop.agent import AgentResponse
from agents_loop.chat_client import ChatClient, ChatOptions
from agents_loop.judging.pairwise import Comparison, PairwiseJudge
from agents_loop.loop.bad_response import bad_response_of
from agents_loop.loop.best import PREFERENCE
from agents_loop.loop.context import LoopContext
from agents_loop.loop.evaluation import LoopEvaluation
from agents_loop.loop.evaluator import LoopEvaluator
from agents_loop.messages import JsonValue

_BEST = "_agents_loop.preference"
"""Where a run's context keeps, by evaluator, the best answer so far."""


class PreferenceLoopEvaluator(LoopEvaluator):
    """Compares each answer with the best one before it, so that `LoopResult.best` is the one that was preferred.

    It asks for no more, whatever comes out: give it to a loop before the evaluators that do. A new answer is preferred
    only if it wins in both orders; a tie leaves the earlier one the best. An answer that is none (empty, refused,
    filtered or cut off) is not compared. `details["preference"]` of each evaluation holds `preferred` (`new`, `best` or
    `neither`), `with` (the iteration that it was compared with), and what was said in either order.

    Args:
        judge: Who compares.

    Raises:
        TypeError: The judge is no `PairwiseJudge`.
    """

    def __init__(self, judge: PairwiseJudge) -> None:
        if not isinstance(judge, PairwiseJudge):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise TypeError(
                f"judge must be a PairwiseJudge, not {type(judge).__name__}: wrap it, PairwiseJudge(client)"
            )
        self.judge = judge

    def model_calls(self) -> Sequence[tuple[ChatClient, ChatOptions | None]]:
        """The judge's."""
        return self.judge.model_calls()

    async def evaluate(self, context: LoopContext) -> LoopEvaluation:
        """Compare the latest answer with the best one before it.

        Raises:
            JudgeFailedError: There was no verdict, and the judge's policy is to raise.
        """
        response = context.last_response
        if bad_response_of(response) is not None:
            return LoopEvaluation.stop(note="the answer is none: not compared")
        of_all: dict[int, tuple[int, AgentResponse]] = context.additional_properties.setdefault(_BEST, {})
        best = of_all.get(id(self))
        if best is None and context.best_before is not None:
            best = context.best_before.number, context.best_before.response
        comparison = None if best is None else await self.judge.compare(context, best[1], response)
        preferred = (
            "new" if comparison is None else {"first": "best", "second": "new"}.get(comparison.better, "neither")
        )
        if preferred == "new":
            of_all[id(self)] = (context.iteration, response)
        details: JsonValue = {PREFERENCE: _details(preferred, None if best is None else best[0], comparison)}
        return LoopEvaluation.stop(details=details)


def _details(preferred: str, compared_with: int | None, comparison: Comparison | None) -> dict[str, JsonValue]:
    said = None if comparison is None else comparison.to_json()
    return {"preferred": preferred, "with": compared_with, "comparison": said}
