"""A chat client under the name that a loop file gives its model."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence

from agents_loop.chat_client import ChatClient, ChatOptions, ChatResponse, ChatResponseUpdate
from agents_loop.messages import ChatMessage


class NamedChatClient(ChatClient):
    """Passes its calls on. The name is what a client that does not say its model is called, and priced by.

    Args:
        inner: The client that is called.
        model_id: The model's name in the file.
    """

    def __init__(self, inner: ChatClient, model_id: str) -> None:
        self.inner = inner
        self.model_id = model_id

    async def get_response(self, messages: Sequence[ChatMessage], options: ChatOptions | None = None) -> ChatResponse:
        """Ask the client."""
        return await self.inner.get_response(messages, options)

    def get_streaming_response(
        self, messages: Sequence[ChatMessage], options: ChatOptions | None = None
    ) -> AsyncIterator[ChatResponseUpdate]:
        """Stream the client."""
        return self.inner.get_streaming_response(messages, options)
