"""Any agent of Semantic Kernel as an `AIAgent`."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterable, Callable, Mapping
from contextlib import aclosing
from typing import Any, ClassVar, cast

from semantic_kernel.agents.agent import Agent, AgentResponseItem, AgentThread
from semantic_kernel.agents.chat_completion.chat_completion_agent import ChatCompletionAgent
from semantic_kernel.connectors.ai.chat_completion_client_base import ChatCompletionClientBase
from semantic_kernel.contents.chat_message_content import ChatMessageContent
from semantic_kernel.functions.kernel_arguments import KernelArguments

from agents_loop.agent import AgentResponse, AgentResponseUpdate, AgentRunOptions, AgentSession
from agents_loop.chat_client import ChatOptions
from agents_loop.errors import ConfigurationError, SessionStateError
from agents_loop.foreign_agent import ForeignAgent
from agents_loop.integrations.semantic_kernel.contents import kernel_messages
from agents_loop.integrations.semantic_kernel.reading import RunReader
from agents_loop.integrations.semantic_kernel.settings import run_arguments, service_settings
from agents_loop.integrations.semantic_kernel.streams import ClosingAll
from agents_loop.integrations.semantic_kernel.threads import MakeThread, read_thread, thread_maker, write_thread
from agents_loop.messages import ChatMessage, JsonValue

_OURS = ("messages", "thread", "on_intermediate_message")


class SemanticKernelAgent(ForeignAgent[AgentThread | None]):
    """An agent of Semantic Kernel as an `AIAgent`: its threads are sessions.

    A thread that keeps its history on this side (`ChatHistoryAgentThread`) is cloned by value, tool calls and images
    included. A thread that lives in a service is cloned by its id, so the clone *shares* the conversation. The
    intermediate messages (function calls and their results) are part of the response, in order. What Semantic Kernel
    raises reaches the caller as it was raised; the caller's messages stay in the thread then.

    A run's `chat_options` go into the execution settings of a `ChatCompletionAgent`, and into the arguments of other
    agents' runs, as far as these have them; `additional_properties` become keyword arguments of the run (so
    `{"arguments": KernelArguments(...)}` fills a template).

    Args:
        agent: The agent.
        make_thread: Makes a thread, of an id where one is given. Not needed for the agents that come with
            Semantic Kernel; an agent it does not know makes its thread itself, and that can't be read back.

    Raises:
        TypeError: The agent is no `semantic_kernel.agents.Agent`.
    """

    framework: ClassVar[str] = "semantic_kernel"

    def __init__(self, agent: Agent, *, make_thread: MakeThread | None = None) -> None:
        if not isinstance(agent, Agent):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise TypeError(f"agent must be a semantic_kernel.agents.Agent, not {type(agent).__name__}")
        self.agent = agent
        self.id = agent.id
        self.name = agent.name
        self.description = agent.description
        self._make_thread = make_thread or thread_maker(agent)

    def session_of(self, thread: AgentThread) -> AgentSession:
        """A session that continues a thread."""
        session = AgentSession()
        self.keep(session, thread)
        return session

    def new_conversation(self) -> AgentThread | None:
        """A thread that has not begun; `None` where the agent makes its own."""
        return None if self._make_thread is None else self._make_thread(None)

    async def write_conversation(self, conversation: AgentThread | None) -> JsonValue:
        """A thread with its history by value, or by its id if it lives in a service."""
        return await write_thread(conversation)

    async def read_conversation(self, state: JsonValue) -> AgentThread | None:
        """The thread that was written."""
        if self._make_thread is not None:
            return await read_thread(state, self._make_thread)
        if cast("Mapping[str, JsonValue]", state).get("id") is None:
            return None
        raise SessionStateError(
            f"a thread of {type(self.agent).__name__} can't be made from its id: "
            "give SemanticKernelAgent(agent, make_thread=...)"
        )

    async def run_core(
        self, messages: list[ChatMessage], *, session: AgentSession | None, options: AgentRunOptions | None
    ) -> AgentResponse:
        """Invoke the agent."""
        reader = RunReader(self.id)
        told = self._told(messages, session, options, streaming=False)
        read = [reader.whole(message) async for message, _ in told]
        return reader.response([message for message in read if message is not None])

    async def stream(
        self,
        messages: list[ChatMessage],
        *,
        session: AgentSession | None,
        options: AgentRunOptions | None,
        given: list[AgentResponse],
    ) -> AsyncGenerator[AgentResponseUpdate, None]:
        """Invoke the agent, streaming."""
        reader = RunReader(self.id)
        seen: list[AgentResponseUpdate] = []
        try:
            async with aclosing(self._told(messages, session, options, streaming=True)) as told:
                async for message, is_whole in told:
                    update = _update_of(reader, message) if is_whole else reader.chunk(message)
                    if update is not None:
                        seen.append(update)
                        yield update
        except Exception:
            for update in reader.usage():
                yield update
            raise
        for update in reader.end():
            yield update
        given.append(reader.response(AgentResponse.from_updates(seen).messages))

    async def _told(
        self,
        messages: list[ChatMessage],
        session: AgentSession | None,
        options: AgentRunOptions | None,
        *,
        streaming: bool,
    ) -> AsyncGenerator[tuple[ChatMessageContent, bool], None]:
        """What the agent gives, in order, and whether it is a whole message: each intermediate one is."""
        waiting: list[ChatMessageContent] = []

        async def take(message: ChatMessageContent) -> None:
            waiting.append(message)

        thread = await self.conversation(session)
        items = self._invoke(kernel_messages(messages), thread, take, options, streaming=streaming)
        async with ClosingAll(items):
            async for item in items:
                if item.thread is not thread:
                    thread = item.thread
                    self.keep(session, thread)
                while waiting:
                    yield waiting.pop(0), True
                yield item.message, not streaming
        while waiting:
            yield waiting.pop(0), True

    def _invoke(
        self,
        messages: list[ChatMessageContent],
        thread: AgentThread | None,
        on_intermediate_message: Any,
        options: AgentRunOptions | None,
        *,
        streaming: bool,
    ) -> AsyncIterable[AgentResponseItem[Any]]:
        agent, given = self._asked(options, streaming=streaming)
        invoke = _door(agent, streaming=streaming)
        return invoke(messages, thread=thread, on_intermediate_message=on_intermediate_message, **given)

    def _asked(self, options: AgentRunOptions | None, *, streaming: bool) -> tuple[Agent, dict[str, Any]]:
        """The agent to invoke, and the keyword arguments that the caller's options amount to."""
        given = dict((options and options.additional_properties) or {})
        if taken := given.keys() & set(_OURS):
            raise ConfigurationError(f"additional_properties can't hold {sorted(taken)}: the adapter sets them")
        chat_options = None if options is None else options.chat_options
        if chat_options is None:
            return self.agent, given
        if isinstance(self.agent, ChatCompletionAgent):
            return self._with_settings(self.agent, given, chat_options)
        invoke = _door(self.agent, streaming=streaming)
        return self.agent, {**given, **run_arguments(self.agent, invoke, chat_options)}

    def _with_settings(
        self, agent: ChatCompletionAgent, given: dict[str, Any], options: ChatOptions
    ) -> tuple[Agent, dict[str, Any]]:
        """A copy of the agent, and its own arguments with the options in their settings.

        Semantic Kernel merges the settings of a run into the agent's own for good; the copy keeps them apart.
        """
        own = agent.arguments or KernelArguments()
        arguments = own | (given.pop("arguments", None) or {})
        kernel = given.get("kernel") or agent.kernel
        service, settings = kernel.select_ai_service(arguments=arguments, type=ChatCompletionClientBase)
        laid = service_settings(cast("ChatCompletionClientBase", service), settings, options)
        given["arguments"] = KernelArguments(settings={service.service_id: laid}, **dict(arguments))
        return agent.model_copy(update={"arguments": None}), given


def _door(agent: Agent, *, streaming: bool) -> Callable[..., AsyncIterable[AgentResponseItem[Any]]]:
    return agent.invoke_stream if streaming else agent.invoke  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]


def _update_of(reader: RunReader, message: ChatMessageContent) -> AgentResponseUpdate | None:
    read = reader.whole(message)
    return None if read is None else reader.update(read)
