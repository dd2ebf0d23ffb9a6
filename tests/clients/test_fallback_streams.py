"""Streams of clients that are no generators."""

from __future__ import annotations

from agents_loop import ChatClient, ChatMessage, ChatResponseUpdate, FallbackChatClient


class Pieces:
    """An async iterator without `aclose`."""

    def __init__(self, *pieces):
        self._left = list(pieces)

    def __aiter__(self):
        return self

    async def __anext__(self):
        if not self._left:
            raise StopAsyncIteration
        piece = self._left.pop(0)
        if isinstance(piece, Exception):
            raise piece
        return ChatResponseUpdate("assistant", [piece])


class Iterating(ChatClient):
    def __init__(self, *pieces):
        self._pieces = pieces

    async def get_response(self, messages, options=None):
        raise NotImplementedError

    def get_streaming_response(self, messages, options=None):
        return Pieces(*self._pieces)


async def test_a_stream_that_cannot_be_closed():
    """F6: any async iterator is a stream; it falls before the first piece that shows something."""
    clients = FallbackChatClient(Iterating(TimeoutError()), Iterating("A ", "plan."))
    shown = [update.text async for update in clients.get_streaming_response([ChatMessage("user", "go")])]
    assert "".join(shown) == "A plan."
