"""How alike two texts are, word by word."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from difflib import SequenceMatcher
from functools import cache
from typing import Any, Final, TypeAlias

Similarity: TypeAlias = Callable[[Sequence[str], Sequence[str]], float]
"""From two lists of words: 0 for nothing in common, 1 for the same."""

_MOST_COMPARED: Final = 200
"""`difflib` is cubic at its worst, so the order of words counts in texts up to this length. In longer ones the words
alone do, which sees no less likeness."""


def word_similarity(first: Sequence[str], second: Sequence[str]) -> float:
    """Twice the words in common, of all words of both: by `rapidfuzz` where it is installed, else by `difflib`.

    Common words are counted in order: the longest common subsequence (`rapidfuzz`), or the matching blocks
    (`difflib`, which never sees more in common, but for texts of more than 200 words, in which it disregards order).
    """
    return _best()(first, second)


def difflib_similarity(first: Sequence[str], second: Sequence[str]) -> float:
    """The similarity by the standard library."""
    matcher = SequenceMatcher(None, first, second, autojunk=False)
    if max(len(first), len(second)) > _MOST_COMPARED:
        return matcher.quick_ratio()
    return matcher.ratio()


@cache
def _best() -> Similarity:
    try:
        from rapidfuzz.distance import Indel  # noqa: PLC0415 - an extra: loaded where a policy compares answers
    except ImportError:
        return difflib_similarity
    measured: Any = Indel.normalized_similarity
    return measured
