"""The templates of messages: `{{$.path}}` and `{{$this.path}}`, filled once. What is filled in is never a template."""

from __future__ import annotations

import re
from typing import Final

from agents_loop.files.flomorphic.json_text import TooLongError, json_text
from agents_loop.files.flomorphic.paths import PathError, read_path
from agents_loop.messages import JsonValue

_TOKEN: Final = re.compile(r"\{\{\s*(\$[^\n{}]{0,500})\s{0,20}\}\}")
MOST_CHARS: Final = 10_000_000
"""Of the values in one text: each path may lead to the whole context, and a text holds thousands of them."""
_THIS: Final = re.compile(r"\$this(?![\w-])")


def paths_in(text: str) -> list[str]:
    """The paths that a text mentions, as they are written."""
    return [written.rstrip() for written in _TOKEN.findall(text)]


def as_path(written: str) -> tuple[str, bool]:
    """A path as JSONPath, and whether it begins at the element that a node runs on."""
    if _THIS.match(written):
        return f"${written[len('$this') :]}", True
    return written, False


def fill(text: str, root: JsonValue, this: JsonValue) -> str:
    """The text with each path's value: a text as it is, anything else as JSON. What leads nowhere stays as it stands.

    Args:
        text: The template.
        root: The context.
        this: The element that the node runs on.

    Raises:
        TooLongError: The values are too long.
    """
    fetched: dict[str, str | None] = {}
    left = MOST_CHARS

    def value_of(token: re.Match[str]) -> str:
        nonlocal left
        written = token[1].rstrip()
        if written not in fetched:
            fetched[written] = _fetch(written, root, this, left)
        value = fetched[written]
        left -= len(value or "")
        if left < 0:
            raise TooLongError
        return token[0] if value is None else value

    try:
        return _TOKEN.sub(value_of, text)
    except TooLongError as error:
        raise TooLongError(f"the values in one message are longer than {MOST_CHARS:,} characters") from error


def _fetch(written: str, root: JsonValue, this: JsonValue, most_chars: int) -> str | None:
    path, is_this = as_path(written)
    try:
        found = read_path(path).value(this if is_this else root)
    except PathError:
        return None
    return None if found is None else inlined(found[0], most_chars)


def inlined(value: JsonValue, most_chars: int = MOST_CHARS) -> str:
    """A value within a text.

    Raises:
        TooLongError: It is too long.
    """
    return value if isinstance(value, str) else json_text(value, most_chars)
