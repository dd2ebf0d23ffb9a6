"""Demands "of each": whether an answer's items are alike in what is demanded of each of them."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from agents_loop.judging.measures import list_items
from agents_loop.judging.requirements.wording import content_words

_EACH: Final = re.compile(r"\b(?:each|every|per|both|apiece)\b", re.IGNORECASE)
_SEGMENT_END: Final = re.compile(r"(?<=[.!?])\s+(?=[A-Z0-9]|\w+:)|(?<=;)\s+(?=[A-Z0-9])|\n+")
_FEWEST: Final = 3
"""Of two items that differ nobody can tell which one is right."""
_OF_A_NUMBER: Final = re.compile(
    r"\b(?:numbers?|how (?:many|much|long|far|old|often|high|deep)|amounts?|quantit\w+|counts?|dates?|years?|months?"
    r"|days?|times?|hours?|minutes?|seconds?|ages?|prices?|costs?|pay|salar\w+|wages?|fees?|budgets?|euros?|dollars?|pounds?"
    r"|percent\w*|shares?|rates?|repetitions?|sets?|calories|grams?|weights?|heights?|lengths?|distances?|sizes?|areas?"
    r"|depths?|speeds?|temperatures?|populations?|inhabitants|dosages?|doses?|diameters?|durations?|deadlines?|when|born"
    r"|founded|moons?|scores?)\b",
    re.IGNORECASE,
)
"""A demand for a number; that the others hold one by chance says nothing."""
_OF_BRACKETS: Final = re.compile(r"\b(?:brackets?|parenthes\w+)\b|[()]", re.IGNORECASE)
_SHORTER: Final = 0.8
"""What lacks a part that all others have is shorter than they are; if it is not, it says it in other words."""
_LONGEST_SHOWN: Final = 60
_MUCH_LONGER: Final = 1.2


def of_each_fault(demand: str, answer: str) -> str | None:
    """Which item lacks what all others have, where a demand is of each; `None` if they are alike.

    What is compared: a number, and what stands in brackets, where the demand is of such; a word of the demand, and what
    follows a colon or a dash, where the item without it is the shortest by far. An item is a list's, or a sentence
    where there is no list.
    """
    if not _EACH.search(demand):
        return None
    items = list_items(answer)
    if len(items) < _FEWEST:
        items = [part for part in _SEGMENT_END.split(answer) if part.strip()]
        if sum(not _has_second_part(item) for item in items) > 1:
            return None  # sentences of prose are not alike; `name: value` are
    if len(items) < _FEWEST:
        return None
    for feature in _features_of(demand):
        lacking = [item for item in items if not feature(item)]
        if len(lacking) != 1 or not _is_like_the_others(lacking[0], items):
            continue
        if feature in (_has_number, _has_brackets) or _is_shorter(lacking[0], items):
            return f"not for each: {_short(lacking[0])!r} lacks it"
    return None


def _features_of(demand: str) -> list[Callable[[str], bool]]:
    features = _words_of(demand)
    if _OF_A_NUMBER.search(demand):
        features.append(_has_number)
    if _OF_BRACKETS.search(demand):
        features.append(_has_brackets)
    return [*features, _has_second_part]


def _words_of(demand: str) -> list[Callable[[str], bool]]:
    words = [word for word in content_words(_EACH.sub("", demand)) if not word.isdigit()]
    return [lambda item, word=word: word in content_words(item) for word in words]


def _has_number(item: str) -> bool:
    """A number that is no label; "no moons" is one."""
    return (
        re.search(r"\b(?:no|none|zero|half|an?|one|two|three)\b", item, re.IGNORECASE) is not None
        or re.search(r"\d", re.sub(r"^\W*\d{1,3}[.):]\s|^\W*\w+ \d{1,2}:", "", item)) is not None
    )


def _has_brackets(item: str) -> bool:
    return re.search(r"\([^()]+\)", item) is not None


def _has_second_part(item: str) -> bool:
    return re.search(r"\w\s*(?::\s|\s[-\u2013\u2014])\s*\w", item) is not None


def _is_like_the_others(item: str, items: list[str]) -> bool:
    """Whether an item is one of the series, rather than a sentence before or after it."""
    others = [len(other) for other in items if other is not item]
    return len(item) <= _MUCH_LONGER * max(others)


def _is_shorter(item: str, items: list[str]) -> bool:
    return len(item) < _SHORTER * min(len(other) for other in items if other is not item)


def _short(item: str) -> str:
    line = " ".join(item.split())
    return line if len(line) <= _LONGEST_SHOWN else f"{line[:_LONGEST_SHOWN]}…"
