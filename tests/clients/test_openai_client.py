"""Making an OpenAI chat client: keys, addresses, the SDK's own client, event loops."""

from __future__ import annotations

import asyncio
import gc
import subprocess
import sys
from typing import Any

import openai
import pytest
from fault_server import Completion, Failure, FaultServer

from agents_loop.chat_client import ChatOptions
from agents_loop.clients.chat_completions import ChatCompletionsClient, make_openai
from agents_loop.clients.openai import OpenAIChatClient
from agents_loop.errors import ConfigurationError, MissingExtraError
from agents_loop.messages import ChatMessage

ASK = [ChatMessage("user", "hi")]
CANARY = "sk-canary-123"


async def test_key_and_address_from_the_environment(server: FaultServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """OPENAI_API_KEY and OPENAI_BASE_URL are used where nothing else is said."""
    monkeypatch.setenv("OPENAI_API_KEY", f"  {CANARY}\n")
    monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
    async with OpenAIChatClient("m") as client:
        await client.get_response(ASK)
    assert server.requests[0].headers["authorization"] == f"Bearer {CANARY}"
    assert server.requests[0].path == "/v1/chat/completions"


async def test_given_key_and_address_come_first(server: FaultServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the caller says comes before the environment."""
    monkeypatch.setenv("OPENAI_API_KEY", "other")
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
    async with OpenAIChatClient("m", api_key=CANARY, base_url=server.base_url) as client:
        await client.get_response(ASK)
    assert server.requests[0].headers["authorization"] == f"Bearer {CANARY}"


async def test_no_key_for_another_server(server: FaultServer) -> None:
    """A server other than OpenAI's is asked without a key."""
    async with OpenAIChatClient("m", base_url=server.base_url) as client:
        assert (await client.get_response(ASK)).text == "ok"


@pytest.mark.parametrize("blank", [None, "", "  "])
def test_no_key_for_openai(monkeypatch: pytest.MonkeyPatch, blank: str | None) -> None:
    """Without a key for OpenAI's own server, making the client is an error that says what to set."""
    if blank is not None:
        monkeypatch.setenv("OPENAI_API_KEY", blank)
    with pytest.raises(ConfigurationError, match="OPENAI_API_KEY"):
        OpenAIChatClient("m")


@pytest.mark.parametrize("key", [f"{CANARY}\nx", f"{CANARY}\u00e9", " "])
def test_key_that_cannot_be_sent(key: str) -> None:
    """A key that no header can hold is an error at once, which does not show it."""
    with pytest.raises(ConfigurationError) as caught:
        OpenAIChatClient("m", api_key=key)
    assert "canary" not in str(caught.value)
    assert "canary" not in repr(caught.value.__cause__)


async def test_secrets_are_not_shown(server: FaultServer) -> None:
    """Neither `repr` nor an error shows the key, or a password in the address."""
    host = server.base_url.removeprefix("http://")
    server.add(Failure(401, "wrong key"))
    async with OpenAIChatClient("m", api_key=CANARY, base_url=f"http://u:{CANARY}@{host}") as client:
        with pytest.raises(openai.AuthenticationError) as caught:
            await client.get_response(ASK)
        shown = repr(client) + str(caught.value) + repr(caught.value)
    assert repr(client) == f"OpenAIChatClient(model_id='m', host='{host.removesuffix('/v1')}')"
    assert "canary" not in shown


async def test_client_of_the_callers(server: FaultServer) -> None:
    """An SDK client of the caller's is used with its own settings, and is not closed with ours."""
    async with openai.AsyncOpenAI(api_key=CANARY, base_url=server.base_url, default_headers={"x-team": "a"}) as sdk:
        async with OpenAIChatClient("m", openai_client=sdk) as client:
            await client.get_response(ASK)
        assert not sdk.is_closed()
    assert server.requests[0].headers["x-team"] == "a"


async def test_client_of_the_wrong_kind() -> None:
    """The SDK's sync client, and settings given twice, are errors that say so."""
    with (
        openai.OpenAI(api_key="k") as sync,
        pytest.raises(TypeError, match=r"openai\.AsyncOpenAI"),
    ):
        OpenAIChatClient("m", openai_client=sync)  # type: ignore[arg-type]
    async with openai.AsyncOpenAI(api_key="k") as sdk:
        with pytest.raises(ConfigurationError, match="max_retries"):
            OpenAIChatClient("m", openai_client=sdk, max_retries=3)


@pytest.mark.parametrize(("model_id", "kind"), [(None, TypeError), (" ", ConfigurationError)])
def test_no_model(model_id: Any, kind: type[Exception]) -> None:
    """A client needs a model's name."""
    with pytest.raises(kind, match="model_id"):
        OpenAIChatClient(model_id, api_key="k")


@pytest.mark.parametrize(
    ("base_url", "parameter"),
    [(None, "max_completion_tokens"), ("https://x.openai.azure.com/openai/v1", "max_completion_tokens")],
)
async def test_max_tokens_of_openai(base_url: str | None, parameter: str) -> None:
    """OpenAI's and Azure's servers are sent the newer name of the limit."""
    client = OpenAIChatClient("m", api_key="k", base_url=base_url)
    request, model_id = client._request(ASK, ChatOptions(max_output_tokens=9), streaming=False)
    assert request.put(client._dialect(model_id))[parameter] == 9


async def test_timeout(server: FaultServer) -> None:
    """The caller's time limit reaches the SDK."""
    async with OpenAIChatClient("m", base_url=server.base_url, timeout_s=7.5, max_retries=4) as client:
        sdk = await client._sdk()
        assert (sdk.timeout, sdk.max_retries) == (7.5, 4)


async def test_closing(server: FaultServer) -> None:
    """A closed client has no connection left, and opens new ones when it is used again."""
    client = OpenAIChatClient("m", base_url=server.base_url)
    sdk = await client._sdk()
    await client.aclose()
    await client.aclose()
    assert sdk.is_closed()
    assert (await client.get_response(ASK)).text == "ok"
    await client.aclose()


@pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning")
def test_several_event_loops(server: FaultServer, caplog: pytest.LogCaptureFixture) -> None:
    """One client serves event loops that follow each other, also where the first left its connections open."""
    server.keep_alive = True
    client = OpenAIChatClient("m", base_url=server.base_url, max_retries=0)

    async def ask() -> str:
        return (await client.get_response(ASK)).text

    async def ask_and_close() -> str:
        async with client:
            return await ask()

    assert [asyncio.run(ask()), asyncio.run(ask_and_close())] == ["ok", "ok"]
    assert client._sdk_clients == {}
    gc.collect()
    assert caplog.text == ""


async def test_slow_connecting(server: FaultServer) -> None:
    """An SDK client may take its time to be made; where first requests made two, one is kept and one closed."""
    made: list[openai.AsyncOpenAI] = []

    async def connect() -> openai.AsyncOpenAI:
        await asyncio.sleep(0)
        made.append(make_openai(what="this test", base_url=server.base_url, api_key="k"))
        return made[-1]

    async with ChatCompletionsClient(connect, "m") as client:
        await asyncio.gather(client.get_response(ASK), client.get_response(ASK))
        assert [sdk.is_closed() for sdk in made] == [False, True]
    assert made[0].is_closed()


async def test_many_callers_at_once(server: FaultServer) -> None:
    """One client answers many callers at once, each with its own reply."""

    async with OpenAIChatClient("m", base_url=server.base_url) as client:
        server.add(*(Completion(content=str(n)) for n in range(20)))
        responses = await asyncio.gather(*(client.get_response(ASK) for _ in range(20)))
    assert {response.text for response in responses} == {str(n) for n in range(20)}


def test_missing_sdk(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the SDK, making a client is an error with the command that installs it."""
    monkeypatch.setitem(sys.modules, "openai", None)
    with pytest.raises(MissingExtraError, match=r"agents-loop\[openai\]|agents_loop\[openai\]"):
        OpenAIChatClient("m", api_key="k")


def test_importing_loads_no_sdk() -> None:
    """Importing the clients loads no SDK."""
    code = (
        "import sys, agents_loop.clients.openai, agents_loop.clients.azure_openai;"
        "print(sorted({'openai', 'azure', 'httpx', 'httpx2'} & sys.modules.keys()))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
