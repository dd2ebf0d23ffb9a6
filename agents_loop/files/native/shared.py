"""Kinds of values that several parts of a file have: what a model is asked, sources, patterns, budgets."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal

from pydantic import BaseModel, Field

from agents_loop.chat_client import ChatOptions, JsonSchemaFormat
from agents_loop.files.fields import Closed, Count
from agents_loop.files.native.building import Building
from agents_loop.files.native.kinds import (
    IMPORTED,
    MODELS,
    TEMPLATE,
    Form,
    Kind,
    Reference,
    forms,
    imported,
    is_list,
    is_not,
    is_of,
    many,
    mapping,
    one_or_many,
    optional,
    plain,
    written,
)
from agents_loop.files.native.parts import Part
from agents_loop.files.native.writing import Writing, as_template
from agents_loop.judging.policy import JudgeFailurePolicy
from agents_loop.metering.budget import LoopBudget
from agents_loop.metering.prices import ModelPrice

IN_TESTS: Final = "it is for tests and snapshots"

_FLAGS = {re.ASCII: "a", re.IGNORECASE: "i", re.MULTILINE: "m", re.DOTALL: "s", re.VERBOSE: "x"}


_is_text = is_of(str)


class PythonObject(Closed):
    """A Python object, where a text would mean something else."""

    object: Reference
    """`module:name`; imported where imports are allowed."""


class SchemaFormat(Closed):
    """A reply that must be JSON of a schema."""

    name: str
    schema_: dict[str, Any] = Field(alias="schema")
    strict: bool = True


class Passage(Closed):
    """A source that can be cited."""

    citation: str
    text: str


class Regex(Closed):
    """A regular expression with flags."""

    regex: str
    flags: Annotated[str, Field(pattern="^[aimsx]+$")]
    """As in `(?i)`: `a`, `i`, `m`, `s`, `x`."""


class _AnyFormat(BaseModel):
    """Stands in for a model of a reply, where a file is only checked."""


def python_object(stand_in: object = None) -> Kind:
    """A Python object as `{object: "module:name"}`."""
    kind = IMPORTED if stand_in is None else imported(stand_in)
    return Kind(
        PythonObject,
        lambda building, spec: kind.build(building.at("object"), spec.object),
        lambda writing, target: {"object": kind.write(writing.at("object"), target)},
    )


def is_python_object(value: object) -> bool:
    """Whether a file says `{object: ...}`."""
    return isinstance(value, PythonObject) or (isinstance(value, dict) and "object" in value)


def _schema_format(building: Building, spec: SchemaFormat) -> JsonSchemaFormat:
    del building
    return JsonSchemaFormat(spec.name, spec.schema_, spec.strict)


def _written_format(writing: Writing, given: JsonSchemaFormat) -> dict[str, Any]:
    return {"name": given.name, "schema": written(writing, given.schema), "strict": given.strict}


def _built_model(building: Building, spec: PythonObject) -> type[BaseModel]:
    model = python_object(_AnyFormat).build(building, spec)
    if not (isinstance(model, type) and issubclass(model, BaseModel)):
        raise building.error(f"object must be a pydantic model, not {model!r:.80}", keys=("object",))
    return model


RESPONSE_FORMAT = forms(
    Form("name", _is_text, _is_text, plain(Literal["text", "json_object"])),
    Form("python", is_python_object, is_of(type), Kind(PythonObject, _built_model, python_object(_AnyFormat).write)),
    Form(
        "schema",
        is_of(dict, SchemaFormat),
        is_of(JsonSchemaFormat),
        Kind(SchemaFormat, _schema_format, _written_format),
    ),
)
PLAIN_MAPPING = mapping(plain(Any))
CHAT_OPTION_KINDS: Mapping[str, Kind] = {
    "temperature": optional(plain(Annotated[float, Field(ge=0)])),
    "top_p": optional(plain(Annotated[float, Field(ge=0, le=1)])),
    "max_output_tokens": optional(plain(Count)),
    "top_logprobs": optional(plain(Annotated[int, Field(ge=0)])),
    "response_format": optional(RESPONSE_FORMAT),
    "additional_properties": optional(PLAIN_MAPPING),
}
CHAT_OPTION_LEFT_OUT: Mapping[str, str] = {"tools": "tools are the agent's"}
CHAT_OPTIONS = Part(ChatOptions, kinds=CHAT_OPTION_KINDS, left_out=CHAT_OPTION_LEFT_OUT)
OWN_CHAT_OPTION_LEFT_OUT: Mapping[str, str] = {**CHAT_OPTION_LEFT_OUT, "model_id": "`model` says which model is asked"}

FAILURE_POLICY = Part(JudgeFailurePolicy, kinds={"next_judges": MODELS}, left_out={"sleep": IN_TESTS, "draw": IN_TESTS})

BUDGET = Part(
    LoopBudget,
    left_out={"on_estimate": "it is a callback: who runs the file gives `on_notice`"},
    kinds={"name": plain(str)},
)
PRICES = mapping(Part(ModelPrice).kind)
BUDGETS = one_or_many(BUDGET.kind)

FEEDBACK_FILTER = optional(IMPORTED)

SOURCES = forms(
    Form("text", _is_text, _is_text, TEMPLATE),
    Form("python", is_python_object, callable, python_object()),
    Form(
        "passages",
        is_list,
        is_list,
        many(
            Kind(
                Passage,
                lambda building, spec: (
                    spec.citation,
                    building.materials.rendered((*building.path, "text"), spec.text),
                ),
                lambda writing, pair: {
                    "citation": written(writing, pair[0]),
                    "text": as_template(written(writing, pair[1])),
                },
            )
        ),
    ),
)


def _built_pattern(building: Building, spec: Regex) -> re.Pattern[str]:
    flags = re.NOFLAG
    for flag, letter in _FLAGS.items():
        flags |= flag if letter in spec.flags else re.NOFLAG
    try:
        return re.compile(spec.regex, flags)
    except re.error as error:
        raise building.error(f"{spec.regex!r} is no regular expression: {error}", keys=("regex",)) from error


def _written_pattern(writing: Writing, pattern: re.Pattern[str]) -> Any:
    flags = "".join(letter for flag, letter in _FLAGS.items() if pattern.flags & flag)
    regex = written(writing, pattern.pattern)
    return {"regex": regex, "flags": flags} if flags else regex


PATTERN = forms(
    Form("text", _is_text, _is_text, plain(str)),
    Form("flags", is_not(_is_text), is_of(re.Pattern), Kind(Regex, _built_pattern, _written_pattern)),
)
"""A regular expression."""

JUDGE_KINDS: Mapping[str, Kind] = {
    "chat_options": optional(CHAT_OPTIONS.kind),
    "on_failure": FAILURE_POLICY.kind,
    "feedback_filter": FEEDBACK_FILTER,
}
"""What every judge's options have."""
JUDGE_LEFT_OUT: Mapping[str, str] = {"new_nonce": IN_TESTS}
