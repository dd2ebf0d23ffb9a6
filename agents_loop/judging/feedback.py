"""What of a judge's words reaches the agent."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final, TypeAlias

from agents_loop.judging.sizes import cut
from agents_loop.judging.verdict import UNKNOWN_GAP

FeedbackFilter: TypeAlias = Callable[[str], str]
"""Gets a judge's gap text, and gives what the agent is to hear of it. A blank text stands for an unknown gap."""

MOST_FEEDBACK_CHARS: Final = 8000
"""About 2,000 tokens: a gap that names fifty faults in a sentence each has half of it. More is a judge that ran on."""

_ESCAPE_SEQUENCE = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]{0,1000}(?:\x07|\x1b\\)|[@-Z\\^_])")
"""What a terminal takes for a command (ECMA-48): colours, cursor moves, titles and links."""
_LINE_BREAK = re.compile("\r\n|[\r\x0b\x0c\x85\u2028\u2029]")
_HIDDEN = re.compile(
    "[\x00-\x08\x0e-\x1f\x7f-\x9f"  # control characters but tab and line break
    "\u202a-\u202e\u2066-\u2069\u200e\u200f\u061c"  # orders to turn the direction of writing
    "\u00ad\u200b\u2060-\u2065\u206a-\u206f\ufeff\ufff9-\ufffb"  # what has no width: soft hyphens, spaces, annotations
    "\ud800-\udfff"  # half a character, which no wire can carry
    "\U000e0000-\U000e007f]"  # tags: a whole alphabet that nobody sees
)
_FURTHER_VARIATIONS = re.compile("(?<=[\ufe00-\ufe0f\U000e0100-\U000e01ef])[\ufe00-\ufe0f\U000e0100-\U000e01ef]+")
"""A letter has one variation; a row of them is a text that nobody sees."""


def screen_feedback(gap: str) -> str:
    """The default filter: the gap without what a reader does not see, cut to `MOST_FEEDBACK_CHARS` characters.

    Removed are control characters (not tab and line break), a terminal's escape sequences, orders to turn the direction
    of writing, and characters without a width; two letters stay joined where a script or an emoji needs it. Of a longer
    text the head and the tail stay, with a note. It does not judge what the words say.
    """
    if not gap.isascii() or not gap.isprintable():
        gap = _LINE_BREAK.sub("\n", _ESCAPE_SEQUENCE.sub("", gap))
        gap = _FURTHER_VARIATIONS.sub("", _HIDDEN.sub("", gap))
    return gap if len(gap) <= MOST_FEEDBACK_CHARS else cut(gap, MOST_FEEDBACK_CHARS)


def screened(gap: str, feedback_filter: FeedbackFilter | None) -> str:
    """What the agent hears of a gap: what a filter leaves of it, or `<unknown>` if that is nothing.

    Raises:
        TypeError: The filter gave something else than a str.
    """
    if feedback_filter is None:
        return gap
    heard = feedback_filter(gap)
    if not isinstance(heard, str):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise TypeError(f"feedback_filter must give a str, not {type(heard).__name__}: {heard!r}")
    return UNKNOWN_GAP if not heard or heard.isspace() else heard
