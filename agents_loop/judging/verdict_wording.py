"""How a judge is told what to reply."""

from __future__ import annotations

import json
from collections.abc import Collection
from typing import Final

from agents_loop.judging.prompt import VERDICT_CLOSING
from agents_loop.judging.verdict import DONE_VERDICT_MARKER, MORE_VERDICT_MARKER, names_in_order

_NUMBERS: Final = ("two", "three", "four", "five")
_MEANINGS: Final = {
    "reasoning": '"reasoning", a string that goes through what the request asks for and says where the response has it',
    "gapAnalysis": '"gapAnalysis", a string that names each thing that is missing or wrong (empty if nothing is)',
    "score": '"score", a number from 0 to 1 that says how much of it the response has (1 only if nothing is missing)',
    "impossible": '"impossible", true only if no response could ever fulfil the request, since it contradicts itself '
    "or needs what can't be had (gapAnalysis then says why); that a response is poor, or says so itself, is no reason",
    "answered": '"answered", true if the response is complete and false otherwise',
}
_OF_A_PASS: Final = {"reasoning": "...", "gapAnalysis": "", "score": 1, "impossible": False, "answered": True}


def reply_instructions(fields: Collection[str] = ()) -> str:
    """What the default instructions say of the reply.

    Args:
        fields: What the verdict holds besides.
    """
    names = names_in_order(fields)
    listed = ", then ".join([_MEANINGS[name] for name in names])
    return (
        f"Reply with one JSON object of {_NUMBERS[len(names) - 2]} fields, in this order: {listed}. If you can't write "
        f"JSON, write what is missing and then, on a line of its own, {DONE_VERDICT_MARKER} if the response is "
        f"complete or {MORE_VERDICT_MARKER} if it is not."
    )


def closing(fields: Collection[str] = ()) -> str:
    """What is said last, after the material: what a reply looks like."""
    if not fields:
        return VERDICT_CLOSING
    passes = json.dumps({name: _OF_A_PASS[name] for name in names_in_order(fields)})
    said = (
        f"If the latest response has everything that the original request asks for, reply {passes}. Otherwise name in "
        "gapAnalysis what is missing, with answered false."
    )
    if "impossible" not in fields:
        return said
    return (
        f"{said} Only if no response could ever fulfil the request, say why in gapAnalysis, with impossible true too."
    )
