"""An agent of Pydantic AI as an inner agent."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable
from dataclasses import dataclass, field
from typing import Any

from agents_loop.agent import AgentResponse, AgentResponseUpdate, AgentRunOptions, AgentSession
from agents_loop.approvals import Pending, Turn, requests_in
from agents_loop.chat_client import ChatOptions
from agents_loop.errors import ConfigurationError
from agents_loop.foreign_agent import ForeignAgent, json_copy, with_ids
from agents_loop.ids import new_id
from agents_loop.integrations.pydantic_ai.parts import (
    from_history,
    from_part,
    from_usage,
    output_text,
    to_prompt,
)
from agents_loop.integrations.pydantic_ai.sdk import load_pydantic_ai
from agents_loop.integrations.pydantic_ai.stream import StreamedParts
from agents_loop.messages import (
    ChatMessage,
    ChatRole,
    FunctionCallContent,
    FunctionResultContent,
    JsonValue,
    ToolApprovalRequestContent,
)


@dataclass(slots=True)
class PydanticAIConversation:
    """The message history, and the calls at its end that wait, if there are some."""

    history: list[Any] = field(default_factory=list[Any])
    pending: Pending = field(default_factory=Pending)
    """A call that waits for a person's word, or (`needs_result`) for a result from outside."""
    has_run: bool = False
    """Whether the calls have run and the history holds their results, but the run that resumed failed after it."""


class PydanticAIAgent(ForeignAgent[PydanticAIConversation]):
    """An `Agent` of Pydantic AI.

    The session holds the message history, which a run adds to once it is complete; it is cloned by value. A structured
    output ends the response as a message with its JSON. Deferred tools end the run with a `ToolApprovalRequestContent`
    for each call that waits, if the agent has `DeferredToolRequests` among its output types. A
    `ToolApprovalResponseContent` resumes it in the same session, as does a `FunctionResultContent` for a call that is
    executed outside; until all are answered, a run gives the requests that are left. What the framework raises reaches
    the caller as it was raised.

    Args:
        agent: The framework's agent.
        deps: Handed to each run.
    """

    framework = "pydantic_ai"

    def __init__(self, agent: Any, *, deps: Any = None) -> None:
        load_pydantic_ai(type(self).__name__)
        self.agent = agent
        self.name = agent.name
        described = getattr(agent, "description", None)
        self.description = described if isinstance(described, str) else None
        self._deps = deps

    async def run_core(
        self, messages: list[ChatMessage], *, session: AgentSession | None, options: AgentRunOptions | None
    ) -> AgentResponse:
        """Run the framework's agent once."""
        conversation = await self.conversation(session)
        turn, rest = conversation.pending.take(messages, have_run=conversation.has_run)
        if turn is Turn.ASK_AGAIN:
            return self._asked_again(conversation)
        arguments = self._arguments(conversation, turn, rest, options)
        if turn is Turn.GO_ON or conversation.has_run:
            return with_ids(self._finish(conversation, await self.agent.run(**arguments)))
        with self._framework.capture_run_messages() as captured:
            try:
                result = await self.agent.run(**arguments)
            except BaseException:
                _keep_results(self._framework, conversation, [part for said in captured for part in said.parts])
                raise
        return with_ids(self._finish(conversation, result))

    async def stream(
        self,
        messages: list[ChatMessage],
        *,
        session: AgentSession | None,
        options: AgentRunOptions | None,
        given: list[AgentResponse],
    ) -> AsyncGenerator[AgentResponseUpdate, None]:
        """Stream the framework's agent once: texts as they come, calls and results whole."""
        conversation = await self.conversation(session)
        turn, rest = conversation.pending.take(messages, have_run=conversation.has_run)
        streamed = StreamedParts(self.id, self.name)
        if turn is Turn.ASK_AGAIN:
            given.append(self._asked_again(conversation))
            for update in streamed.ending(given[0]):
                yield update
            return
        arguments = self._arguments(conversation, turn, rest, options)
        result: Any = None
        results: list[Any] = []
        try:
            async with self.agent.run_stream_events(**arguments) as events:
                async for event in events:
                    if event.event_kind == "agent_run_result":
                        result = event.result
                    elif event.event_kind == "function_tool_result":
                        results.append(event.part)
                    for update in streamed.updates(event):
                        yield update
        except BaseException:
            if turn is Turn.RESUME and not conversation.has_run:
                _keep_results(self._framework, conversation, results)
            raise
        response = self._finish(conversation, result)
        for update in streamed.ending(response):
            yield update
        given.append(response)

    def new_conversation(self) -> PydanticAIConversation:
        """An empty one."""
        return PydanticAIConversation()

    async def write_conversation(self, conversation: PydanticAIConversation) -> JsonValue:
        """The history, as the framework writes it."""
        history = self._framework.ModelMessagesTypeAdapter.dump_python(conversation.history, mode="json")
        pending = conversation.pending.to_json()
        return json_copy({"history": history, "pending": pending, "has_run": conversation.has_run})

    async def read_conversation(self, state: JsonValue) -> PydanticAIConversation:
        """A conversation of its own with the same history."""
        history = self._framework.ModelMessagesTypeAdapter.validate_python(state["history"])
        return PydanticAIConversation(history, Pending.from_json(state["pending"]), state["has_run"])

    @property
    def _framework(self) -> Any:
        return load_pydantic_ai(type(self).__name__)

    def _arguments(
        self,
        conversation: PydanticAIConversation,
        turn: Turn,
        messages: list[ChatMessage],
        options: AgentRunOptions | None,
    ) -> dict[str, Any]:
        before, prompt = to_prompt([message for message in messages if not _only_results(message)])
        decided = self._decided(conversation.pending) if turn is Turn.RESUME and not conversation.has_run else None
        history = [*conversation.history, *before]
        if turn is Turn.GO_ON and conversation.pending.requests:
            history = [*_before_calls(conversation.history), *before]  # nobody decided: the calls are not part of it
        if decided is None and prompt is None and history and history[-1].kind == "response":
            history.append(self._framework.ModelRequest(parts=[]))  # else the last answer would be given once more
        arguments: dict[str, Any] = {
            "user_prompt": prompt,
            "message_history": history or None,
            "deferred_tool_results": decided,
            "deps": self._deps,
        }
        if options is not None and options.chat_options is not None:
            arguments |= _settings(options.chat_options)
        return arguments

    def _decided(self, pending: Pending) -> Any:
        decided = self._framework.DeferredToolResults()
        for request_id in (request.request_id for request in pending.requests):
            if request_id in pending.results:
                decided.calls[request_id] = pending.results[request_id]
            elif request_id in pending.needs_result:
                decided.calls[request_id] = "The tool call was denied."
            else:
                decided.approvals[request_id] = pending.approvals[request_id]
        return decided

    def _finish(self, conversation: PydanticAIConversation, result: Any) -> AgentResponse:
        conversation.history = result.all_messages()
        conversation.has_run = False
        messages = from_history(result.new_messages())
        output = result.output
        waiting = output if isinstance(output, self._framework.DeferredToolRequests) else None
        asked: list[ChatMessage] = []
        if waiting is not None:
            _add_requests(messages, [*waiting.approvals, *waiting.calls])
            asked = messages[-1:]
        elif not isinstance(output, str) and (not messages or messages[-1].role == ChatRole.TOOL):
            messages.append(ChatMessage(ChatRole.ASSISTANT, output_text(output)))
        external = [] if waiting is None else [call.tool_call_id for call in waiting.calls]
        conversation.pending = Pending(requests_in(asked), needs_result=external)
        for message in messages:
            message.author_name = self.name if message.role == ChatRole.ASSISTANT else None
        return AgentResponse(messages, response_id=new_id(), agent_id=self.id, usage=from_usage(result.usage))

    def _asked_again(self, conversation: PydanticAIConversation) -> AgentResponse:
        message = conversation.pending.asked_again(self.name, new_id())
        return AgentResponse([message], response_id=new_id(), agent_id=self.id)


def _keep_results(framework: Any, conversation: PydanticAIConversation, parts: Iterable[Any]) -> None:
    """Let the history hold what the calls that waited gave, if all have run: so none runs again."""
    ids = [request.request_id for request in conversation.pending.requests]
    kinds = ("tool-return", "retry-prompt")
    given = {part.tool_call_id: part for part in parts if part.part_kind in kinds and part.tool_call_id in ids}
    if len(given) == len(ids):
        conversation.history = [*conversation.history, framework.ModelRequest(parts=list(given.values()))]
        conversation.has_run = True


def _before_calls(history: list[Any]) -> list[Any]:
    """A history up to its last response, whose calls wait; what ran beside them goes with it."""
    last = max((at for at, said in enumerate(history) if said.kind == "response"), default=len(history))
    return history[:last]


def _add_requests(messages: list[ChatMessage], calls: Iterable[Any]) -> None:
    if not messages or messages[-1].role != ChatRole.ASSISTANT:
        messages.append(ChatMessage(ChatRole.ASSISTANT, []))
    for call in calls:
        content = from_part(call)
        if isinstance(content, FunctionCallContent):
            messages[-1].contents.append(ToolApprovalRequestContent(content.call_id, content))


def _only_results(message: ChatMessage) -> bool:
    """Whether a message holds results alone, which are no part of the prompt."""
    return bool(message.contents) and all(isinstance(content, FunctionResultContent) for content in message.contents)


def _settings(options: ChatOptions) -> dict[str, Any]:
    if options.response_format is not None or options.tools:
        raise ConfigurationError("a Pydantic AI agent has its own output_type and tools: leave them unset")
    named: dict[str, Any] = {
        "temperature": options.temperature,
        "top_p": options.top_p,
        "max_tokens": options.max_output_tokens,
        "seed": options.seed,
        "stop_sequences": None if options.stop_sequences is None else list(options.stop_sequences),
        "frequency_penalty": options.frequency_penalty,
        "presence_penalty": options.presence_penalty,
    }
    settings = {name: value for name, value in named.items() if value is not None}
    settings |= options.additional_properties or {}
    return {"model": options.model_id, "model_settings": settings or None}
