"""Words and strings that a request wants to be in its answer, or not to be."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from agents_loop.judging.requirements.demand import Countable, Fault, is_wanted, names_of

_WANTED: Final = re.compile(
    r"(?<!not )(?<!n't )\b(?:contain|use|include|mention|have)s? the words? (?P<names>[\w-]+(?:(?:,? and |, )[\w-]+)*)"
    r"(?! (?:list|of|limit))",
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
_NO_WORDS: Final = "count limit order list bank below above correctly properly exactly together twice once from on you"
_NOT_WORDS: Final = frozenset(_NO_WORDS.split())
"""What follows "the word" where no word is named."""
_QUESTION_LAST: Final = re.compile(r"\bends? (?:it )?with a question\b", re.IGNORECASE)
_ON_CONDITION: Final = re.compile(r"\b(?:if|when|whenever|whether|unless)\b", re.IGNORECASE)
_QUESTION: Final = re.compile(r"\?[\"'\u201d\u2019)*_`\s]*$")
_NUMBERED: Final = re.compile(
    r"\b(?:order|invoice|ticket|case|reference|booking|customer|contract|claim|tracking|policy|account|serial|member|file"
    r"|flight|room|reservation|membership|licen[cs]e|registration|passport|insurance|batch|patient|student|employee)\s+number\s+(?P<name>#?\d[\d./-]*\d)\b",
    re.IGNORECASE,
)
"""What can't be said without it; "the element with the atomic number 26" can."""
_CALLED: Final = re.compile(r"\b(?:called|named|titled)\s+(?P<name>[a-z\d]+(?:[-_./][a-z\d]+)+)\b", re.IGNORECASE)
_CODE_NAME: Final = re.compile(
    r"\b(?:[a-zA-Z]\w*_\w+|[a-zA-Z]\w*(?=\((?!e?s\)|ies\)))|(?:(?<=raise )|(?<=raises )|(?<=throws ))[A-Z]\w*[a-z])"
)
"""What can only be code: with an underscore, before a bracket, or raised. A name such as GitHub is none."""
_NOT_TO_BE_THERE: Final = re.compile(
    r"n't\b|\b(?:not|never|no|without|avoid\w*|instead|than|replac\w+|renam\w+|remov\w+|delet\w+|drop\w*|convert\w*"
    r"|chang\w+|migrat\w+|port|refactor\w*|fix\w*|debug\w*|optimi[sz]\w+"
    r"|(?:docstring|comment|documentation)s? (?:for|of|on))\b"
    r"|^(?:\W*)(?:what|why|how|which|who|when|where|is|are|does|do|did|explain|describe|tell|compare)\b",
    re.IGNORECASE,
)
"""A sentence that speaks so of a name may be obeyed without it."""


def words_in(sentence: str) -> Iterator[Countable]:
    """Words that must be there, or must not, and a question at the end."""
    for found in _WANTED.finditer(sentence):
        for word in names_of(found["names"]):
            if word.lower() not in _NOT_WORDS:
                yield Countable(f"the word {word}", _with_word(word), is_to_stand=True)
    for found in [*_BANNED_WORDS.finditer(sentence), *_BANNED_THINGS.finditer(sentence)]:
        for word in names_of(found["names"]):
            yield Countable(f"no mention of {word}", _without_word(word))
    last = _QUESTION_LAST.search(sentence)
    if last and is_wanted(sentence[: last.start()]) and not _ON_CONDITION.search(sentence[: last.start()]):
        yield Countable("ends with a question", _questioning)


def _questioning(answer: str) -> str | None:
    return None if _QUESTION.search(answer) else "it does not end with a question"


def _with_word(word: str) -> Fault:
    there = re.compile(rf"\b{re.escape(word)}", re.IGNORECASE)
    return lambda answer: None if there.search(answer) else f"the word {word!r} is not in it"


def _without_word(word: str) -> Fault:
    stem = re.sub(r"(?<=\w{3})s$", "", word)
    case = re.IGNORECASE if len(word) > 1 else re.NOFLAG
    there = re.compile(rf"\b{re.escape(stem)}(?:e?s|['\u2019]s)?\b", case)
    return lambda answer: f"it mentions {word!r}, which it must not" if there.search(answer) else None


def strings_in(sentence: str) -> Iterator[Countable]:
    """Numbers, names and identifiers that can't be said in other words."""
    found = [match["name"] for pattern in (_NUMBERED, _CALLED) for match in pattern.finditer(sentence)]
    code = [] if _NOT_TO_BE_THERE.search(sentence) else _CODE_NAME.findall(sentence)
    for name in dict.fromkeys([*found, *code]):
        yield Countable(name, _with_string(name), is_to_stand=True)


def _with_string(name: str) -> Fault:
    return lambda answer: None if name in answer else f"{name} is not in it"
