"""JSON that a model or a stranger wrote, as values that can be written out again as JSON."""

from __future__ import annotations

import json
import math
from typing import Any, Final, cast

from agents_loop.call_json import KeyTwiceError, each_key_once
from agents_loop.judging.reading import clean_text, refuse_constant
from agents_loop.messages import JsonValue

MOST_DEPTH: Final = 60


def strict_json(text: str) -> JsonValue:
    """What a JSON text says. Half of a surrogate pair, which no wire can carry, becomes `?`.

    Raises:
        KeyTwiceError: An object in it has a key twice.
        ValueError: It is no JSON; a number is `NaN`, infinite or too big; it is nested more than `MOST_DEPTH` deep.
    """
    try:
        return _clean(_DECODER.decode(text), 0)
    except RecursionError:
        raise ValueError("nested too deep") from None


def key_given_twice(text: str) -> str | None:
    """That an object of a JSON text has a key twice, if one has; a text that is no JSON has none."""
    try:
        strict_json(text)
    except KeyTwiceError as error:
        return str(error)
    except ValueError:
        pass
    return None


def finite_number(text: str) -> float:
    """A number of a JSON text.

    Raises:
        ValueError: It is too big.
    """
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"{text} is too big for a number")
    return number


def _clean(value: Any, depth: int) -> JsonValue:
    if depth > MOST_DEPTH:
        raise ValueError(f"nested more than {MOST_DEPTH} deep")
    if isinstance(value, dict):
        return {clean_text(key): _clean(item, depth + 1) for key, item in cast("dict[str, Any]", value).items()}
    if isinstance(value, list):
        return [_clean(item, depth + 1) for item in cast("list[Any]", value)]
    return clean_text(value) if isinstance(value, str) else value


_DECODER: Final = json.JSONDecoder(
    object_pairs_hook=each_key_once, parse_constant=refuse_constant, parse_float=finite_number
)
