"""Several chat clients as one: the next one is asked where one is down."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack
from dataclasses import replace
from typing import Any, Final

from agents_loop.adapting import ChatClientLike, as_chat_client
from agents_loop.chat_client import ChatClient, ChatOptions, ChatResponse, ChatResponseUpdate
from agents_loop.errors import ConfigurationError
from agents_loop.failures import TRANSIENT_CAUSES, FailureCause, cause_of, usage_of_error
from agents_loop.messages import (
    ChatMessage,
    JsonValue,
    TextContent,
    TextReasoningContent,
    UsageContent,
    UsageDetails,
    sum_usage,
)
from agents_loop.streams import close_stream

FALLBACK_PROPERTY: Final = "fallback"
"""Where a response's `additional_properties` say who answered."""

_FALLS_ON = TRANSIENT_CAUSES | {FailureCause.QUOTA}


class FallbackChatClient(ChatClient):
    """Asks the first client; where that is down, the next one, and so on.

    It falls on what another server may do better: 429 (a used-up quota too), 5xx, a broken connection and a timeout. A
    request that was rejected (400, 401, 403, 404, 422) and a reply that ended early are not taken elsewhere. Each call
    begins with the first client: nothing is remembered between calls. In a stream it falls only before the first piece
    that shows something. Each client may have tried again by itself before; give it few attempts of its own.

    The response's `additional_properties["fallback"]` say who answered: `client` (its place, from 0) and `failed` (the
    causes, in order). Where all fail, the last one's exception is raised as it was raised, with the earlier ones in its
    notes.

    Args:
        clients: In the order in which they are asked: `ChatClient`s, or whatever `as_chat_client` makes one of.

    Raises:
        ConfigurationError: There is none.
        TypeError: One of them is `None` or nothing that is known.
    """

    def __init__(self, *clients: ChatClientLike) -> None:
        if not clients:
            raise ConfigurationError("clients must hold at least one chat client")
        self.clients: tuple[ChatClient, ...] = tuple([as_chat_client(client, name="clients") for client in clients])

    @property
    def model_id(self) -> str | None:
        """The model of the first client, if it says so."""
        model: object = getattr(self.clients[0], "model_id", None)
        return model if isinstance(model, str) else None

    async def get_response(self, messages: Sequence[ChatMessage], options: ChatOptions | None = None) -> ChatResponse:
        """Ask them in turn.

        Raises:
            Exception: What the last one raised that was asked, as it was raised.
        """
        failed = _Failed()
        for number, client in enumerate(self.clients):
            try:
                response = await client.get_response(messages, options)
            except Exception as error:
                if not failed.take(error) or number == len(self.clients) - 1:
                    failed.note(error)
                    raise
            else:
                usage = sum_usage([response.usage, *failed.usages])
                noted = {**(response.additional_properties or {}), FALLBACK_PROPERTY: failed.answered_by(number)}
                return replace(response, usage=usage, additional_properties=noted)
        raise AssertionError  # pragma: no cover - the last client answered, or its error was raised

    async def get_streaming_response(
        self, messages: Sequence[ChatMessage], options: ChatOptions | None = None
    ) -> AsyncIterator[ChatResponseUpdate]:
        """Ask them in turn, until one has given a piece that shows something; from then on it is that one's stream.

        Raises:
            Exception: As for `get_response`; and what a stream raised that had begun to show something.
        """
        failed = _Failed()
        for number, client in enumerate(self.clients):
            stream = client.get_streaming_response(messages, options)
            async with AsyncExitStack() as closing:
                closing.push_async_callback(close_stream, stream)
                held: list[ChatResponseUpdate] = []
                try:
                    async for update in stream:
                        held.append(update)
                        if _shows(update):
                            break
                except Exception as error:
                    falls = failed.take(error)
                    if falls and number < len(self.clients) - 1:
                        failed.usages += _usages(held)
                        continue
                    for update in [*held, *failed.usage_updates()]:
                        yield update
                    failed.note(error)
                    raise
                for update in [*held, *failed.usage_updates()]:
                    yield update
                async for update in stream:
                    yield update
                yield ChatResponseUpdate(additional_properties={FALLBACK_PROPERTY: failed.answered_by(number)})
                return

    async def aclose(self) -> None:
        """Close the clients' connections, of those that have any."""
        for client in self.clients:
            close: Any = getattr(client, "aclose", None)
            if close is not None:
                await close()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join([repr(client) for client in self.clients])})"


class _Failed:
    """The clients of one call that failed."""

    def __init__(self) -> None:
        self.usages: list[UsageDetails | None] = []
        """What they used, as far as they told."""
        self._errors: list[Exception] = []

    def take(self, error: Exception) -> bool:
        """Whether the next client may be asked instead."""
        self._errors.append(error)
        self.usages.append(usage_of_error(error))
        return cause_of(error) in _FALLS_ON

    def note(self, error: Exception) -> None:
        """Write on the last error what came before it."""
        for number, earlier in enumerate(self._errors[:-1]):
            error.add_note(f"Before, the client {number} failed: {type(earlier).__name__}: {earlier}")

    def answered_by(self, number: int) -> JsonValue:
        """What a response says of who answered."""
        return {"client": number, "failed": [cause_of(error).value for error in self._errors]}

    def usage_updates(self) -> list[ChatResponseUpdate]:
        """A piece that counts what they used, if they told."""
        used = sum_usage(self.usages)
        return [] if used is None else [ChatResponseUpdate(contents=[UsageContent(used)])]


def _shows(update: ChatResponseUpdate) -> bool:
    """Whether a piece has something of the answer in it, so that another answer must not follow it."""
    return any(
        not isinstance(content, UsageContent)
        and not (isinstance(content, TextContent | TextReasoningContent) and not content.text)
        for content in update.contents
    )


def _usages(updates: Sequence[ChatResponseUpdate]) -> list[UsageDetails]:
    return [content.details for update in updates for content in update.contents if isinstance(content, UsageContent)]
