"""An exchange that waits for answers: kept in the session's state, apart from its history, which stays balanced."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias, cast

from agents_loop.agent import AgentSession
from agents_loop.errors import ConfigurationError, SessionStateError
from agents_loop.ids import new_id
from agents_loop.message_json import message_from_json, message_to_json
from agents_loop.messages import (
    ChatMessage,
    ChatRole,
    Content,
    FunctionCallContent,
    FunctionResultContent,
    JsonValue,
    ToolApprovalRequestContent,
    ToolApprovalResponseContent,
)
from agents_loop.tools import error_result

HELD_KEY = "held_tool_calls"
"""Where in `session.state` an exchange waits."""

REJECTED = "the user did not approve this call, so it was not run"
UNANSWERED = "the call was not run: the conversation went on without an answer to it"

Call: TypeAlias = tuple[FunctionCallContent, str | None]
"""A call of a model, and the id of the request for its approval, if one was made."""


@dataclass(slots=True)
class HeldExchange:
    """A turn whose calls wait for a person's word, or for results that the caller has to give."""

    messages: list[ChatMessage]
    """The exchange so far: its input, earlier rounds, and at the end the reply with the calls."""
    calls: list[Call]
    """The reply's calls, in order."""
    open_calls: list[int]
    """The positions of the calls whose results the caller gives."""
    rounds: int
    """How many tool rounds the exchange has had."""
    later: list[ChatMessage] = field(default_factory=list[ChatMessage])
    """What was said since; it follows the results."""
    approvals: dict[str, bool] = field(default_factory=dict[str, bool])
    """The answers so far, by request."""
    results: dict[int, JsonValue] = field(default_factory=dict[int, JsonValue])
    """The results so far, by the call's position: a model may give two calls one id."""

    @property
    def waiting(self) -> list[Content]:
        """What is left to answer: requests, and calls whose results the caller gives."""
        left: list[Content] = [
            ToolApprovalRequestContent(request_id, call)
            for call, request_id in self.calls
            if request_id is not None and request_id not in self.approvals
        ]
        return left + [self.calls[position][0] for position in self.open_calls if position not in self.results]

    def to_run(self) -> dict[int, FunctionCallContent]:
        """The calls that may run now: those approved, and those that needed no approval; but none that has run."""
        return {
            position: call
            for position, (call, request_id) in enumerate(self.calls)
            if position not in self.results and (request_id is None or self.approvals.get(request_id))
        }

    def open_call(self, call_id: str, given: Container[int]) -> int | None:
        """Which call a result of the caller's is for: with that id, and best one that has no result yet."""
        fitting = [p for p in self.open_calls if self.calls[p][0].call_id == call_id and p not in given]
        return next((p for p in fitting if p not in self.results), fitting[0] if fitting else None)

    def results_message(self) -> ChatMessage:
        """A result for every call, in order; what was not run says why."""
        return results_message([self._result(position) for position in range(len(self.calls))])

    def _result(self, position: int) -> FunctionResultContent:
        call, request_id = self.calls[position]
        if position in self.results:
            return FunctionResultContent(call.call_id, self.results[position])
        rejected = request_id is not None and self.approvals.get(request_id) is False
        return error_result(call, REJECTED if rejected else UNANSWERED)


def results_message(results: Sequence[Content]) -> ChatMessage:
    """What stands in a history after a reply with calls."""
    return ChatMessage(ChatRole.TOOL, results, message_id=new_id())


def calls_of(messages: Iterable[ChatMessage]) -> list[Call]:
    """The calls in a reply, in order."""
    calls: list[Call] = []
    for message in messages:
        for content in message.contents:
            if isinstance(content, FunctionCallContent):
                calls.append((content, None))
            elif isinstance(content, ToolApprovalRequestContent):
                calls.append((content.tool_call, content.request_id))
    return calls


def as_history(messages: Iterable[ChatMessage]) -> list[ChatMessage]:
    """A reply as it is kept and sent: the calls themselves where a reader sees requests."""
    return [
        replace(message, contents=[_call_of(content) for content in message.contents])
        if any(isinstance(content, ToolApprovalRequestContent) for content in message.contents)
        else message
        for message in messages
    ]


def _call_of(content: Content) -> Content:
    return content.tool_call if isinstance(content, ToolApprovalRequestContent) else content


def take_answers(held: HeldExchange | None, messages: Sequence[ChatMessage]) -> tuple[bool, list[ChatMessage]]:
    """Whether messages answer something of what is held, and the messages without the answers.

    Raises:
        ConfigurationError: They answer a request that nobody made, or that was answered before.
    """
    taking = None if held is None else _Taking(held)
    answers, left = 0, list[ChatMessage]()
    for message in messages:
        contents = [content for content in message.contents if not _takes(taking, content)]
        answers += len(message.contents) - len(contents)
        if len(contents) == len(message.contents):
            left.append(message)
        elif contents:
            left.append(replace(message, contents=contents))
    return answers > 0, left


class _Taking:
    """The answers of one input. One that was kept before stands: it may be sent again only to try a failed run again.

    Args:
        held: What they are written into.
    """

    def __init__(self, held: HeldExchange) -> None:
        self.held = held
        self._kept = frozenset(held.approvals) if held.waiting else frozenset[str]()
        self._given: set[int] = set()

    def approval(self, request_id: str, *, approved: bool) -> None:
        """Take a person's word."""
        said = self.held.approvals.setdefault(request_id, approved)
        if request_id in self._kept or said is not approved:
            raise ConfigurationError(
                f"the request {request_id!r} was answered before: the call was {'approved' if said else 'rejected'}, "
                "which can't be changed. Answer only what is asked for again"
            )

    def result(self, content: FunctionResultContent) -> bool:
        """Take a result of the caller's, if it is for one of the calls."""
        position = self.held.open_call(content.call_id, self._given)
        if position is None:
            return False
        self._given.add(position)
        self.held.results[position] = content.result
        return True


def _takes(taking: _Taking | None, content: Content) -> bool:
    if isinstance(content, ToolApprovalResponseContent):
        asked = [] if taking is None else [request_id for _, request_id in taking.held.calls if request_id is not None]
        if taking is None or content.request_id not in asked:
            known = f"it waits for {', '.join(asked)}" if asked else "it waits for none"
            raise ConfigurationError(
                f"no tool call of this session waits for approval under {content.request_id!r}: {known}. "
                "Answer in the session that the request came from (LoopResult.session), once"
            )
        taking.approval(content.request_id, approved=content.approved is True)
        return True
    return taking is not None and isinstance(content, FunctionResultContent) and taking.result(content)


def hold(session: AgentSession, held: HeldExchange) -> None:
    """Keep an exchange until its calls are answered."""
    session.state[HELD_KEY] = {
        "messages": [message_to_json(message) for message in held.messages],
        "calls": [
            {"call_id": c.call_id, "name": c.name, "arguments": deepcopy(c.arguments), "request_id": request_id}
            for c, request_id in held.calls
        ],
        "open_calls": list(held.open_calls),
        "rounds": held.rounds,
        "later": [message_to_json(message) for message in held.later],
        "approvals": dict(held.approvals),
        "results": {str(position): result for position, result in held.results.items()},
    }


def held_in(session: AgentSession) -> HeldExchange | None:
    """The exchange that waits in a session, as an object of its own.

    Raises:
        SessionStateError: What stands there can't be read.
    """
    stored = session.state.get(HELD_KEY)
    if stored is None:
        return None
    try:
        return _read(cast("Mapping[str, Any]", stored))
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise SessionStateError(f"session.state[{HELD_KEY!r}] can't be read: {error!r}") from error


def _read(stored: Mapping[str, Any]) -> HeldExchange:
    return HeldExchange(
        [message_from_json(message) for message in stored["messages"]],
        [
            (FunctionCallContent(call["call_id"], call["name"], call["arguments"]), call["request_id"])
            for call in stored["calls"]
        ],
        list(stored["open_calls"]),
        int(stored["rounds"]),
        [message_from_json(message) for message in stored["later"]],
        dict(stored["approvals"]),
        {int(position): result for position, result in dict(stored["results"]).items()},
    )
