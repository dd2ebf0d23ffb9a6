"""A chat client under the name that a loop file gives its model."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence

from agents_loop.chat_client import ChatClient, ChatOptions, ChatResponse, ChatResponseUpdate
from agents_loop.messages import ChatMessage


class NamedChatClient(ChatClient):
    """Passes its calls on. The name is what a client that does not say its model is called, and priced by.

    Args:
        inner: The client that is called.
        name: The model's name in the file.
    """

    def __init__(self, inner: ChatClient, name: str) -> None:
        self.inner = inner
        said: object = getattr(inner, "model_id", None)
        self.model_id = said if isinstance(said, str) and said else name

    async def get_response(self, messages: Sequence[ChatMessage], options: ChatOptions | None = None) -> ChatResponse:
        """Ask the client."""
        return await self.inner.get_response(messages, options)

    def get_streaming_response(
        self, messages: Sequence[ChatMessage], options: ChatOptions | None = None
    ) -> AsyncIterator[ChatResponseUpdate]:
        """Stream the client."""
        return self.inner.get_streaming_response(messages, options)
