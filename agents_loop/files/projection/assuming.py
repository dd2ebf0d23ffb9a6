"""A loop as a projection runs it: every model is asked each time, nothing else is, and no answer satisfies."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from agents_loop.chat_client import ChatClient, ChatOptions
from agents_loop.errors import EvaluatorFailedError, JudgeFailedError
from agents_loop.evaluators.evidence import EvidenceLoopEvaluator
from agents_loop.evaluators.panel import PanelLoopEvaluator
from agents_loop.files.loop_file import RunsLoop
from agents_loop.files.projection.answers import PROJECTED
from agents_loop.files.prompted.evaluator import PromptedEvaluator
from agents_loop.loop.agent import LoopAgent
from agents_loop.loop.context import LoopContext
from agents_loop.loop.evaluation import LoopEvaluation
from agents_loop.loop.evaluator import LoopEvaluator


def at_its_worst(agent: RunsLoop) -> RunsLoop:
    """The loop with all evaluators that ask models, none of which is ever satisfied.

    Where evaluators are asked in order, one that is cheap and strict would hide the calls of those after it. Checks by
    code, which may run commands, are left out; so are what a panel and an evidence evaluator make of their members'
    words, and stalls. What is no `LoopAgent` is left as it is.
    """
    if not isinstance(agent, LoopAgent):
        return agent
    asking = [_NeverSatisfied(leaf) for evaluator in agent.evaluators for leaf in _leaves(evaluator) if _asks(leaf)]
    options = dataclasses.replace(agent.options, evaluation_mode="all", stall=None, on_bad_response="evaluate")
    return LoopAgent(agent.inner_agent, asking or [_NeverSatisfied(None)], options)


def leaves_out_code(agent: RunsLoop) -> bool:
    """Whether there are evaluators that ask no model."""
    if not isinstance(agent, LoopAgent):
        return False
    return any(not _asks(leaf) for evaluator in agent.evaluators for leaf in _leaves(evaluator))


def asks_judges(agent: RunsLoop) -> bool:
    """Whether there are evaluators that may ask a model more than once for a verdict."""
    if not isinstance(agent, LoopAgent):
        return False
    leaves = [leaf for evaluator in agent.evaluators for leaf in _leaves(evaluator)]
    return any(_asks(leaf) and not isinstance(leaf, PromptedEvaluator) for leaf in leaves)


class _NeverSatisfied(LoopEvaluator):
    """Asks for more, whatever the answer, and whatever its evaluator makes of a reply that is none.

    Args:
        asks: The evaluator whose models are asked; `None`: nobody is.
    """

    def __init__(self, asks: LoopEvaluator | None) -> None:
        self._asks = asks

    def model_calls(self) -> Sequence[tuple[ChatClient, ChatOptions | None]]:
        """Its evaluator's."""
        return () if self._asks is None else self._asks.model_calls()

    async def evaluate(self, context: LoopContext) -> LoopEvaluation:
        """More."""
        if self._asks is None:
            return LoopEvaluation.continue_(PROJECTED)
        try:
            word = await self._asks.evaluate(context)
        except (JudgeFailedError, EvaluatorFailedError):  # the projected reply was no verdict
            return LoopEvaluation.continue_()
        return LoopEvaluation.continue_(word.feedback, details=word.details)


def _asks(evaluator: LoopEvaluator) -> bool:
    """Whether an evaluator asks a model."""
    return bool(evaluator.model_calls())


def _leaves(evaluator: LoopEvaluator) -> list[LoopEvaluator]:
    """The evaluators that an evaluator asks, or itself."""
    if isinstance(evaluator, EvidenceLoopEvaluator):
        members = [evaluator.judge, *evaluator.checks]
    elif isinstance(evaluator, PanelLoopEvaluator):
        members = [member for tier in evaluator.tiers for member in tier]
    else:
        return [evaluator]
    return [leaf for member in members for leaf in _leaves(member)]
