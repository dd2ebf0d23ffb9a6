"""Checks of an answer that is to be JSON."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from agents_loop.checks.check import Check, check_maker
from agents_loop.checks.json_schema import schema_problems
from agents_loop.judging.measures import json_value
from agents_loop.messages import JsonValue

_MOST_PROBLEMS = 10
"""How many of a value's problems the agent hears of at once."""
_MOST_SHOWN = 300
"""Characters of one problem: a validator may quote the whole value."""


@check_maker
def json_check(
    schema: Mapping[str, Any] | None = None,
    *,
    bare: bool = False,
    name: str | None = None,
    required: bool = True,
) -> Check:
    """The answer must be JSON, and of a schema where there is one.

    `NaN` and a key given twice are no JSON. References to schemas elsewhere are not fetched: the check raises then.

    Args:
        schema: A JSON schema, by default of draft 2020-12; `format` is checked where the library can.
        bare: Whether the JSON must stand alone. By default it may stand in the answer's only code block.
        name: What the check is called. `None`: "valid JSON", or "valid JSON of the schema".
        required: Whether an `EvidenceLoopEvaluator` may call nothing done while this fails.

    Raises:
        MissingExtraError: There is a schema, and `jsonschema` is not installed.
        ConfigurationError: The schema is none.
    """
    if schema is None:
        return json_check_of(name or "valid JSON", lambda _: (), bare=bare, required=required)
    return json_check_of(name or "valid JSON of the schema", schema_problems(schema), bare=bare, required=required)


def json_check_of(name: str, problems: Callable[[JsonValue], Iterable[str]], *, bare: bool, required: bool) -> Check:
    """A check of an answer's JSON by what is wrong with its value."""

    def examine(text: str) -> str | None:
        try:
            value = json_value(text, bare=bare)
        except ValueError as error:
            return f"it is not valid JSON: {error}"
        return _listed(problems(value))

    return Check(name, examine, required=required)


def _listed(problems: Iterable[str]) -> str | None:
    """The problems as a list, without what would be too much to read."""
    found = [problem if len(problem) <= _MOST_SHOWN else f"{problem[:_MOST_SHOWN]}..." for problem in problems]
    if len(found) > _MOST_PROBLEMS:
        found[_MOST_PROBLEMS:] = [f"and {len(found) - _MOST_PROBLEMS} more"]
    if len(found) == 1:
        return found[0]
    return "".join(f"\n- {problem}" for problem in found) or None
