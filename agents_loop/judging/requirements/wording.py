"""Words of requests, so that demands can be compared: English stems without the words that carry no meaning."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

QUOTED: Final = re.compile(
    r"(?<!\w)(['\"])(?=\S).{1,600}?(?<=\S)\1(?!\w)|[\u201c\u2018\u00ab].{1,600}?[\u201d\u2019\u00bb]", re.DOTALL
)
_CODE: Final = re.compile(r"^[ \t]*(`{3,}|~{3,})[^\n]*\n.*?(?:^[ \t]*\1|\Z)", re.DOTALL | re.MULTILINE)
_TO_WORK_ON: Final = (
    "translat|summari[sz]|proofread|rewrit|re-?write|rephras|paraphras|correct|fix|edit|shorten|simplif|improv|polish"
    "|review|classif|convert|explain|extract|refactor|debug|analy[sz]"
)
_WORKED_ON: Final = re.compile(
    rf"(?P<order>\b(?:{_TO_WORK_ON}|turn)\w*\b[^:.!?\n]{{0,120}}"
    r"(?<!columns)(?<!keys)(?<!fields)(?<!rules)(?<!limits)(?<!format)(?<!requirements):)"
    r"(?:[ \t]+(?!\0)[^\n]*|[ \t]*\n(?!\s*\0).*)",
    re.IGNORECASE | re.DOTALL,
)
"""What stands after "Translate into French:" is what is to be worked on."""
_WORKED_ON_BELOW: Final = re.compile(
    rf"(?P<order>\b(?:{_TO_WORK_ON})\w*\b[^\n]*"
    r"\b(?:below|following|this|these)\b[^\n]*)\n[ \t]*\n(?!\s*\0).*",
    re.IGNORECASE | re.DOTALL,
)
"""So is what stands below "Fix the typos in the text below"."""
_LAST_ORDER: Final = re.compile(
    r"\n[ \t]*\n(?:please |also |then )?(?:use|keep|give|write|include|add|output|return|reply|name|mention|answer"
    r"|limit|make|end|do|don't|in|at most|no more|exactly)\b[^\n]*\s*\Z",
    re.IGNORECASE,
)
"""What is asked for once more after that text."""
_MATERIAL: Final = "\0"
"""Stands where code or a quotation stood, which is what is to be worked on."""
_LONG_QUOTATION: Final = 30
"""Characters from which on a quotation is material rather than a name."""
_COVERED: Final = 1 / 3
"""Of a clause that shares this much with a demand, the demand is what it asks for."""
_MOST_READ: Final = 4_000
_SPACES: Final = re.compile(r"[^\S\n]+")
_WORD: Final = re.compile(r"[^\W_]+")
_ENDINGS: Final = ("ings", "ing", "ies", "es", "ed", "s", "e")
_SHORTEST_STEM: Final = 3
_EMPTY_WORDS: Final = """
a an the of and or but to in into on onto with for that it its is are be by at as from this these their them his her
your you me my i we each give name say state list write make include mention provide please then there which who what
how will would should must can use one do does has have had was were answer response text
"""
_EMPTY: Final = frozenset(_EMPTY_WORDS.split())


def read_part(request: str) -> str:
    """As much of a request as code reads: of a very long one its head and tail, since its middle is material."""
    return request if len(request) <= 2 * _MOST_READ else f"{request[:_MOST_READ]}\n{request[-_MOST_READ:]}"


def without_material(request: str) -> str:
    """The request without what it quotes, its code, and the text that it wants to have worked on."""
    return _without_work(QUOTED.sub(_MATERIAL, _CODE.sub(f"{_MATERIAL}\n", read_part(request))))


def _without_work(told: str) -> str:
    last = _LAST_ORDER.search(told)
    body, end = (told, "") if last is None else (told[: last.start()], told[last.start() :])
    for worked_on in (_WORKED_ON, _WORKED_ON_BELOW):
        body = worked_on.sub(r"\g<order>", body)
    return (body + end).replace(_MATERIAL, " ")


def told_part(request: str) -> str:
    """The request without its longer quotations: these are material, and demand nothing."""
    return _SPACES.sub(" ", _without_long_quotations(read_part(request), " "))


def _without_long_quotations(request: str, instead: str) -> str:
    return QUOTED.sub(lambda found: found.group() if len(found.group()) < _LONG_QUOTATION else instead, request)


def asking_part(request: str) -> str:
    """The request without its longer quotations, its code, and the text that it wants to have worked on."""
    told = _CODE.sub(f"{_MATERIAL}\n", read_part(request))
    return _SPACES.sub(" ", _without_work(_without_long_quotations(told, _MATERIAL)))


def content_words(text: str) -> list[str]:
    """The stems of the words that carry meaning."""
    return [_stem(word) for word in _WORD.findall(text.lower()) if word not in _EMPTY]


def is_covered(clause: str, phrases: Iterable[str], share: float = _COVERED) -> bool:
    """Whether at least a share of a clause's words are among those of the phrases."""
    words = content_words(clause)
    said = {word for phrase in phrases for word in content_words(phrase)}
    return sum(word in said for word in words) >= share * len(words)


def _stem(word: str) -> str:
    for ending in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= _SHORTEST_STEM:
            return word[: -len(ending)]
    return word
