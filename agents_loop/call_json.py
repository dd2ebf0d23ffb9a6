"""Calls of functions as JSON texts, which is how models and their servers write them."""

from __future__ import annotations

import json
from typing import cast

from agents_loop.messages import JsonValue


def read_arguments(written: str | None) -> dict[str, JsonValue] | str | None:
    """The arguments of a call: the object that the text is, or the text itself where it is none."""
    if not written:
        return None
    try:
        read = json.loads(written)
    except ValueError:
        return written
    return cast("dict[str, JsonValue]", read) if isinstance(read, dict) else written


def json_text(value: JsonValue) -> str:
    """Arguments or a result as a text: a str as it is. What is no JSON in it is written as a str."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
