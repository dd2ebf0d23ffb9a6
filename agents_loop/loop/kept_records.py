"""Iterations as JSON values: what a run that waits keeps of its best answer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from agents_loop.agent import AgentResponse
from agents_loop.loop.evaluation import LoopEvaluation
from agents_loop.loop.result import IterationRecord, evaluation_to_json
from agents_loop.message_json import message_from_json, message_to_json
from agents_loop.messages import JsonValue
from agents_loop.numeric import is_number


def record_to_json(record: IterationRecord) -> dict[str, JsonValue]:
    """The answer, and what was said of it. What the agent was sent, and what it used, is the earlier run's."""
    response = record.response
    return {
        "number": record.number,
        "answer": [message_to_json(message) for message in response.messages],
        "response_id": response.response_id,
        "agent_id": response.agent_id,
        "finish_reason": response.finish_reason,
        "evaluations": [evaluation_to_json(evaluation) for evaluation in record.evaluations],
    }


def record_from_json(stored: Mapping[str, Any]) -> IterationRecord:
    """What `record_to_json` gave.

    Raises:
        TypeError: It is not.
        ValueError: A score is not from 0 to 1.
    """
    response = AgentResponse(
        [message_from_json(message) for message in stored["answer"]],
        response_id=stored["response_id"],
        agent_id=stored["agent_id"],
        finish_reason=kept_text(stored["finish_reason"]),
    )
    evaluations = tuple([_evaluation(cast("Mapping[str, Any]", each)) for each in stored["evaluations"]])
    return IterationRecord(int(stored["number"]), (), response, evaluations, None, 0.0)


def kept_text(stored: object) -> str | None:
    """A text, or none.

    Raises:
        TypeError: It is something else.
    """
    if stored is not None and not isinstance(stored, str):
        raise TypeError(f"no text: {stored!r}")
    return stored


def _kept_score(stored: object) -> float | None:
    if stored is None:
        return None
    if not is_number(stored) or not 0 <= stored <= 1:
        raise ValueError(f"no score: {stored!r}")
    return stored


def _evaluation(stored: Mapping[str, Any]) -> LoopEvaluation:
    return LoopEvaluation(
        stored["decision"],
        kept_text(stored["feedback"]),
        None,
        stored.get("reason"),
        _kept_score(stored["score"]),
        stored["note"],
        stored.get("details"),
        stored["evaluator"],
        stored.get("question"),
    )
