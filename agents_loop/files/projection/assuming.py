"""A loop as a projection runs it: every model is asked each time, nothing else is, and no answer satisfies."""

from __future__ import annotations

import dataclasses

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
    """The loop with all evaluators that ask models, and one that is never satisfied.

    Where evaluators are asked in order, one that is cheap and strict would hide the calls of those after it. Checks by
    code, which may run commands, are left out; so are what a panel and an evidence evaluator make of their members'
    words, and stalls. What is no `LoopAgent` is left as it is.
    """
    if not isinstance(agent, LoopAgent):
        return agent
    asking = [leaf for evaluator in agent.evaluators for leaf in _leaves(evaluator) if leaf.model_calls()]
    options = dataclasses.replace(agent.options, evaluation_mode="all", stall=None, on_bad_response="evaluate")
    return LoopAgent(agent.inner_agent, [*asking, _NeverSatisfied(None if asking else PROJECTED)], options)


def leaves_out_code(agent: RunsLoop) -> bool:
    """Whether there are evaluators that ask no model."""
    if not isinstance(agent, LoopAgent):
        return False
    return any(not leaf.model_calls() for evaluator in agent.evaluators for leaf in _leaves(evaluator))


def asks_judges(agent: RunsLoop) -> bool:
    """Whether there are evaluators that may ask a model more than once for a verdict."""
    if not isinstance(agent, LoopAgent):
        return False
    leaves = [leaf for evaluator in agent.evaluators for leaf in _leaves(evaluator)]
    return any(leaf.model_calls() and not isinstance(leaf, PromptedEvaluator) for leaf in leaves)


class _NeverSatisfied(LoopEvaluator):
    """Asks for more, whatever the answer.

    Args:
        feedback: What the agent hears of it.
    """

    def __init__(self, feedback: str | None) -> None:
        self._feedback = feedback

    async def evaluate(self, context: LoopContext) -> LoopEvaluation:
        """More."""
        del context
        return LoopEvaluation.continue_(self._feedback)


def _leaves(evaluator: LoopEvaluator) -> list[LoopEvaluator]:
    """The evaluators that an evaluator asks, or itself."""
    if isinstance(evaluator, EvidenceLoopEvaluator):
        members = [evaluator.judge, *evaluator.checks]
    elif isinstance(evaluator, PanelLoopEvaluator):
        members = [member for tier in evaluator.tiers for member in tier]
    else:
        return [evaluator]
    return [leaf for member in members for leaf in _leaves(member)]
