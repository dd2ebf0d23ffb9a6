"""Words and strings that a request wants to be in its answer, or not to be."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from agents_loop.judging.requirements.demand import Countable, Fault, names_of

_WANTED: Final = re.compile(
    r"(?<!not )(?<!n't )\b(?:contain|use|include|mention|have)s? the words? (?P<names>[\w-]+(?:(?:,? and |, )[\w-]+)*)",
    re.IGNORECASE,
)
_BANNED_WORDS: Final = re.compile(
    r"\b(?:do not|don't|must not|may not|never|without|avoid)(?: mention(?:ing)?| us(?:e|ing)| contain(?:ing)?)?"
    r" the words? (?P<names>[\w-]+(?:(?:,? (?:or|and) |, )[\w-]+)*)",
    re.IGNORECASE,
)
_BANNED_THINGS: Final = re.compile(
    r"\bnone of (?:them|these|the \w+) (?:may|must|should|can) mention (?P<names>[\w-]+(?:(?:,? or |, )[\w-]+)*)$",
    re.IGNORECASE,
)
_QUESTION_LAST: Final = re.compile(r"\bends? (?:it )?with a question\b", re.IGNORECASE)
_QUESTION: Final = re.compile(r"\?[\"'\u201d\u2019)*_`\s]*$")
_NUMBERED: Final = re.compile(r"\bnumber\s+(?P<name>#?\d[\d./-]*\d)\b", re.IGNORECASE)
_CALLED: Final = re.compile(r"\b(?:called|named|titled)\s+(?P<name>[a-z\d]+(?:[-_./][a-z\d]+)+)\b", re.IGNORECASE)
_CODE_NAME: Final = re.compile(
    r"\b(?:[a-zA-Z]\w*_\w+|[a-zA-Z]\w*(?=\()|(?:(?<=raise )|(?<=raises )|(?<=throws ))[A-Z]\w*[a-z])"
)
"""What can only be code: with an underscore, before a bracket, or raised. A name such as GitHub is none."""


def words_in(sentence: str) -> Iterator[Countable]:
    """Words that must be there, or must not, and a question at the end."""
    for found in _WANTED.finditer(sentence):
        for word in names_of(found["names"]):
            yield Countable(f"the word {word}", _with_word(word))
    for found in [*_BANNED_WORDS.finditer(sentence), *_BANNED_THINGS.finditer(sentence)]:
        for word in names_of(found["names"]):
            yield Countable(f"no mention of {word}", _without_word(word))
    if _QUESTION_LAST.search(sentence):
        yield Countable("ends with a question", _questioning)


def _questioning(answer: str) -> str | None:
    return None if _QUESTION.search(answer) else "it does not end with a question"


def _with_word(word: str) -> Fault:
    there = re.compile(rf"\b{re.escape(word)}", re.IGNORECASE)
    return lambda answer: None if there.search(answer) else f"the word {word!r} is not in it"


def _without_word(word: str) -> Fault:
    stem = re.sub(r"(?<=\w{3})s$", "", word)
    there = re.compile(rf"\b{re.escape(stem)}", re.IGNORECASE)
    return lambda answer: f"it mentions {word!r}, which it must not" if there.search(answer) else None


def strings_in(sentence: str) -> Iterator[Countable]:
    """Numbers, names and identifiers that can't be said in other words."""
    found = [match["name"] for pattern in (_NUMBERED, _CALLED) for match in pattern.finditer(sentence)]
    for name in dict.fromkeys([*found, *_CODE_NAME.findall(sentence)]):
        yield Countable(name, _with_string(name))


def _with_string(name: str) -> Fault:
    return lambda answer: None if name in answer else f"{name} is not in it"
