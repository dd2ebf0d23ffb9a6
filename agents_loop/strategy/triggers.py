"""Triggers: the signals that speak for another iteration, each with a severity."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

from agents_loop.messages import JsonValue
from agents_loop.strategy.signals import HallucinationReport, IterationSignals
from agents_loop.strategy.thresholds import StrategyThresholds

SCHEMA_CODES: Final = frozenset({"TYPE_MISMATCH", "SCHEMA_VIOLATION"})
"""Failures that another attempt does not mend: the answer's form is at odds with what the agent can write."""


class TriggerType(StrEnum):
    """The kinds of triggers, in the order of the decision tree: it breaks ties of severity."""

    VALIDATION_FAILURE = "validation_failure"
    LOW_CONFIDENCE = "low_confidence"
    HALLUCINATION_DETECTED = "hallucination_detected"
    EXPLICIT_FEEDBACK = "explicit_feedback"
    REQUIREMENT_UNMET = "requirement_unmet"


@dataclass(frozen=True, slots=True)
class Trigger:
    """One reason for another iteration."""

    type: TriggerType
    key: str
    """What tells it from others of its type, and stays the same from one iteration to the next."""
    severity: float
    """From 0 to 1."""
    text: str
    """What is wrong, in words."""
    fixable: bool
    blocks_acceptance: bool
    """Whether an answer that has it is never accepted for its quality."""

    @property
    def identity(self) -> tuple[str, str, float]:
        """Equal for the same trigger with the same severity."""
        return self.type.value, self.key, round(self.severity, 6)

    def to_json(self) -> dict[str, JsonValue]:
        """As a JSON value."""
        return {
            "type": self.type.value,
            "key": self.key,
            "severity": round(self.severity, 6),
            "text": self.text,
            "fixable": self.fixable,
            "blocks_acceptance": self.blocks_acceptance,
        }

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Trigger:
        """What `to_json` gave.

        Raises:
            KeyError, TypeError, ValueError: It is not.
        """
        return cls(
            TriggerType(stored["type"]),
            str(stored["key"]),
            float(stored["severity"]),
            str(stored["text"]),
            bool(stored["fixable"]),
            bool(stored["blocks_acceptance"]),
        )


def triggers_of(signals: IterationSignals, thresholds: StrategyThresholds) -> tuple[Trigger, ...]:
    """The triggers, the most severe first; of the same severity in the order of the decision tree."""
    order = list(TriggerType)
    found = [*_validation(signals), *_confidence(signals, thresholds), *_hallucination(signals.hallucination)]
    found += [*_feedback(signals), *_requirements(signals)]
    return tuple(sorted(found, key=lambda trigger: (-trigger.severity, order.index(trigger.type))))


def fixability(triggers: Sequence[Trigger]) -> float:
    """The share of triggers that the agent can do something about; 1 without any."""
    return sum(trigger.fixable for trigger in triggers) / len(triggers) if triggers else 1.0


def _validation(signals: IterationSignals) -> Iterator[Trigger]:
    for failure in signals.validation_failures:
        place = f"{failure.path}: " if failure.path else ""
        yield Trigger(
            TriggerType.VALIDATION_FAILURE,
            key=failure.key or f"{failure.code} {failure.path or failure.message}",
            severity=1.0 if failure.critical else 0.7,
            text=f"{place}{failure.message} ({failure.code})",
            fixable=failure.code not in SCHEMA_CODES,
            blocks_acceptance=True,
        )


def _confidence(signals: IterationSignals, thresholds: StrategyThresholds) -> Iterator[Trigger]:
    confidence = signals.confidence
    if confidence is None or confidence.value >= thresholds.min_confidence:
        return
    yield Trigger(
        TriggerType.LOW_CONFIDENCE,
        key=confidence.cause or "",
        severity=1 - confidence.value,
        text=f"the confidence in it is {confidence.value:.2f}, and {thresholds.min_confidence:.2f} is wanted",
        fixable=confidence.source_material_available,
        blocks_acceptance=False,
    )


def _hallucination(report: HallucinationReport | None) -> Iterator[Trigger]:
    if report is None or report.overall_risk != "high":
        return
    findings = [finding for finding in report.findings if finding.level != "warning"]
    for finding in findings:
        yield Trigger(
            TriggerType.HALLUCINATION_DETECTED,
            key=finding.claim or "",
            severity=1.0 if finding.level == "confirmed" else 0.7,
            text=f"nothing supports this: {finding.claim}"
            if finding.claim
            else "it makes claims that nothing supports",
            fixable=finding.claim is not None,
            blocks_acceptance=finding.level == "confirmed",
        )
    if not findings:
        yield Trigger(
            TriggerType.HALLUCINATION_DETECTED,
            key="",
            severity=0.7,
            text="much of it may be made up",
            fixable=False,
            blocks_acceptance=False,
        )


def _feedback(signals: IterationSignals) -> Iterator[Trigger]:
    for said in signals.user_feedback:
        if said.rejected:
            yield Trigger(
                TriggerType.EXPLICIT_FEEDBACK,
                key=said.message,
                severity=0.9,
                text=f"the user says: {said.message}",
                fixable=said.actionable,
                blocks_acceptance=True,
            )


def _requirements(signals: IterationSignals) -> Iterator[Trigger]:
    for unmet in signals.unmet_requirements:
        default = 0.9 if unmet.required else 0.5
        yield Trigger(
            TriggerType.REQUIREMENT_UNMET,
            key=unmet.key or unmet.description,
            severity=default if unmet.severity is None else unmet.severity,
            text=unmet.description,
            fixable=unmet.fixable,
            blocks_acceptance=unmet.required,
        )
