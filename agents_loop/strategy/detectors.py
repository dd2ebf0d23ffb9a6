"""Detectors: what finds signals in an answer."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Iterator, Mapping
from inspect import isawaitable
from typing import Final, TypeAlias, cast

from agents_loop.checks.check import Check
from agents_loop.loop.asking import ask
from agents_loop.loop.context import LoopContext
from agents_loop.loop.criteria import criteria_met
from agents_loop.loop.evaluation import LoopEvaluation
from agents_loop.loop.evaluator import LoopEvaluator
from agents_loop.loop.no_verdict import lacks_verdict
from agents_loop.strategy.signals import IterationSignals, UnmetRequirement, ValidationFailure

CHECK_FAILED: Final = "CHECK_FAILED"
"""The code of the validation failure that a failed check is."""


class SignalDetector(ABC):
    """Finds out about an answer.

    As an evaluator it keeps no state of its own: one instance may serve any number of runs at once. What its model
    calls use it tells `context.report_usage`.
    """

    @abstractmethod
    async def detect(self, context: LoopContext) -> IterationSignals:
        """What is to be said of the latest answer; `IterationSignals()` if nothing is wrong with it.

        What this raises ends the run, and reaches the loop's caller as it was raised.
        """


DetectorLike: TypeAlias = (
    "SignalDetector | LoopEvaluator | Callable[[LoopContext], IterationSignals | Awaitable[IterationSignals]]"
)
"""A detector, an evaluator, or a function of the context, which may be async."""


class EvaluatorSignalDetector(SignalDetector):
    """Takes an evaluator's word as signals.

    Its score is the quality; of a judge that asks about each demand it is the mean of theirs. A failed check is a
    validation failure with the code `CHECK_FAILED`, or, if it is not required, an optional requirement that is not met.
    A rubric's criteria and a judge's demands that are not met, and what any other evaluator wants the agent to hear,
    are unmet requirements. An abort says that the task is impossible, and a question is passed on. Where a judge gave
    no verdict, nothing is clear.

    Args:
        evaluator: Who judges.
    """

    def __init__(self, evaluator: LoopEvaluator) -> None:
        self.evaluator = evaluator

    async def detect(self, context: LoopContext) -> IterationSignals:
        """Ask the evaluator."""
        word = await ask(self.evaluator, context)
        quality = _quality(word)
        if word.decision == "stop":
            return IterationSignals(quality=quality)
        if word.decision == "abort":
            return IterationSignals(impossible=word.reason, quality=quality)
        if word.question is not None:
            return IterationSignals(question=word.question, quality=quality)
        if lacks_verdict(word) and all(criteria_met([word]).values()):
            return IterationSignals(unclear=word.note or f"{type(self.evaluator).__name__} gave no verdict")
        if isinstance(self.evaluator, Check) and self.evaluator.required:
            name, problem = self.evaluator.name, _problem(word)  # 5 tests that fail, and then 3, are not the same
            failure = ValidationFailure(CHECK_FAILED, problem, path=name, key=f"{CHECK_FAILED} {name}: {problem}")
            return IterationSignals(validation_failures=(failure,), quality=quality)
        is_required = not isinstance(self.evaluator, Check)
        unmet = tuple(_unmet_criteria(word)) or (UnmetRequirement(_heard(word), required=is_required),)
        return IterationSignals(unmet_requirements=unmet, quality=quality)


class FunctionSignalDetector(SignalDetector):
    """Lets a function find the signals.

    Args:
        detect: Takes the context and gives `IterationSignals`, or an awaitable of them.
    """

    def __init__(self, detect: Callable[[LoopContext], IterationSignals | Awaitable[IterationSignals]]) -> None:
        self.function = detect

    async def detect(self, context: LoopContext) -> IterationSignals:
        """Ask the function."""
        given = self.function(context)
        return await given if isawaitable(given) else given


def as_detector(given: DetectorLike) -> SignalDetector:
    """A detector of a detector, an evaluator or a function.

    Raises:
        TypeError: It is nothing of these.
    """
    if isinstance(given, SignalDetector):
        return given
    if isinstance(given, LoopEvaluator):
        return EvaluatorSignalDetector(given)
    if not callable(given):
        raise TypeError(f"detectors must hold detectors, evaluators or functions, not {type(given).__name__}")
    return FunctionSignalDetector(given)


def _problem(word: LoopEvaluation) -> str:
    details = _mapping(word.details)
    found = details.get("problem")
    return found if isinstance(found, str) and found.strip() else _heard(word)


def _quality(word: LoopEvaluation) -> float | None:
    """The score; where a judge asked about each demand the mean of theirs: the least says nothing of the others."""
    known = [each for each in _mappings(_mapping(word.details).get("demands")) if each.get("readable") is not False]
    scores = [score for each in known if isinstance(score := each.get("score"), int | float)]
    return sum(scores) / len(scores) if scores else word.score


def _unmet_criteria(word: LoopEvaluation) -> Iterator[UnmetRequirement]:
    """Of an evaluation whose details tell criteria, or demands: those that are not met."""
    details = _mapping(word.details)
    for result in _mappings(details.get("demands")):
        if result.get("met") is not False or result.get("readable") is False:
            continue
        demand, fault = str(result.get("demand")), result.get("fault")
        said = f"{demand}: {fault}" if isinstance(fault, str) else demand
        yield UnmetRequirement(said if isinstance(fault, str) else f"{demand}: not found, or only in part", key=said)
    for result in _mappings(details.get("criteria")):
        if result.get("verdict") != "not_met":
            continue
        name, reason = str(result.get("id")), result.get("reason")
        description = f"{name}: {reason}" if isinstance(reason, str) and reason.strip() else f"{name} is not met"
        yield UnmetRequirement(description, required=result.get("required") is not False, key=name)


def _heard(word: LoopEvaluation) -> str:
    """What the agent was to hear."""
    texts = [word.feedback or "", *(message.text for message in word.messages or ())]
    return "\n".join(text for text in texts if text.strip()) or "more is wanted"


def _mappings(value: object) -> list[Mapping[str, object]]:
    return [_mapping(each) for each in cast("list[object]", value)] if isinstance(value, list) else []


def _mapping(value: object) -> Mapping[str, object]:
    return cast("dict[str, object]", value) if isinstance(value, dict) else {}
