"""A chat client for every server that speaks the chat completions API."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Literal, Self, TypeAlias
from weakref import WeakKeyDictionary

from agents_loop.chat_client import ChatClient, ChatOptions, ChatResponse, ChatResponseUpdate
from agents_loop.errors import ConfigurationError
from agents_loop.messages import ChatMessage

if TYPE_CHECKING:
    from agents_loop.clients.chat_completions.sdk import Sdk

MaxTokensParameter: TypeAlias = Literal["max_completion_tokens", "max_tokens"]
"""What `max_output_tokens` is called on the wire: OpenAI's newer name, or the one compatible servers know."""


class ChatCompletionsClient(ChatClient):
    """One stateless call to a server that speaks the chat completions API.

    Args:
        make_sdk_client: Gives the SDK's client, or an awaitable of one. It is called at the first request, once for
            each event loop that uses this client (connections belong to a loop), seldom twice when several
            requests come first at once; the surplus one is closed.
        model_id: The model to ask, unless a call's options name another.
        options: Defaults, laid under each call's options.
        max_tokens_parameter: The parameter to try first for `max_output_tokens`.
        owns_sdk_client: Whether `aclose` closes what `make_sdk_client` gave.
    """

    def __init__(
        self,
        make_sdk_client: Callable[[], Sdk | Awaitable[Sdk]],
        model_id: str,
        *,
        options: ChatOptions | None = None,
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
        self._max_tokens_parameter: MaxTokensParameter = max_tokens_parameter
        self._owns_sdk_client = owns_sdk_client
        self._sdk_clients: WeakKeyDictionary[asyncio.AbstractEventLoop, Sdk] = WeakKeyDictionary()

    async def get_response(self, messages: Sequence[ChatMessage], options: ChatOptions | None = None) -> ChatResponse:
        """Ask the model, and wait for its whole answer."""
        raise NotImplementedError

    async def get_streaming_response(
        self, messages: Sequence[ChatMessage], options: ChatOptions | None = None
    ) -> AsyncIterator[ChatResponseUpdate]:
        """Ask the model, and get its answer in pieces."""
        raise NotImplementedError
        yield

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

    async def _sdk(self) -> Sdk:
        loop = asyncio.get_running_loop()
        known = self._sdk_clients.get(loop)
        if known is not None:
            return known
        made = self._make_sdk_client()
        sdk = await made if inspect.isawaitable(made) else made
        kept = self._sdk_clients.setdefault(loop, sdk)
        if kept is not sdk and self._owns_sdk_client:
            await sdk.close()
        return kept
