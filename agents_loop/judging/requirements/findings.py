"""What was found out about each demand, and what that comes to."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from agents_loop.messages import JsonValue

DEFAULT_THRESHOLD: Final = 0.6
"""The least probability with which a demand is met. Chosen on the first half of the bench with a model of 1.5 billion
parameters: the best balanced accuracy among .50, .55 and so on that pass at most a fifth of what is incomplete."""


class Finding(NamedTuple):
    """What was found out about one demand."""

    demand: str
    score: float
    """How sure it is that the demand is met, from 0 to 1."""
    fault: str | None = None
    """What code found wrong."""
    readable: bool = True
    """Whether the model said anything about it."""


class Opinion(NamedTuple):
    """What all findings come to."""

    answered: bool
    gap: str
    """One line for each demand that is known not to be met; of what the model was unreadable about, nothing is."""
    score: float
    """The least of all findings' scores."""
    readable: bool
    details: dict[str, JsonValue]


def opinion_of(findings: Sequence[Finding], threshold: float) -> Opinion:
    """A request is answered if each of its demands is met; of no demand at all nothing is known, so it is not."""
    unmet = [finding for finding in findings if finding.score < threshold or not finding.readable]
    return Opinion(
        answered=bool(findings) and not unmet,
        gap="\n".join(_line(finding) for finding in unmet if finding.readable),
        score=min((finding.score for finding in findings), default=0.0),
        readable=any(finding.readable for finding in findings),
        details={"demands": [_to_json(finding, threshold) for finding in findings]},
    )


def _line(finding: Finding) -> str:
    return f"- {finding.demand}: {finding.fault or 'not found in the response, or only in part'}"


def _to_json(finding: Finding, threshold: float) -> JsonValue:
    met = finding.readable and finding.score >= threshold
    result: dict[str, JsonValue] = {"demand": finding.demand, "met": met, "score": round(finding.score, 4)}
    if finding.fault is not None:
        result["fault"] = finding.fault
    if not finding.readable:
        result["readable"] = False
    return result
