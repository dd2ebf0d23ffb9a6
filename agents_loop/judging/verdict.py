"""A judge's structured answer."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final, Literal, TypeAlias, get_args

from pydantic import BaseModel, ConfigDict, Field, StrictBool

from agents_loop.chat_client import JsonSchemaFormat, ResponseFormat
from agents_loop.errors import ConfigurationError
from agents_loop.messages import JsonValue

DONE_VERDICT_MARKER: Final = "VERDICT: DONE"
MORE_VERDICT_MARKER: Final = "VERDICT: MORE"
"""What a judge without structured output writes; names and wording are the ancestor's (`AIJudgeLoopEvaluator`)."""

UNKNOWN_GAP: Final = "<unknown>"
"""What stands for a gap that the judge did not name, as in the ancestor."""

VerdictField: TypeAlias = Literal["reasoning", "score", "impossible"]
"""What a verdict may hold besides: what the judge thought first; how much is there, from 0 to 1; whether no response
could ever do."""
VERDICT_FIELDS: Final[tuple[str, ...]] = get_args(VerdictField)


class JudgeVerdict(BaseModel):
    """Whether the request is answered, and what is missing. On the wire `{"gapAnalysis": ..., "answered": ...}`."""

    model_config = ConfigDict(populate_by_name=True, defer_build=True)

    answered: StrictBool
    gap_analysis: str = Field(default="", alias="gapAnalysis")


_PROPERTIES: Final[dict[str, JsonValue]] = {
    "gapAnalysis": {
        "type": "string",
        "description": "What the request asks for and the response lacks; empty when nothing is missing.",
    },
    "answered": {
        "type": "boolean",
        "description": "true only if the response fully addresses the request.",
    },
}
VERDICT_FORMAT: Final = JsonSchemaFormat(
    "judge_verdict",
    {
        "type": "object",
        "properties": _PROPERTIES,
        "required": list(_PROPERTIES),
        "additionalProperties": False,
    },
)
"""The schema sent to the judge: closed, for strict mode; the gap comes first, so that reasons precede the verdict."""

_FURTHER: Final[dict[str, JsonValue]] = {
    "reasoning": {
        "type": "string",
        "description": "Where the response has what the request asks for, thing by thing.",
    },
    "score": {
        "type": "number",
        "description": "How much of what is asked for the response has, from 0 to 1; 1 only if nothing is missing.",
    },
    "impossible": {
        "type": "boolean",
        "description": "true only if no response could ever fulfil the request; then gapAnalysis says why.",
    },
}


def verdict_format(fields: Collection[str]) -> JsonSchemaFormat:
    """The schema with further fields: the reasoning first, and all others before `answered`."""
    if not fields:
        return VERDICT_FORMAT
    known = {**_FURTHER, **_PROPERTIES}
    properties: dict[str, JsonValue] = {name: known[name] for name in names_in_order(fields)}
    schema = {**VERDICT_FORMAT.schema, "properties": properties, "required": list(properties)}
    return JsonSchemaFormat(VERDICT_FORMAT.name, schema)


def names_in_order(fields: Collection[str]) -> list[str]:
    """The names of a verdict on the wire, in the order in which they are to be written."""
    every = ("reasoning", "gapAnalysis", "score", "impossible", "answered")
    return [name for name in every if name in fields or name in _PROPERTIES]


def further_names(fields: Collection[str], response_format: ResponseFormat | None) -> frozenset[str]:
    """The further fields of a verdict: those that are asked for, and those that a caller's own `JudgeVerdict` has."""
    own: set[str] = set()
    if isinstance(response_format, type) and issubclass(response_format, JudgeVerdict):
        own = {field.alias or name for name, field in response_format.model_fields.items()}
    return frozenset([*fields, *own.intersection(VERDICT_FIELDS)])


def check_fields(fields: Collection[str]) -> None:
    """Check the names of further fields.

    Raises:
        TypeError: They are one str.
        ConfigurationError: One is unknown.
    """
    if isinstance(fields, str):
        raise TypeError("verdict_fields must be a collection of names, not one str")
    for name in fields:
        if name not in VERDICT_FIELDS:
            raise ConfigurationError(f"verdict_fields must hold {', '.join(VERDICT_FIELDS)} alone, not {name!r}")
