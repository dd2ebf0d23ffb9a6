"""What detectors find out about an answer."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Literal, TypeAlias, get_args

from agents_loop.errors import ConfigurationError
from agents_loop.flags import check_flags
from agents_loop.numeric import is_number

ConfidenceCause: TypeAlias = Literal["missing_evidence", "factual_uncertainty"]
HallucinationLevel: TypeAlias = Literal["warning", "likely", "confirmed"]
HallucinationRisk: TypeAlias = Literal["low", "medium", "high"]

_RISKS: tuple[HallucinationRisk, ...] = ("low", "medium", "high")
_RISK_OF: dict[HallucinationLevel, HallucinationRisk] = {"warning": "low", "likely": "medium", "confirmed": "high"}


@dataclass(frozen=True, slots=True)
class ValidationFailure:
    """Something about the answer's form that a validator rejects.

    Raises:
        TypeError: A text is no str.
        ConfigurationError: A text is blank.
    """

    code: str
    """The validator's name for the kind of failure. `TYPE_MISMATCH` and `SCHEMA_VIOLATION` count as not fixable."""
    message: str
    """What is wrong: the agent reads it."""
    path: str | None = None
    """Where in the answer."""
    critical: bool = False
    """Whether its severity is 1.0 rather than 0.7."""
    key: str | None = None
    """What tells it from other failures; `None`: the code, and the path or, without one, the message."""

    def __post_init__(self) -> None:
        check_flags(self, "critical")
        _check_text("code", self.code)
        _check_text("message", self.message)
        _check_name("path", self.path)
        _check_name("key", self.key)


@dataclass(frozen=True, slots=True)
class Confidence:
    """How far the answer can be relied on.

    Raises:
        TypeError: The value is no number.
        ConfigurationError: The value is not from 0 to 1, or the cause is unknown.
    """

    value: float
    """From 0 to 1. Its severity is what is missing to 1."""
    cause: ConfidenceCause | None = None
    """Why it is not higher; `None`: not known, which counts as missing evidence."""
    source_material_available: bool = True
    """Whether there is something from which the agent can do better; without it, low confidence is not fixable."""

    def __post_init__(self) -> None:
        check_flags(self, "source_material_available")
        _check_share("value", self.value)
        if self.cause is not None:
            _check_choice("cause", self.cause, get_args(ConfidenceCause))


@dataclass(frozen=True, slots=True)
class HallucinationFinding:
    """A claim of the answer that nothing supports.

    Raises:
        TypeError: The claim is neither a str nor `None`.
        ConfigurationError: The claim is blank, or the level is unknown.
    """

    claim: str | None = None
    """The claim, in the answer's words: the agent reads it. `None`: no claim in particular."""
    level: HallucinationLevel = "likely"
    """A `warning` triggers nothing; `confirmed` has the severity 1.0, and `likely` 0.7."""

    def __post_init__(self) -> None:
        if self.claim is not None:
            _check_text("claim", self.claim)
        _check_choice("level", self.level, get_args(HallucinationLevel))


@dataclass(frozen=True, slots=True)
class HallucinationReport:
    """What a hallucination detector says of the answer as a whole.

    Raises:
        TypeError: A finding is no `HallucinationFinding`.
        ConfigurationError: The risk is unknown.
    """

    findings: Sequence[HallucinationFinding] = ()
    risk: HallucinationRisk | None = None
    """Only `high` triggers anything. `None`: that of the gravest finding, `high` if confirmed, `medium` if likely."""
    systemic: bool = False
    """Whether removing single claims would not help. So it is, too, where no finding has a claim."""

    def __post_init__(self) -> None:
        check_flags(self, "systemic")
        _check_items("findings", self.findings, HallucinationFinding)
        if self.risk is not None:
            _check_choice("risk", self.risk, _RISKS)

    @property
    def overall_risk(self) -> HallucinationRisk:
        """The risk that was given, else that of the gravest finding, else `low`."""
        if self.risk is not None:
            return self.risk
        return _highest([_RISK_OF[finding.level] for finding in self.findings])


@dataclass(frozen=True, slots=True)
class UnmetRequirement:
    """Something that was asked for and that the answer does not fulfil.

    Raises:
        TypeError: The description or the key is no str, or the severity no number.
        ConfigurationError: The description is blank, or the severity is not from 0 to 1.
    """

    description: str
    """What is missing: the agent reads it."""
    required: bool = True
    """Whether an answer without it can't be accepted."""
    fixable: bool = True
    """Whether the agent can do something about it."""
    severity: float | None = None
    """From 0 to 1. `None`: 0.9 if it is required, else 0.5."""
    key: str | None = None
    """What tells it from other requirements; `None`: the description."""

    def __post_init__(self) -> None:
        check_flags(self, "required", "fixable")
        _check_text("description", self.description)
        if self.severity is not None:
            _check_share("severity", self.severity)
        _check_name("key", self.key)


@dataclass(frozen=True, slots=True)
class UserFeedback:
    """What a person said of the answer.

    Raises:
        TypeError: The message is no str.
        ConfigurationError: The message is blank.
    """

    message: str
    """The person's words: the agent reads them."""
    rejected: bool = True
    """Whether the person does not want the answer as it is; otherwise it triggers nothing."""
    actionable: bool = True
    """Whether it says what to do. A vague rejection is a question to a person, not to the agent."""

    def __post_init__(self) -> None:
        check_flags(self, "rejected", "actionable")
        _check_text("message", self.message)


@dataclass(frozen=True, slots=True, kw_only=True)
class IterationSignals:
    """What detectors found out about one answer. Without any field, nothing is wrong with it.

    Raises:
        TypeError: A field holds something of another type.
        ConfigurationError: `quality` is not from 0 to 1; a text is blank.
    """

    validation_failures: Sequence[ValidationFailure] = ()
    confidence: Confidence | None = None
    hallucination: HallucinationReport | None = None
    unmet_requirements: Sequence[UnmetRequirement] = ()
    user_feedback: Sequence[UserFeedback] = ()
    quality: float | None = None
    """How good the answer is, from 0 to 1. `None`: not known, and then it is not accepted for its quality either."""
    impossible: str | None = None
    """Why the task can't be done at all: a person must hear of it."""
    question: str | None = None
    """What a detector wants a person to be asked."""
    unclear: str | None = None
    """Why a detector could tell nothing: the answer is not accepted, and the agent does not hear of it."""

    def __post_init__(self) -> None:
        _check_items("validation_failures", self.validation_failures, ValidationFailure)
        _check_items("unmet_requirements", self.unmet_requirements, UnmetRequirement)
        _check_items("user_feedback", self.user_feedback, UserFeedback)
        for name, kind in (("confidence", Confidence), ("hallucination", HallucinationReport)):
            if not isinstance(getattr(self, name), kind | None):
                raise TypeError(f"{name} must be a {kind.__name__} or None, not {getattr(self, name)!r}")
        if self.quality is not None:
            _check_share("quality", self.quality)
        for name in ("impossible", "question", "unclear"):
            if getattr(self, name) is not None:
                _check_text(name, getattr(self, name))

    @classmethod
    def merged(cls, parts: Iterable[IterationSignals]) -> IterationSignals:
        """Several detectors' signals as one: all that each found, and of what there is one of, the worst."""
        given = list(parts)
        confidences = [part.confidence for part in given if part.confidence is not None]
        reports = [part.hallucination for part in given if part.hallucination is not None]
        qualities = [part.quality for part in given if part.quality is not None]
        return cls(
            validation_failures=tuple(chain.from_iterable(part.validation_failures for part in given)),
            confidence=min(confidences, key=lambda each: each.value, default=None),
            hallucination=_merged_report(reports) if reports else None,
            unmet_requirements=tuple(chain.from_iterable(part.unmet_requirements for part in given)),
            user_feedback=tuple(chain.from_iterable(part.user_feedback for part in given)),
            quality=min(qualities, default=None),
            impossible=next((part.impossible for part in given if part.impossible is not None), None),
            question=next((part.question for part in given if part.question is not None), None),
            unclear=next((part.unclear for part in given if part.unclear is not None), None),
        )


def _merged_report(reports: Sequence[HallucinationReport]) -> HallucinationReport:
    return HallucinationReport(
        findings=tuple(chain.from_iterable(report.findings for report in reports)),
        risk=_highest([report.overall_risk for report in reports]),
        systemic=any(report.systemic for report in reports),
    )


def _highest(risks: Sequence[HallucinationRisk]) -> HallucinationRisk:
    for risk in reversed(_RISKS):
        if risk in risks:
            return risk
    return "low"


def _check_text(name: str, value: object) -> None:
    if not isinstance(value, str):
        raise TypeError(f"{name} must be a str, not {type(value).__name__}")
    if not value.strip():
        raise ConfigurationError(f"{name} must not be blank")


def _check_name(name: str, value: object) -> None:
    if value is not None and not isinstance(value, str):
        raise TypeError(f"{name} must be a str or None, not {type(value).__name__}")


def _check_share(name: str, value: object) -> None:
    if not is_number(value):
        raise TypeError(f"{name} must be a number, not {value!r}")
    if not 0 <= value <= 1:
        raise ConfigurationError(f"{name} must be from 0 to 1, not {value!r}")


def _check_choice(name: str, value: str, known: Sequence[str]) -> None:
    if value not in known:
        raise ConfigurationError(f"{name} must be one of {', '.join(known)}, not {value!r}")


def _check_items(name: str, items: object, kind: type) -> None:
    if not isinstance(items, Sequence) or isinstance(items, str):
        raise TypeError(f"{name} must be a sequence of {kind.__name__}, not {type(items).__name__}")
    for item in items:  # pyright: ignore[reportUnknownVariableType]
        if not isinstance(item, kind):
            raise TypeError(f"{name} must hold {kind.__name__}, not {type(item).__name__}")  # pyright: ignore[reportUnknownArgumentType]
