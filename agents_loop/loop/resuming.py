"""A run that waits for a person: kept in the session's state, so that a later run can continue it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any, cast

from agents_loop.agent import AgentResponse, AgentSession
from agents_loop.errors import ConfigurationError, SessionStateError
from agents_loop.loop.kept_records import kept_text, record_from_json, record_to_json
from agents_loop.loop.questions import Question
from agents_loop.loop.result import IterationRecord
from agents_loop.message_json import message_from_json, message_to_json
from agents_loop.messages import (
    ChatMessage,
    JsonValue,
    TextContent,
    ToolApprovalRequestContent,
    ToolApprovalResponseContent,
)

_APPROVALS = (ToolApprovalRequestContent, ToolApprovalResponseContent)
STATE_KEY = "agents_loop"
"""Where in `session.state` a run waits."""


def pending_approvals(response: AgentResponse) -> list[ToolApprovalRequestContent]:
    """The tool calls that wait for approval, but for those that the same response answers."""
    contents: list[ToolApprovalRequestContent | ToolApprovalResponseContent] = []
    for message in response.messages:
        for content in message.contents:
            if type(content) is not TextContent and isinstance(content, _APPROVALS):
                contents.append(content)  # noqa: PERF401 - no frame of its own on the hot path
    if not contents:
        return []
    requests = [content for content in contents if isinstance(content, ToolApprovalRequestContent)]
    answered = {content.request_id for content in contents if isinstance(content, ToolApprovalResponseContent)}
    return [request for request in requests if request.request_id not in answered]


@dataclass(slots=True)
class StoppedRun:
    """Where a run was that a budget stopped."""

    input: tuple[ChatMessage, ...]
    """What the agent was about to be sent or, where its answer was not judged yet, what it had been sent."""
    on_behalf_of: tuple[ChatMessage, ...]
    """The part of it that the loop sends in the caller's place."""
    response: AgentResponse | None
    """The last answer, if there was one."""
    is_judged: bool
    """Whether the evaluators had spoken on it."""

    @property
    def next_input(self) -> tuple[tuple[ChatMessage, ...], tuple[ChatMessage, ...]]:
        """The input of the iteration with which a run goes on, and the part of it that the caller has not heard."""
        return self.input, self.on_behalf_of if self.is_judged else ()

    def to_json(self) -> dict[str, JsonValue]:
        """As a JSON value."""
        response = self.response
        return {
            "input": [message_to_json(message) for message in self.input],
            "on_behalf_of": [message_to_json(message) for message in self.on_behalf_of],
            "answer": None if response is None else [message_to_json(message) for message in response.messages],
            "response_id": None if response is None else response.response_id,
            "agent_id": None if response is None else response.agent_id,
            "finish_reason": None if response is None else response.finish_reason,
            "is_judged": self.is_judged,
        }

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> StoppedRun:
        """What `to_json` gave."""
        return cls(
            _messages(stored["input"]),
            _messages(stored["on_behalf_of"]),
            None
            if stored["answer"] is None
            else AgentResponse(
                list(_messages(stored["answer"])),
                response_id=stored["response_id"],
                agent_id=stored["agent_id"],
                finish_reason=kept_text(stored["finish_reason"]),
            ),
            bool(stored["is_judged"]),
        )


def _messages(stored: Iterable[Any]) -> tuple[ChatMessage, ...]:
    return tuple([message_from_json(message) for message in stored])


@dataclass(slots=True, kw_only=True)
class PendingRun:
    """What a run needs of the one that it continues."""

    request_ids: list[str]
    """What it waits for: an answer to any of these continues it. None, where it waits for the answer to a question."""
    messages: list[ChatMessage]
    """The caller's, from the beginning."""
    feedback: list[str | None]
    iteration: int
    """How many iterations there have been."""
    snapshot: JsonValue
    """With fresh context: the caller's session before the first iteration; `None` where the loop made its own."""
    inner: JsonValue = None
    """What a loop within this one keeps in the same session."""
    question: Question | None = None
    """What a person was asked: any message is an answer."""
    stopped: StoppedRun | None = None
    """Where a budget stopped it: a run without a message continues it."""
    spent: JsonValue = None
    """What it has spent, where it has a budget."""
    stall_steps: int = 0
    """How many steps of the ladder of its stall policy it has taken."""
    watched: list[IterationRecord] = field(default_factory=list[IterationRecord])
    """The latest iterations that its stall signals look at."""
    best: IterationRecord | None = None
    """The iteration with its best answer so far."""
    memory: dict[str, JsonValue] = field(default_factory=dict[str, JsonValue])
    """What its evaluators remember."""


def take(session: AgentSession, messages: Sequence[ChatMessage]) -> PendingRun | None:
    """Take out of the session what waits there, and give it if the messages hold an answer to it.

    What an inner loop keeps in the session is left for that loop then. Without an answer nothing is left: the messages
    begin a new run.

    Raises:
        SessionStateError: What stands in the session can't be read.
        ConfigurationError: A question waits, and there is no message.
    """
    try:
        pending = _read(cast("Mapping[str, Any]", session.state[STATE_KEY]))
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise SessionStateError(f"session.state[{STATE_KEY!r}] can't be read: {error!r}") from error
    del session.state[STATE_KEY]
    if pending.question is not None:
        if not messages:
            raise ConfigurationError(f"a question waits for an answer in this session: {pending.question.text!r}")
    elif messages if pending.stopped is not None else not _answers(messages, pending.request_ids):
        return None
    if pending.inner is not None:
        session.state[STATE_KEY] = pending.inner
    return pending


def question_waits(session: AgentSession) -> bool:
    """Whether a run waits in the session for a person's answer to a question."""
    stored = session.state.get(STATE_KEY)
    return isinstance(stored, Mapping) and cast("Mapping[str, Any]", stored).get("question") is not None


def keep(session: AgentSession, pending: PendingRun) -> None:
    """Let a later run in the session continue this one."""
    session.state[STATE_KEY] = {
        "request_ids": list(pending.request_ids),
        "messages": [message_to_json(message) for message in pending.messages],
        "feedback": list(pending.feedback),
        "iteration": pending.iteration,
        "snapshot": pending.snapshot,
        "inner": pending.inner,
        "question": None if pending.question is None else pending.question.to_json(),
        "stopped": None if pending.stopped is None else pending.stopped.to_json(),
        "spent": pending.spent,
        "stall_steps": pending.stall_steps,
        "watched": [record_to_json(record) for record in pending.watched],
        "best": None if pending.best is None else record_to_json(pending.best),
        "memory": pending.memory,
    }


def _answers(messages: Iterable[ChatMessage], request_ids: Sequence[str]) -> bool:
    return any(
        isinstance(content, ToolApprovalResponseContent) and content.request_id in request_ids
        for message in messages
        for content in message.contents
    )


def _read(stored: Mapping[str, Any]) -> PendingRun:
    question, stopped, best = stored.get("question"), stored.get("stopped"), stored.get("best")
    return PendingRun(
        request_ids=list(stored["request_ids"]),
        messages=[message_from_json(message) for message in stored["messages"]],
        feedback=list(stored["feedback"]),
        iteration=int(stored["iteration"]),
        snapshot=stored["snapshot"],
        inner=stored["inner"],
        question=None if question is None else Question.from_json(question),
        stopped=None if stopped is None else StoppedRun.from_json(stopped),
        spent=stored.get("spent"),
        stall_steps=int(stored.get("stall_steps", 0)),
        watched=[record_from_json(each) for each in stored.get("watched", [])],
        best=None if best is None else record_from_json(best),
        memory=deepcopy(dict(stored.get("memory", {}))),
    )
