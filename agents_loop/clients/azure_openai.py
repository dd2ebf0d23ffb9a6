"""A chat client for Azure OpenAI, with a key or with Entra ID."""

from __future__ import annotations

import asyncio
import importlib
import inspect
import os
import time
from typing import TYPE_CHECKING, Any, Protocol
from urllib.parse import urlsplit

from agents_loop.chat_client import ChatOptions
from agents_loop.clients.chat_completions import ChatCompletionsClient, make_azure_openai, make_openai
from agents_loop.clients.chat_completions.sdk import load_openai, sendable_key
from agents_loop.errors import ConfigurationError, MissingExtraError

if TYPE_CHECKING:
    from agents_loop.clients.chat_completions.sdk import Sdk

_WHAT = "AzureOpenAIChatClient"
_SCOPE = "https://cognitiveservices.azure.com/.default"
_DEFAULT_API_VERSION = "2024-10-21"
_REFRESH_BEFORE_EXPIRY_S = 300


class TokenCredential(Protocol):
    """A credential of azure-identity, or another that gives tokens, at once or as an awaitable."""

    def get_token(self, *scopes: str) -> Any:
        """An access token: a `token` that stays valid until `expires_on`, in seconds since the epoch."""
        ...


class AzureOpenAIChatClient(ChatCompletionsClient):
    """A chat client for the deployments of an Azure OpenAI resource.

    Example:
        ```python
        from agents_loop.clients.azure_openai import AzureOpenAIChatClient

        client = AzureOpenAIChatClient("my-deployment", endpoint="https://my-resource.openai.azure.com")
        ```

    Args:
        deployment: The deployment to ask, unless a call's options name another as their `model_id`.
        endpoint: The resource's address, `https://NAME.openai.azure.com`; `AZURE_OPENAI_ENDPOINT` when there is
            none. An address that ends in `/openai/v1` means Azure's newer API, which needs no version.
        credential: A key, or a credential of azure-identity (or one like it, sync or async), which stays the
            caller's to close. When there is none: `AZURE_OPENAI_API_KEY`, else a `DefaultAzureCredential`.
        api_version: The version of Azure's API; `OPENAI_API_VERSION`, or one that knows structured output, when
            there is none.
        options: Defaults, laid under each call's options.
        max_retries: How often the SDK tries again after a failure that may pass; its own default is 2.
        timeout_s: How long a request may take, in seconds; the SDK's own default is 600.

    Raises:
        MissingExtraError: An SDK is not installed.
        ConfigurationError: The endpoint is missing or no resource's address, or the key can't be sent.
    """

    def __init__(
        self,
        deployment: str,
        *,
        endpoint: str | None = None,
        credential: str | TokenCredential | None = None,
        api_version: str | None = None,
        options: ChatOptions | None = None,
        max_retries: int | None = None,
        timeout_s: float | None = None,
    ) -> None:
        load_openai(_WHAT, "azure")
        address = _address(endpoint)
        key, tokens = _authentication(credential)
        version = api_version or os.environ.get("OPENAI_API_VERSION") or _DEFAULT_API_VERSION
        self._tokens = tokens

        def make_sdk_client() -> Sdk:
            if urlsplit(address).path.endswith("/openai/v1"):
                return make_openai(
                    what=_WHAT,
                    extra="azure",
                    base_url=address,
                    api_key=key or tokens,
                    max_retries=max_retries,
                    timeout_s=timeout_s,
                )
            return make_azure_openai(
                what=_WHAT,
                endpoint=address,
                api_version=version,
                api_key=key,
                token_provider=tokens,
                max_retries=max_retries,
                timeout_s=timeout_s,
            )

        super().__init__(make_sdk_client, deployment, options=options, endpoint=address)

    async def aclose(self) -> None:
        """Close this event loop's connections, and a credential that this client made."""
        await super().aclose()
        if self._tokens is not None:
            self._tokens.close()


class _EntraTokens:
    """Gives a token that stays valid for a while; asks the credential for a new one when the last runs out."""

    def __init__(self, credential: TokenCredential | None) -> None:
        self._given = credential
        self._made: Any = None
        self._token = ""
        self._expires_on = 0.0

    async def __call__(self) -> str:
        if time.time() >= self._expires_on - _REFRESH_BEFORE_EXPIRY_S:
            fresh = await self._ask()
            self._token, self._expires_on = fresh.token, fresh.expires_on
        return self._token

    def close(self) -> None:
        """Close the credential if it was made here; it is made anew when needed again."""
        made, self._made = self._made, None
        if made is not None:
            made.close()

    async def _ask(self) -> Any:
        get_token = self._credential().get_token
        if inspect.iscoroutinefunction(get_token):
            return await get_token(_SCOPE)
        token = await asyncio.to_thread(get_token, _SCOPE)  # it may open connections or run a command
        return await token if inspect.isawaitable(token) else token

    def _credential(self) -> TokenCredential:
        if self._given is not None:
            return self._given
        if self._made is None:
            self._made = _load_azure_identity().DefaultAzureCredential()
        return self._made


def _address(endpoint: str | None) -> str:
    address = (endpoint or os.environ.get("AZURE_OPENAI_ENDPOINT") or "").strip().rstrip("/")
    if not address:
        raise ConfigurationError(f"{_WHAT} needs the resource's address: set AZURE_OPENAI_ENDPOINT or pass endpoint")
    parts = urlsplit(address)
    if parts.scheme not in {"http", "https"} or not parts.hostname or parts.query or "/deployments" in parts.path:
        raise ConfigurationError(
            f"{_WHAT}: endpoint must be a resource's address such as https://NAME.openai.azure.com, "
            "without a deployment or a query"
        )
    return address


def _authentication(credential: str | TokenCredential | None) -> tuple[str | None, _EntraTokens | None]:
    """A key, or a source of tokens."""
    if isinstance(credential, str):
        return sendable_key(credential, _WHAT), None
    if credential is None:
        key = os.environ.get("AZURE_OPENAI_API_KEY", "").strip()
        if key:
            return sendable_key(key, _WHAT), None
        _load_azure_identity()
    elif not callable(getattr(credential, "get_token", None)):
        raise TypeError(f"credential must be a key or have get_token, not {type(credential).__name__}")
    return None, _EntraTokens(credential)


def _load_azure_identity() -> Any:
    try:
        return importlib.import_module("azure.identity")
    except ImportError as error:
        raise MissingExtraError(f"{_WHAT} without a key", "azure") from error
