"""What a framework's run waits for, and the answers so far: which answers match, and what counts as approved."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any

from agents_loop.errors import ConfigurationError
from agents_loop.message_json import message_from_json, message_to_json
from agents_loop.messages import (
    ChatMessage,
    ChatRole,
    Content,
    FunctionResultContent,
    JsonValue,
    ToolApprovalRequestContent,
    ToolApprovalResponseContent,
)

NOT_RUN = "the call was not run: the conversation went on without an answer to it"


class Turn(Enum):
    """What messages make of a run that waits."""

    GO_ON = "go on"
    """Nothing waits, or nobody answered: the calls that wait are not run."""
    ASK_AGAIN = "ask again"
    """Some requests are left: the framework is not called."""
    RESUME = "resume"
    """All is answered; or was, and the run that resumed has failed since."""


@dataclass(slots=True)
class Pending:
    """The requests of one run, and the answers so far.

    The framework is resumed once all are answered. Until a run is complete the answers are kept, so the same answer
    may come again.
    """

    requests: list[ToolApprovalRequestContent] = field(default_factory=list[ToolApprovalRequestContent])
    takes_result: list[str] = field(default_factory=list[str])
    """The requests that a result of their call answers too."""
    needs_result: list[str] = field(default_factory=list[str])
    """The requests that a result or a rejection answers, an approval alone does not."""
    approvals: dict[str, bool] = field(default_factory=dict[str, bool])
    """The answers so far, by request."""
    results: dict[str, JsonValue] = field(default_factory=dict[str, JsonValue])
    """The results so far, by request."""
    later: list[ChatMessage] = field(default_factory=list[ChatMessage])
    """What was said beside the first of several answers; it goes to the framework with the last."""

    @property
    def left(self) -> list[ToolApprovalRequestContent]:
        """The requests that are left to answer."""
        return [request for request in self.requests if not self._is_answered(request.request_id)]

    def take(self, messages: Iterable[ChatMessage], *, have_run: bool = False) -> tuple[Turn, list[ChatMessage]]:
        """Take the answers out of messages: what follows from them, and the messages to send.

        Args:
            messages: What the run is given.
            have_run: Whether the calls have run in an attempt that failed after it. Then any message resumes.

        Raises:
            ConfigurationError: They answer a request that is not pending. Then nothing is taken.
        """
        approvals: dict[str, bool] = {}
        results: dict[str, JsonValue] = {}
        rest: list[ChatMessage] = []
        for message in messages:
            contents: list[Content] = []
            for content in message.contents:
                if isinstance(content, ToolApprovalResponseContent):
                    approvals[self._pending(content.request_id)] = is_approval(content)
                elif isinstance(content, FunctionResultContent) and content.call_id in self._by_call():
                    results[self._by_call()[content.call_id]] = content.result
                else:
                    contents.append(content)
            if len(contents) == len(message.contents):
                rest.append(message)
            elif contents:
                rest.append(replace(message, contents=contents))
        self.approvals |= approvals
        self.results |= results
        return self._turn(is_answered=bool(approvals or results), have_run=have_run, rest=rest)

    def asked_again(self, author_name: str | None, message_id: str) -> ChatMessage:
        """The requests that are left, as the framework's run would ask them."""
        return ChatMessage(ChatRole.ASSISTANT, list(self.left), author_name=author_name, message_id=message_id)

    def to_json(self) -> dict[str, JsonValue]:
        """As a JSON value."""
        return {
            "requests": message_to_json(ChatMessage(ChatRole.ASSISTANT, list(self.requests))),
            "takes_result": list(self.takes_result),
            "needs_result": list(self.needs_result),
            "approvals": dict(self.approvals),
            "results": dict(self.results),
            "later": [message_to_json(message) for message in self.later],
        }

    @classmethod
    def from_json(cls, state: Mapping[str, Any]) -> Pending:
        """What `to_json` gave."""
        requests = message_from_json(state["requests"]).contents
        return cls(
            [content for content in requests if isinstance(content, ToolApprovalRequestContent)],
            list(state["takes_result"]),
            list(state["needs_result"]),
            dict(state["approvals"]),
            dict(state["results"]),
            [message_from_json(message) for message in state["later"]],
        )

    def _turn(self, *, is_answered: bool, have_run: bool, rest: list[ChatMessage]) -> tuple[Turn, list[ChatMessage]]:
        if self.left and is_answered:
            self.later += rest
            return Turn.ASK_AGAIN, []
        is_resumed = bool(self.requests) and not self.left and (is_answered or have_run)
        return Turn.RESUME if is_resumed else Turn.GO_ON, [*self.later, *rest]

    def _pending(self, request_id: str) -> str:
        waiting = [request.request_id for request in self.requests]
        if request_id not in waiting:
            known = f"it waits for {', '.join(waiting)}" if waiting else "it waits for none"
            raise ConfigurationError(
                f"an answer to a request that is not pending in the session, {request_id!r}: {known}. "
                "Answer in the session that the request came from (LoopResult.session), once"
            )
        return request_id

    def _by_call(self) -> dict[str, str]:
        takes = {*self.takes_result, *self.needs_result}
        return {r.tool_call.call_id: r.request_id for r in self.requests if r.request_id in takes}

    def _is_answered(self, request_id: str) -> bool:
        if request_id in self.results:
            return True
        return request_id in self.approvals and not (request_id in self.needs_result and self.approvals[request_id])


def is_approval(answer: ToolApprovalResponseContent) -> bool:
    """Whether an answer approves: `True` does, and nothing that is merely truthy."""
    return answer.approved is True


def requests_in(messages: Iterable[ChatMessage]) -> list[ToolApprovalRequestContent]:
    """The requests in a response's messages, in order."""
    return [
        content
        for message in messages
        for content in message.contents
        if isinstance(content, ToolApprovalRequestContent)
    ]
