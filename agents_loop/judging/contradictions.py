"""Verdicts whose parts don't go together: how they are noticed, and how a judge is told. Pure functions."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from agents_loop.judging.reading import clean_text
from agents_loop.judging.verdict import UNKNOWN_GAP
from agents_loop.messages import ChatMessage, ChatRole

_LEAST_PASSING_SCORE: Final = 0.5
"""A lower score says that the larger part is missing, which is no complete answer."""
_LONGEST_NOTHING: Final = 300
"""No longer text is taken for one that says that nothing is missing."""

_THINGS = r"(?:gaps?|issues?|problems?|omissions?|faults?|errors?|changes?|(?:parts?|items?|elements?|details?))"
_ABSENT = (
    r"(?:missing|wrong|lacking|needed|found|identified|left|left out|to add|else|detected|noted|remains?|required)"
)
_ALL = (
    r"(?:everything|all(?: of)?(?: the)?(?: requested| required)? "
    r"(?:things?|requirements?|criteria|parts?|points?|items?|elements?|details?))"
)
_THERE = r"(?:there|present|covered|included|met|addressed|satisfied|fulfilled|complete|provided|given)"
_RESPONSE = r"(?:the |this )?(?:agent'?s )?(?:latest |final )?(?:response|answer)"
_REQUEST = r"(?:the |this )?(?:user'?s )?(?:original |whole |entire )?(?:request|question|task)"
_VERB = r"(?:address(?:es)?|answers?|covers?|satisfies|meets?|fulfil(?:l?s)?|contains?|includes?|has)"
_SAYS_NOTHING: Final = re.compile(
    rf"(?:none|nothing|no|nil|null|n/?a|not applicable|empty|complete|\[\]|\{{\}}|-+|{UNKNOWN_GAP}"
    rf"|(?:none|nothing)(?: (?:is|was))? {_ABSENT}"
    rf"|(?:there (?:is|are) )?(?:nothing|no {_THINGS}|no {_ABSENT} {_THINGS})(?: (?:is|are|was|were))?(?: {_ABSENT})?"
    rf"|{_ALL}(?: (?:that )?(?:is |was )?(?:asked for|requested|required))? (?:is|are|was|were) {_THERE}"
    rf"|(?:{_RESPONSE}|it) (?:is (?:fully )?complete|(?:fully |completely )?{_VERB} (?:{_REQUEST}|{_ALL}"
    rf"(?: (?:that )?(?:is |was )?(?:asked for|requested|required))?))(?: fully| completely| in full)?)"
)
"""Sentences that say that nothing is missing, whole: where a word more stands ("but"), it may be a gap."""
_SENTENCE_END: Final = re.compile(r"[.!;\n]+")
_AROUND: Final = " \t\r\n\"'*_`,:"


def says_nothing_missing(gap: str) -> bool:
    """Whether a gap text is blank, or says in each of its sentences that nothing is missing.

    Only English is known; what is not known is a gap.
    """
    if len(gap) > _LONGEST_NOTHING:
        return False
    sentences = [sentence.strip(_AROUND).lower() for sentence in _SENTENCE_END.split(gap.replace("\u2019", "'"))]
    return all(_SAYS_NOTHING.fullmatch(" ".join(sentence.split())) for sentence in sentences if sentence)


def contradiction_in(
    answered: bool,  # noqa: FBT001 - the verdict itself
    fields: Mapping[str, Any],
    score: float | None = None,
    *,
    impossible: bool = False,
) -> str | None:
    """What of a verdict does not go together, in words for the judge; `None` if all does.

    Args:
        answered: What it comes to.
        fields: Of the object, by lower-case name without `_`.
        score: From 0 to 1, where it has one.
        impossible: Whether it says that the request can't be met.
    """
    gap = fields.get("gapanalysis")
    named = gap if isinstance(gap, str) else ""
    if answered:
        said = [
            ("names something that is missing", "gapAnalysis", bool(gap) and not says_nothing_missing(named or "?")),
            ("is true as well", "impossible", impossible),
            ("says that most is missing", "score", score is not None and score < _LEAST_PASSING_SCORE),
        ]
    else:
        said = [
            ("says that nothing is missing", "gapAnalysis", bool(named.strip()) and says_nothing_missing(named)),
            ("says that all is there", "score", score == 1),
        ]
    wrong = [f'"{name}" {what}' for what, name, is_so in said if is_so]
    return f'"answered" is {str(answered).lower()}, but {" and ".join(wrong)}' if wrong else None


def pointed_out(reply: str, contradiction: str) -> list[ChatMessage]:
    """What is added to a judge's messages: its own reply, and what is wrong with it."""
    return [
        ChatMessage(ChatRole.ASSISTANT, clean_text(reply)),
        ChatMessage(
            ChatRole.USER,
            f"Your reply contradicts itself: {contradiction}. "
            "Look at the response once more, and reply with the whole JSON object again.",
        ),
    ]
