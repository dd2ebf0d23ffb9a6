"""An agent of Pydantic AI as an inner agent."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable
from dataclasses import dataclass, field
from typing import Any

from agents_loop.agent import AgentResponse, AgentResponseUpdate, AgentRunOptions, AgentSession
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
    ToolApprovalResponseContent,
)


@dataclass(slots=True)
class PydanticAIConversation:
    """The message history; and the ids of the calls at its end that wait, if there are some."""

    history: list[Any] = field(default_factory=list[Any])
    approvals: list[str] = field(default_factory=list[str])
    """Calls that wait for a person's word."""
    calls: list[str] = field(default_factory=list[str])
    """Calls that wait for a result from outside."""


class PydanticAIAgent(ForeignAgent[PydanticAIConversation]):
    """An `Agent` of Pydantic AI.

    The session holds the message history, which a run adds to once it is complete; it is cloned by value. A structured
    output ends the response as a message with its JSON. Deferred tools end the run with a `ToolApprovalRequestContent`
    for each call that waits, if the agent has `DeferredToolRequests` among its output types. A
    `ToolApprovalResponseContent` resumes it in the same session, as does a `FunctionResultContent` for a call that is
    executed outside. What the framework raises reaches the caller as it was raised.

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
        result = await self.agent.run(**self._arguments(conversation, messages, options))
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
        arguments = self._arguments(conversation, messages, options)
        streamed = StreamedParts(self.id, self.name)
        result: Any = None
        async with self.agent.run_stream_events(**arguments) as events:
            async for event in events:
                if event.event_kind == "agent_run_result":
                    result = event.result
                for update in streamed.updates(event):
                    yield update
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
        return json_copy({"history": history, "approvals": conversation.approvals, "calls": conversation.calls})

    async def read_conversation(self, state: JsonValue) -> PydanticAIConversation:
        """A conversation of its own with the same history."""
        history = self._framework.ModelMessagesTypeAdapter.validate_python(state["history"])
        return PydanticAIConversation(history, list(state["approvals"]), list(state["calls"]))

    @property
    def _framework(self) -> Any:
        return load_pydantic_ai(type(self).__name__)

    def _arguments(
        self, conversation: PydanticAIConversation, messages: list[ChatMessage], options: AgentRunOptions | None
    ) -> dict[str, Any]:
        before, prompt = to_prompt([message for message in messages if not _only_decides(message)])
        decided = self._decided(conversation, messages)
        history = [*conversation.history, *before]
        if decided is None and (conversation.approvals or conversation.calls):
            history = [*conversation.history[:-1], *before]  # nobody decided: the calls are not part of it
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

    def _decided(self, conversation: PydanticAIConversation, messages: Iterable[ChatMessage]) -> Any:
        results = self._framework.DeferredToolResults()
        for content in (content for message in messages for content in message.contents):
            if isinstance(content, ToolApprovalResponseContent):
                if content.request_id in conversation.approvals:
                    results.approvals[content.request_id] = content.approved
                elif content.request_id in conversation.calls and not content.approved:
                    results.calls[content.request_id] = "The tool call was denied."
            elif isinstance(content, FunctionResultContent) and content.call_id in conversation.calls:
                results.calls[content.call_id] = content.result
        return results if results.approvals or results.calls else None

    def _finish(self, conversation: PydanticAIConversation, result: Any) -> AgentResponse:
        conversation.history = result.all_messages()
        messages = from_history(result.new_messages())
        output = result.output
        waiting = output if isinstance(output, self._framework.DeferredToolRequests) else None
        conversation.approvals = [] if waiting is None else [call.tool_call_id for call in waiting.approvals]
        conversation.calls = [] if waiting is None else [call.tool_call_id for call in waiting.calls]
        if waiting is not None:
            _add_requests(messages, [*waiting.approvals, *waiting.calls])
        elif not isinstance(output, str) and (not messages or messages[-1].role == ChatRole.TOOL):
            messages.append(ChatMessage(ChatRole.ASSISTANT, output_text(output)))
        for message in messages:
            message.author_name = self.name if message.role == ChatRole.ASSISTANT else None
        return AgentResponse(messages, response_id=new_id(), agent_id=self.id, usage=from_usage(result.usage))


def _add_requests(messages: list[ChatMessage], calls: Iterable[Any]) -> None:
    if not messages or messages[-1].role != ChatRole.ASSISTANT:
        messages.append(ChatMessage(ChatRole.ASSISTANT, []))
    for call in calls:
        content = from_part(call)
        if isinstance(content, FunctionCallContent):
            messages[-1].contents.append(ToolApprovalRequestContent(content.call_id, content))


def _only_decides(message: ChatMessage) -> bool:
    """Whether a message holds decisions or results alone, which are no part of the prompt."""
    decisions = (ToolApprovalResponseContent, FunctionResultContent)
    return bool(message.contents) and all(isinstance(content, decisions) for content in message.contents)


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
