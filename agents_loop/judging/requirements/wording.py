"""Words of requests, so that demands can be compared: English stems without the words that carry no meaning."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

QUOTED: Final = re.compile(
    r"(?<!\w)(['\"])(?=\S).*?(?<=\S)\1(?!\w)|[\u201c\u2018\u00ab].*?[\u201d\u2019\u00bb]", re.DOTALL
)
_LONG_QUOTATION: Final = 30
"""Characters from which on a quotation is material rather than a name."""
_WORD: Final = re.compile(r"[^\W_]+")
_ENDINGS: Final = ("ings", "ing", "ies", "es", "ed", "s", "e")
_SHORTEST_STEM: Final = 3
_EMPTY_WORDS: Final = """
a an the of and or but to in into on onto with for that it its is are be by at as from this these their them his her
your you me my i we each give name say state list write make include mention provide please then there which who what
how will would should must can use one do does
"""
_EMPTY: Final = frozenset(_EMPTY_WORDS.split())


def told_part(request: str) -> str:
    """The request without its longer quotations: these are material, and demand nothing."""
    return QUOTED.sub(lambda found: found.group() if len(found.group()) < _LONG_QUOTATION else " ", request)


def content_words(text: str) -> list[str]:
    """The stems of the words that carry meaning."""
    return [_stem(word) for word in _WORD.findall(text.lower()) if word not in _EMPTY]


def is_covered(clause: str, phrases: Iterable[str]) -> bool:
    """Whether at least half of a clause's words are among those of the phrases."""
    words = content_words(clause)
    said = {word for phrase in phrases for word in content_words(phrase)}
    return 2 * sum(word in said for word in words) >= len(words)


def _stem(word: str) -> str:
    for ending in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= _SHORTEST_STEM:
            return word[: -len(ending)]
    return word
