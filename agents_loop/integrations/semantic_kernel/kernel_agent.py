"""Any `AIAgent`, a `LoopAgent` for one, as an agent of Semantic Kernel."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias
from weakref import WeakKeyDictionary

from pydantic import BaseModel, ConfigDict, PrivateAttr, ValidationError, model_serializer
from semantic_kernel.agents.agent import Agent, AgentResponseItem, AgentThread
from semantic_kernel.agents.chat_completion.chat_completion_agent import ChatHistoryAgentThread
from semantic_kernel.connectors.ai.completion_usage import CompletionUsage
from semantic_kernel.contents.chat_message_content import ChatMessageContent
from semantic_kernel.contents.streaming_chat_message_content import StreamingChatMessageContent
from semantic_kernel.contents.streaming_text_content import StreamingTextContent
from semantic_kernel.contents.utils.author_role import AuthorRole

from agents_loop.agent import AgentResponse, AgentRunOptions, AgentSession, AIAgent
from agents_loop.errors import ConfigurationError
from agents_loop.integrations.semantic_kernel.answers import (
    before_the_answer,
    joined_contents,
    parted,
    waiting_contents,
)
from agents_loop.integrations.semantic_kernel.approvals import REQUESTS_KEY, contents_json
from agents_loop.integrations.semantic_kernel.contents import kernel_items, kernel_messages, our_message
from agents_loop.integrations.semantic_kernel.session_thread import AgentSessionThread
from agents_loop.loop.agent import LoopAgent
from agents_loop.loop.answer import answer_messages
from agents_loop.loop.result import LoopResult
from agents_loop.loop.resuming import pending_approvals
from agents_loop.messages import (
    ChatMessage,
    Content,
    TextContent,
    ToolApprovalResponseContent,
    UsageDetails,
)

Streams: TypeAlias = Literal["final", "all"]
"""What `invoke_stream` gives of a loop: the final iteration alone, or all of them as they come."""
KernelMessages: TypeAlias = str | ChatMessageContent | Sequence[str | ChatMessageContent] | None
OnIntermediate: TypeAlias = Callable[[ChatMessageContent], Awaitable[None]] | None


class LoopDetails(BaseModel):
    """What a message's metadata tells of the run behind it: `LoopResult.of(message.metadata["agents_loop"])` reads it.

    A copy of the message shares it; written as JSON it is the result's JSON.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True, frozen=True)

    result: LoopResult | None
    """How the loop went; `None` where the agent is no loop."""
    response: AgentResponse
    """All that the agent gave."""

    @model_serializer
    def _as_json(self) -> Any:
        return None if self.result is None else json.loads(self.result.to_json())

    def __deepcopy__(self, memo: dict[int, Any] | None = None) -> LoopDetails:
        return self


class KernelAgent(Agent):
    """An `AIAgent` as an agent of Semantic Kernel. Made by `as_semantic_kernel_agent`."""

    inner_agent: AIAgent
    streams: Streams = "final"
    _waiting: WeakKeyDictionary[AgentThread, _Waiting] = PrivateAttr(default_factory=WeakKeyDictionary)

    async def get_response(
        self, messages: KernelMessages = None, *, thread: AgentThread | None = None, **kwargs: Any
    ) -> AgentResponseItem[ChatMessageContent]:
        """Run the agent, and give its final answer."""
        answer = None
        async for item in self.invoke(messages, thread=thread, **kwargs):
            answer = item
        assert answer is not None  # noqa: S101 - invoke gives the answer, or raises
        return answer

    async def invoke(
        self,
        messages: KernelMessages = None,
        *,
        thread: AgentThread | None = None,
        on_intermediate_message: OnIntermediate = None,
        **kwargs: Any,
    ) -> AsyncGenerator[AgentResponseItem[ChatMessageContent], None]:
        """Run the agent, and give its final answer. What came before it goes to `on_intermediate_message`."""
        run = await self._begin(messages, thread)
        response = await self.inner_agent.run(run.messages, session=run.session, options=_options(kwargs))
        await _tell(on_intermediate_message, before_the_answer(response))
        answer = self._answer(response)
        await self._end(run, response, answer)
        yield AgentResponseItem(message=answer, thread=run.thread)

    async def invoke_stream(
        self,
        messages: KernelMessages = None,
        *,
        thread: AgentThread | None = None,
        on_intermediate_message: OnIntermediate = None,
        **kwargs: Any,
    ) -> AsyncGenerator[AgentResponseItem[StreamingChatMessageContent], None]:
        """Run the agent, and give its answer in chunks, which Semantic Kernel joins into one message.

        Of a loop it gives the final iteration alone, once it is known to be that; with `streams="all"`, or of an agent
        that is no loop, each chunk as it comes. What is no text of the agent goes to `on_intermediate_message`.
        """
        run = await self._begin(messages, thread)
        is_begun = False
        if self.streams == "final" and self.inner_agent.get_service(LoopAgent) is not None:
            response = await self.inner_agent.run(run.messages, session=run.session, options=_options(kwargs))
            await _tell(on_intermediate_message, before_the_answer(response))
            for content in joined_contents(answer_messages(response)):
                chunk = self._chunk(run.thread, [content])
                if chunk.message.items:
                    is_begun = True
                    yield chunk
        else:
            stream = self.inner_agent.run_streaming(run.messages, session=run.session, options=_options(kwargs))
            async with aclosing(stream):
                async for update in stream:
                    shown, aside = parted(update)
                    await _tell(on_intermediate_message, aside)
                    if shown:
                        is_begun = True
                        yield self._chunk(run.thread, shown)
            response = await stream.final_response()
        await self._end(run, response, self._answer(response))
        yield self._chunk(run.thread, waiting_contents(response, is_begun=is_begun), self._metadata(response))

    async def _begin(self, messages: KernelMessages, thread: AgentThread | None) -> _Run:
        if thread is None:
            thread = AgentSessionThread(self.inner_agent)
        if isinstance(thread, AgentSessionThread):
            session = await thread.started()
            given = [*thread.pending, *(our_message(message) for message in _listed(messages))]
            thread.pending.clear()
            waiting = self._waiting.get(thread)
            is_answered = waiting is not None and waiting.is_answered_by(given)
            return _Run(thread, waiting.session if waiting and is_answered else session, given)
        if isinstance(thread, ChatHistoryAgentThread):
            return await self._begin_with_history([_kernel_message(message) for message in _listed(messages)], thread)
        raise ConfigurationError(
            f"thread must be an AgentSessionThread or a ChatHistoryAgentThread, not a {type(thread).__name__}"
        )

    async def _begin_with_history(self, given: list[ChatMessageContent], thread: ChatHistoryAgentThread) -> _Run:
        """All of a thread's messages in a new session; but those that answer a run that waits, in its session."""
        for message in given:
            await thread.on_new_message(message)
        history = [message async for message in thread.get_messages()]
        waiting = self._waiting.get(thread)
        if waiting is not None:
            since = [our_message(message) for message in waiting.since(history) or given]
            if waiting.is_answered_by(since):
                return _Run(thread, waiting.session, since)
        messages = [our_message(message, is_past=not any(message is new for new in given)) for message in history]
        return _Run(thread, await self.inner_agent.create_session(), messages)

    async def _end(self, run: _Run, response: AgentResponse, answer: ChatMessageContent) -> None:
        """Let a thread that keeps the history have the answer; remember a run that waits for approval."""
        if not isinstance(run.thread, AgentSessionThread):
            await run.thread.on_new_message(answer)
        self._waiting.pop(run.thread, None)
        requests = pending_approvals(response)
        if requests:
            result = LoopResult.of(response)
            session = run.session if result is None else result.session or run.session
            self._waiting[run.thread] = _Waiting(session, {request.request_id for request in requests}, answer)

    def _answer(self, response: AgentResponse) -> ChatMessageContent:
        contents = joined_contents(answer_messages(response))
        is_begun = any(isinstance(content, TextContent) for content in contents)
        return ChatMessageContent(
            role=AuthorRole.ASSISTANT,
            items=kernel_items([*contents, *waiting_contents(response, is_begun=is_begun)]),
            name=self.name,
            metadata=self._metadata(response),
        )

    def _metadata(self, response: AgentResponse) -> dict[str, Any]:
        metadata: dict[str, Any] = {"agents_loop": LoopDetails(result=LoopResult.of(response), response=response)}
        if response.usage is not None:
            metadata["usage"] = _kernel_usage(response.usage)
        requests = pending_approvals(response)
        if requests:
            metadata[REQUESTS_KEY] = contents_json(requests)
        return metadata

    def _chunk(
        self, thread: AgentThread, contents: list[Content], metadata: dict[str, Any] | None = None
    ) -> AgentResponseItem[StreamingChatMessageContent]:
        items = [
            StreamingTextContent(choice_index=0, text=content.text) if isinstance(content, TextContent) else item
            for content in contents
            for item in kernel_items([content])  # none for what is not sent
        ]
        chunk = StreamingChatMessageContent(
            role=AuthorRole.ASSISTANT, choice_index=0, items=items, name=self.name, metadata=metadata
        )
        return AgentResponseItem(message=chunk, thread=thread)


@dataclass(frozen=True, slots=True)
class _Run:
    """What one run is given."""

    thread: AgentThread
    session: AgentSession
    messages: list[ChatMessage]


@dataclass(frozen=True, slots=True)
class _Waiting:
    """A run of a thread that waits for approval."""

    session: AgentSession
    request_ids: set[str]
    answer: ChatMessageContent
    """What the thread was told."""

    def is_answered_by(self, messages: list[ChatMessage]) -> bool:
        """Whether the messages hold a person's word on what is asked."""
        return any(
            isinstance(content, ToolApprovalResponseContent) and content.request_id in self.request_ids
            for message in messages
            for content in message.contents
        )

    def since(self, history: list[ChatMessageContent]) -> list[ChatMessageContent]:
        """What was said after the run; nothing where the history no longer has its answer."""
        places = [place for place, message in enumerate(history) if message is self.answer]
        return history[places[-1] + 1 :] if places else []


def as_semantic_kernel_agent(
    agent: AIAgent, *, name: str | None = None, description: str | None = None, streams: Streams = "final"
) -> KernelAgent:
    """A loop, or any other agent, as an agent of Semantic Kernel: for orchestrations, and as a plugin of a kernel.

    Its threads are sessions (`AgentSessionThread`); a `ChatHistoryAgentThread` is accepted too: the run then gets all
    of its messages in a session of its own, and adds the answer to it. The answer's `metadata["agents_loop"]` holds the
    run: read it with `LoopResult.of`. What the agent raises is raised as it is.

    Args:
        agent: The agent.
        name: What other agents call it: letters, digits, `_` and `-`; by default the agent's name.
        description: What it is for. Group chats need one; by default the agent's.
        streams: What `invoke_stream` gives of a loop. An orchestration joins all chunks into one message, so with
            `"all"` the next agent reads the drafts glued together.

    Raises:
        TypeError: The agent is no `AIAgent`.
        ConfigurationError: There is no name, or Semantic Kernel does not take it.
    """
    if not isinstance(agent, AIAgent):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise TypeError(f"agent must be an AIAgent, not {type(agent).__name__}")
    called = agent.name if name is None else name
    if called is None:
        raise ConfigurationError("an agent of Semantic Kernel needs a name: give name=...")
    try:
        return KernelAgent(
            inner_agent=agent,
            name=called,
            description=agent.description if description is None else description,
            streams=streams,
        )
    except ValidationError as error:
        raise ConfigurationError(
            f"Semantic Kernel does not take name={called!r}, streams={streams!r}: {error}"
        ) from error


def _listed(messages: KernelMessages) -> list[str | ChatMessageContent]:
    if messages is None:
        return []
    return [messages] if isinstance(messages, str | ChatMessageContent) else list(messages)


def _kernel_message(message: str | ChatMessageContent) -> ChatMessageContent:
    return ChatMessageContent(role=AuthorRole.USER, content=message) if isinstance(message, str) else message


def _options(given: dict[str, Any]) -> AgentRunOptions | None:
    """What Semantic Kernel passes beside the messages, for the agent to use if it knows it."""
    named = {name: value for name, value in given.items() if value is not None}
    return AgentRunOptions(additional_properties=named) if named else None


async def _tell(on_intermediate_message: OnIntermediate, messages: list[ChatMessage]) -> None:
    if on_intermediate_message is not None:
        for message in kernel_messages(messages):
            await on_intermediate_message(message)


def _kernel_usage(usage: UsageDetails) -> CompletionUsage:
    return CompletionUsage(prompt_tokens=usage.input_token_count, completion_tokens=usage.output_token_count)
