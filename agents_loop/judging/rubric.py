"""A rubric: its criteria, the schema sent to the judge, and what a reply comes to. Nothing unclear is met."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, NamedTuple, cast

from agents_loop.chat_client import JsonSchemaFormat
from agents_loop.errors import ConfigurationError
from agents_loop.flags import check_flags
from agents_loop.judging.reading import Pairs, as_boolean, clean_text, find_object
from agents_loop.messages import JsonValue
from agents_loop.numeric import is_number

_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")
"""What every provider takes as a key in a strict schema."""
_TWICE = object()
"""Stands for the value of a key that is given twice: neither a text nor a boolean nor an object."""


@dataclass(frozen=True, slots=True)
class RubricCriterion:
    """One thing that a response must, or should, fulfil.

    Raises:
        TypeError: `id` or `text` is no str, `weight` no number, or `required` no bool.
        ConfigurationError: The id is not 1 to 64 letters, digits, `_` and `-`; the text is blank; the weight is not
            above 0.
    """

    id: str
    """What it is called in the judge's reply and in records."""
    text: str
    """What is to be fulfilled: the judge and the agent read it."""
    weight: float = field(default=1.0, kw_only=True)
    """Its share in the score, relative to the others'."""
    required: bool = field(default=True, kw_only=True)
    """Whether the loop goes on until it is met; otherwise it counts for the score alone."""

    def __post_init__(self) -> None:
        for name, value in (("id", self.id), ("text", self.text)):
            if not isinstance(value, str):  # pyright: ignore[reportUnnecessaryIsInstance]
                raise TypeError(f"{name} must be a str, not {type(value).__name__}")
        check_flags(self, "required")
        if not _ID.fullmatch(self.id):
            raise ConfigurationError(f"id must be 1 to 64 letters, digits, '_' and '-', not {self.id!r}")
        if not self.text.strip():
            raise ConfigurationError(f"text must not be blank: what is {self.id!r} about?")
        if not is_number(self.weight):
            raise TypeError(f"weight must be a number, not {self.weight!r}")
        if not 0 < self.weight < math.inf:
            raise ConfigurationError(f"weight must be above 0, not {self.weight!r}: leave out what does not count")


class CriterionVerdict(StrEnum):
    """What a judge decides of one criterion."""

    MET = "met"
    NOT_MET = "not_met"
    NOT_APPLICABLE = "not_applicable"


class CriterionResult(NamedTuple):
    """What a reply says of one criterion."""

    criterion: RubricCriterion
    verdict: CriterionVerdict
    reason: str
    """The judge's words; empty where it gave none."""
    is_clear: bool
    """Whether the judge gave exactly one verdict; if not, the criterion is not met."""

    def to_json(self) -> dict[str, JsonValue]:
        """The result as a JSON value."""
        criterion = self.criterion
        return {
            "id": criterion.id,
            "verdict": self.verdict.value,
            "reason": self.reason,
            "weight": criterion.weight,
            "required": criterion.required,
            "clear": self.is_clear,
        }


class RubricReading(NamedTuple):
    """What a judge's reply comes to, criterion by criterion, in the rubric's order."""

    results: tuple[CriterionResult, ...]
    answered: bool | None
    """What the reply says of the whole; `None` where that is unclear, or where it says nothing of it."""
    says_whole: bool
    """Whether it says anything of the whole."""
    reply: str
    is_sure: bool = True
    """Whether a pass in it counts."""

    @property
    def readable(self) -> bool:
        """Whether it has a clear verdict of one criterion at least."""
        return any(result.is_clear for result in self.results) and (self.is_sure or not self.passes)

    @property
    def score(self) -> float | None:
        """The weight of what is met, of all that applies, from 0 to 1; `None` where nothing applies."""
        applies = [result for result in self.results if result.verdict != CriterionVerdict.NOT_APPLICABLE]
        if not applies:
            return None
        met = math.fsum(result.criterion.weight for result in applies if result.verdict == CriterionVerdict.MET)
        return min(1.0, met / math.fsum(result.criterion.weight for result in applies))

    @property
    def passes(self) -> bool:
        """Whether no required criterion is unmet, and one criterion at least is met."""
        unmet = any(result.criterion.required for result in self.unmet)
        return not unmet and any(result.verdict == CriterionVerdict.MET for result in self.results)

    @property
    def unmet(self) -> tuple[CriterionResult, ...]:
        """The criteria that are not met, optional ones as well."""
        return tuple(result for result in self.results if result.verdict == CriterionVerdict.NOT_MET)

    @property
    def contradicts_itself(self) -> bool:
        """Whether what it says of the whole is not what its parts come to."""
        return self.says_whole and self.answered is not self.passes


def rubric_format(criteria: Iterable[RubricCriterion]) -> JsonSchemaFormat:
    """The schema sent to the judge: closed, for strict mode; each reason stands before its verdict, the whole last."""
    verdict: dict[str, JsonValue] = {
        "reason": {"type": "string", "description": "The words of the response that fulfil it, or what is missing."},
        "verdict": {"type": "string", "enum": [verdict.value for verdict in CriterionVerdict]},
    }
    each = {criterion.id: _closed(verdict) for criterion in criteria}
    answered = {"type": "boolean", "description": "true only if every required criterion that applies is met."}
    return JsonSchemaFormat("rubric_verdict", _closed({"criteria": _closed(each), "answered": answered}))


def _closed(properties: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
    required = list(properties)
    return {"type": "object", "properties": dict(properties), "required": required, "additionalProperties": False}


def read_rubric_reply(reply: str, criteria: Sequence[RubricCriterion]) -> RubricReading:
    """Read a judge's reply.

    It must be one JSON object with an object `criteria`. A criterion is met, or does not apply, only if that has its id
    once, with an object that has one `verdict`, which says so; whatever else is not met. Ids that are not the rubric's
    are nothing. A key given twice is unclear.
    """
    found = find_object(reply)
    fields = _once(found.pairs or (), _plain)
    entries = _once(_pairs_of(fields.get("criteria")), str.strip)
    results = tuple(_result(criterion, entries.get(criterion.id)) for criterion in criteria)
    answered = as_boolean(fields.get("answered"))
    return RubricReading(results, answered, "answered" in fields, reply, found.is_sure)


def _result(criterion: RubricCriterion, entry: Any) -> CriterionResult:
    fields = _once(_pairs_of(entry), _plain)
    reason, verdict = fields.get("reason"), _verdict(fields.get("verdict"))
    said = " ".join(clean_text(reason).split()) if isinstance(reason, str) else ""
    return CriterionResult(criterion, verdict or CriterionVerdict.NOT_MET, said, verdict is not None)


def _verdict(value: Any) -> CriterionVerdict | None:
    if not isinstance(value, str):
        return None
    name = re.sub(r"[\s_-]+", "_", value.strip().lower())
    return CriterionVerdict(name) if name in list(CriterionVerdict) else None


def _pairs_of(value: Any) -> Pairs:
    """The pairs of an object; none of anything else."""
    return cast("Pairs", value) if isinstance(value, tuple) else ()


def _once(pairs: Pairs, name_of: Callable[[str], str]) -> dict[str, Any]:
    """The values by name; of a name that is given twice no value counts."""
    fields: dict[str, Any] = {}
    for key, value in pairs:
        name = name_of(key)
        fields[name] = _TWICE if name in fields else value
    return fields


def _plain(key: str) -> str:
    return key.replace("_", "").lower()
