"""An agent of Microsoft Agent Framework as an inner agent."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing
from copy import deepcopy
from dataclasses import dataclass, field
from inspect import isawaitable, signature
from typing import Any

from agents_loop.agent import AgentResponse, AgentResponseUpdate, AgentRunOptions, AgentSession, Service
from agents_loop.agent_response import with_fields
from agents_loop.approvals import Pending, Turn, requests_in
from agents_loop.foreign_agent import ForeignAgent
from agents_loop.ids import new_id
from agents_loop.integrations.agent_framework.contents import (
    from_contents,
    from_framework,
    from_time,
    from_usage,
    merged_calls,
    to_framework,
)
from agents_loop.integrations.agent_framework.message_ids import MessageIds
from agents_loop.integrations.agent_framework.options import to_options
from agents_loop.integrations.agent_framework.sdk import load_agent_framework
from agents_loop.messages import ChatMessage, ChatRole, JsonValue, ToolApprovalResponseContent, sum_usage


@dataclass(slots=True)
class FrameworkConversation:
    """The framework's own session, and the approval requests in it that wait for an answer."""

    session: Any
    requests: dict[str, Any] = field(default_factory=dict[str, Any])
    """The framework's own requests, by id."""
    pending: Pending = field(default_factory=Pending)
    """The same as ours, and the answers so far."""
    results: dict[str, Any] = field(default_factory=dict[str, Any])
    """What approved calls gave, by call, in a run that failed after it."""


class AgentFrameworkAgent(ForeignAgent[FrameworkConversation]):
    """An agent of Microsoft Agent Framework (`Agent`, or anything with its `run` and `create_session`).

    A session of ours holds one of the framework's, made, written and read through its own API: history that it keeps
    is cloned by value, and a conversation that a service keeps by its id (so clones share what the service holds).
    Without a session the agent runs without one. Every message that is sent has an id. A request for approval becomes a
    `ToolApprovalRequestContent`, so a loop ends there; the response to it, sent in the same session, resumes the run.
    What the framework raises reaches the caller as it was raised.

    Args:
        agent: The framework's agent.
    """

    framework = "agent_framework"

    def __init__(self, agent: Any) -> None:
        load_agent_framework(type(self).__name__)
        self.agent = agent
        self.id = agent.id
        self.name = agent.name
        self.description = agent.description

    async def run_core(
        self, messages: list[ChatMessage], *, session: AgentSession | None, options: AgentRunOptions | None
    ) -> AgentResponse:
        """Run the framework's agent once."""
        run = await self._begin(messages, session, options)
        if isinstance(run, AgentResponse):
            return run
        try:
            whole = await self.agent.run(**run.arguments)
        except BaseException:
            run.restore(self._framework)
            raise
        response = self._response(whole, run.conversation)
        after = run.after(response)
        return response if after is None else _joined(response, await self._run(after))

    async def _run(self, run: _Run) -> AgentResponse:
        return self._response(await self.agent.run(**run.arguments), run.conversation)

    async def stream(
        self,
        messages: list[ChatMessage],
        *,
        session: AgentSession | None,
        options: AgentRunOptions | None,
        given: list[AgentResponse],
    ) -> AsyncGenerator[AgentResponseUpdate, None]:
        """Stream the framework's agent once. Pieces of a function call come as one whole call."""
        run = await self._begin(messages, session, options)
        if isinstance(run, AgentResponse):
            given.append(run)
            yield _whole(run)
            return
        done: list[AgentResponse] = []
        async with aclosing(self._stream(run, done)) as updates:
            async for update in updates:
                yield update
        after = run.after(done[0])
        if after is not None:
            async with aclosing(self._stream(after, done)) as updates:
                async for update in updates:
                    yield update
        given.append(done[0] if after is None else _joined(*done))

    async def _stream(self, run: _Run, given: list[AgentResponse]) -> AsyncGenerator[AgentResponseUpdate, None]:
        stream: Any = None
        pieces: list[Any] = []
        try:
            stream = self.agent.run(**run.arguments, stream=True)
            if isawaitable(stream) and not hasattr(stream, "__aiter__"):
                stream = await stream
            async with aclosing(self._updates(stream, pieces)) as updates:
                async for update in updates:
                    yield update
            finish = getattr(stream, "get_final_response", None)
            whole = await finish() if finish else self._framework.AgentResponse.from_updates(pieces)
        except BaseException:
            run.restore(self._framework)
            raise
        finally:
            await _close(stream)
        given.append(self._response(whole, run.conversation))

    def new_conversation(self) -> FrameworkConversation:
        """A session of the framework's own making."""
        return FrameworkConversation(self.agent.create_session())

    async def write_conversation(self, conversation: FrameworkConversation) -> JsonValue:
        """The framework's session as it writes it."""
        requests = {request_id: request.to_dict() for request_id, request in conversation.requests.items()}
        results: dict[str, JsonValue] = {
            call_id: given if isinstance(given, str) else [content.to_dict() for content in given]
            for call_id, given in conversation.results.items()
        }
        pending = conversation.pending.to_json()
        return {"session": conversation.session.to_dict(), "requests": requests, "pending": pending, "results": results}

    async def read_conversation(self, state: JsonValue) -> FrameworkConversation:
        """A session of the framework from what it wrote."""
        read = self._framework.Content.from_dict
        requests = {request_id: read(request) for request_id, request in state["requests"].items()}
        results = {
            call_id: given if isinstance(given, str) else [read(content) for content in given]
            for call_id, given in state["results"].items()
        }
        session = self._framework.AgentSession.from_dict(state["session"])
        return FrameworkConversation(session, requests, Pending.from_json(state["pending"]), results)

    def get_service(self, service_type: type[Service], key: object | None = None) -> Service | None:
        """This agent, or the framework's that it wraps."""
        own = super().get_service(service_type, key)
        if own is None and key is None and isinstance(self.agent, service_type):
            return self.agent
        return own

    @property
    def _framework(self) -> Any:
        return load_agent_framework(type(self).__name__)

    async def _begin(
        self, messages: list[ChatMessage], session: AgentSession | None, options: AgentRunOptions | None
    ) -> _Run | AgentResponse:
        """The run; or the requests that are left, where some are."""
        conversation = None if session is None else await self.conversation(session)
        pending = Pending() if conversation is None else conversation.pending
        turn, rest = pending.take(messages, have_run=bool(conversation and conversation.results))
        if turn is Turn.ASK_AGAIN:
            return AgentResponse([pending.asked_again(self.name, new_id())], response_id=new_id(), agent_id=self.id)
        later: list[ChatMessage] = []
        if turn is Turn.RESUME:  # the framework puts a call's result after all that it is given: the rest comes later
            rest, later = [_answers(pending)], rest
        arguments: dict[str, Any] = {
            "messages": to_framework(rest, conversation and conversation.requests),
            "session": conversation and conversation.session,
        }
        if options is not None and options.chat_options is not None:
            arguments["options"] = to_options(options.chat_options)
        if turn is not Turn.RESUME or conversation is None:
            return _Run(conversation, arguments)
        if "middleware" in signature(self.agent.run).parameters:
            arguments["middleware"] = [_once(self._framework, conversation.results)]
        return _Run(conversation, arguments, deepcopy(conversation.session.to_dict()), later)

    def _response(self, whole: Any, conversation: FrameworkConversation | None) -> AgentResponse:
        for message in whole.messages:  # its history holds these very objects, and drops a reply that repeats the last
            message.message_id = message.message_id or new_id()
        messages = from_framework(whole.messages)
        if conversation is not None:
            conversation.requests = {request.id: request for request in whole.user_input_requests if request.id}
            conversation.pending, conversation.results = Pending(requests_in(messages)), {}
        return AgentResponse(
            messages,
            response_id=whole.response_id,
            agent_id=whole.agent_id or self.id,
            usage=from_usage(whole.usage_details),
            finish_reason=getattr(whole, "finish_reason", None),
            created_at=from_time(whole.created_at),
        )

    async def _updates(self, stream: Any, pieces: list[Any]) -> AsyncGenerator[AgentResponseUpdate, None]:
        waiting: list[Any] = []
        ids = MessageIds()
        async for piece in stream:
            pieces.append(piece)
            calls = [content for content in piece.contents if content.type == "function_call"]
            if waiting and (len(calls) < len(piece.contents) or ids.is_new(piece)):
                yield self._calls(waiting, ids)
            waiting += calls
            rest = [content for content in piece.contents if content.type != "function_call"]
            ids.follow(piece)
            if rest or not calls:
                yield self._update(piece, rest, ids)
        if waiting:
            yield self._calls(waiting, ids)

    def _calls(self, waiting: list[Any], ids: MessageIds) -> AgentResponseUpdate:
        calls = merged_calls(waiting)
        waiting.clear()
        return AgentResponseUpdate(
            ids.role, from_contents(calls), agent_id=self.id, response_id=ids.response_id, message_id=ids.message_id
        )

    def _update(self, piece: Any, contents: list[Any], ids: MessageIds) -> AgentResponseUpdate:
        return AgentResponseUpdate(
            piece.role,
            from_contents(contents),
            author_name=piece.author_name,
            agent_id=piece.agent_id or self.id,
            response_id=ids.response_id,
            message_id=ids.message_id,
            finish_reason=piece.finish_reason,
            created_at=from_time(piece.created_at),
        )


@dataclass(slots=True)
class _Run:
    """One run of the framework's agent; and its session as it was, where the run resumes one that waited."""

    conversation: FrameworkConversation | None
    arguments: dict[str, Any]
    before: Any = None
    later: list[ChatMessage] = field(default_factory=list[ChatMessage])
    """What was said beside the answers."""

    def after(self, response: AgentResponse) -> _Run | None:
        """The run of what was said beside the answers, which goes on from a response; if that asks nothing more."""
        if not self.later or self.conversation is None:
            return None
        if requests_in(response.messages):
            self.conversation.pending.later = self.later
            return None
        arguments = {name: value for name, value in self.arguments.items() if name != "middleware"}
        return _Run(self.conversation, {**arguments, "messages": to_framework(self.later)})

    def restore(self, framework: Any) -> None:
        """After a failure: let the requests wait again, which the framework has taken for answered."""
        if self.conversation is None or self.before is None:
            return
        kept, session = framework.AgentSession.from_dict(self.before), self.conversation.session
        session.state.clear()
        session.state.update(kept.state)
        session.service_session_id = kept.service_session_id


def _joined(first: AgentResponse, second: AgentResponse) -> AgentResponse:
    """Two runs as one response."""
    return with_fields(second, [*first.messages, *second.messages], sum_usage([first.usage, second.usage]))


def _whole(response: AgentResponse) -> AgentResponseUpdate:
    """A response of one message as a piece."""
    [message] = response.messages
    return AgentResponseUpdate(
        message.role,
        message.contents,
        author_name=message.author_name,
        agent_id=response.agent_id,
        response_id=response.response_id,
        message_id=message.message_id,
    )


def _answers(pending: Pending) -> ChatMessage:
    answers = [
        ToolApprovalResponseContent(request.request_id, pending.approvals[request.request_id], request.tool_call)
        for request in pending.requests
    ]
    return ChatMessage(ChatRole.USER, answers)


def _once(framework: Any, results: dict[str, Any]) -> Any:
    """Middleware that keeps what approved calls give, and gives it again where the run is tried again."""

    async def once(context: Any, call_next: Any) -> None:
        answer = context.metadata.get("approval_response")
        call_id = None if answer is None else answer.function_call.call_id
        if call_id in results:
            context.result = results[call_id]
            return
        await call_next()
        if call_id is not None:
            given = context.result
            results[call_id] = given if isinstance(given, list) else str(given)

    return framework.function_middleware(once)


async def _close(stream: Any) -> None:
    if stream is None:
        return
    close = getattr(stream, "close", None) or getattr(stream, "aclose", None)
    if close is not None:
        await close()
