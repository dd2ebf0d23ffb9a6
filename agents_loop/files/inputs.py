"""The inputs of a run: what is given, laid over what the file declares."""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Mapping
from typing import TypeAlias

from agents_loop.errors import ConfigurationError
from agents_loop.files.fields import InputSpec, InputType

InputValue: TypeAlias = str | int | float | bool

LOOP_VARIABLES = frozenset({"iteration", "previous_output", "evaluator_feedback", "candidate"})
"""What the loop itself puts into prompts; no input may be called so."""

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_BOOLEANS = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}


class InputError(ConfigurationError):
    """An input is missing, unknown, or not of its type."""


def check_name(name: str) -> str | None:
    """What is wrong with an input's name, if anything."""
    if not _NAME.fullmatch(name):
        return f"{name!r} is no name for an input: use letters, digits and _, and begin with a letter"
    if name in LOOP_VARIABLES:
        return f"{name!r} is a variable of the loop itself: call the input something else"
    return None


def resolve_inputs(specs: Mapping[str, InputSpec] | None, given: Mapping[str, InputValue]) -> dict[str, InputValue]:
    """The values for the prompts. Without declarations they are what was given, as it was given.

    Raises:
        InputError: An input is missing, unknown, or not of its type.
    """
    for name in given:
        if wrong := check_name(name):
            raise InputError(wrong)
    if specs is None:
        return dict(given)
    for name in given:
        if name not in specs:
            raise InputError(f"unknown input {name!r}; {_hint(name, list(specs))}")
    values: dict[str, InputValue] = {}
    for name, spec in specs.items():
        if name in given:
            values[name] = coerce(name, spec.type, given[name])
        elif spec.default is not None:
            values[name] = coerce(name, spec.type, spec.default)
        elif spec.is_required:
            described = f" ({spec.description.strip()})" if spec.description and spec.description.strip() else ""
            raise InputError(f"the input {name!r}{described} is missing: give it with -i {name}=...")
    return values


def coerce(name: str, kind: InputType, value: InputValue) -> InputValue:
    """A value as its declared type; from a str as a command line gives it, or from a value of the type itself.

    Raises:
        InputError: It can't be read as that type.
    """
    read = _from_text(kind, value) if isinstance(value, str) else _of_type(kind, value)
    if read is None:
        raise InputError(f"the input {name!r} must be {_A[kind]}, not {value!r}")
    return read


_A = {"string": "a string", "integer": "an integer", "number": "a number", "boolean": "true or false"}


def _from_text(kind: InputType, text: str) -> InputValue | None:
    if kind == "string":
        return text
    if kind == "boolean":
        return _BOOLEANS.get(text.strip().lower())
    try:
        return int(text)
    except ValueError:
        pass
    if kind == "integer":
        return None
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def _of_type(kind: InputType, value: object) -> InputValue | None:
    if isinstance(value, bool):
        return value if kind == "boolean" else None
    if isinstance(value, int):
        return value if kind in ("integer", "number") else None
    if isinstance(value, float):
        return value if kind == "number" and math.isfinite(value) else None
    return None


def _hint(name: str, known: list[str]) -> str:
    close = difflib.get_close_matches(name, known, n=1)
    if close:
        return f"did you mean {close[0]!r}?"
    return f"the file declares: {', '.join(known)}" if known else "the file declares none"
