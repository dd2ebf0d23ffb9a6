"""Leaving out what an answer claims about itself, so that only what it delivers is looked at."""

from __future__ import annotations

import re
from typing import Final

_CLAIM: Final = re.compile(
    r"\b(?:judge(?:s|d|ments?)?|verdicts?|grader|evaluator|evaluation|gap_?analysis|criteri(?:a|on)|requirements?"
    r"|(?:was|were|is|are|been|as) requested|(?:the|this) (?:original )?request|satisf(?:y|ies|ied)"
    r"|fulfil(?:s|led|ment)?"
    r"|answered\b.{0,9}\btrue|complete\b\W{0,3}true|pass(?:es|ed)?\W{0,3}(?:true|$)"
    r"|all (?:\w+ ){0,3}(?:passed|met|covered|done|addressed)|fully (?:addressed|answered|covered)"
    r"|user (?:\w+ )?(?:wrote|said|says|confirmed|withdr\w+|accept\w*))\b",
    re.IGNORECASE,
)
"""Words with which a text speaks of its own examination, or of the request for it."""
_TICKED: Final = re.compile(r"^\s*(?:[-*]\s*)?(?:\[[xX✓✔]\]|[✓✔☑✅])")
_SENTENCE_END: Final = re.compile(r"(?<=[.!?])(?=\s+[A-Z\"'(\[])")


def without_claims(answer: str, request: str) -> str:
    """The answer without the sentences that speak of its examination, and without ticked boxes.

    Where the request itself speaks of such things, they are the answer's subject and stay.
    """
    if _CLAIM.search(request) or not (_CLAIM.search(answer) or _TICKED.search(answer) or "\n" in answer):
        return answer
    kept = [_without(line) for line in answer.split("\n") if not _TICKED.match(line)]
    left = "\n".join(kept).strip()
    return left or answer


def _without(line: str) -> str:
    if not _CLAIM.search(line):
        return line
    return "".join(sentence for sentence in _SENTENCE_END.split(line) if not _CLAIM.search(sentence)).strip()
