"""A chat client whose calls may take only so long."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence

from agents_loop.chat_client import ChatClient, ChatOptions, ChatResponse, ChatResponseUpdate
from agents_loop.errors import AgentsLoopError
from agents_loop.messages import ChatMessage
from agents_loop.streams import close_stream
from agents_loop.time_limits import CallLimit


class CallTimeoutError(AgentsLoopError, TimeoutError):
    """A model did not answer in the time that the file gives it."""


class TimedChatClient(ChatClient):
    """Passes its calls on, and cancels one that takes too long.

    Args:
        inner: The client that is called.
        timeout_s: Seconds for one call; a stream is to end by then.
        name: What the model is called in messages.
        place: Where the file says so.
    """

    def __init__(self, inner: ChatClient, timeout_s: float, name: str, place: str) -> None:
        self.inner = inner
        self.timeout_s = timeout_s
        self.name = name
        self.place = place
        self.model_id: str | None = getattr(inner, "model_id", None)

    async def get_response(self, messages: Sequence[ChatMessage], options: ChatOptions | None = None) -> ChatResponse:
        """Ask the client.

        Raises:
            CallTimeoutError: It took too long.
        """
        limit = CallLimit.of_seconds(self.timeout_s)
        try:
            async with limit:
                return await self.inner.get_response(messages, options)
        except TimeoutError as error:
            if not limit.is_over:
                raise
            raise self._too_late() from error

    async def get_streaming_response(
        self, messages: Sequence[ChatMessage], options: ChatOptions | None = None
    ) -> AsyncIterator[ChatResponseUpdate]:
        """Stream the client.

        Raises:
            CallTimeoutError: It took too long.
        """
        ends_at = asyncio.get_running_loop().time() + self.timeout_s
        stream = self.inner.get_streaming_response(messages, options)
        try:
            while True:
                # Each piece by itself: what is done with it between two of them is not to be cancelled.
                limit = CallLimit(ends_at)
                try:
                    async with limit:
                        update = await anext(stream)
                except StopAsyncIteration:
                    return
                except TimeoutError as error:
                    if not limit.is_over:
                        raise
                    raise self._too_late() from error
                yield update
        finally:
            await close_stream(stream)

    def _too_late(self) -> CallTimeoutError:
        said = f"the model {self.name!r} did not answer within {self.timeout_s:g} s"
        return CallTimeoutError(f"{self.place}: {said}: allow more, or add another model to fallback_chain")
