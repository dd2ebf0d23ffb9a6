"""How an evaluator's reply is read in a loop file: dagraph's contract, to the letter. A pure function."""

from __future__ import annotations

import json
from typing import Any, NamedTuple, cast

from agents_loop.judging.reading import clean_text, refuse_constant
from agents_loop.judging.strict_json import finite_number
from agents_loop.messages import JsonValue
from agents_loop.numeric import is_number

_MAX_DEPTH = 64


class EvaluatorReply(NamedTuple):
    """What an evaluator's reply says."""

    approved: bool
    feedback: str
    """For the next round; of an approved reply, for the record."""
    score: float | None = None
    details: JsonValue = None
    """The whole object, if the reply is one."""
    unclear: str | None = None
    """Why the reply is not what the contract asks for."""


def read_evaluator_reply(text: str) -> EvaluatorReply:
    """Read a reply: it must be one JSON object with a boolean `approved`, and nothing around it.

    Anything else is not approved, and its raw text is the feedback; so is a code fence around the object. An object
    without a boolean `approved`, or with a key given twice, is not approved either; a `feedback` that is a str is
    its feedback. `score` counts where it is a number from 0 to 1.
    """
    try:
        pairs = _DECODER.decode(text.strip())
        fields = cast("dict[str, Any]", _plain(pairs))
    except (ValueError, RecursionError):
        return not_approved(text, "the reply is not one JSON object without anything around it")
    if not isinstance(pairs, _Object):
        return not_approved(text, "the reply is JSON, but not an object")
    written = fields.get("feedback")
    feedback = clean_text(written) if isinstance(written, str) else None
    approved = fields.get("approved")
    unclear = None
    if len(fields) != len(pairs):
        unclear = "the reply's object has a key twice"
    elif not isinstance(approved, bool):
        unclear = "the reply's object has no boolean `approved`"
    is_approved = approved is True and unclear is None
    if feedback is None:
        feedback = "" if is_approved else clean_text(text)
    return EvaluatorReply(is_approved, feedback, _score(fields), fields, unclear)


def not_approved(text: str, unclear: str) -> EvaluatorReply:
    """The reading of a reply that is not what the contract asks for: its raw text is the feedback."""
    return EvaluatorReply(approved=False, feedback=clean_text(text), unclear=unclear)


class _Object(list[tuple[str, Any]]):
    """An object as its pairs, so that a key given twice is seen."""


def _plain(value: Any, depth: int = 0) -> Any:
    if depth > _MAX_DEPTH:
        raise ValueError("nested too deep to be recorded")
    if isinstance(value, _Object):
        return {clean_text(key): _plain(inner, depth + 1) for key, inner in value}
    if isinstance(value, list):
        return [_plain(inner, depth + 1) for inner in cast("list[Any]", value)]
    return clean_text(value) if isinstance(value, str) else value


def _score(fields: dict[str, Any]) -> float | None:
    score = fields.get("score")
    if not is_number(score):
        return None
    return score if 0 <= score <= 1 else None


_DECODER = json.JSONDecoder(object_pairs_hook=_Object, parse_constant=refuse_constant, parse_float=finite_number)
