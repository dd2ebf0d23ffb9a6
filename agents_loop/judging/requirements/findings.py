"""What was found out about each demand, and what that comes to."""

from __future__ import annotations

from collections.abc import Collection, Sequence
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


def is_met(finding: Finding, threshold: float) -> bool:
    """Whether the demand is known to be met."""
    return finding.readable and finding.score >= threshold


def opinion_of(findings: Sequence[Finding], threshold: float, regressed: Collection[str]) -> Opinion:
    """A request is answered if each of its demands is met; of no demand at all nothing is known, so it is not.

    Args:
        findings: Of all demands.
        threshold: The least probability with which one is met.
        regressed: The demands that an earlier answer met.
    """
    unmet = [finding for finding in findings if not is_met(finding, threshold)]
    return Opinion(
        answered=bool(findings) and not unmet,
        gap="\n".join(_line(finding, regressed) for finding in unmet if finding.readable),
        score=min((finding.score for finding in findings), default=0.0),
        readable=any(finding.readable for finding in findings),
        details={"demands": [_to_json(finding, threshold, regressed) for finding in findings]},
    )


def _line(finding: Finding, regressed: Collection[str]) -> str:
    regression = " (an earlier response met this)" if finding.demand in regressed else ""
    return f"- {finding.demand}{regression}: {finding.fault or 'not found in the response, or only in part'}"


def _to_json(finding: Finding, threshold: float, regressed: Collection[str]) -> JsonValue:
    met = is_met(finding, threshold)
    result: dict[str, JsonValue] = {"demand": finding.demand, "met": met, "score": round(finding.score, 4)}
    if finding.demand in regressed:
        result["regressed"] = True
    if finding.fault is not None:
        result["fault"] = finding.fault
    if not finding.readable:
        result["readable"] = False
    return result
