"""Calls of functions as JSON texts, which is how models and their servers write them; objects with each key once."""

from __future__ import annotations

import json
from typing import Any, cast

from agents_loop.messages import JsonValue


class KeyTwiceError(ValueError):
    """An object of a JSON text has a key twice, so that it is not clear what it says."""


def each_key_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """For `json`: an object of its pairs.

    Raises:
        KeyTwiceError: It has a key twice.
    """
    fields = dict(pairs)
    if len(fields) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise KeyTwiceError(f"the key {twice!r:.60} is given twice")
    return fields


def require_keys_once(text: str) -> None:
    """See that no object of a JSON text has a key twice; a text that is no JSON has none.

    Raises:
        KeyTwiceError: One has.
    """
    try:
        json.loads(text, object_pairs_hook=each_key_once)
    except KeyTwiceError:
        raise
    except (ValueError, RecursionError):
        pass


def read_arguments(written: str | None) -> dict[str, JsonValue] | str | None:
    """The arguments of a call: the object that the text is, or the text itself where it is none.

    A text in which an object has a key twice stays one, too: whoever reads it is to see that.
    """
    if not written:
        return None
    try:
        read = json.loads(written, object_pairs_hook=each_key_once)
    except (ValueError, RecursionError):
        return written
    return cast("dict[str, JsonValue]", read) if isinstance(read, dict) else written


def json_text(value: JsonValue) -> str:
    """Arguments or a result as a text: a str as it is. What is no JSON in it is written as a str."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
