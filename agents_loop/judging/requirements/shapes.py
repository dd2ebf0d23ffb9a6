"""What shape a request wants its answer to have: lists, tables, JSON."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from agents_loop.judging.measures import json_value, list_items, table_columns
from agents_loop.judging.requirements.demand import (
    LIMIT,
    NUMBER,
    OF_A_PART,
    Countable,
    Fault,
    bounds_of,
    is_wanted,
    names_of,
    number_of,
)

_ITEMS: Final = r"(?:items?|bullets?|bullet points?|entries|steps?|tips?)"
_COUNTED: Final = re.compile(rf"\b(?:{LIMIT}\s+)?{NUMBER}\s+(?:[\w-]+\s+){{0,2}}?{_ITEMS}\b", re.IGNORECASE)
_NAMED: Final = re.compile(
    rf"\b(?:list|name|suggest|propose)(?: me)?\s+(?:{LIMIT}\s+)?{NUMBER}\s+(?:[\w-]+\s+){{0,2}}?\w+s\b", re.IGNORECASE
)
"""Of what is to be listed, whatever it is."""
_BEFORE: Final = 12
_OF_EACH_PART: Final = re.compile(
    r"\s*(?:for|per|in|from|of|on|to)\s+(?:each|every|both|all)\b|\s*per\b", re.IGNORECASE
)
_THERE: Final = re.compile(
    r"\b(?:the|all|first|last|next|between|than|or|(?:i|we|they|you)(?:'ve)?(?:\s+(?:have|had|tried|did|got))?)$",
    re.IGNORECASE,
)
"""A number after this is of what there is, not of what is asked for."""
_NUMBERED: Final = re.compile(r"^[ \t]*(?:\*\*)?\(?\d{1,3}[.)]", re.MULTILINE)
_BULLET: Final = re.compile(r"^[ \t]*[-*+•‣◦]\s", re.MULTILINE)
_BULLETS_WANTED: Final = re.compile(r"\bas bullets\b|\bbullet(?:ed)?[- ](?:points?|list)\b", re.IGNORECASE)
_NUMBERED_WANTED: Final = re.compile(r"\bnumbered list\b", re.IGNORECASE)
_TABLE_WANTED: Final = re.compile(r"\bMarkdown table\b", re.IGNORECASE)
_COLUMNS: Final = re.compile(
    r"\btable\b.*?\bcolumns?\b(?P<plain>:|:?\s+(?:named|called))?:?\s+(?P<names>[^.:;()]+)", re.IGNORECASE
)
_JSON_ALONE: Final = re.compile(r"\b(?:nothing but|only|just) (?:the |a |valid )?JSON\b", re.IGNORECASE)
_OF_ANOTHER: Final = re.compile(r"\b(?:returns|gives|sends|accepts|takes|speaks|reads|is|are|was)\s+$", re.IGNORECASE)
_KEYS: Final = re.compile(
    r"\bJSON\b.*?\b(?:keys|fields|properties)\b(?P<plain>:|:?\s+(?:named|called))?:?\s+(?P<names>[^.:;]+)"
)
_BRACKETS: Final = re.compile(r"\([^)]*\)")


def lists_in(sentence: str) -> Iterator[Countable]:
    """Lists: of what kind, and of how many items."""
    if _wants(_NUMBERED_WANTED, sentence):
        yield Countable("numbered list", _numbered)
    if _wants(_BULLETS_WANTED, sentence):
        yield Countable("bullet points", _bulleted)
    counted = list(_COUNTED.finditer(sentence))
    named = [one for one in _NAMED.finditer(sentence) if all(one.end() != other.end() for other in counted)]
    for found in [*counted, *named]:
        number = number_of(found["number"])
        bounds = bounds_of(found["how"], number)
        if number > 1 and bounds and _is_of_the_list(sentence, found):
            low, high = bounds
            fault = _itemised(low, high if found["how"] else None)
            yield Countable(found.group(), fault, decides=lambda answer: len(list_items(answer)) > 1)


def _wants(shape: re.Pattern[str], sentence: str) -> bool:
    found = shape.search(sentence)
    return found is not None and is_wanted(sentence[: found.start()])


def _is_of_the_list(sentence: str, found: re.Match[str]) -> bool:
    """Whether a number of items is the answer's, neither of a part of it nor of what there is already."""
    before = sentence[: found.start()]
    if OF_A_PART.search(before[-_BEFORE:]) or _OF_EACH_PART.match(sentence, found.end()):
        return False
    return is_wanted(before) and not _THERE.search(before.rstrip())


def _itemised(low: int, high: int | None) -> Fault:
    """Of an answer that is a list, how many items it has; of any other, nothing is said."""

    def fault(answer: str) -> str | None:
        there = len(list_items(answer))
        if there > 1 and (there < low or (high is not None and there > high)):
            return f"its list has {there} items where {low or high} are wanted"
        return None

    return fault


def _numbered(answer: str) -> str | None:
    return None if len(_NUMBERED.findall(answer)) > 1 else "it is not a numbered list"


def _bulleted(answer: str) -> str | None:
    return None if _BULLET.search(answer) else "it has no bullet points"


def tables_in(sentence: str) -> Iterator[Countable]:
    """A Markdown table, and the columns of a table."""
    if _wants(_TABLE_WANTED, sentence):
        yield Countable("Markdown table", _tabular)
    if (found := _COLUMNS.search(sentence)) and is_wanted(sentence[: found.start()]):
        for name in _listed(found, found["names"]):
            yield Countable(f"column {name}", _with_column(name), decides=lambda answer: bool(table_columns(answer)))


def _listed(found: re.Match[str], listing: str) -> list[str]:
    """The names of columns or keys: several, or one that is plainly a name."""
    names = names_of(listing)
    return names if len(names) > 1 or found["plain"] else []


def _tabular(answer: str) -> str | None:
    return None if table_columns(answer) else "there is no Markdown table"


def _with_column(name: str) -> Fault:
    """Of an answer with a Markdown table, whether it has a column; of any other, nothing is said."""

    def fault(answer: str) -> str | None:
        columns = table_columns(answer)
        if columns is None or any(name.lower() in column.lower() for column in columns):
            return None
        return f"the table has no column {name}"

    return fault


def json_in(sentence: str) -> Iterator[Countable]:
    """JSON and nothing else, and the keys of JSON."""
    alone = _JSON_ALONE.search(sentence)
    if alone and is_wanted(sentence[: alone.start()]) and not _OF_ANOTHER.search(sentence[: alone.start()]):
        yield Countable("nothing but JSON", _json_alone)
    if found := _KEYS.search(sentence):
        for name in _listed(found, _BRACKETS.sub("", found["names"])):
            yield Countable(f"key {name}", _with_key(name))


def _json_alone(answer: str) -> str | None:
    try:
        json_value(answer)
    except ValueError as error:
        return f"it is not JSON and nothing else: {error}"
    return None


def _with_key(name: str) -> Fault:
    key = re.compile(rf"[\"']{re.escape(name)}[\"']\s*:")
    return lambda answer: None if key.search(answer) else f"the JSON has no key {name}"
