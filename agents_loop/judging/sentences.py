"""Where the sentences of a paragraph end."""

from __future__ import annotations

import re

_END = re.compile(
    r"(?<![.!?\u2026])(?P<stop>[.!?\u2026]++)[\"'\u201d\u2019\u00bb)\]*_`]*+(?=\s|$)|[\u3002\uff01\uff1f]+[\u300d\u300f\uff09]*"
)
"""Each run of stops is looked at once, however long it is."""
_LAST_TOKEN = re.compile(r"[\w.]*\w$|$")
_WORD = re.compile(r"[^\W_]")
_LONGEST_TOKEN = 40
"""Characters before a dot that are looked at: abbreviations and numbers are shorter."""
_OPENING = " \t\n\"'\u201c\u2018\u00ab([*_`\u00bf\u00a1"


def _words(words: str) -> frozenset[str]:
    return frozenset(words.split())


_ALWAYS_GOES_ON = _words("mr mrs ms mx dr prof rev hon gen capt lt sgt sen gov mt messrs e.g i.e eg ie vs cf viz")
_GOES_ON_TO_A_NUMBER = _words("fig figs no nos nr vol pp p ch sec eq art ver approx ca")
_MAY_GO_ON = _words(
    "st jr sr inc ltd co corp al ph.d dept est a.m p.m jan feb mar apr jun jul aug sep sept oct nov dec"
)
_STARTERS = _words(
    "a an the this that these those it its he she we they you i his her our their there here in on at as if when while "
    "after before but and or so for however then thus yet also not no what who why how which where let all each"
)
"""Words that, with a capital after an abbreviation, begin a new sentence."""


def count_in_paragraph(paragraph: str) -> int:
    """How many sentences a paragraph has; a rest that does not end with a stop is one, if there is a word in it."""
    count, start = 0, 0
    for end in _END.finditer(paragraph):
        if _ends(paragraph, start, end):
            count += _WORD.search(paragraph, start, end.start()) is not None
            start = end.end()
    return count + (_WORD.search(paragraph, start) is not None)


def _ends(paragraph: str, start: int, end: re.Match[str]) -> bool:
    following = paragraph[end.end() : end.end() + 40].lstrip(_OPENING)
    stop = end["stop"]
    if not following or stop is None:
        return True
    if following[0].islower():
        return False
    if stop != ".":
        return True
    return not _goes_on(paragraph[max(start, end.start() - _LONGEST_TOKEN) : end.start()], following)


def _goes_on(before: str, following: str) -> bool:
    """Whether a single dot belongs to the word before it."""
    found = _LAST_TOKEN.search(before)
    token = found.group() if found else ""
    word = token.lower()
    if word in _ALWAYS_GOES_ON:
        return True
    if following[0].isdigit() and (word in _GOES_ON_TO_A_NUMBER or word in _MAY_GO_ON):
        return True
    if token.isdigit() and before.strip() == token:  # the number of an item: "1. Peel. 2. Slice."
        return True
    is_initial = all(len(part) == 1 and part.isalpha() for part in token.split("."))
    if is_initial or word in _MAY_GO_ON:
        return re.split(r"[\s,;:.]", following, maxsplit=1)[0].lower() not in _STARTERS
    return False
