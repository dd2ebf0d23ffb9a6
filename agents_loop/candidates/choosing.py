"""Which of several candidates is kept: by score, or by comparing."""

from __future__ import annotations

import logging
import sys
from abc import ABC, abstractmethod
from asyncio import create_task
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from inspect import isawaitable
from typing import Any, Final, TypeAlias, TypeVar

from agents_loop.candidates.candidate import Candidate
from agents_loop.candidates.phases import context_of, join, part_of_run
from agents_loop.errors import BudgetExceededError, ConfigurationError, EvaluatorFailedError
from agents_loop.failures import FailureCause, cause_of
from agents_loop.gathering import gathered
from agents_loop.judging.pairwise import PairwiseJudge
from agents_loop.loop.asking import ask
from agents_loop.loop.best import DIGITS
from agents_loop.loop.context import LoopContext
from agents_loop.loop.criteria import criteria_met
from agents_loop.loop.evaluator import LoopEvaluator
from agents_loop.loop.metered_run import keep_reported
from agents_loop.metering.meter import Phase
from agents_loop.numeric import is_number

T = TypeVar("T")

Score: TypeAlias = Callable[[LoopContext], "float | Awaitable[float | None] | None"]
"""How good a context's last response is; `None`: no score. Any number, the higher the better; sync or async."""
CandidateChooser: TypeAlias = LoopEvaluator | PairwiseJudge | Score
"""What decides which candidate is kept."""
ContextOf: TypeAlias = Callable[[Candidate], LoopContext]

_LOGGER: Final = logging.getLogger("agents_loop")


class Chooser(ABC):
    """Decides among candidates of one standing, of which there are several."""

    @abstractmethod
    async def choose(self, candidates: Sequence[Candidate], context_of: ContextOf) -> Candidate:
        """The best; of equals the first.

        Raises:
            Exception: What the evaluator, the function or the judge raised, if it is none of the failures of a
                provider: those leave a candidate without a score, or a comparison without a winner.
        """


def as_chooser(given: CandidateChooser) -> Chooser:
    """What decides as an evaluator, a judge or a function does.

    Raises:
        TypeError: It is none of them.
    """
    if isinstance(given, PairwiseJudge):
        return _Knockout(given)
    if isinstance(given, LoopEvaluator):
        return _ByEvaluation(given)
    if callable(given) and not isinstance(given, type):
        return _ByScore(given)
    raise TypeError(f"chooser must be a LoopEvaluator, a PairwiseJudge or a function that scores, not {given!r}")


class _ByScore(Chooser):
    """The highest number that a function gives."""

    def __init__(self, score: Score) -> None:
        self._score = score

    async def choose(self, candidates: Sequence[Candidate], context_of: ContextOf) -> Candidate:
        await _judge_all([self._rate(candidate, context_of(candidate)) for candidate in candidates])
        return max(candidates, key=lambda each: (each.score is not None, each.score or 0.0))

    async def _rate(self, candidate: Candidate, context: LoopContext) -> None:
        async def rated() -> float | None:
            given = self._score(context)
            return await given if isawaitable(given) else given

        candidate.score = _checked(await _unless_it_fails(candidate, rated()))


class _ByEvaluation(Chooser):
    """The highest score of an evaluator; then that which asks for no more, then more criteria met."""

    def __init__(self, evaluator: LoopEvaluator) -> None:
        self._evaluator = evaluator

    async def choose(self, candidates: Sequence[Candidate], context_of: ContextOf) -> Candidate:
        ranks: dict[int, tuple[bool, float, bool, int]] = {}
        contexts = [context_of(candidate) for candidate in candidates]
        works = [self._rate(each, context, ranks) for each, context in zip(candidates, contexts, strict=True)]
        await _judge_all(works, contexts)
        return max(candidates, key=lambda each: ranks.get(each.number, _UNRATED))

    async def _rate(
        self, candidate: Candidate, context: LoopContext, ranks: dict[int, tuple[bool, float, bool, int]]
    ) -> None:
        evaluation = await _unless_it_fails(candidate, ask(self._evaluator, context))
        if evaluation is None:
            return
        candidate.score = evaluation.score
        met = sum(criteria_met([evaluation]).values())
        is_scored, score = evaluation.score is not None, round(evaluation.score or 0.0, DIGITS)
        ranks[candidate.number] = (is_scored, score, evaluation.decision == "stop", met)


_UNRATED: Final = (False, 0.0, False, -1)


class _Knockout(Chooser):
    """Rounds of pairs, each compared in both orders: the better goes on, or the first, if neither is better."""

    def __init__(self, judge: PairwiseJudge) -> None:
        self._judge = judge

    async def choose(self, candidates: Sequence[Candidate], context_of: ContextOf) -> Candidate:
        left: list[Candidate] = list(candidates)
        while len(left) > 1:
            pairs = [(left[at], left[at + 1]) for at in range(0, len(left) - 1, 2)]
            odd = left[2 * len(pairs) :]
            contexts = [context_of(first) for first, _ in pairs]
            works = [
                self._better(first, second, context) for (first, second), context in zip(pairs, contexts, strict=True)
            ]
            left = await _judge_all(works, contexts) + odd
        return left[0]

    async def _better(self, first: Candidate, second: Candidate, context: LoopContext) -> Candidate:
        comparing = self._judge.compare(context, first.answer, second.answer)
        comparison = await _unless_it_fails(first, comparing)
        return second if comparison is not None and comparison.better == "second" else first


async def _judge_all(works: Sequence[Coroutine[Any, Any, T]], contexts: Sequence[LoopContext] = ()) -> list[T]:
    """Judge at once, as evaluators' calls of the run; what contexts were told of other calls is kept too."""
    phases = [part_of_run("evaluator") for _ in works]
    position = 0 if not phases or phases[0] is None else len(phases[0].meter.calls)
    try:
        tasks = [create_task(work, context=context_of(phase)) for work, phase in zip(works, phases, strict=True)]
        return await gathered(tasks)
    finally:
        _keep_reported(phases, position, contexts)
        join(phases)


def _keep_reported(phases: Sequence[Phase | None], position: int, contexts: Sequence[LoopContext]) -> None:
    reported = [usage for context in contexts for usage in context.take_reported_usages()]
    phase = phases[0]
    if reported and phase is not None:
        keep_reported(phase, position, reported)


async def _unless_it_fails(candidate: Candidate, judging: Coroutine[Any, Any, T]) -> T | None:
    """What is said; `None` where the provider fails, or a budget does not allow the call: that is no verdict.

    The answers are finished work, and what fails is only the choice among them.
    """
    try:
        return await judging
    except Exception as error:
        is_outage = isinstance(error, BudgetExceededError | EvaluatorFailedError)
        if not is_outage and cause_of(error) is FailureCause.OTHER:
            raise
        candidate.note = f"{type(error).__name__}: {error}"
        _LOGGER.warning("Candidate %d is chosen or not without a verdict: %s", candidate.number, candidate.note)
        return None


def _checked(score: object) -> float | None:
    if score is None:
        return None
    if not is_number(score):
        raise TypeError(f"a score must be a number or None, not {score!r}")
    if not -sys.float_info.max <= score <= sys.float_info.max:  # a larger int is no float
        raise ConfigurationError(f"a score must be a finite number or None, not {score!r}")
    return score
