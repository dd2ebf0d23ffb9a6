"""The evaluators that a file knows: one table, from a type to its keys, what it builds and what is written of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, ForwardRef, Literal, cast

from agents_loop.adapting import ChatClientLike
from agents_loop.checks.check import Check, check
from agents_loop.checks.citations import citation_check
from agents_loop.checks.command import command_check
from agents_loop.checks.json_answer import json_check
from agents_loop.checks.length import length_check
from agents_loop.checks.pydantic_model import pydantic_check
from agents_loop.checks.regex import regex_check
from agents_loop.errors import ConfigurationError
from agents_loop.evaluators.ai_judge import AIJudgeLoopEvaluator, AIJudgeLoopEvaluatorOptions
from agents_loop.evaluators.background_task_completion import (
    BackgroundTaskCompletionLoopEvaluator,
    BackgroundTaskCompletionLoopEvaluatorOptions,
)
from agents_loop.evaluators.completion_marker import CompletionMarkerLoopEvaluator, CompletionMarkerLoopEvaluatorOptions
from agents_loop.evaluators.delegate import DelegateLoopEvaluator, Word
from agents_loop.evaluators.evidence import EvidenceLoopEvaluator, EvidenceLoopEvaluatorOptions
from agents_loop.evaluators.function_call import FunctionCallLoopEvaluator, FunctionCallLoopEvaluatorOptions
from agents_loop.evaluators.iteration_strategy import (
    IterationStrategyLoopEvaluator,
    IterationStrategyLoopEvaluatorOptions,
)
from agents_loop.evaluators.panel import PanelLoopEvaluator, PanelLoopEvaluatorOptions
from agents_loop.evaluators.pass_token import PassTokenLoopEvaluator, PassTokenLoopEvaluatorOptions
from agents_loop.evaluators.preference import PreferenceLoopEvaluator
from agents_loop.evaluators.rubric import RubricLoopEvaluator, RubricLoopEvaluatorOptions
from agents_loop.evaluators.todo_completion import TodoCompletionLoopEvaluator, TodoCompletionLoopEvaluatorOptions
from agents_loop.files.native.building import Building
from agents_loop.files.native.kinds import (
    IMPORTED,
    MODEL,
    TEMPLATE,
    Form,
    Kind,
    forms,
    is_list,
    is_not,
    is_of,
    many,
    one_or_many,
    optional,
    plain,
)
from agents_loop.files.native.parts import Part, Table
from agents_loop.files.native.prompted import PROMPTED_EVALUATOR
from agents_loop.files.native.shared import (
    FEEDBACK_FILTER,
    JUDGE_KINDS,
    JUDGE_LEFT_OUT,
    PATTERN,
    PLAIN_MAPPING,
    SOURCES,
    is_python_object,
    python_object,
)
from agents_loop.files.native.writing import Writing
from agents_loop.judging.function_calls import JudgeFunction
from agents_loop.judging.pairwise import PairwiseJudge, PairwiseJudgeOptions
from agents_loop.judging.rubric import RubricCriterion
from agents_loop.loop.context import LoopContext
from agents_loop.loop.evaluator import LoopEvaluator
from agents_loop.strategy.detectors import EvaluatorSignalDetector, FunctionSignalDetector, SignalDetector
from agents_loop.strategy.review import ReviewSignalDetector, ReviewSignalDetectorOptions
from agents_loop.strategy.thresholds import StrategyThresholds

_TEMPLATES = many(TEMPLATE)


def python_evaluator(target: Any) -> LoopEvaluator:
    """An evaluator of your own: a `LoopEvaluator`, a class of one, or a function for a `DelegateLoopEvaluator`.

    Args:
        target: Where it is.
    """
    made: object = cast("Callable[[], object]", target)() if isinstance(target, type) else target
    if isinstance(made, LoopEvaluator):
        return made
    if not callable(target) or isinstance(target, type):
        raise ConfigurationError(f"object must be a LoopEvaluator or a function, not {target!r}")
    return DelegateLoopEvaluator(cast("Callable[[LoopContext], Word]", target))


def python_detector(target: Any) -> Any:
    """A detector of your own: a `SignalDetector`, a class of one, or a function that gives `IterationSignals`.

    Args:
        target: Where it is.
    """
    made = target() if isinstance(target, type) else target
    if not isinstance(made, SignalDetector) and not callable(made):
        raise TypeError(f"object must be a detector, a class of one or a function, not {made!r:.80}")
    return made


def preference(judge_client: ChatClientLike, options: PairwiseJudgeOptions | None = None) -> PreferenceLoopEvaluator:
    """Records which answer is the best so far, by comparing each with the best one before it.

    Args:
        judge_client: The model that compares.
        options: How it is asked.
    """
    return PreferenceLoopEvaluator(PairwiseJudge(judge_client, options))


def _is_check_of(make: Callable[..., Check]) -> Callable[[Any], bool]:
    name = make.__name__
    return lambda target: isinstance(target, Check) and target.made_by is not None and target.made_by.function == name


def _check(type_: str, make: Callable[..., Check], kinds: Mapping[str, Kind], names: Mapping[str, str]) -> Part:
    return Part(
        make,
        type_,
        names=names,
        kinds=kinds,
        is_made=_is_check_of(make),
        read=lambda target: target.made_by.arguments,
    )


def _built_evaluator(building: Building, spec: Any) -> LoopEvaluator:
    return EVALUATORS.build(building, spec)


def _written_evaluator(writing: Writing, evaluator: LoopEvaluator) -> Any:
    return EVALUATORS.write(writing, evaluator)


def _built_detector(building: Building, spec: Any) -> Any:
    return DETECTORS.build(building, spec)


def _written_detector(writing: Writing, detector: Any) -> Any:
    if isinstance(detector, EvaluatorSignalDetector):
        return EVALUATORS.write(writing, detector.evaluator)
    return DETECTORS.write(writing, detector)


_EVALUATOR = Kind(ForwardRef("Evaluator"), _built_evaluator, _written_evaluator)
_DETECTOR = Kind(ForwardRef("Detector"), _built_detector, _written_detector)

_MEMBERS = many(one_or_many(_EVALUATOR))
_ALLOWED = forms(
    Form("request", is_of(str), is_of(str), plain(Literal["request"])),
    Form("python", is_python_object, callable, python_object()),
    Form("listed", is_list, is_not(callable), many(plain(str))),
)
_THRESHOLDS = Part(StrategyThresholds)
_FUNCTION = Part(JudgeFunction)

_PARTS: Final = (
    Part(
        AIJudgeLoopEvaluator,
        "ai_judge",
        AIJudgeLoopEvaluatorOptions,
        names={"judge_client": "model"},
        kinds={"judge_client": MODEL, "escalate_to": optional(MODEL), "criteria": optional(_TEMPLATES), **JUDGE_KINDS},
        left_out=JUDGE_LEFT_OUT,
    ),
    Part(
        RubricLoopEvaluator,
        "rubric",
        RubricLoopEvaluatorOptions,
        names={"judge_client": "model"},
        kinds={
            "judge_client": MODEL,
            "criteria": many(Part(RubricCriterion, kinds={"text": TEMPLATE}).kind),
            **JUDGE_KINDS,
        },
        left_out=JUDGE_LEFT_OUT,
    ),
    Part(
        PassTokenLoopEvaluator,
        "pass_token",
        PassTokenLoopEvaluatorOptions,
        names={"checker_client": "model"},
        kinds={"checker_client": MODEL, "sources": optional(SOURCES), **JUDGE_KINDS},
        left_out=JUDGE_LEFT_OUT,
    ),
    Part(
        FunctionCallLoopEvaluator,
        "function_call",
        FunctionCallLoopEvaluatorOptions,
        names={"judge_client": "model"},
        kinds={
            "judge_client": MODEL,
            "continue_function": _FUNCTION.kind,
            "answered_function": _FUNCTION.kind,
            "criteria": optional(_TEMPLATES),
            **JUDGE_KINDS,
        },
        left_out=JUDGE_LEFT_OUT,
    ),
    Part(
        preference,
        "preference",
        PairwiseJudgeOptions,
        names={"judge_client": "model"},
        kinds={"judge_client": MODEL, "criteria": _TEMPLATES, **JUDGE_KINDS},
        left_out=JUDGE_LEFT_OUT,
        is_made=lambda target: type(target) is PreferenceLoopEvaluator,
        read=lambda target: {"judge_client": target.judge.judge_client, "options": target.judge.options},
    ),
    PROMPTED_EVALUATOR,
    Part(
        CompletionMarkerLoopEvaluator,
        "completion_marker",
        CompletionMarkerLoopEvaluatorOptions,
        names={"completion_marker": "marker"},
    ),
    Part(TodoCompletionLoopEvaluator, "todo_completion", TodoCompletionLoopEvaluatorOptions),
    Part(
        BackgroundTaskCompletionLoopEvaluator,
        "background_task_completion",
        BackgroundTaskCompletionLoopEvaluatorOptions,
    ),
    Part(
        EvidenceLoopEvaluator,
        "evidence",
        EvidenceLoopEvaluatorOptions,
        kinds={"judge": _EVALUATOR, "checks": many(_EVALUATOR)},
    ),
    Part(
        PanelLoopEvaluator,
        "panel",
        PanelLoopEvaluatorOptions,
        kinds={"members": _MEMBERS},
        read=lambda target: {
            "members": target.tiers[0] if len(target.tiers) == 1 else target.tiers,
            "options": target.options,
        },
    ),
    Part(
        IterationStrategyLoopEvaluator,
        "iteration_strategy",
        IterationStrategyLoopEvaluatorOptions,
        kinds={"detectors": many(_DETECTOR), "thresholds": _THRESHOLDS.kind, "feedback_filter": FEEDBACK_FILTER},
    ),
    _check("length", length_check, {}, {}),
    _check("regex", regex_check, {"pattern": PATTERN}, {}),
    _check("json", json_check, {"schema": optional(PLAIN_MAPPING)}, {}),
    _check("command", command_check, {"cwd": optional(plain(str))}, {}),
    _check("citations", citation_check, {"allowed": _ALLOWED, "pattern": PATTERN, "abstains": optional(PATTERN)}, {}),
    _check("pydantic", pydantic_check, {"model": IMPORTED}, {"model": "object"}),
    _check("check", check, {"examine": IMPORTED}, {"examine": "object"}),
    Part(
        python_evaluator,
        "python",
        names={"target": "object"},
        kinds={"target": IMPORTED},
        is_made=lambda target: type(target) is DelegateLoopEvaluator,
        read=lambda target: {"target": target.function},
    ),
)
EVALUATORS = Table("Evaluator", _PARTS)
DETECTORS = Table(
    "Detector",
    (
        *_PARTS,
        Part(
            ReviewSignalDetector,
            "review",
            ReviewSignalDetectorOptions,
            names={"review_client": "model"},
            kinds={"review_client": MODEL, "criteria": _TEMPLATES, **JUDGE_KINDS},
            left_out=JUDGE_LEFT_OUT,
        ),
        Part(
            python_detector,
            "signals",
            names={"target": "object"},
            kinds={"target": IMPORTED},
            is_made=lambda target: type(target) is FunctionSignalDetector,
            read=lambda target: {"target": target.function},
        ),
    ),
)
for _part in _PARTS:
    _part.model.model_rebuild(
        force=True, _types_namespace={"Evaluator": EVALUATORS.annotation, "Detector": DETECTORS.annotation}
    )
