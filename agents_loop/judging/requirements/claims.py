"""Leaving out what an answer claims about itself, so that only what it delivers is looked at."""

from __future__ import annotations

import re
from typing import Final

_CLAIM: Final = re.compile(
    r"\b(?:grader|evaluator|gap_?analysis"
    r"|(?:as|(?:everything|all|what|that|which|things) (?:\w+ ){0,2}(?:was|were|is|are|been)) requested"
    r"|answered\b.{0,9}\btrue|complete\b\W{0,3}true|pass(?:es|ed)?\W{0,3}(?:true|$)"
    r"|all (?:\w+ ){0,3}(?:passed|met|covered|done|addressed)|fully (?:addressed|answered|covered)"
    r"|user (?:\w+ )?(?:wrote|said|says|confirmed|withdr\w+|accept\w*))\b",
    re.IGNORECASE,
)
"""Words with which a text speaks of its own examination, or of the request for it."""
_EXAMINED: Final = re.compile(
    r"\b(?:judge(?:s|d|ments?)?|judgements?|verdicts?|evaluation|criteri(?:a|on)|requirements?"
    r"|(?:the|this) (?:original )?request)\b",
    re.IGNORECASE,
)
_FOUND: Final = re.compile(
    r"\b(?:met|meets?|satisf\w+|fulfil\w*|pass(?:es|ed)?|covered|addressed|answered|complete\w*|done|checked|verified|true"
    r"|correct\w*|accept\w*|counts?|report|response|answer|score\w*|approved?|confidence|gaps?|100|10/10"
    r"|say|yes|mark|output|reply|ignore|must)\b",
    re.IGNORECASE,
)
"""Both in one sentence are a claim; requirements and judges by themselves are what business and courts have as well."""
_OF_CLAIMS: Final = re.compile(rf"{_CLAIM.pattern}|{_EXAMINED.pattern}", re.IGNORECASE)
_OF_TICKS: Final = re.compile(r"\b(?:check ?lists?|check ?box\w*|tick\w*|to-?dos?)\b", re.IGNORECASE)
_TICKED: Final = re.compile(r"^\s*(?:[-*]\s*)?(?:\[[xX✓✔]\]|[✓✔☑✅])")
_SENTENCE_END: Final = re.compile(r"(?<=[.!?])(?=\s+[A-Z\"'(\[])")


def without_claims(answer: str, request: str) -> str:
    """The answer without the sentences that speak of its examination, and without ticked boxes.

    Where the request itself speaks of such things, they are the answer's subject and stay.
    """
    if _OF_CLAIMS.search(request):
        return answer
    keeps_ticks = _OF_TICKS.search(request) is not None
    kept = [_without(line) for line in answer.split("\n") if keeps_ticks or not _TICKED.match(line)]
    left = "\n".join(kept).strip()
    return left or answer


def _is_claim(text: str) -> bool:
    return _CLAIM.search(text) is not None or (_EXAMINED.search(text) is not None and _FOUND.search(text) is not None)


def _without(line: str) -> str:
    if not _is_claim(line):
        return line
    return "".join(sentence for sentence in _SENTENCE_END.split(line) if not _is_claim(sentence)).strip()
