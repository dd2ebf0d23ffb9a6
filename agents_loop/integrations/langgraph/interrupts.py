"""What a graph stopped for, as requests for approval; and what was decided, as it wants to be resumed."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, cast

from agents_loop.approvals import Pending
from agents_loop.messages import FunctionCallContent, JsonValue, ToolApprovalRequestContent

INTERRUPT = "interrupt"
"""The name of the call in a request for what is no tool call."""


def as_json(value: Any) -> JsonValue:
    """What a graph asks, as JSON."""
    return json.loads(json.dumps(value, default=str))


def requests_of(waiting: Mapping[str, JsonValue]) -> list[ToolApprovalRequestContent]:
    """The requests in what a graph waits for, by the ids of its interrupts.

    An interrupt of LangChain's human-in-the-loop middleware holds tool calls: each is a request. Any other is one
    request for a call named `interrupt`, whose arguments are what the graph asks.
    """
    requests: list[ToolApprovalRequestContent] = []
    for interrupt_id, value in waiting.items():
        actions = _actions(value)
        for index, action in enumerate(actions):
            request_id = f"{interrupt_id}/{index}"
            call = FunctionCallContent(request_id, action.get("name", ""), action.get("args"))
            requests.append(ToolApprovalRequestContent(request_id, call))
        if not actions:
            asked = cast("dict[str, JsonValue]", value) if isinstance(value, dict) else {"value": value}
            call = FunctionCallContent(interrupt_id, INTERRUPT, asked)
            requests.append(ToolApprovalRequestContent(interrupt_id, call))
    return requests


def pending_in(waiting: Mapping[str, JsonValue]) -> Pending:
    """What has to be answered before a graph can go on. A result answers what is no tool call of the middleware."""
    requests = requests_of(waiting)
    return Pending(requests, [request.request_id for request in requests if request.request_id in waiting])


def answers_to(waiting: Mapping[str, JsonValue], pending: Pending) -> dict[str, Any]:
    """The values to resume with, by interrupt, once all is answered.

    An approval resumes with `True` or `False`, or with the middleware's decisions; a function result resumes with
    that result.
    """
    answers: dict[str, Any] = {}
    for interrupt_id, value in waiting.items():
        ids = [f"{interrupt_id}/{index}" for index in range(len(_actions(value)))]
        if ids:
            decisions = ["approve" if pending.approvals[request_id] else "reject" for request_id in ids]
            answers[interrupt_id] = {"decisions": [{"type": decision} for decision in decisions]}
        elif interrupt_id in pending.results:
            answers[interrupt_id] = pending.results[interrupt_id]
        else:
            answers[interrupt_id] = pending.approvals[interrupt_id]
    return answers


def _actions(value: JsonValue) -> list[dict[str, Any]]:
    actions: Any = cast("dict[str, Any]", value).get("action_requests") if isinstance(value, dict) else None
    return cast("list[dict[str, Any]]", actions) if isinstance(actions, list) else []
