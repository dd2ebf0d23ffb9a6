"""Demands of a request that code decides, so that no model is asked to count.

Only wordings whose meaning and reach are plain are read: a limit "of each sentence", say, is left to the model. What
is not read is not lost: a model judges it as it judges everything else. English wordings alone are known.
"""

from __future__ import annotations

import re
from typing import Final

from agents_loop.judging.requirements.demand import Countable
from agents_loop.judging.requirements.lengths import lengths_in, lines_in
from agents_loop.judging.requirements.shapes import json_in, lists_in, tables_in
from agents_loop.judging.requirements.strings import strings_in, words_in
from agents_loop.judging.requirements.wording import QUOTED

_SENTENCE: Final = re.compile(r"[^.!?;\n]+(?:[.!?;](?=\S)[^.!?;\n]+)*")
_READERS: Final = (lengths_in, lines_in, lists_in, tables_in, json_in, words_in, strings_in)


def countable_demands(request: str) -> list[Countable]:
    """The demands of a request that code can decide; what it quotes is material and demands nothing."""
    told = QUOTED.sub(lambda quoted: " " * len(quoted.group()), request)
    found: dict[str, Countable] = {}
    for sentence in _SENTENCE.findall(told):
        for read in _READERS:
            for countable in read(sentence.strip()):
                found.setdefault(countable.demand, countable)
    return list(found.values())
