"""How the reply of a checker is read that says a pass token, or what is missing. Nothing unclear is a pass."""

from __future__ import annotations

import re
from typing import NamedTuple

from agents_loop.errors import ConfigurationError
from agents_loop.judging.reading import clean_text, find_object

_LIST_MARKER = re.compile(r"(?:[-+*•]|[0-9]{1,3}[.)])(?=\s)")


class PassTokenReading(NamedTuple):
    """What a checker's reply says."""

    passes: bool
    verdict: str
    """The reply, without what is removed first."""
    readable: bool
    """Whether it says anything."""


def read_pass_token(reply: str, token: str) -> PassTokenReading:
    """Read a checker's reply.

    A byte order mark, closed thinking blocks, and a code fence around all of the rest are removed first. It passes if
    the whole of the rest is the token, in any case, with nothing around it but list, bold, code or end punctuation.
    A thinking block that is not closed makes the reply unreadable.
    """
    rest = find_object(reply).rest
    said = "" if rest is None else rest.strip()
    passes = _is_token(said, token) or _is_token(_undressed(said), token)
    return PassTokenReading(passes, clean_text(said), bool(said))


def checked_token(token: object) -> str:
    """A pass token, without spaces around it.

    Raises:
        TypeError: It is not a str.
        ConfigurationError: It has no letter or digit, or more than one line.
    """
    if not isinstance(token, str):
        raise TypeError(f"pass_token must be a str, not {type(token).__name__}")
    stripped = token.strip()
    if not any(character.isalnum() for character in stripped):
        raise ConfigurationError(f"pass_token must hold a letter or a digit, not {token!r}")
    if len(stripped.splitlines()) > 1:
        raise ConfigurationError(f"pass_token must be one line, not {token!r}")
    return stripped


def _is_token(text: str, token: str) -> bool:
    """Whether a text is the token in any case; a look-alike of another alphabet is not (`K` may be the Kelvin sign)."""
    return text.isascii() == token.isascii() and text.lower() == token.lower()


def _undressed(text: str) -> str:
    """The text without list, bold, code and end punctuation around it; as it is, if it has more than one line."""
    if len(text.splitlines()) > 1:
        return text
    marker = _LIST_MARKER.match(text)
    if marker is not None:
        text = text[marker.end() :].lstrip()
    return text.lstrip("*_`").lstrip().rstrip("*_`.! \t")
