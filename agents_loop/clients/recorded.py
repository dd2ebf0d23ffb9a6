"""A chat client that writes its calls down, answers from what was written down, or both."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Sequence

from agents_loop.chat_client import ChatClient, ChatOptions, ChatResponse, ChatResponseUpdate
from agents_loop.clients.call_key import ModelCall
from agents_loop.clients.recordings import Recordings
from agents_loop.messages import ChatMessage
from agents_loop.streams import close_stream


class RecordedChatClient(ChatClient):
    """Answers a call with the reply that was recorded for the very same call; another is passed on, and recorded.

    What makes a call the same is `call_json`. A client counts how often it made each call: the n-th time gets the n-th
    reply that was recorded, so that several samples of one prompt stay several. A call that failed is not recorded. A
    recorded reply keeps its usage.

    Args:
        inner: Who is asked what was not recorded; `None`: nobody, that is an error.
        recordings: Where the calls are.
        model: Who is asked, as the call's key says it.
    """

    def __init__(self, inner: ChatClient | None, recordings: Recordings, model: str) -> None:
        self.inner = inner
        said: object = getattr(inner, "model_id", None)
        self.model_id = said if isinstance(said, str) and said else model
        self._recordings = recordings
        self._model = model
        self._made: Counter[str] = Counter()

    async def get_response(self, messages: Sequence[ChatMessage], options: ChatOptions | None = None) -> ChatResponse:
        """The recorded reply, or the client's.

        Raises:
            UnknownCallError: The call was not recorded, and there is nobody to ask.
        """
        call, known = self._look_up(messages, options)
        if known is not None:
            return known
        response = await self._asked(call).get_response(messages, options)
        self._recordings.add(call, response)
        return response

    async def get_streaming_response(
        self, messages: Sequence[ChatMessage], options: ChatOptions | None = None
    ) -> AsyncIterator[ChatResponseUpdate]:
        """The same, in pieces. A stream that is closed early is not recorded."""
        call, known = self._look_up(messages, options)
        if known is not None:
            for update in known.to_updates():
                yield update
            return
        stream = self._asked(call).get_streaming_response(messages, options)
        updates: list[ChatResponseUpdate] = []
        try:
            async for update in stream:
                updates.append(update)
                yield update
        finally:
            await close_stream(stream)
        self._recordings.add(call, ChatResponse.from_updates(updates))

    async def aclose(self) -> None:
        """Close the client behind it."""
        close = getattr(self.inner, "aclose", None)
        if close is not None:
            await close()

    def _look_up(
        self, messages: Sequence[ChatMessage], options: ChatOptions | None
    ) -> tuple[ModelCall, ChatResponse | None]:
        call = ModelCall.of(self._model, messages, options)
        self._made[call.key] += 1
        return call, self._recordings.reply(call, self._made[call.key])

    def _asked(self, call: ModelCall) -> ChatClient:
        if self.inner is None:
            raise self._recordings.unknown(call, self._made[call.key])
        return self.inner
