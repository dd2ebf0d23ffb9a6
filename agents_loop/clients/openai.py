"""A chat client for OpenAI, and for any server that speaks its chat completions API."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from agents_loop.chat_client import ChatOptions
from agents_loop.clients.chat_completions import ChatCompletionsClient, make_openai
from agents_loop.clients.chat_completions.dialect import MaxTokensParameter
from agents_loop.clients.chat_completions.sdk import load_openai, sendable_key
from agents_loop.errors import ConfigurationError

if TYPE_CHECKING:
    from agents_loop.clients.chat_completions.sdk import Sdk

_DEFAULT_BASE_URL = "https://api.openai.com/v1"
_WHAT = "OpenAIChatClient"
_NO_KEY = "no-key"
"""Sent to a server of one's own when there is no key: the SDK insists on one."""


class OpenAIChatClient(ChatCompletionsClient):
    """A chat client for OpenAI, or for any server that speaks its chat completions API.

    Example:
        ```python
        from agents_loop.clients.openai import OpenAIChatClient

        client = OpenAIChatClient("qwen3", base_url="http://localhost:11434/v1")
        ```

    Args:
        model_id: The model to ask, unless a call's options name another.
        api_key: The key; `OPENAI_API_KEY` when there is none. A server other than OpenAI's may do without.
        base_url: The server's address up to `/v1`; `OPENAI_BASE_URL`, or OpenAI's own, when there is none.
        openai_client: An `openai.AsyncOpenAI` (or `AsyncAzureOpenAI`) of the caller's, with all its settings; it
            is not closed with this client, and serves one event loop. Instead of the key and the address.
        options: Defaults, laid under each call's options.
        max_retries: How often the SDK tries again after a failure that may pass (429, 5xx, a lost connection; it
            waits as `Retry-After` says); its own default is 2.
        timeout_s: How long a request may take, in seconds; the SDK's own default is 600.

    Raises:
        MissingExtraError: The SDK is not installed.
        ConfigurationError: There is no key, and the server is OpenAI's; or settings are given twice.
    """

    def __init__(
        self,
        model_id: str,
        *,
        api_key: str | None = None,
        base_url: str | None = None,
        openai_client: Sdk | None = None,
        options: ChatOptions | None = None,
        max_retries: int | None = None,
        timeout_s: float | None = None,
    ) -> None:
        openai = load_openai(_WHAT, "openai")
        given: Sdk | None = None
        key = ""
        if openai_client is None:
            address = base_url or os.environ.get("OPENAI_BASE_URL", "").strip() or _DEFAULT_BASE_URL
            key = _key(api_key, address)
        elif isinstance(openai_client, openai.OpenAI):
            raise TypeError(f"openai_client must be an openai.AsyncOpenAI, not {type(openai_client).__name__}")
        elif not (api_key is base_url is max_retries is timeout_s is None):
            raise ConfigurationError(
                "openai_client has its own api_key, base_url, max_retries and timeout: set them there"
            )
        else:
            given = openai_client
            address = str(getattr(given, "base_url", _DEFAULT_BASE_URL))

        def make_sdk_client() -> Sdk:
            return given or make_openai(
                what=_WHAT, base_url=address, api_key=key, max_retries=max_retries, timeout_s=timeout_s
            )

        super().__init__(
            make_sdk_client,
            model_id,
            options=options,
            endpoint=address,
            max_tokens_parameter=_max_tokens_parameter(address),
            owns_sdk_client=given is None,
        )


def _key(api_key: str | None, address: str) -> str:
    if api_key is not None:
        return sendable_key(api_key, _WHAT)
    key = os.environ.get("OPENAI_API_KEY", "").strip()
    if key:
        return sendable_key(key, _WHAT)
    if address.rstrip("/") == _DEFAULT_BASE_URL:
        raise ConfigurationError(
            f"{_WHAT} needs a key for {_DEFAULT_BASE_URL}: set OPENAI_API_KEY or pass api_key "
            "(for another server, set OPENAI_BASE_URL or pass base_url)"
        )
    return _NO_KEY


def _max_tokens_parameter(address: str) -> MaxTokensParameter:
    """OpenAI's newer models reject the old name, most other servers do not know the new one."""
    host = urlsplit(address).hostname or ""
    knows_new_name = host.endswith((".openai.com", ".azure.com"))
    return "max_completion_tokens" if knows_new_name else "max_tokens"
