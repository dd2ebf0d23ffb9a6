"""A chat client for every server that speaks the chat completions API."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import aclosing, suppress
from types import TracebackType
from typing import TYPE_CHECKING, NoReturn, Self
from urllib.parse import urlsplit

from agents_loop.chat_client import ChatClient, ChatOptions, ChatResponse, ChatResponseUpdate
from agents_loop.clients.chat_completions.dialect import (
    Dialect,
    MaxTokensParameter,
    is_content_filter,
    provider_message,
)
from agents_loop.clients.chat_completions.request import Request
from agents_loop.clients.chat_completions.response import filtered_prompt, read_reply
from agents_loop.clients.chat_completions.sdk import (
    api_error,
    complete,
    stream_chunks,
    stream_cut_off,
    unreadable_reply,
)
from agents_loop.clients.chat_completions.stream import StreamReader
from agents_loop.clients.chat_completions.wire_messages import Wire
from agents_loop.errors import ConfigurationError
from agents_loop.messages import ChatMessage, as_messages

if TYPE_CHECKING:
    from agents_loop.clients.chat_completions.sdk import Sdk


class ChatCompletionsClient(ChatClient):
    """One stateless call to a server that speaks the chat completions API.

    Args:
        make_sdk_client: Gives the SDK's client, or an awaitable of one. It is called at the first request, once for
            each event loop that uses this client (connections belong to a loop), seldom twice when several
            requests come first at once; the surplus one is closed.
        model_id: The model to ask, unless a call's options name another.
        options: Defaults, laid under each call's options.
        endpoint: The server's address, as far as it is known beforehand; its host is shown in `repr`.
        max_tokens_parameter: The parameter to try first for `max_output_tokens`.
        owns_sdk_client: Whether `aclose` closes what `make_sdk_client` gave.
    """

    def __init__(
        self,
        make_sdk_client: Callable[[], Sdk | Awaitable[Sdk]],
        model_id: str,
        *,
        options: ChatOptions | None = None,
        endpoint: str | None = None,
        max_tokens_parameter: MaxTokensParameter = "max_completion_tokens",
        owns_sdk_client: bool = True,
    ) -> None:
        if not isinstance(model_id, str):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise TypeError(f"model_id must be a str, not {type(model_id).__name__}")
        if not model_id.strip():
            raise ConfigurationError("model_id must name a model, it is blank")
        self.model_id = model_id
        self._make_sdk_client = make_sdk_client
        self._options = options
        self.address = _without_secrets(endpoint)
        """Where its requests go, without a password or a query; `None`: that is the SDK client's matter."""
        self._host = _host(endpoint)
        self._max_tokens_parameter: MaxTokensParameter = max_tokens_parameter
        self._owns_sdk_client = owns_sdk_client
        self._dialects: dict[str, Dialect] = {}
        self._sdk_clients: dict[asyncio.AbstractEventLoop, Sdk] = {}

    async def get_response(self, messages: Sequence[ChatMessage], options: ChatOptions | None = None) -> ChatResponse:
        """Ask the model, and wait for its whole answer.

        An answer that was cut off, refused or filtered is an answer; its `finish_reason` says so.

        Raises:
            ConfigurationError: A message or an option that the API has no words for.
            openai.OpenAIError: Whatever the SDK raises, as it was raised. The SDK has by then tried again as often
                as it was told to.
        """
        request, model_id = self._request(messages, options, streaming=False)
        dialect = self._dialect(model_id)
        sdk = await self._sdk()
        while True:
            put = request.put(dialect)
            try:
                reply = await complete(sdk, put)
            except api_error() as error:
                if is_content_filter(error):
                    return filtered_prompt(provider_message(error), model_id)
                if not dialect.learn(error, put):
                    raise
            else:
                return read_reply(reply) or self._no_answer(sdk, reply)

    async def get_streaming_response(
        self, messages: Sequence[ChatMessage], options: ChatOptions | None = None
    ) -> AsyncGenerator[ChatResponseUpdate, None]:
        """Ask the model, and get its answer in pieces. Closing the iterator closes the connection.

        Raises:
            ConfigurationError: As for `get_response`.
            openai.OpenAIError: Whatever the SDK raises, as it was raised; and an `APIConnectionError` when the
                stream ends before the answer does. Nothing is asked again once a piece was given out.
        """
        request, model_id = self._request(messages, options, streaming=True)
        dialect = self._dialect(model_id)
        sdk = await self._sdk()
        while True:
            put = request.put(dialect)
            reader = StreamReader(model_id)
            try:
                async with aclosing(_shown(sdk, put, reader)) as updates:
                    async for update in updates:
                        yield update
                last = reader.finish()
            except api_error() as error:
                if is_content_filter(error):
                    last = reader.withheld(provider_message(error))
                elif not reader.has_shown and dialect.learn(error, put):
                    continue
                else:
                    for update in reader.usage_so_far():
                        yield update
                    raise
            for update in last:
                yield update
            return

    async def aclose(self) -> None:
        """Close this event loop's connections. The client may be used again; it then opens new ones."""
        sdk = self._sdk_clients.pop(asyncio.get_running_loop(), None)
        if sdk is not None and self._owns_sdk_client:
            await sdk.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.aclose()

    def __repr__(self) -> str:
        return f"{type(self).__name__}(model_id={self.model_id!r}, host={self._host!r})"

    def _request(
        self, messages: Sequence[ChatMessage], options: ChatOptions | None, *, streaming: bool
    ) -> tuple[Request, str]:
        laid = (options or ChatOptions()).over(self._options)
        model_id = laid.model_id or self.model_id
        return Request(as_messages(messages), laid, model_id, streaming=streaming), model_id

    def _dialect(self, model_id: str) -> Dialect:
        return self._dialects.setdefault(model_id, Dialect(self._max_tokens_parameter))

    def _no_answer(self, sdk: Sdk, reply: object) -> NoReturn:
        said = getattr(reply, "error", None)
        because = f"; the server said {said!r}" if said else ""
        kind = f"a {type(reply).__name__}" if isinstance(reply, str) else "a reply"
        raise unreadable_reply(
            sdk, f"The server gave {kind} without a message in it{because}. Is the address right?", reply
        )

    async def _sdk(self) -> Sdk:
        loop = asyncio.get_running_loop()
        known = self._sdk_clients.get(loop)
        if known is not None:
            return known
        await self._drop_those_of_closed_loops()
        made = self._make_sdk_client()
        sdk = await made if inspect.isawaitable(made) else made
        kept = self._sdk_clients.setdefault(loop, sdk)
        if kept is not sdk and self._owns_sdk_client:
            await sdk.close()
        return kept

    async def _drop_those_of_closed_loops(self) -> None:
        """Left alone, such a client tries to close itself when it is collected, and logs that it can't."""
        for loop in [loop for loop in self._sdk_clients if loop.is_closed()]:
            sdk = self._sdk_clients.pop(loop)
            if self._owns_sdk_client:
                with suppress(RuntimeError):  # its connections went with their loop
                    await sdk.close()


async def _shown(sdk: Sdk, put: Wire, reader: StreamReader) -> AsyncGenerator[ChatResponseUpdate, None]:
    """What a stream's chunks show, until it ends."""
    async with aclosing(stream_chunks(sdk, put)) as chunks:
        async for chunk in chunks:
            update = reader.read(chunk)
            if update is not None:
                yield update
    if reader.finish_reason is None:
        raise stream_cut_off(sdk)


def _without_secrets(endpoint: str | None) -> str | None:
    if not endpoint:
        return None
    parts = urlsplit(endpoint)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path.rstrip('/')}"


def _host(endpoint: str | None) -> str | None:
    """The host and port alone: an address may hold a password."""
    return urlsplit(endpoint).netloc.rpartition("@")[2] or None if endpoint else None
