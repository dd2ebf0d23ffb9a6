"""How a reviewer's reply is read. A pure function; what is unclear is no signal, and no pass."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple, TypeVar, cast

from agents_loop.chat_client import JsonSchemaFormat
from agents_loop.judging.reading import Pairs, clean_text, find_object
from agents_loop.messages import JsonValue
from agents_loop.numeric import is_number
from agents_loop.strategy.signals import (
    Confidence,
    ConfidenceCause,
    HallucinationFinding,
    HallucinationReport,
    IterationSignals,
    UnmetRequirement,
)

T = TypeVar("T")

_CAUSES: Final[Mapping[str, ConfidenceCause | None]] = {
    "evidence": "missing_evidence",
    "certainty": "factual_uncertainty",
    "nothing": None,
}
"""What the reply says is lacking, and the cause of low confidence that it is."""


class ReviewReading(NamedTuple):
    """What a reviewer's reply says."""

    signals: IterationSignals | None
    """`None` where the reply is unclear in any part."""

    @property
    def readable(self) -> bool:
        """Whether it says anything that counts."""
        return self.signals is not None


def review_format() -> JsonSchemaFormat:
    """The schema sent to the reviewer: closed, for strict mode; what is found stands before what follows from it."""
    text: dict[str, JsonValue] = {"type": "string"}
    claim = _closed({"claim": text, "certain": {"type": "boolean"}})
    return JsonSchemaFormat(
        "answer_review",
        _closed(
            {
                "unmetRequirements": {"type": "array", "items": text},
                "unsupportedClaims": {"type": "array", "items": claim},
                "lacking": {"type": "string", "enum": list(_CAUSES)},
                "confidence": {"type": "number", "description": "From 0 to 1."},
            }
        ),
    )


def read_review(reply: str) -> ReviewReading:
    """Read a reviewer's reply: one JSON object, all of whose four fields are there once and are what they should be."""
    found = find_object(reply)
    fields = _fields(found.pairs) if found.is_sure else None
    if fields is None:
        return ReviewReading(None)
    unmet = _each(fields.get("unmetrequirements"), _text)
    findings = _each(fields.get("unsupportedclaims"), _finding)
    lacking, value = fields.get("lacking"), fields.get("confidence")
    is_share = is_number(value) and 0 <= value <= 1
    is_known = isinstance(lacking, str) and lacking in _CAUSES
    if unmet is None or findings is None or not is_share or not is_known:
        return ReviewReading(None)
    return ReviewReading(
        IterationSignals(
            confidence=Confidence(cast("float", value), _CAUSES[cast("str", lacking)]),
            hallucination=HallucinationReport(findings),
            unmet_requirements=[UnmetRequirement(text) for text in unmet],
        )
    )


def _finding(value: Any) -> HallucinationFinding | None:
    fields = _fields(value) or {}
    claim, certain = _text(fields.get("claim")), fields.get("certain")
    if claim is None or not isinstance(certain, bool):
        return None
    return HallucinationFinding(claim, "confirmed" if certain else "likely")


def _text(value: Any) -> str | None:
    return clean_text(value).strip() if isinstance(value, str) and value.strip() else None


def _each(values: Any, read: Callable[[Any], T | None]) -> list[T] | None:
    """What is read of each; `None` where it is no list, or one of them is unclear."""
    if not isinstance(values, list):
        return None
    read_values = [read(value) for value in cast("list[Any]", values)]
    found = [value for value in read_values if value is not None]
    return found if len(found) == len(read_values) else None


def _fields(pairs: object) -> dict[str, Any] | None:
    """An object's fields by name without case and `_`; `None` where it is no object, or a name is given twice."""
    if not isinstance(pairs, tuple):
        return None
    given = cast("Pairs", pairs)
    fields = {key.replace("_", "").lower(): value for key, value in given}
    return fields if len(fields) == len(given) else None


def _closed(properties: dict[str, JsonValue]) -> dict[str, JsonValue]:
    required: list[JsonValue] = [*properties]
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}
