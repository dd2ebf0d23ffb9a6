"""The Azure OpenAI chat client: addresses, keys and Entra ID tokens, against a real server on loopback."""

from __future__ import annotations

import asyncio
import sys
import threading
import time
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

import pytest
from fault_server import Failure, FaultServer

from agents_loop.chat_client import ChatOptions, FinishReason
from agents_loop.clients.azure_openai import AzureOpenAIChatClient
from agents_loop.errors import ConfigurationError, MissingExtraError
from agents_loop.messages import ChatMessage

ASK = [ChatMessage("user", "hi")]


@dataclass(frozen=True)
class Token:
    token: str
    expires_on: float


@dataclass
class Credential:
    """Gives `token-1`, `token-2`, ... that live as long as is said."""

    lives_s: float = 3600
    scopes: list[tuple[str, ...]] = field(default_factory=list)
    threads: set[int] = field(default_factory=set)
    is_closed: bool = False

    def get_token(self, *scopes: str) -> Token:
        self.scopes.append(scopes)
        self.threads.add(threading.get_ident())
        return Token(f"token-{len(self.scopes)}", time.time() + self.lives_s)

    def close(self) -> None:
        self.is_closed = True


class AsyncCredential(Credential):
    async def get_token(self, *scopes: str) -> Token:  # type: ignore[override]
        await asyncio.sleep(0)
        return super().get_token(*scopes)


async def ask(server: FaultServer, times: int = 1, **settings: Any) -> None:
    async with AzureOpenAIChatClient("deployed", endpoint=server.origin + "/", max_retries=0, **settings) as client:
        for _ in range(times):
            await client.get_response(ASK)


async def test_address_and_key(server: FaultServer) -> None:
    """A request goes to the deployment's path with the version and the key."""
    await ask(server, credential="secret")
    [request] = server.requests
    assert request.path == "/openai/deployments/deployed/chat/completions"
    assert request.query == {"api-version": ["2024-10-21"]}
    assert request.headers["api-key"] == "secret"


async def test_versions(server: FaultServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """The version is the caller's, or the environment's."""
    monkeypatch.setenv("OPENAI_API_VERSION", "from-env")
    await ask(server, credential="secret")
    await ask(server, credential="secret", api_version="given")
    assert [request.query["api-version"] for request in server.requests] == [["from-env"], ["given"]]


async def test_environment(server: FaultServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """AZURE_OPENAI_ENDPOINT and AZURE_OPENAI_API_KEY are used where nothing else is said."""
    monkeypatch.setenv("AZURE_OPENAI_ENDPOINT", server.origin)
    monkeypatch.setenv("AZURE_OPENAI_API_KEY", "from-env")
    async with AzureOpenAIChatClient("deployed") as client:
        await client.get_response(ASK)
    assert server.requests[0].headers["api-key"] == "from-env"


async def test_another_deployment(server: FaultServer) -> None:
    """A call's model_id names another deployment."""
    async with AzureOpenAIChatClient("deployed", endpoint=server.origin, credential="k") as client:
        await client.get_response(ASK, ChatOptions(model_id="other"))
    assert server.requests[0].path == "/openai/deployments/other/chat/completions"


@pytest.mark.parametrize("kind", [Credential, AsyncCredential])
async def test_token(server: FaultServer, monkeypatch: pytest.MonkeyPatch, kind: type[Credential]) -> None:
    """A credential, sync or async, is asked once for a token of the service's scope while that is valid."""
    monkeypatch.setenv("AZURE_OPENAI_API_KEY", "not-asked-for")
    credential = kind()
    await ask(server, times=2, credential=credential)
    assert [request.headers["authorization"] for request in server.requests] == ["Bearer token-1"] * 2
    assert "api-key" not in server.requests[0].headers
    assert credential.scopes == [("https://cognitiveservices.azure.com/.default",)]
    assert not credential.is_closed


@pytest.mark.parametrize("kind", [Credential, AsyncCredential])
async def test_token_is_refreshed(server: FaultServer, kind: type[Credential]) -> None:
    """A token that runs out within minutes is replaced before the next request."""
    await ask(server, times=2, credential=kind(lives_s=60))
    assert [request.headers["authorization"] for request in server.requests] == ["Bearer token-1", "Bearer token-2"]


async def test_sync_credential_does_not_block(server: FaultServer) -> None:
    """A sync credential, which may run a command, is asked outside the event loop's thread."""
    credential = Credential()
    await ask(server, credential=credential)
    assert threading.get_ident() not in credential.threads


async def test_default_credential(server: FaultServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a key or a credential, azure-identity's default one is asked, and closed with the client."""
    made: list[Credential] = []

    def make() -> Credential:
        made.append(Credential())
        return made[-1]

    import azure.identity

    monkeypatch.setattr(azure.identity, "DefaultAzureCredential", make)
    await ask(server, times=2)
    assert server.requests[1].headers["authorization"] == "Bearer token-1"
    assert [credential.is_closed for credential in made] == [True]


async def test_newer_api(server: FaultServer) -> None:
    """An endpoint that ends in /openai/v1 is Azure's newer API: no version, the deployment as the model."""
    for credential in ("secret", Credential()):
        async with AzureOpenAIChatClient(
            "deployed", endpoint=f"{server.origin}/openai/v1/", credential=credential
        ) as client:
            await client.get_response(ASK)
    with_key, with_token = server.requests
    assert (with_key.path, with_key.query) == ("/openai/v1/chat/completions", {})
    assert with_key.body["model"] == "deployed"
    assert with_key.headers["authorization"] == "Bearer secret"
    assert with_token.headers["authorization"] == "Bearer token-1"


async def test_filtered_prompt(server: FaultServer) -> None:
    """Azure's filter is an outcome, and the prompt is not sent again."""
    inner = {"code": "ResponsibleAIPolicyViolation", "content_filter_result": {"hate": {"filtered": True}}}
    server.add(Failure(400, "Filtered.", code="content_filter", param="prompt", inner=inner))
    async with AzureOpenAIChatClient("deployed", endpoint=server.origin, credential="k") as client:
        response = await client.get_response(ASK)
    assert response.finish_reason == FinishReason.CONTENT_FILTER
    assert len(server.requests) == 1


async def test_max_tokens(server: FaultServer) -> None:
    """Azure is sent the newer name of the limit."""
    async with AzureOpenAIChatClient("deployed", endpoint=server.origin, credential="k") as client:
        await client.get_response(ASK, ChatOptions(max_output_tokens=5))
    assert server.bodies[0]["max_completion_tokens"] == 5


@pytest.mark.parametrize(
    ("endpoint", "said"),
    [
        (None, "AZURE_OPENAI_ENDPOINT"),
        ("  ", "AZURE_OPENAI_ENDPOINT"),
        ("my-resource.openai.azure.com", "endpoint must be"),
        ("https://r.openai.azure.com/openai/deployments/d/chat/completions?api-version=1", "endpoint must be"),
    ],
)
def test_wrong_endpoint(endpoint: str | None, said: str) -> None:
    """An endpoint that is missing, or is no resource's address, is an error that says what to give."""
    with pytest.raises(ConfigurationError, match=said):
        AzureOpenAIChatClient("deployed", endpoint=endpoint, credential="k")


def test_wrong_credential() -> None:
    """A credential that is neither a key nor gives tokens is an error."""
    with pytest.raises(TypeError, match="credential"):
        AzureOpenAIChatClient("deployed", endpoint="https://r.openai.azure.com", credential=7)  # type: ignore[arg-type]


@pytest.mark.parametrize("missing", ["openai", "azure.identity"])
def test_missing_sdk(monkeypatch: pytest.MonkeyPatch, missing: str) -> None:
    """Without one of its SDKs, making the client is an error with the command that installs it."""
    monkeypatch.setitem(sys.modules, missing, None)  # type: ignore[arg-type]
    with pytest.raises(MissingExtraError, match=r"\[azure\]"):
        AzureOpenAIChatClient("deployed", endpoint="https://r.openai.azure.com")


def test_repr() -> None:
    """The deployment and the host are shown, the key is not."""
    client = AzureOpenAIChatClient("deployed", endpoint="https://r.openai.azure.com", credential="canary")
    assert repr(client) == "AzureOpenAIChatClient(model_id='deployed', host='r.openai.azure.com')"


def test_real_azure_identity_fits() -> None:
    """The real default credential has what is called."""
    import azure.identity

    assert isinstance(azure.identity, ModuleType)
    with azure.identity.DefaultAzureCredential() as credential:
        assert callable(credential.get_token)
