"""An evaluator that decides, from what detectors find, how the agent is to go on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Literal

from agents_loop.errors import ConfigurationError
from agents_loop.judging.feedback import FeedbackFilter, screen_feedback, screened
from agents_loop.loop.asking import ask_all
from agents_loop.loop.context import LoopContext
from agents_loop.loop.evaluation import LoopEvaluation
from agents_loop.loop.evaluator import LoopEvaluator
from agents_loop.metering.meter import budgets_left
from agents_loop.numeric import is_int, is_number
from agents_loop.strategy.budget import IterationBudget
from agents_loop.strategy.decision import StrategyDecision
from agents_loop.strategy.detectors import DetectorLike, SignalDetector, as_detector
from agents_loop.strategy.history import Attempt, IterationStrategy
from agents_loop.strategy.remembered import Remembered, Used
from agents_loop.strategy.rules import decide_strategy
from agents_loop.strategy.signals import IterationSignals
from agents_loop.strategy.thresholds import StrategyThresholds
from agents_loop.strategy.wording import (
    DEFAULT_FEEDBACK_MESSAGE_TEMPLATES,
    DEFAULT_QUESTION_TEMPLATE,
    FLAGS_PLACEHOLDER,
    ISSUES_PLACEHOLDER,
    MODIFICATIONS_PLACEHOLDER,
    REASON_PLACEHOLDER,
    feedback_text,
    question_text,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class IterationStrategyLoopEvaluatorOptions:
    """The limits and thresholds of the strategy, and its words.

    Raises:
        TypeError: A limit is no number, `thresholds` are none, `feedback_filter` is not callable, `question_template`
            is no text, or templates are not texts by strategy.
        ConfigurationError: A limit is not above 0, a choice is unknown, `question_template` is blank, or there is a
            template for a strategy without feedback.
    """

    thresholds: StrategyThresholds = field(default_factory=StrategyThresholds)
    """The numbers that the rules go by."""
    max_tokens: int | None = None
    """What the run may use, evaluators included: tokens, input and output. The loop's own budgets
    (`LoopAgentOptions.budget`) are heeded too, and the one of which the smallest share is left is what counts."""
    max_s: float | None = None
    """How long the iterations of the run may take together, in seconds. The loop's own deadline is heeded too."""
    next_tokens: int | None = None
    """What the next iteration is expected to use. `None`: the mean of those so far."""
    on_escalate: Literal["ask", "abort"] = "ask"
    """What an escalation is. `ask`: the run ends as `pending_input` with a question to a person, and can go on with
    the answer. `abort`: it ends as `aborted`, with the question's text as the reason."""
    on_cascade: Literal["escalate", "simplify"] = "escalate"
    """What happens when triggers multiply. `simplify`: the agent is once asked to do less; then, too, a person."""
    feedback_message_templates: Mapping[IterationStrategy, str] = field(default_factory=dict[IterationStrategy, str])
    """What the agent hears, by strategy; the defaults hold for those that are not given. A template in which
    `{issues}`, `{modifications}`, `{iteration}` and `{max_iterations}` are replaced."""
    question_template: str | None = None
    """What a person is asked: a template in which `{reason}`, `{issues}`, `{flags}`, `{iteration}` and
    `{max_iterations}` are replaced. `None`: `DEFAULT_QUESTION_TEMPLATE`."""
    feedback_filter: FeedbackFilter | None = screen_feedback
    """What of the issues, which may hold a model's or a user's words, the agent hears. `None`: all of it."""

    def __post_init__(self) -> None:
        self._check_limits()
        for name, known in (("on_escalate", ("ask", "abort")), ("on_cascade", ("escalate", "simplify"))):
            if getattr(self, name) not in known:
                raise ConfigurationError(f"{name} must be one of {', '.join(known)}, not {getattr(self, name)!r}")
        if self.feedback_filter is not None and not callable(self.feedback_filter):
            raise TypeError(f"feedback_filter must be callable or None, not {self.feedback_filter!r}")
        self._check_words()

    def _check_words(self) -> None:
        if not isinstance(self.thresholds, StrategyThresholds):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise TypeError(f"thresholds must be StrategyThresholds, not {type(self.thresholds).__name__}")
        question = self.question_template
        if question is not None and not isinstance(question, str):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise TypeError(f"question_template must be a str or None, not {type(question).__name__}")
        if question is not None and not question.strip():
            raise ConfigurationError("question_template must not be blank: it is what the person is asked")
        templates = self.feedback_message_templates
        if not isinstance(templates, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise TypeError(f"feedback_message_templates must map strategies to str, not {type(templates).__name__}")
        for strategy, template in templates.items():
            if not isinstance(template, str):  # pyright: ignore[reportUnnecessaryIsInstance]
                raise TypeError(f"feedback_message_templates must hold str, not {type(template).__name__}")
            if strategy not in DEFAULT_FEEDBACK_MESSAGE_TEMPLATES:
                raise ConfigurationError(f"feedback_message_templates: {strategy!r} is no strategy with feedback")

    def _check_limits(self) -> None:
        for name in ("max_tokens", "next_tokens", "max_s"):
            value = getattr(self, name)
            if value is None:
                continue
            if not (is_number(value) if name == "max_s" else is_int(value)):
                raise TypeError(f"{name} must be a number or None, not {value!r}")
            if not value > 0:
                raise ConfigurationError(f"{name} must be above 0, not {value!r}")


class IterationStrategyLoopEvaluator(LoopEvaluator):
    """Decides how the agent is to go on: anew, with changes, with more, with less, once more, or not at all.

    Detectors look at the answer, all at once; from what they find, and from the iterations so far, `decide_strategy`
    decides, by the rules of the docs page. It is a pure function: the evaluator adds nothing to it but what the run has
    used and the words. Each evaluation's `details` hold the decision with its triggers, its rule and its numbers, its
    `note` says why, and its `score` is the quality.

    The attempts so far are kept in the run's context, and in its memory where the run has to wait. What a person
    answers to its question is new: the run goes on without the attempts before. As soon as a detector raises, the
    others are cancelled and awaited, and that exception is raised.

    Args:
        detectors: What looks at the answer: `SignalDetector`s, other evaluators, or functions of the context that give
            `IterationSignals`.
        options: Limits, thresholds and words.

    Raises:
        TypeError: They are no sequence, or a detector is nothing of these.
        ConfigurationError: There is none.
    """

    ISSUES_PLACEHOLDER: ClassVar[str] = ISSUES_PLACEHOLDER
    MODIFICATIONS_PLACEHOLDER: ClassVar[str] = MODIFICATIONS_PLACEHOLDER
    REASON_PLACEHOLDER: ClassVar[str] = REASON_PLACEHOLDER
    FLAGS_PLACEHOLDER: ClassVar[str] = FLAGS_PLACEHOLDER
    DEFAULT_FEEDBACK_MESSAGE_TEMPLATES: ClassVar[Mapping[IterationStrategy, str]] = DEFAULT_FEEDBACK_MESSAGE_TEMPLATES
    DEFAULT_QUESTION_TEMPLATE: ClassVar[str] = DEFAULT_QUESTION_TEMPLATE

    def __init__(
        self,
        detectors: Sequence[DetectorLike],
        options: IterationStrategyLoopEvaluatorOptions | None = None,
    ) -> None:
        if not isinstance(detectors, Sequence) or isinstance(detectors, str):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise TypeError(f"detectors must be a sequence of detectors, not {type(detectors).__name__}")
        if not detectors:
            raise ConfigurationError("detectors must not be empty: nobody would look at the answer")
        self.detectors = tuple(as_detector(each) for each in detectors)
        self.options = options or IterationStrategyLoopEvaluatorOptions()
        self._templates = {**DEFAULT_FEEDBACK_MESSAGE_TEMPLATES, **self.options.feedback_message_templates}

    async def evaluate(self, context: LoopContext) -> LoopEvaluation:
        """Ask the detectors, and decide.

        Raises:
            TypeError: A detector gave something else than `IterationSignals`.
            SessionStateError: What the session keeps of earlier attempts can't be read.
        """
        signals = await self._detect(context)
        remembered = Remembered.of(context, self)
        used = remembered.used(context)
        decision = decide_strategy(
            signals,
            self._budget(context, used),
            remembered.attempts(context.iteration),
            self.options.thresholds,
            simplify_on_cascade=self.options.on_cascade == "simplify",
        )
        attempt = Attempt(
            iteration=context.iteration,
            triggers=decision.triggers,
            quality=signals.quality,
            strategy=decision.strategy,
        )
        remembered.keep(attempt, used)
        return self._evaluation(decision, signals.quality if signals.unclear is None else None)

    def _evaluation(self, decision: StrategyDecision, score: float | None) -> LoopEvaluation:
        options = self.options
        note, details = f"{decision.strategy} ({decision.rule}): {decision.reason}", decision.to_json()
        if decision.strategy == IterationStrategy.ACCEPT:
            return LoopEvaluation.stop(score=score, note=note, details=details)
        if decision.strategy == IterationStrategy.ESCALATE:
            template = DEFAULT_QUESTION_TEMPLATE if options.question_template is None else options.question_template
            question = question_text(decision, template, self._screen)
            if options.on_escalate == "abort":
                return LoopEvaluation.abort(question, score=score, note=note, details=details)
            return LoopEvaluation.ask(question, score=score, note=note, details=details)
        feedback = feedback_text(decision, self._templates[decision.strategy], self._screen)
        return LoopEvaluation.continue_(feedback, score=score, note=note, details=details)

    def _screen(self, text: str) -> str:
        return screened(text, self.options.feedback_filter)

    async def _detect(self, context: LoopContext) -> IterationSignals:
        asked = [_Detection(detector) for detector in self.detectors]
        error = await ask_all(asked, context, [])
        if error is not None:
            raise error
        return IterationSignals.merged([each.signals for each in asked])

    def _budget(self, context: LoopContext, used: Used) -> IterationBudget:
        options, tokens = self.options, used.tokens if used.reports else None
        left, left_s = budgets_left()
        if options.max_tokens is not None and tokens is not None:
            left.append((max(0, options.max_tokens - tokens), options.max_tokens))
        tightest = min(left, key=lambda each: each[0] / each[1], default=None)
        ends = [each for each in (options.max_s, None if left_s is None else used.seconds + left_s) if each is not None]
        return IterationBudget(
            iteration=context.iteration,
            max_iterations=context.max_iterations,
            max_tokens=options.max_tokens if tightest is None else tightest[1],
            tokens_used=tokens if tightest is None else tightest[1] - tightest[0],
            next_tokens=options.next_tokens or (round(used.tokens / used.reports) if used.reports else None),
            max_s=min(ends, default=None),
            elapsed_s=used.seconds,
            next_s=used.seconds / used.iterations if used.iterations else None,
        )


class _Detection(LoopEvaluator):
    """A detector's look at one answer: asked as an evaluator, so that all are asked at once."""

    def __init__(self, detector: SignalDetector) -> None:
        self.signals = IterationSignals()
        self._detector = detector

    async def evaluate(self, context: LoopContext) -> LoopEvaluation:
        found = await self._detector.detect(context)
        if not isinstance(found, IterationSignals):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise TypeError(
                f"a detector must give IterationSignals, not {type(found).__name__}: "
                "without anything wrong, IterationSignals()"
            )
        self.signals = found
        return LoopEvaluation.stop()
