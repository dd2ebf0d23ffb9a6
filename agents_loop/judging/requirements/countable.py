"""Demands of a request that code decides, so that no model is asked to count.

Only wordings whose meaning and reach are plain are read: a limit "of each sentence", say, is left to the model. What
is not read is not lost: a model judges it as it judges everything else. English wordings alone are known.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from agents_loop.judging.requirements.demand import Countable
from agents_loop.judging.requirements.lengths import lengths_in, lines_in
from agents_loop.judging.requirements.shapes import json_in, lists_in, tables_in
from agents_loop.judging.requirements.strings import strings_in, words_in
from agents_loop.judging.requirements.wording import content_words, without_material

_SENTENCE: Final = re.compile(r"[^.!?;\n]+(?:[.!?;](?=\S)[^.!?;\n]+)*")
_JOINT: Final = re.compile(r"^(?:in|of|as|with|using|and)\b\s*|\s+(?:in|of|as|with|using|and|a)$", re.IGNORECASE)
_AGAIN: Final = 2
_READERS: Final = (lengths_in, lines_in, lists_in, tables_in, json_in, words_in, strings_in)


def countable_demands(request: str) -> list[Countable]:
    """The demands of a request that code can decide; what it quotes is material and demands nothing."""
    told = without_material(request)
    found: dict[str, Countable] = {}
    for sentence in _SENTENCE.findall(told):
        for read in _READERS:
            for countable in read(sentence.strip()):
                found.setdefault(countable.demand, countable)
    return list(found.values())


def without_counted(demand: str, counted: Sequence[Countable], request: str = "") -> str:
    """What is left of a demand for a model to judge, without what code counts; empty where code decides all of it.

    Args:
        demand: The demand.
        counted: What code counts.
        request: Where the demand stands. What it says more than once may be demanded in another way as well.
    """
    left, asked = demand, content_words(request)
    for one in counted:
        words, of_left = set(content_words(one.demand)), set(content_words(left))
        if of_left and words >= of_left and (words == of_left or any(asked.count(word) < _AGAIN for word in of_left)):
            return ""
        if " " in one.demand:  # a single word or name is part of what is demanded
            left = re.sub(re.escape(one.demand), " ", left, flags=re.IGNORECASE)
    left = " ".join(left.split())
    if left != demand:
        left = _JOINT.sub("", _JOINT.sub("", left))
    return left if content_words(left) or left == demand else ""
