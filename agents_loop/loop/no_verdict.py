"""Telling an evaluation that is a verdict from one that says that there is none."""

from __future__ import annotations

from typing import Any, Final, cast

from agents_loop.loop.evaluation import LoopEvaluation

NO_VERDICT: Final = "no_verdict"
"""The key, in the details of an evaluation, of the cause why a judge gave no verdict."""


def is_without_verdict(evaluation: LoopEvaluation) -> bool:
    """Whether an evaluation only says that a judge failed, or could not be read, and that the run goes on."""
    return _says_none(evaluation.details)


def lacks_verdict(evaluation: LoopEvaluation) -> bool:
    """Whether an evaluation is without a verdict, or is made of checks and of a judge that gave none."""
    details: object = evaluation.details
    if _says_none(details):
        return True
    judge = cast("dict[str, Any]", details).get("judge") if isinstance(details, dict) else None
    return isinstance(judge, dict) and _says_none(cast("dict[str, Any]", judge).get("details"))


def _says_none(details: object) -> bool:
    if not isinstance(details, dict):
        return False
    fields = cast("dict[str, object]", details)
    return NO_VERDICT in fields or fields.get("readable") is False
