"""Plumbing only: the model of these tests is too small for its words to be judged."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import openai
import pytest
from pydantic import BaseModel

from agents_loop.chat_client import ChatOptions, ChatResponse, JsonSchemaFormat
from agents_loop.clients import local_server
from agents_loop.clients.local import LocalChatClient, LocalModelServer, ModelBusyError, ModelLoadError
from agents_loop.clients.model_files import ModelNotFoundError, pull
from agents_loop.errors import ConfigurationError, MissingExtraError
from agents_loop.messages import ChatMessage

CONTEXT = 4096
SAME_EACH_TIME = ChatOptions(temperature=0, seed=1, max_output_tokens=24)
ENDLESS = ChatOptions(temperature=0, max_output_tokens=4000, additional_properties={"ignore_eos": True})
"""Most of a minute on two cores, unless it is stopped."""
SOON_S = 10
"""Far less than that, and enough for a short request on a busy machine."""


@pytest.fixture(scope="session")
def smollm() -> Path:
    return pull("smollm2-135m")


@pytest.fixture
def client(smollm: Path) -> LocalChatClient:
    return LocalChatClient("smollm2-135m", options=SAME_EACH_TIME, context_size=CONTEXT)


def user(text: str) -> list[ChatMessage]:
    return [ChatMessage("user", text)]


async def streamed(client: LocalChatClient, messages: Sequence[ChatMessage]) -> ChatResponse:
    return ChatResponse.from_updates([update async for update in client.get_streaming_response(messages)])


async def test_a_model_answers(client: LocalChatClient) -> None:
    response = await client.get_response(user("Say hello."))
    assert response.text.strip()
    assert response.model_id == "smollm2-135m"
    assert response.finish_reason in {"stop", "length"}


async def test_usage_counts_the_tokens(client: LocalChatClient) -> None:
    response = await client.get_response(user("Count to 100."), replace(ENDLESS, max_output_tokens=7))
    assert response.finish_reason == "length"
    assert response.usage is not None
    assert response.usage.output_token_count == 7
    assert response.usage.input_token_count is not None
    assert response.usage.input_token_count > 3
    assert response.usage.total_token_count == response.usage.input_token_count + 7


@pytest.mark.parametrize("prompt", ["Say hello.", "Name three colours.", "What is a fox? Ünïcödé ✓"])
async def test_streaming_gives_what_not_streaming_gives(client: LocalChatClient, prompt: str) -> None:
    whole = await client.get_response(user(prompt))
    pieces = await streamed(client, user(prompt))
    assert pieces.text == whole.text
    assert pieces.finish_reason == whole.finish_reason
    assert pieces.usage is not None
    assert whole.usage is not None
    assert pieces.usage.output_token_count == whole.usage.output_token_count


async def test_a_stream_comes_in_pieces(client: LocalChatClient) -> None:
    texts = [u.text async for u in client.get_streaming_response(user("Name three colours.")) if u.text]
    assert len(texts) > 3


async def test_a_seed_makes_a_warm_answer_repeatable(client: LocalChatClient) -> None:
    warm = ChatOptions(temperature=1.0, seed=7)
    answers = [(await client.get_response(user("Tell me a story."), warm)).text for _ in range(3)]
    assert answers[1] == answers[2]
    other = await client.get_response(user("Tell me a story."), ChatOptions(temperature=1.0, seed=8))
    assert other.text != answers[1]


async def test_a_schema_is_kept_to_and_its_order_too(client: LocalChatClient) -> None:
    schema: dict[str, Any] = {
        "type": "object",
        "properties": {"gapAnalysis": {"type": "string", "maxLength": 30}, "answered": {"type": "boolean"}},
        "required": ["gapAnalysis", "answered"],
        "additionalProperties": False,
    }
    options = ChatOptions(response_format=JsonSchemaFormat("verdict", schema), max_output_tokens=200)
    response = await client.get_response(user("Is water wet?"), options)
    reply = json.loads(response.text)
    assert list(reply) == ["gapAnalysis", "answered"]
    assert isinstance(reply["answered"], bool)


async def test_a_pydantic_model_is_kept_to(client: LocalChatClient) -> None:
    class Colour(BaseModel):
        red: bool
        alias: bool | None

    options = ChatOptions(response_format=Colour, max_output_tokens=100)
    response = await client.get_response(user("Is a tomato red?"), options)
    assert isinstance(Colour.model_validate_json(response.text).red, bool)


async def test_log_probabilities_come_on_request(client: LocalChatClient) -> None:
    options = ChatOptions(max_output_tokens=2, additional_properties={"logprobs": True, "top_logprobs": 2})
    response = await client.get_response(user("Say hello."), options)
    assert response.additional_properties is not None
    logprobs = response.additional_properties["logprobs"]
    assert len(logprobs) == 2
    assert all(token["logprob"] <= 0 and len(token["top_logprobs"]) == 2 for token in logprobs)


async def test_a_prompt_longer_than_the_context_is_the_servers_error(client: LocalChatClient) -> None:
    with pytest.raises(openai.BadRequestError, match=f"exceeds the available context size.*{CONTEXT}"):
        await client.get_response(user("word " * CONTEXT))


async def test_a_stream_that_is_closed_early_frees_the_server(client: LocalChatClient) -> None:
    stream = client.get_streaming_response(user("Count to 5000."), ENDLESS)
    async for update in stream:
        if update.text:
            break
    await stream.aclose()  # type: ignore[attr-defined]
    async with asyncio.timeout(SOON_S):
        assert (await client.get_response(user("Say hello."))).text


async def test_a_cancelled_request_is_stopped_in_the_middle(client: LocalChatClient) -> None:
    running = asyncio.create_task(client.get_response(user("Count to 8000."), ENDLESS))
    done, _ = await asyncio.wait([running], timeout=1)
    assert not done
    running.cancel()
    await asyncio.wait([running])
    async with asyncio.timeout(SOON_S):
        assert (await client.get_response(user("Say hello."))).text
    await asyncio.to_thread(client.server.close)


async def test_a_cancelled_request_frees_the_server_also_if_it_was_waiting(client: LocalChatClient) -> None:
    running = client.get_streaming_response(user("Count to 5000."), ENDLESS)
    await anext(running)
    waiting = [asyncio.create_task(client.get_response(user(f"Count to {n}."), ENDLESS)) for n in (6000, 7000)]
    done, _ = await asyncio.wait(waiting, timeout=0.5)
    assert not done, "one request is answered at a time"
    for task in waiting:
        task.cancel()
    await running.aclose()  # type: ignore[attr-defined]
    assert [type(e) for e in await asyncio.gather(*waiting, return_exceptions=True)] == [asyncio.CancelledError] * 2
    async with asyncio.timeout(SOON_S):
        assert (await client.get_response(user("Say hello."))).text


async def test_requests_at_once_are_answered_as_if_alone(client: LocalChatClient) -> None:
    prompts = ["Say hello.", "Name a colour.", "What is a fox?"]
    alone = [(await client.get_response(user(p))).text for p in prompts]
    at_once = await asyncio.gather(*(client.get_response(user(p)) for p in prompts))
    assert [r.text for r in at_once] == alone


def test_one_client_serves_one_event_loop_after_another(client: LocalChatClient) -> None:
    answers = [asyncio.run(client.get_response(user("Say hello."))).text for _ in range(2)]
    assert answers[0] == answers[1]


async def test_two_clients_share_one_server(client: LocalChatClient, smollm: Path) -> None:
    by_path = LocalChatClient(smollm, context_size=CONTEXT)
    assert by_path.server is client.server
    assert LocalChatClient(smollm, context_size=CONTEXT // 2).server is not client.server
    await asyncio.gather(client.load(), by_path.load())
    await by_path.aclose()
    assert client.server.is_running


async def test_a_closed_server_is_loaded_anew_by_the_next_request(client: LocalChatClient) -> None:
    await client.load()
    client.server.close()
    assert not client.server.is_running
    assert (await client.get_response(user("Say hello."))).text
    client.server.close()
    client.server.close()


async def test_a_server_is_not_closed_while_it_answers(
    client: LocalChatClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(local_server, "_CLOSE_TIMEOUT_S", 0.2)
    stream = client.get_streaming_response(user("Count to 5000."), ENDLESS)
    await anext(stream)
    with pytest.raises(ModelBusyError, match="'smollm2-135m' is under way"):
        client.server.close()
    await stream.aclose()  # type: ignore[attr-defined]
    monkeypatch.undo()
    client.server.close()
    assert not client.server.is_running


async def test_the_server_is_on_loopback_behind_a_key_and_beside_any_proxy(
    client: LocalChatClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    for name in ("NO_PROXY", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
    async with client:
        assert (await client.get_response(user("Say hello."))).text
    assert client.server.base_url.startswith("http://127.0.0.1:")
    request = urllib.request.Request(f"{client.server.base_url}/chat/completions", data=b"{}")  # noqa: S310
    straight = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with pytest.raises(urllib.error.HTTPError) as refused:
        await asyncio.to_thread(straight.open, request)
    refused.value.close()
    assert refused.value.code == 401


# --- what can be wrong before anything is loaded


def test_the_model_comes_from_the_argument_or_the_environment(smollm: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AGENTS_LOOP_MODEL", str(smollm))
    assert LocalChatClient(context_size=CONTEXT).server.path == smollm.resolve()
    monkeypatch.setenv("AGENTS_LOOP_MODEL", "no-such-model")
    assert LocalChatClient("smollm2-135m", context_size=CONTEXT).server.path == smollm.resolve()
    with pytest.raises(ModelNotFoundError, match="'no-such-model'; known are: smollm2-135m"):
        LocalChatClient()


def test_a_model_that_is_not_here_is_not_fetched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AGENTS_LOOP_HOME", str(tmp_path))
    monkeypatch.delenv("AGENTS_LOOP_MODEL", raising=False)
    with pytest.raises(ConfigurationError, match=r"Run: agents-loop models pull qwen2\.5-coder-1\.5b"):
        LocalChatClient()
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_is_not_gguf_is_told_at_once(tmp_path: Path) -> None:
    file = tmp_path / "model.gguf"
    file.write_bytes(b"PK\x03\x04")
    with pytest.raises(ModelLoadError, match=r"model\.gguf' is not a GGUF file: it begins with b'PK"):
        LocalChatClient(file)


async def test_a_file_that_is_cut_off_is_one_clear_error(
    smollm: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "model.gguf"
    with smollm.open("rb") as whole:
        file.write_bytes(whole.read(100_000))
    with pytest.raises(ModelLoadError, match="can't be loaded: the file is cut off or damaged"):
        await LocalChatClient(file).get_response(user("Say hello."))
    assert capfd.readouterr() == ("", "")


def test_a_context_without_room_is_an_error(smollm: Path) -> None:
    with pytest.raises(ConfigurationError, match="at least 1 token, not 0"):
        LocalChatClient(smollm, context_size=0)


@pytest.mark.parametrize("module", ["xllamacpp", "openai"])
def test_a_missing_extra_is_named(module: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(MissingExtraError, match=r"LocalChatClient needs .* pip install 'agents-loop\[local\]'"):
        LocalChatClient()


def test_importing_the_client_loads_no_sdk() -> None:
    done = a_process("import agents_loop.clients.local, sys; print({'xllamacpp', 'openai'} & set(sys.modules))")
    assert done.stdout.strip() == "set()"


# --- how it ends


def a_process(code: str, *arguments: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-W", "error", "-c", code, *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


IN_A_PROCESS = """
import asyncio, os, sys
from agents_loop.chat_client import ChatOptions
from agents_loop.clients.local import LocalChatClient, LocalModelServer
from agents_loop.messages import ChatMessage
client = LocalChatClient(sys.argv[1], context_size=512)
"""


@pytest.mark.parametrize(
    "code",
    [
        "print(bool(asyncio.run(client.get_response([ChatMessage('user', 'Hi')], ChatOptions(max_output_tokens=3))).text))",
        """
async def leave_in_the_middle():
    async for update in client.get_streaming_response([ChatMessage('user', 'Count.')]):
        if update.text:
            print(True)
            return
asyncio.run(leave_in_the_middle())""",
        """
import threading
begun = threading.Event()
async def ask_on():
    options = ChatOptions(max_output_tokens=450, additional_properties={'ignore_eos': True})
    while True:
        async for update in client.get_streaming_response([ChatMessage('user', 'Count.')], options):
            begun.set()
def ask_until_cut_off():
    try:
        asyncio.run(ask_on())
    except asyncio.CancelledError:
        pass
    except RuntimeError as error:  # Python 3.12's own: asyncio.run ends in a thread, which none may be any more
        assert 'interpreter shutdown' in str(error), error
threading.Thread(target=ask_until_cut_off, daemon=True).start()
print(begun.wait(30))""",
    ],
    ids=["after an answer", "in the middle of one", "while a daemon thread asks"],
)
def test_a_process_ends_cleanly_and_llama_cpp_is_silent(code: str, smollm: Path) -> None:
    done = a_process(IN_A_PROCESS + code, smollm)
    assert (done.returncode, done.stdout, done.stderr) == (0, "True\n", "")


def test_its_log_can_be_asked_for(smollm: Path) -> None:
    done = a_process(IN_A_PROCESS + "LocalModelServer(sys.argv[1], context_size=512, verbose=True).start()", smollm)
    assert done.returncode == 0
    assert "model loaded" in done.stderr
    assert done.stdout == ""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_forked_child_is_told_that_the_threads_stayed_behind(smollm: Path) -> None:
    done = a_process(
        IN_A_PROCESS
        + """
import warnings
warnings.simplefilter('ignore')
client.server.start()
child = os.fork()
if child == 0:
    try:
        client.server.start()
    except Exception as error:
        print(error, flush=True)
    os._exit(0)
os.waitpid(child, 0)
print(client.server.is_running)
""",
        smollm,
    )
    assert done.stdout.startswith("this process was forked")
    assert done.stdout.endswith("True\n")


def test_a_server_can_be_used_alone(smollm: Path) -> None:
    server = LocalModelServer(smollm, context_size=512)
    assert not server.is_running
    assert server.base_url.endswith("/v1")
    assert server.name == smollm.name
    server.close()
