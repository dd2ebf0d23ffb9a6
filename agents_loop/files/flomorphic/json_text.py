"""Values of the context as JSON text, of which there may be so much and no more.

A path may lead to a thing and to all that is within it, so what it gives can be far longer than the context is.
"""

from __future__ import annotations

import json
from typing import Any, cast

from agents_loop.errors import AgentsLoopError
from agents_loop.messages import JsonValue


class TooLongError(AgentsLoopError):
    """A text would be longer than it may be."""


def json_text(value: JsonValue, most_chars: int) -> str:
    """A value as JSON text.

    Args:
        value: The value.
        most_chars: How long the text may be.

    Raises:
        TooLongError: It would be longer.
    """
    if not isinstance(value, list):
        return _within(_text(value), most_chars)
    items: list[str] = []
    left = most_chars - 2
    for item in cast("list[Any]", value):
        items.append(_within(_text(item), left))
        left -= len(items[-1]) + 1
    return f"[{','.join(items)}]"


def _text(value: JsonValue) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _within(text: str, most_chars: int) -> str:
    if len(text) > most_chars:
        raise TooLongError(f"more than {max(most_chars, 0):,} characters")
    return text
