"""The one door to openai-python. It is imported inside the functions, so importing this file loads no SDK."""

from __future__ import annotations

import importlib
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from types import ModuleType
from typing import TYPE_CHECKING, Any

from agents_loop.errors import ConfigurationError, MissingExtraError
from agents_loop.retrying import takes_over

if TYPE_CHECKING:
    from openai import APIError, AsyncOpenAI
    from openai.types.chat import ChatCompletion, ChatCompletionChunk

    Sdk = AsyncOpenAI
    """The SDK's async client, of OpenAI or of Azure OpenAI."""


def load_openai(what: str, extra: str) -> ModuleType:
    """The SDK's module.

    Args:
        what: Who needs it, for the message.
        extra: The extra of this library that installs it.

    Raises:
        MissingExtraError: It is not installed.
    """
    try:
        return importlib.import_module("openai")
    except ImportError as error:
        raise MissingExtraError(what, extra) from error


def make_openai(
    *,
    what: str,
    extra: str = "openai",
    base_url: str | None = None,
    api_key: str | Callable[[], Awaitable[str]] | None = None,
    max_retries: int | None = None,
    timeout_s: float | None = None,
) -> Sdk:
    """An SDK client for OpenAI or any server that speaks its API.

    Args:
        what: Who needs it, for the messages of errors.
        extra: The extra of this library that installs the SDK.
        base_url: The server's address up to `/v1`; OpenAI's own, or `OPENAI_BASE_URL`, when there is none.
        api_key: The key, or an async function that gives one for each request; `OPENAI_API_KEY` when there is none.
        max_retries: How often the SDK tries again after a failure that may pass; its own default is 2.
        timeout_s: How long a request may take; the SDK's own default is 600.

    Raises:
        MissingExtraError: The SDK is not installed.
        ConfigurationError: The key can't be sent.
    """
    openai = load_openai(what, extra)
    key = sendable_key(api_key, what) if isinstance(api_key, str) else api_key
    return openai.AsyncOpenAI(base_url=base_url, api_key=key, **_limits(max_retries, timeout_s))


def make_azure_openai(
    *,
    what: str,
    endpoint: str,
    api_version: str,
    api_key: str | None = None,
    token_provider: Callable[[], Awaitable[str]] | None = None,
    max_retries: int | None = None,
    timeout_s: float | None = None,
) -> Sdk:
    """An SDK client for an Azure OpenAI resource; each request's model is the name of a deployment.

    Args:
        what: Who needs it, for the messages of errors.
        endpoint: The resource's address, `https://NAME.openai.azure.com`.
        api_version: The version of Azure's API.
        api_key: The resource's key.
        token_provider: Gives a valid Entra ID token for each request; instead of a key.
        max_retries: As for `make_openai`.
        timeout_s: As for `make_openai`.

    Raises:
        MissingExtraError: The SDK is not installed.
        ConfigurationError: The key can't be sent.
    """
    openai = load_openai(what, "azure")
    return openai.AsyncAzureOpenAI(
        azure_endpoint=endpoint,
        api_version=api_version,
        api_key=None if api_key is None else sendable_key(api_key, what),
        azure_ad_token_provider=token_provider,
        **_limits(max_retries, timeout_s),
    )


def _limits(max_retries: int | None, timeout_s: float | None) -> dict[str, Any]:
    limits = {"max_retries": max_retries, "timeout": timeout_s}
    return {name: limit for name, limit in limits.items() if limit is not None}


def sendable_key(api_key: str, what: str) -> str:
    """The key without the blanks around it, such as a file's last line break.

    Raises:
        ConfigurationError: It is blank, or holds what no HTTP header may. (The HTTP library would show the key
            in its own error.)
    """
    key = api_key.strip()
    if not key:
        raise ConfigurationError(f"{what}: the API key is blank")
    if not (key.isascii() and key.isprintable()):
        raise ConfigurationError(f"{what}: the API key holds characters that can't be sent in an HTTP header")
    return key


async def complete(sdk: Sdk, request: dict[str, Any]) -> ChatCompletion:
    """Ask, and wait for the whole reply."""
    create: Any = _asked_once(sdk).chat.completions.create
    return await create(**request)


async def stream_chunks(sdk: Sdk, request: dict[str, Any]) -> AsyncGenerator[ChatCompletionChunk, None]:
    """Ask, and get the reply's chunks. The connection is closed on every way out."""
    create: Any = _asked_once(sdk).chat.completions.create
    async with await create(**request, stream=True) as stream, aclosing(aiter(stream)) as chunks:
        try:
            async for chunk in chunks:
                yield chunk
        except _http_library(sdk).TransportError as error:  # older SDKs let it through
            raise _connection_error(sdk, "Connection error.") from error


def _asked_once(sdk: Sdk) -> Sdk:
    """The SDK client, without its own further attempts where the caller tries again by itself."""
    own = sdk.max_retries
    return sdk.with_options(max_retries=0) if takes_over(own) and own else sdk


def api_error() -> type[APIError]:
    """The root of what the SDK raises about a request."""
    openai: Any = importlib.import_module("openai")
    return openai.APIError


def unreadable_reply(sdk: Sdk, message: str, body: object) -> APIError:
    """An error of the SDK's own kind, for a reply that it took but that holds no answer."""
    return api_error()(message, _sent_request(sdk), body=body)


def stream_cut_off(sdk: Sdk) -> APIError:
    """A connection error, for a stream that ended before the model's answer did."""
    return _connection_error(sdk, "The stream ended early: no finish_reason came, so the answer is not whole.")


def _connection_error(sdk: Sdk, message: str) -> APIError:
    openai: Any = importlib.import_module("openai")
    return openai.APIConnectionError(message=message, request=_sent_request(sdk))


def _sent_request(sdk: Sdk) -> Any:
    """What the SDK's errors want to hold."""
    return _http_library(sdk).Request("POST", sdk.base_url.join("chat/completions"))


def _http_library(sdk: Sdk) -> Any:
    """What the SDK stands on: httpx, or that one's successor."""
    return importlib.import_module(type(sdk.base_url).__module__.partition(".")[0])
