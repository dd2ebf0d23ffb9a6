"""Regular expressions that come from a file of questions: bounded, so that none can hold up an evaluation."""

from __future__ import annotations

import unicodedata
from functools import lru_cache
from typing import Any, Final

from agents_loop.errors import AgentsLoopError, MissingExtraError

TIMEOUT_S: Final = 1.0
"""How long one pattern may search one answer."""


class PatternError(ValueError):
    """A pattern is no regular expression."""


class PatternTimeoutError(AgentsLoopError):
    """A pattern backtracks without end on an answer."""


def is_found(pattern: str, text: str) -> bool:
    """Whether a pattern is found in a text, in any case; accents may be written in one character or in two.

    Raises:
        PatternError: It is no regular expression.
        PatternTimeoutError: It searched for longer than `TIMEOUT_S`.
        MissingExtraError: The extra `eval` is not installed.
    """
    try:
        return compiled(pattern).search(unicodedata.normalize("NFC", text), timeout=TIMEOUT_S) is not None
    except TimeoutError as error:
        said = (
            f"the pattern {pattern!r} searched an answer for more than {TIMEOUT_S:g} s: write it without nested repeats"
        )
        raise PatternTimeoutError(said) from error


@lru_cache(maxsize=1024)
def compiled(pattern: str) -> Any:
    """The pattern, as Python's `re` reads it; by `regex`, whose searches can be timed out.

    Raises:
        PatternError: It is no regular expression.
        MissingExtraError: The extra `eval` is not installed.
    """
    try:
        import regex  # noqa: PLC0415 - an extra
    except ImportError as error:
        raise MissingExtraError("The patterns of questions", "eval") from error
    try:
        return regex.compile(unicodedata.normalize("NFC", pattern), regex.IGNORECASE | regex.VERSION0)
    except (regex.error, ValueError, OverflowError, RecursionError) as error:
        raise PatternError(f"{pattern!r} is no regular expression: {error}") from error
