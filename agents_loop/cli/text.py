"""Text that can be shown: a model's words can't move the cursor, and no secret gets out."""

from __future__ import annotations

import os
import re
from typing import cast

from agents_loop.errors import ConfigurationError
from agents_loop.messages import JsonValue

_ESCAPES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|[\]PX^_][^\x07\x1b\n]{0,256}(?:\x07|\x1b\\)|[ -/]*[0-~])")
_CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
"""Control characters but for tab and line break, what reverses the direction of writing, and lone surrogates."""
_SECRET_NAME = re.compile(r"(?:KEY|TOKEN|SECRET|PASSWORD)$", re.IGNORECASE)
_SHORTEST_SECRET = 6
_DETAIL = "stop_detail"
_SECRET_IN_URL = re.compile(r"(?<=://)[^/\s@]+@")


def printable(text: str) -> str:
    """The text without escape sequences and control characters."""
    return _CONTROLS.sub("", _ESCAPES.sub("", text))


def one_line(text: str, limit: int | None = None) -> str:
    """The text on one line, cut to a number of characters."""
    line = " ".join(printable(text.replace("\r", "\n")).split())
    return line if limit is None or len(line) <= limit else f"{line[: limit - 1].rstrip()}…"


def as_utf8(text: str, what: str) -> str:
    """An argument of the command line as the UTF-8 that its bytes are, also where the locale has other plans.

    Args:
        text: The argument; bytes that the locale could not read are lone surrogates in it.
        what: What the argument is, for the error.

    Raises:
        ConfigurationError: Its bytes are not UTF-8.
    """
    if text.isascii():
        return text
    try:
        return text.encode("utf-8", "surrogateescape").decode("utf-8")
    except UnicodeError as error:
        raise ConfigurationError(f"{what} is not UTF-8: write it in UTF-8") from error


def redact(text: str) -> str:
    """The text without the values of the environment's secrets, and without passwords in addresses."""
    for name, value in os.environ.items():
        if _SECRET_NAME.search(name) and len(value.strip()) >= _SHORTEST_SECRET:
            text = text.replace(value.strip(), "***")
    return _SECRET_IN_URL.sub("***@", text)


def redact_details(value: JsonValue) -> JsonValue:
    """A result as a JSON value without secrets in what it says of endings: its own, its nodes' and inner loops'."""
    if isinstance(value, dict):
        fields = cast("dict[str, JsonValue]", value)
        return {
            key: redact(inner) if key == _DETAIL and isinstance(inner, str) else redact_details(inner)
            for key, inner in fields.items()
        }
    return [redact_details(inner) for inner in cast("list[JsonValue]", value)] if isinstance(value, list) else value
