"""A demand that code decides, and the numbers and names in which requests speak of such."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, TypeAlias

Fault: TypeAlias = Callable[[str], str | None]
"""What is wrong with an answer, `None` if it obeys."""

_NO_NAME_WORDS: Final = """
that which of in for to with are is should must as the be being been can not by from on at into if so work mean
sorted ordered quoted listed shown showing given below above
"""
_NO_NAMES: Final = frozenset(_NO_NAME_WORDS.split())


@dataclass(frozen=True, slots=True)
class Countable:
    """A demand that code decides."""

    demand: str
    """In the request's words."""
    fault: Fault
    decides: Callable[[str], bool] = lambda _answer: True
    """Whether code can tell of an answer; where it can't, a model is asked."""
    is_to_stand: bool = False
    """Whether it is something that must stand in the answer: what the answer claims about itself does not count."""


_NUMBERS: Final = (
    "zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve",
)  # fmt: skip
NUMBER: Final = rf"(?P<number>\d{{1,6}}|{'|'.join(_NUMBERS)})"
_AT_MOST: Final = r"(?:at most|no more than|not more than|up to|a maximum of|maximum|max\.?|within|not exceed(?:ing)?)"
_LESS: Final = r"(?:under|below|less than|fewer than|shorter than)"
_AT_LEAST: Final = r"(?:at least|no fewer than|no less than|not less than|a minimum of|minimum|more than)"
LIMIT: Final = rf"(?P<how>{_AT_MOST}|{_LESS}|{_AT_LEAST}|exactly|about|around|some)"
OF_A_PART: Final = re.compile(r"\b(each|every|per|both|apiece)\b", re.IGNORECASE)
"""Where one of these is near, a number is of a part of the answer."""
_SPOKEN_OF: Final = re.compile(
    r"(?:\b(?:no|not|never|without|avoid(?:ing)?|instead of|rather than|than)|n't)\s+(?:[\w-]+\s+){0,2}$"
    r"|\b(?:these|those|this|my|our|your|(?:the )?following|existing|the (?:above|below))\s+"
    r"(?:(?!to\b|as\b|in\b|into\b|with\b|is\b)[\w-]+\s+)?$",
    re.IGNORECASE,
)


def is_wanted(before: str) -> bool:
    """Whether what follows a text is asked for, rather than ruled out ("no bullets") or there ("these bullets")."""
    return _SPOKEN_OF.search(before) is None


def number_of(written: str) -> int:
    """A number as `NUMBER` finds it."""
    return int(written) if written.isdigit() else _NUMBERS.index(written.lower())


def bounds_of(how: str | None, number: int) -> tuple[int, int | None] | None:
    """The least and the most that a `LIMIT` before a number allows; `None` for "about", which code can't decide."""
    how = (how or "exactly").lower()
    if how in ("about", "around", "some"):
        return None
    if re.fullmatch(_AT_MOST, how):
        return 0, number
    if re.fullmatch(_LESS, how):
        return 0, number - 1
    if re.fullmatch(_AT_LEAST, how):
        return number + (how == "more than"), None
    return number, number


def names_of(listed: str) -> list[str]:
    """The names of a listing such as `a, b and c for them`; a comma before more than a word ends it."""
    names: list[str] = []
    parts = re.split(r"(,\s+and\s+|,\s+or\s+|,\s+|\s+and\s+|\s+or\s+)", listed.strip())
    for before, part in zip(["", *parts[1::2]], parts[::2], strict=True):
        word = re.match(r"[\w-]+", part)
        if (
            word is None
            or word.group().lower() in _NO_NAMES
            or (word.group() != part.strip() and before.strip() == ",")
        ):
            break
        names.append(word.group())
        if word.group() != part.strip():
            break
    return names
