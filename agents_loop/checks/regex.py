"""A check by regular expression."""

from __future__ import annotations

import re
from typing import Literal

from agents_loop.checks.check import Check, check_maker
from agents_loop.errors import ConfigurationError

_MOST_SHOWN = 100
"""Characters of what was found that the agent is shown."""


@check_maker
def regex_check(
    pattern: str | re.Pattern[str],
    *,
    must_be: Literal["found", "absent", "whole"] = "found",
    name: str | None = None,
    required: bool = True,
) -> Check:
    r"""What the answer must hold, must not hold, or must be: `regex_check(r"EUR \d+")`.

    A pattern that backtracks without end holds up the whole program: mind what you write, and take none from others.

    Args:
        pattern: Searched in the answer's text.
        must_be: `found` somewhere, `absent`, or `whole`: matching all of the text but space around it.
        name: What the check is called. `None`: made of the pattern.
        required: Whether an `EvidenceLoopEvaluator` may call nothing done while this fails.

    Raises:
        TypeError: The pattern is neither a str nor a compiled pattern of str.
        ConfigurationError: The pattern is no regular expression, or `must_be` is unknown.
    """
    compiled = _compiled(pattern)
    shown = compiled.pattern
    if must_be not in ("found", "absent", "whole"):
        raise ConfigurationError(f"must_be must be 'found', 'absent' or 'whole', not {must_be!r}")

    def examine(text: str) -> str | None:
        if must_be == "whole":
            whole = compiled.fullmatch(text.strip())
            return None if whole else f'as a whole it does not match the pattern "{shown}"'
        found = compiled.search(text)
        if must_be == "found":
            return None if found else f'nothing in it matches the pattern "{shown}"'
        return f'it must not hold "{found.group()[:_MOST_SHOWN]}"' if found else None

    return Check(name or f"{shown} is {must_be}", examine, required=required)


def _compiled(pattern: str | re.Pattern[str]) -> re.Pattern[str]:
    given = pattern.pattern if isinstance(pattern, re.Pattern) else pattern
    if not isinstance(given, str):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise TypeError(f"pattern must be a str or a compiled pattern of str, not {type(pattern).__name__}")
    try:
        return re.compile(pattern)
    except re.error as error:
        raise ConfigurationError(f"pattern {pattern!r} is no regular expression: {error}") from error
