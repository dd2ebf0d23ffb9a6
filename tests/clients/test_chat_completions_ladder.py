"""What a client learns from what an endpoint rejects."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import openai
import pytest
from fault_server import Completion, Failure, FaultServer, Raw
from pydantic import BaseModel

from agents_loop.chat_client import ChatOptions, ChatResponse, JsonSchemaFormat
from agents_loop.clients.chat_completions import ChatCompletionsClient, make_openai
from agents_loop.clients.openai import OpenAIChatClient
from agents_loop.errors import ConfigurationError
from agents_loop.messages import ChatMessage

ASK = [ChatMessage("system", "You judge."), ChatMessage("user", "Is it JSON?")]
SCHEMA = {
    "type": "object",
    "properties": {"ok": {"type": "boolean"}},
    "required": ["ok"],
    "additionalProperties": False,
}
FORMAT = JsonSchemaFormat("verdict", SCHEMA)
WANTED = ChatOptions(response_format=FORMAT)


class Verdict(BaseModel):
    ok: bool = False


async def ask(client: ChatCompletionsClient, options: ChatOptions, *, streaming: bool = False) -> str:
    if not streaming:
        return (await client.get_response(ASK, options)).text
    return ChatResponse.from_updates([u async for u in client.get_streaming_response(ASK, options)]).text


def rungs(server: FaultServer) -> list[str]:
    return [(body.get("response_format") or {"type": "plain"})["type"] for body in server.bodies]


async def test_schema_as_it_stands(server: FaultServer, client: OpenAIChatClient) -> None:
    """A schema of the caller's own is sent as it stands, and the messages unchanged."""
    await ask(client, WANTED)
    assert server.bodies[0]["response_format"] == {
        "type": "json_schema",
        "json_schema": {"name": "verdict", "schema": SCHEMA, "strict": True},
    }
    assert [message["content"] for message in server.bodies[0]["messages"]] == ["You judge.", "Is it JSON?"]


async def test_pydantic_model(server: FaultServer, client: OpenAIChatClient) -> None:
    """A pydantic model is sent as its strict schema."""
    await ask(client, ChatOptions(response_format=Verdict))
    sent = server.bodies[0]["response_format"]["json_schema"]
    assert (sent["name"], sent["strict"], sent["schema"]["required"]) == ("Verdict", True, ["ok"])
    assert "default" not in json.dumps(sent)


@pytest.mark.parametrize("streaming", [False, True])
@pytest.mark.parametrize("wanted", [FORMAT, Verdict])
async def test_ladder(
    server: FaultServer, client: OpenAIChatClient, streaming: bool, wanted: type[BaseModel] | JsonSchemaFormat
) -> None:
    """A format the endpoint rejects is put a rung lower, down to the plain prompt; and the client remembers."""
    server.rejects("json_schema", "json_object")
    options = ChatOptions(response_format=wanted)
    assert await ask(client, options, streaming=streaming) == "ok"
    assert await ask(client, options, streaming=not streaming) == "ok"
    assert rungs(server) == ["json_schema", "json_object", "plain", "plain"]


async def test_what_the_lower_rungs_send(server: FaultServer, client: OpenAIChatClient) -> None:
    """`json_object` comes with the schema in a system message after the caller's; the plain rung changes nothing."""
    server.rejects("json_schema", "json_object")
    await ask(client, WANTED)
    schema, json_object, plain = [body["messages"] for body in server.bodies]
    assert schema == plain
    assert json_object[:-1] == schema
    assert json_object[-1]["role"] == "system"
    assert "JSON" in json_object[-1]["content"]
    assert json.loads(json_object[-1]["content"].partition("\n")[2]) == SCHEMA


async def test_memory_is_by_model(server: FaultServer, client: OpenAIChatClient) -> None:
    """What one model rejects is no news about another, nor for another client."""
    server.add(Failure(400, "response_format is not supported"))
    await ask(client, WANTED)
    await ask(client, ChatOptions(model_id="other", response_format=FORMAT))
    async with OpenAIChatClient("m", base_url=server.base_url) as another:
        await ask(another, WANTED)
    assert rungs(server) == ["json_schema", "json_object", "json_schema", "json_schema"]


@pytest.mark.parametrize(
    "rejection",
    [
        Failure(400, "Invalid parameter: 'response_format' of type 'json_schema' is not supported with this model."),
        Failure(400, "no", param="response_format"),
        Failure(400, "no", code="unsupported_response_format"),
        Failure(404, "Structured output is not available here"),
        Failure(400, "failed to parse grammar"),
        Failure(422, body={"detail": [{"loc": ["body", "response_format"], "msg": "Extra inputs", "type": "extra"}]}),
        Failure(422, body={"detail": "json_schema?"}),
        Failure(400, body={"object": "error", "message": "guided decoding is off", "code": 400}),
        Failure(501, "response_format: not implemented"),
        Failure(400, body={"error": "'response_format.type' must be 'text'"}),
        Raw(b"unknown field: response_format", "text/plain", 400),
    ],
)
async def test_rejections_of_a_format(server: FaultServer, client: OpenAIChatClient, rejection: Failure | Raw) -> None:
    """An endpoint may say in any of these ways that it does not know structured output."""
    server.add(rejection)
    assert await ask(client, WANTED) == "ok"
    assert rungs(server) == ["json_schema", "json_object"]


@pytest.mark.parametrize(
    "failure",
    [
        Failure(400, "Unsupported parameter: 'temperature'", param="temperature"),
        Failure(400, "This model's maximum context length is 8192 tokens", code="context_length_exceeded"),
        Failure(400, "Invalid schema for response_format 'verdict': ...", param="response_format"),
        Failure(404, "The model 'm' does not exist", code="model_not_found"),
        Failure(
            422,
            body={"detail": [{"loc": ["body", "user"], "msg": "missing", "input": {"response_format": "json_schema"}}]},
        ),
        Failure(401, "response_format? Who are you?"),
        Failure(429, "Too many json_schema requests"),
        Failure(500, "grammar crashed"),
    ],
)
async def test_other_errors(server: FaultServer, client: OpenAIChatClient, failure: Failure) -> None:
    """An error that does not reject the format is raised at once, and teaches nothing."""
    server.add(failure)
    with pytest.raises(openai.APIStatusError):
        await ask(client, ChatOptions(response_format=FORMAT, temperature=0.5))
    await ask(client, WANTED)
    assert rungs(server) == ["json_schema", "json_schema"]


async def test_rejected_without_a_format(server: FaultServer, client: OpenAIChatClient) -> None:
    """An error about a format that was not sent is raised."""
    server.add(Failure(400, "json_schema is not supported"))
    with pytest.raises(openai.BadRequestError):
        await ask(client, ChatOptions(response_format="text"))
    assert rungs(server) == ["plain"]


async def test_rejected_json_object_leaves_json_schema(server: FaultServer, client: OpenAIChatClient) -> None:
    """A server that knows json_schema alone is still asked for it after it rejected json_object."""
    server.rejects("json_object")
    await ask(client, ChatOptions(response_format="json_object"))
    await ask(client, WANTED)
    assert rungs(server) == ["json_object", "plain", "json_schema"]


async def test_template_without_late_system_messages(server: FaultServer, client: OpenAIChatClient) -> None:
    """A prompt template that takes no system message after the first is sent the plain prompt."""
    server.rejects("json_schema")
    server.add(Failure(400, "System message must be at the beginning."))
    assert await ask(client, WANTED) == "ok"
    assert rungs(server) == ["json_schema", "json_object", "plain"]


async def test_calls_at_once(server: FaultServer, client: OpenAIChatClient) -> None:
    """Calls that hear the same rejection at once do not push each other down the ladder."""
    server.rejects("json_schema")
    assert await asyncio.gather(*(ask(client, WANTED) for _ in range(8))) == ["ok"] * 8
    assert set(rungs(server)) == {"json_schema", "json_object"}


@pytest.mark.parametrize(("prompt", "sent"), [("Give me jSon", 1), ("Give me YAML", 2)])
async def test_json_object_has_the_word(server: FaultServer, client: OpenAIChatClient, prompt: str, sent: int) -> None:
    """`json_object` demands the word JSON in the prompt: it is added where the caller's messages lack it."""
    await client.get_response([ChatMessage("user", prompt)], ChatOptions(response_format="json_object"))
    assert len(server.bodies[0]["messages"]) == sent
    assert "json" in server.bodies[0]["messages"][-1]["content"].lower()


@pytest.mark.parametrize("wrong", ["json", dict, {"type": "object"}])
async def test_unknown_format(server: FaultServer, client: OpenAIChatClient, wrong: Any) -> None:
    """A response format of no known kind is an error that names the kinds."""
    with pytest.raises(ConfigurationError, match="response_format"):
        await client.get_response(ASK, ChatOptions(response_format=wrong))
    assert server.requests == []


@pytest.mark.parametrize("streaming", [False, True])
@pytest.mark.parametrize(
    ("rejection", "first", "then"),
    [
        (
            Failure(400, "Use 'max_completion_tokens' instead: 'max_tokens' is not supported.", param="max_tokens"),
            "max_tokens",
            "max_completion_tokens",
        ),
        (
            Failure(422, body={"detail": [{"loc": ["body", "max_completion_tokens"], "type": "extra_forbidden"}]}),
            "max_completion_tokens",
            "max_tokens",
        ),
    ],
)
async def test_max_tokens(server: FaultServer, streaming: bool, rejection: Failure, first: Any, then: str) -> None:
    """A limit under a name the server does not know is sent under the other one, from then on."""

    def connect() -> openai.AsyncOpenAI:
        return make_openai(what="this test", base_url=server.base_url, api_key="k")

    server.add(rejection)
    async with ChatCompletionsClient(connect, "m", max_tokens_parameter=first) as client:
        for _ in range(2):
            await ask(client, ChatOptions(max_output_tokens=9), streaming=streaming)
    assert [{first, then} & body.keys() for body in server.bodies] == [{first}, {then}, {then}]
    assert server.bodies[-1][then] == 9


async def test_max_tokens_too_large(server: FaultServer, client: OpenAIChatClient) -> None:
    """A limit that is too large is the caller's to hear about."""
    server.add(Failure(400, "max_tokens is too large: 9. This model supports at most 8.", param="max_tokens"))
    with pytest.raises(openai.BadRequestError):
        await ask(client, ChatOptions(max_output_tokens=9))
    assert len(server.requests) == 1


async def test_everything_at_once(server: FaultServer, client: OpenAIChatClient) -> None:
    """A server that knows none of it still answers, and is asked plainly the next time."""
    server.rejects("json_schema", "json_object", "max_tokens", "stream_options")
    options = ChatOptions(response_format=FORMAT, max_output_tokens=9)
    assert await ask(client, options, streaming=True) == "ok"
    server.requests.clear()
    assert await ask(client, options, streaming=True) == "ok"
    assert len(server.requests) == 1


async def test_neither_name_for_max_tokens(server: FaultServer, client: OpenAIChatClient) -> None:
    """A server that rejects both names for the limit is not asked for ever."""
    server.rejects("max_tokens", "max_completion_tokens")
    for _ in range(2):
        with pytest.raises(openai.BadRequestError):
            await ask(client, ChatOptions(max_output_tokens=9))
    assert len(server.requests) == 3


async def test_no_sampling_parameter_is_dropped(server: FaultServer, client: OpenAIChatClient) -> None:
    """A temperature that was asked for and is rejected is an error, not left out in silence."""
    server.rejects("temperature")
    with pytest.raises(openai.BadRequestError):
        await ask(client, ChatOptions(temperature=0.5))
    server.add(Completion(content="ok"))
    assert await ask(client, ChatOptions()) == "ok"


async def test_an_endpoint_without_log_probabilities_is_asked_without(server, client):
    """P3: what an endpoint rejects by name is left out, for log probabilities too, and that is remembered."""
    server.rejects("logprobs")
    for _ in range(2):
        assert (await client.get_response("Hi.", ChatOptions(top_logprobs=5))).text == "ok"
    assert [body.get("logprobs") for body in server.bodies] == [True, None, None]
    assert [body.get("top_logprobs") for body in server.bodies] == [5, None, None]


async def test_log_probabilities_are_not_asked_for_unless_the_caller_does(server, client):
    """P4: nothing is sent that the caller did not ask for."""
    await client.get_response("Hi.", ChatOptions(temperature=0))
    assert not server.bodies[0].keys() & {"logprobs", "top_logprobs"}
