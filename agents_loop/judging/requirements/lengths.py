"""How long a request wants its answer: words, sentences, lines."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator
from typing import Final

from agents_loop.judging.measures import count_lines, count_sentences, count_words
from agents_loop.judging.requirements.demand import (
    LIMIT,
    NUMBER,
    OF_A_PART,
    Countable,
    Fault,
    bounds_of,
    is_wanted,
    number_of,
)

_UNITS: Final = {"word": count_words, "sentence": count_sentences}
_LENGTH: Final = re.compile(rf"\b(?:{LIMIT}\s+)?{NUMBER}\s+(?P<unit>word|sentence)s?\b", re.IGNORECASE)
_VERSE: Final = (
    r"(?:poems?|haiku|verses?|stanzas?|limericks?|rhymes?|couplets?|quatrains?|songs?|sonnets?|odes?|jingles?|ballads?"
    r"|riddles?|tanka|chorus|refrain)"
)
_LINED: Final = re.compile(rf"\b{NUMBER}[- ]lined?\s+(?:\w+\s+)?{_VERSE}\b", re.IGNORECASE)
"""Of other things, a summary or a script, it does not show what their lines are."""
_BEFORE, _AFTER = 25, 12
"""How many characters away "each" makes a length one of a part."""
_OF_THE_ANSWER: Final = re.compile(
    r"\b(?:in|within|use|using|with|stays?|keep(?: it)?|be|is|limit|total|length:?|answer:?|and)$|,$"
)
_IN: Final = re.compile(r"\b(?:in|within|use|using)$")
_OF_A_THING: Final = re.compile(r"\b(?:a|an|the|one)\s+\w+$")
_PART: Final = (
    r"(?:titles?|subjects?|subject lines?|headings?|headlines?|intro(?:duction)?s?|conclusions?|captions?"
    r"|paragraphs?|sections?|bullets?|items?|lines?|steps?|body|abstract|tagline|greeting|sentence|list|entry|comment)"
)
_A_PART_BEFORE: Final = re.compile(
    rf"\b(?:the|its|your|any|first|last|second|third|final|opening|closing)\s+(?:\w+\s+)?{_PART}\b[^,;:]*$"
)
_A_PART_AFTER: Final = re.compile(
    rf"\s*(?:for|in|on|of|as|from|at)\s+(?:(?:the|a|an|its|any|all|this|these|your)\s+)(?:\w+\s+)?{_PART}\b",
    re.IGNORECASE,
)
_ROUND: Final = 30
"""From so many words on, "in 100 words" allows a tenth more or less."""


def lengths_in(sentence: str) -> Iterator[Countable]:
    """The lengths in words and sentences that a sentence of a request wants the whole answer to have."""
    for found in _LENGTH.finditer(sentence):
        bounds = bounds_of(found["how"], number_of(found["number"]))
        if bounds is not None and _is_of_the_whole(sentence, found):
            unit = found["unit"].lower()
            if unit == "word" and found["how"] is None and bounds[0] >= _ROUND:
                bounds = math.ceil(bounds[0] * 0.9), math.floor(bounds[0] * 1.1)
            yield Countable(found.group(), _counted(unit, _UNITS[unit], *bounds))


def _is_of_the_whole(sentence: str, found: re.Match[str]) -> bool:
    """Whether a length is the whole answer's: "in two sentences", not "a slogan of six words" nor "each in one"."""
    if OF_A_PART.search(sentence[max(0, found.start() - _BEFORE) : found.end() + _AFTER]):
        return False
    before, is_limit = sentence[: found.start()].rstrip().lower(), found["how"] is not None
    if _A_PART_BEFORE.search(before) or _A_PART_AFTER.match(sentence, found.end()):
        return False
    if _OF_THE_ANSWER.search(before):
        return is_limit or _IN.search(before) is not None
    if before.endswith("of"):
        return found["unit"].lower() == "sentence" and is_limit
    return not before or (is_limit and not _OF_A_THING.search(before))


def _counted(unit: str, count: Callable[[str], int], low: int, high: int | None) -> Fault:
    def fault(answer: str) -> str | None:
        there = count(answer)
        if high is not None and there > high:
            return f"it has {there} {_plural(unit, there)}, too many: {_limit(low, high)} {_plural(unit, high)} wanted"
        if there < low:
            return f"it has only {there} {_plural(unit, there)}: {_limit(low, high)} {_plural(unit, low)} wanted"
        return None

    return fault


def lines_in(sentence: str) -> Iterator[Countable]:
    """Poems and the like of so many lines."""
    for found in _LINED.finditer(sentence):
        is_plain = not OF_A_PART.search(sentence[found.end() : found.end() + _AFTER])
        if is_plain and is_wanted(sentence[: found.start()]):
            yield Countable(found.group(), _lined(number_of(found["number"])))


def _lined(number: int) -> Fault:
    """So many lines in all or between two blank lines; or one more, which may be a title."""

    def fault(answer: str) -> str | None:
        blocks = [count_lines(block) for block in re.split(r"\n\s*\n", answer)]
        total = sum(blocks)
        if number in blocks or total in (number, number + 1):
            return None
        return f"it has {total} lines where {number} are wanted"

    return fault


def _limit(low: int, high: int | None) -> str:
    if high is None:
        return f"at least {low}"
    if low == high:
        return str(high)
    return f"{low} to {high}" if low > 0 else f"at most {high}"


def _plural(unit: str, number: int) -> str:
    return unit if number == 1 else f"{unit}s"
