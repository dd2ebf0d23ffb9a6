"""A chat client whose calls may take only so long."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence

from agents_loop.chat_client import ChatClient, ChatOptions, ChatResponse, ChatResponseUpdate
from agents_loop.messages import ChatMessage
from agents_loop.streams import close_stream


class TimedChatClient(ChatClient):
    """Passes its calls on, and cancels one that takes too long.

    Args:
        inner: The client that is called.
        timeout_s: Seconds for one call; a stream is to end by then.
        name: What the client is called in messages.
    """

    def __init__(self, inner: ChatClient, timeout_s: float, name: str) -> None:
        self.inner = inner
        self.timeout_s = timeout_s
        self.name = name
        self.model_id: str | None = getattr(inner, "model_id", None)

    async def get_response(self, messages: Sequence[ChatMessage], options: ChatOptions | None = None) -> ChatResponse:
        """Ask the client.

        Raises:
            TimeoutError: It took too long.
        """
        limit = asyncio.timeout(self.timeout_s)
        try:
            async with limit:
                return await self.inner.get_response(messages, options)
        except TimeoutError as error:
            raise self._named(error, is_ours=limit.expired()) from error

    async def get_streaming_response(
        self, messages: Sequence[ChatMessage], options: ChatOptions | None = None
    ) -> AsyncIterator[ChatResponseUpdate]:
        """Stream the client.

        Raises:
            TimeoutError: It took too long.
        """
        ends_at = asyncio.get_running_loop().time() + self.timeout_s
        stream = self.inner.get_streaming_response(messages, options)
        try:
            while True:
                # Each piece by itself: what is done with it between two of them is not to be cancelled.
                limit = asyncio.timeout_at(ends_at)
                try:
                    async with limit:
                        update = await anext(stream)
                except StopAsyncIteration:
                    return
                except TimeoutError as error:
                    raise self._named(error, is_ours=limit.expired()) from error
                yield update
        finally:
            await close_stream(stream)

    def _named(self, error: TimeoutError, *, is_ours: bool) -> TimeoutError:
        return TimeoutError(f"{self.name!r} did not answer within {self.timeout_s:g} s") if is_ours else error
