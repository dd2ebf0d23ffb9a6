"""The agent: what it is made of, and how its runs are begun and ended."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import aclosing

from agents_loop.agent import (
    AgentResponse,
    AgentResponseUpdate,
    AgentRunOptions,
    AgentSession,
    AIAgent,
    Service,
)
from agents_loop.chat_client import ChatClient, ChatOptions, ChatResponse, ChatResponseUpdate
from agents_loop.chat_client_agent.held import HELD_KEY, HeldExchange, calls_of, hold
from agents_loop.chat_client_agent.providing import ProvidedRun, checked_providers
from agents_loop.chat_client_agent.rounds import Asking, ToolRun, checked_rounds
from agents_loop.chat_client_agent.shown import Shown, signed, update_of
from agents_loop.chat_client_agent.toolbox import AutoApprove, Toolbox
from agents_loop.context_providers.provider import ContextProvider
from agents_loop.messages import ChatMessage, ChatRole, FunctionCallContent
from agents_loop.streams import close_stream
from agents_loop.tools import Tool, as_tool


class ChatClientAgent(AIAgent):
    """A chat client with instructions, a memory, tools and context providers.

    The session keeps the conversation (`session.messages`): what the caller said and what the model answered, tool
    calls and their results included, added once an answer is complete. A run that fails, or whose stream is closed
    early, leaves the session's messages as they were, so that it can be run again. The instructions are sent with each
    call and are not part of the history.

    The model's calls are run, several at once, and their results sent to it, until it answers without a call. If a call
    needs approval, none of its turn is run: the response carries a `ToolApprovalRequestContent`, and a run in the same
    session whose input has the `ToolApprovalResponseContent` goes on from there.

    Args:
        chat_client: The model.
        instructions: The system message.
        name: The agent's name, stamped on its messages.
        description: What the agent is for.
        tools: Function tools; a plain function becomes one. A mapping is sent as it is, and a call of what it declares
            ends the run: the caller answers it with a `FunctionResultContent`.
        context_providers: What adds to each run, in order.
        options: Asked of every call; a run's own `chat_options` are laid over them. Tools in them come after `tools`.
        auto_approve: Asked about each call that needs approval; where it gives `True` the call is run.
        max_tool_rounds: How often calls are run in one exchange. Then the model is asked once more, without tools.

    Raises:
        TypeError: The client is `None` or no `ChatClient`, or something else is of a wrong type.
        ConfigurationError: Two tools have one name, or `max_tool_rounds` is less than 1.
    """

    def __init__(
        self,
        chat_client: ChatClient,
        *,
        instructions: str | None = None,
        name: str | None = None,
        description: str | None = None,
        tools: Sequence[Tool] = (),
        context_providers: Sequence[ContextProvider] = (),
        options: ChatOptions | None = None,
        auto_approve: AutoApprove | None = None,
        max_tool_rounds: int = 20,
    ) -> None:
        if not isinstance(chat_client, ChatClient):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise TypeError(f"chat_client must be a ChatClient, not {type(chat_client).__name__}")
        self.chat_client = chat_client
        self._system = [] if instructions is None else [ChatMessage(ChatRole.SYSTEM, instructions)]
        self.name = name
        self.description = description
        self.options = options
        self.tools = tuple([as_tool(given) for given in tools])
        Toolbox(self.tools)
        self.context_providers = checked_providers(context_providers)
        if auto_approve is not None and not callable(auto_approve):
            raise TypeError(f"auto_approve must be callable, not {auto_approve!r}")
        self.auto_approve = auto_approve
        self.max_tool_rounds = checked_rounds(max_tool_rounds)
        self._is_plain = not self.tools and not self.context_providers
        """Whether a run is one call, unless its options have tools or its session holds an exchange."""

    @property
    def instructions(self) -> str | None:
        """The system message's text."""
        return self._system[0].text if self._system else None

    async def run_core(
        self, messages: list[ChatMessage], *, session: AgentSession | None, options: AgentRunOptions | None
    ) -> AgentResponse:
        """Call the model, and again as long as it calls tools, and add the exchange to the session."""
        asked = self.options if options is None else self._chat_options(options)
        if not self._is_one_call(session, asked):
            given: list[AgentResponse] = []
            async with aclosing(self._run(messages, session, asked, given, streaming=False)) as updates:
                async for _ in updates:
                    pass
            return given[0]
        history = () if session is None else session.messages
        response = await self.chat_client.get_response([*self._system, *history, *messages], asked)
        answer = self._answer(response)
        _remember(session, messages, answer)
        return answer

    async def run_core_streaming(
        self, messages: list[ChatMessage], *, session: AgentSession | None, options: AgentRunOptions | None
    ) -> AsyncIterator[AgentResponseUpdate]:
        """The same, streaming; the exchange is added to the session when the stream is complete."""
        asked = self._chat_options(options)
        if not self._is_one_call(session, asked):
            async with aclosing(self._run(messages, session, asked, [], streaming=True)) as updates:
                async for update in updates:
                    yield update
            return
        pieces: list[ChatResponseUpdate] = []
        history = () if session is None else session.messages
        stream = self.chat_client.get_streaming_response([*self._system, *history, *messages], asked)
        try:
            async for piece in stream:
                pieces.append(piece)
                yield update_of(piece, self)
        finally:
            await close_stream(stream)
        _remember(session, messages, self._answer(ChatResponse.from_updates(pieces)))

    def get_service(self, service_type: type[Service], key: object | None = None) -> Service | None:
        """This agent, its chat client, or what its context providers offer."""
        own = super().get_service(service_type, key)
        if own is not None:
            return own
        if key is None and isinstance(self.chat_client, service_type):
            return self.chat_client
        offers = (provider.get_service(service_type, key) for provider in self.context_providers)
        return next((offer for offer in offers if offer is not None), None)

    def _is_one_call(self, session: AgentSession | None, asked: ChatOptions | None) -> bool:
        """Whether a run is a single call of the model: nothing is offered, added or held."""
        return (
            self._is_plain and (asked is None or not asked.tools) and (session is None or HELD_KEY not in session.state)
        )

    async def _run(
        self,
        messages: list[ChatMessage],
        session: AgentSession | None,
        asked: ChatOptions | None,
        given: list[AgentResponse],
        *,
        streaming: bool,
    ) -> AsyncGenerator[AgentResponseUpdate, None]:
        """A run with tools or context providers: its pieces, and at its end the whole response in `given`."""
        session = AgentSession() if session is None else session
        async with ProvidedRun(self, self.context_providers, session, messages) as provided:
            asking = Asking(
                client=self.chat_client,
                system=provided.system(self.instructions),
                extra=provided.messages,
                options=asked,
                max_rounds=self.max_tool_rounds,
            )
            further = () if asked is None else asked.tools
            toolbox = Toolbox([*self.tools, *provided.tools, *further], self.auto_approve)
            run = ToolRun(asking, toolbox, Shown(self), messages, session)
            async with aclosing(run.updates(streaming=streaming)) as updates:
                async for update in updates:
                    yield update
            given.append(run.response)
            provided.response = run.response

    def _chat_options(self, options: AgentRunOptions | None) -> ChatOptions | None:
        if options is None or options.chat_options is None:
            return self.options
        return options.chat_options.over(self.options)

    def _answer(self, response: ChatResponse) -> AgentResponse:
        name, messages = self.name, response.messages
        if name is not None:
            messages = [signed(message, name) for message in messages]
        return AgentResponse.from_chat(response, messages, agent_id=self._id or self.id)


def _remember(session: AgentSession | None, messages: list[ChatMessage], answer: AgentResponse) -> None:
    """Add an exchange; one that ends with a call, though no tool was offered, waits for the caller's result."""
    if session is None:
        return
    for message in answer.messages:
        for content in message.contents:
            if type(content) is FunctionCallContent:
                calls = calls_of(answer.messages)
                hold(session, HeldExchange([*messages, *answer.messages], calls, list(range(len(calls))), 0))
                return
    session.messages += messages
    session.messages += answer.messages
