"""An agent made of a chat client: instructions, and a session that holds the history."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from typing import Any

from agents_loop.agent import (
    AgentResponse,
    AgentResponseUpdate,
    AgentRunOptions,
    AgentSession,
    AIAgent,
    Service,
)
from agents_loop.chat_client import ChatClient, ChatOptions, ChatResponse, ChatResponseUpdate
from agents_loop.errors import ConfigurationError
from agents_loop.messages import ChatMessage, ChatRole
from agents_loop.streams import close_stream


class ChatClientAgent(AIAgent):
    """A chat client with instructions and a memory.

    The session keeps the conversation (`session.messages`): what the caller said and what the model answered, added
    once an answer is complete. A run that fails, or whose stream is closed early, leaves the session as it was, so that
    it can be run again. The instructions are sent with each call and are not part of the history.

    Args:
        chat_client: The model.
        instructions: The system message.
        name: The agent's name, stamped on its messages.
        description: What the agent is for.
        tools: Function tools. Not supported yet: anything but an empty sequence is an error.
        context_providers: Not supported yet, as `tools`.
        options: Asked of every call; a run's own `chat_options` are laid over them.

    Raises:
        TypeError: The client is `None` or no `ChatClient`.
    """

    def __init__(
        self,
        chat_client: ChatClient,
        *,
        instructions: str | None = None,
        name: str | None = None,
        description: str | None = None,
        tools: Sequence[Any] = (),
        context_providers: Sequence[Any] = (),
        options: ChatOptions | None = None,
    ) -> None:
        if not isinstance(chat_client, ChatClient):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise TypeError(f"chat_client must be a ChatClient, not {type(chat_client).__name__}")
        if tools or context_providers:
            raise ConfigurationError("tools and context_providers are not supported yet: leave them empty")
        self.chat_client = chat_client
        self._system = [] if instructions is None else [ChatMessage(ChatRole.SYSTEM, instructions)]
        self.name = name
        self.description = description
        self._options = options

    @property
    def instructions(self) -> str | None:
        """The system message's text."""
        return self._system[0].text if self._system else None

    async def run_core(
        self, messages: list[ChatMessage], *, session: AgentSession | None, options: AgentRunOptions | None
    ) -> AgentResponse:
        """Call the model once and add the exchange to the session."""
        response = await self.chat_client.get_response(self._prompt(messages, session), self._chat_options(options))
        answer = self._answer(response)
        _remember(session, messages, answer)
        return answer

    async def run_core_streaming(
        self, messages: list[ChatMessage], *, session: AgentSession | None, options: AgentRunOptions | None
    ) -> AsyncIterator[AgentResponseUpdate]:
        """Call the model once, streaming; the exchange is added to the session when the stream is complete."""
        pieces: list[ChatResponseUpdate] = []
        stream = self.chat_client.get_streaming_response(self._prompt(messages, session), self._chat_options(options))
        try:
            async for piece in stream:
                pieces.append(piece)
                yield self._update(piece)
        finally:
            await close_stream(stream)
        _remember(session, messages, self._answer(ChatResponse.from_updates(pieces)))

    def get_service(self, service_type: type[Service], key: object | None = None) -> Service | None:
        """This agent, or its chat client."""
        own = super().get_service(service_type, key)
        if own is None and key is None and isinstance(self.chat_client, service_type):
            return self.chat_client
        return own

    def _prompt(self, messages: list[ChatMessage], session: AgentSession | None) -> list[ChatMessage]:
        history = () if session is None else session.messages
        return [*self._system, *history, *messages]

    def _chat_options(self, options: AgentRunOptions | None) -> ChatOptions | None:
        if options is None or options.chat_options is None:
            return self._options
        return options.chat_options.over(self._options)

    def _answer(self, response: ChatResponse) -> AgentResponse:
        return AgentResponse(
            response.messages if self.name is None else [self._signed(message) for message in response.messages],
            response_id=response.response_id,
            agent_id=self.id,
            usage=response.usage,
            finish_reason=response.finish_reason,
            created_at=response.created_at,
            additional_properties=response.additional_properties,
        )

    def _signed(self, message: ChatMessage) -> ChatMessage:
        return message if message.author_name is not None else replace(message, author_name=self.name)

    def _update(self, piece: ChatResponseUpdate) -> AgentResponseUpdate:
        return AgentResponseUpdate(
            piece.role,
            piece.contents,
            author_name=piece.author_name or self.name,
            agent_id=self.id,
            response_id=piece.response_id,
            message_id=piece.message_id,
            finish_reason=piece.finish_reason,
            created_at=piece.created_at,
            additional_properties=piece.additional_properties,
        )


def _remember(session: AgentSession | None, messages: list[ChatMessage], answer: AgentResponse) -> None:
    if session is not None:
        session.messages += messages
        session.messages += answer.messages
