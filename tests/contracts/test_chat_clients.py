"""What a judge and an agent need of a chat client: one suite, over a real server, on every adapter."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pytest
from chat_client_subjects import CLIENT_SUBJECTS, ClientSubject, Echo
from fakes import leaving_nothing, says, texts
from fault_server import Completion, Failure, FaultServer, Silence, Stream, chunk, usage
from pydantic import BaseModel

from agents_loop import (
    AIJudgeLoopEvaluator,
    ChatClient,
    ChatClientAgent,
    ChatMessage,
    ChatOptions,
    ChatResponse,
    DataContent,
    ErrorContent,
    FinishReason,
    FunctionCallContent,
    FunctionResultContent,
    JsonSchemaFormat,
    LoopAgent,
    LoopResult,
    StopReason,
    TextContent,
    UsageContent,
    UsageDetails,
    tool,
)
from agents_loop.clients.model_files import KNOWN_MODELS, ModelNotFoundError, locate

ASK = [ChatMessage("user", "Go.")]
PNG = b"\x89PNG"
HALF = Stream((chunk({"role": "assistant", "content": ""}), chunk({"content": "half an "})), end="held")
ADD = {"id": "c1", "type": "function", "function": {"name": "add", "arguments": '{"a": 1, "b": 2}'}}
AGAIN = {**ADD, "id": "c2"}


class City(BaseModel):
    name: str
    people: int


@dataclass(frozen=True)
class Ask:
    """One of the two ways to ask a client; a test that takes it holds for both."""

    streaming: bool

    async def __call__(
        self, client: ChatClient, messages: Sequence[ChatMessage] = ASK, options: ChatOptions | None = None
    ) -> ChatResponse:
        if not self.streaming:
            return await client.get_response(messages, options)
        return ChatResponse.from_updates([piece async for piece in client.get_streaming_response(messages, options)])


WHOLE, STREAMED = Ask(streaming=False), Ask(streaming=True)


@pytest.fixture(params=[WHOLE, STREAMED], ids=["whole", "streamed"])
def ask(request: pytest.FixtureRequest) -> Ask:
    return request.param


@pytest.fixture(params=CLIENT_SUBJECTS, ids=lambda subject: subject.name)
def subject(request: pytest.FixtureRequest) -> ClientSubject:
    request.param.require()
    return request.param


@pytest.fixture
def client(subject: ClientSubject, server: FaultServer) -> ChatClient:
    return subject.make(server)


@pytest.fixture(params=[subject for subject in CLIENT_SUBJECTS if subject.speaks], ids=lambda subject: subject.name)
def speaking(request: pytest.FixtureRequest, server: FaultServer) -> ChatClient:
    """Those that there is a wire of."""
    request.param.require()
    return request.param.make(server)


def heard(server: FaultServer, number: int = -1) -> list[tuple[str, Any]]:
    return [(message["role"], message.get("content")) for message in server.bodies[number]["messages"]]


# --- what the model hears


async def test_messages_arrive_in_order_with_their_roles(client, server, ask):
    """Law (C1): the model hears all the messages, in order, each with its role and text, and nothing else."""
    given = [
        ChatMessage("system", "Be brief."),
        ChatMessage("user", "one"),
        ChatMessage("assistant", "two"),
        ChatMessage("user", "three"),
    ]
    await ask(client, given)
    assert heard(server) == [("system", "Be brief."), ("user", "one"), ("assistant", "two"), ("user", "three")]
    assert len(server.requests) == 1


async def test_identical_messages_are_all_heard(client, server, ask):
    """Law (C5): a turn that says what an earlier one said is not taken for a repetition."""
    given = [ChatMessage("user", "More."), ChatMessage("assistant", "ok")] * 3 + [ChatMessage("user", "More.")]
    await ask(client, given)
    assert heard(server) == [(str(message.role), message.text) for message in given]


async def test_no_call_remembers_another(client, server, ask):
    """Law: a client keeps no conversation: a second call holds its own messages alone."""
    await ask(client, [ChatMessage("user", "one")])
    await ask(client, [ChatMessage("user", "two")])
    assert [heard(server, number) for number in (0, 1)] == [[("user", "one")], [("user", "two")]]


async def test_the_callers_messages_are_not_changed(client, ask):
    """Law 1: a client changes neither the caller's list nor the messages in it."""
    message = ChatMessage("user", ["Look.", DataContent(PNG, "image/png")], additional_properties={"k": [1]})
    given = [message]
    await ask(client, given)
    assert given == [message]
    assert message == ChatMessage("user", ["Look.", DataContent(PNG, "image/png")], additional_properties={"k": [1]})
    assert message.message_id is None


async def test_an_image_reaches_the_model(client, server, ask):
    """Law 21: an image is sent as one, after the text before it, not flattened to text."""
    await ask(client, [ChatMessage("user", ["What is this?", DataContent(PNG, "image/png")])])
    parts = [part for _, content in heard(server) for part in ([content] if isinstance(content, str) else content)]
    shown = [part if isinstance(part, str) else part.get("text") or part["image_url"]["url"] for part in parts]
    assert shown == ["What is this?", "data:image/png;base64,iVBORw=="]


async def test_calls_and_results_reach_the_model(client, server, ask):
    """Law: function calls and their results are sent under their ids, each result after the message of its call."""
    call = FunctionCallContent("c1", "add", {"a": 1, "b": 2})
    given = [*ASK, ChatMessage("assistant", [call]), ChatMessage("tool", [FunctionResultContent("c1", "3")])]
    await ask(client, given)
    _, called, result = server.bodies[0]["messages"]
    [sent] = called["tool_calls"]
    assert (sent["id"], sent["function"]["name"]) == ("c1", "add")
    assert json.loads(sent["function"]["arguments"]) == {"a": 1, "b": 2}
    assert (result["role"], result["tool_call_id"], result["content"]) == ("tool", "c1", "3")


async def test_options_reach_the_wire(speaking, server, ask):
    """Law 13: what a call asks for is sent, and what it does not ask for is not."""
    options = ChatOptions(
        model_id="other", temperature=0.0, top_p=0.5, max_output_tokens=9, stop_sequences=["a"], seed=0
    )
    await ask(speaking, options=options)
    [body] = server.bodies
    limit = body.get("max_tokens", body.get("max_completion_tokens"))
    sent = (body["model"], body["temperature"], body["top_p"], limit, body["stop"], body["seed"])
    assert sent == ("other", 0.0, 0.5, 9, ["a"], 0)
    await ask(speaking)
    unasked = {"temperature", "top_p", "max_tokens", "max_completion_tokens", "stop", "seed", "response_format"}
    assert server.bodies[1].keys() & unasked == set()
    assert server.bodies[1]["model"] == "m"


async def test_a_pydantic_class_is_sent_as_its_strict_schema(speaking, server, ask):
    """Law 23: a pydantic class is sent as its strict, closed schema; the reply's text is the model's own."""
    server.add(Completion(content='{"name": "Oslo", "people": 7}'))
    response = await ask(speaking, options=ChatOptions(response_format=City))
    sent = server.bodies[0]["response_format"]
    assert sent["type"] == "json_schema"
    assert sent["json_schema"]["strict"] is True
    schema = sent["json_schema"]["schema"]
    assert list(schema["properties"]) == schema["required"] == ["name", "people"]
    assert schema["additionalProperties"] is False
    assert response.text == '{"name": "Oslo", "people": 7}'


async def test_a_reply_that_is_not_of_the_class_is_a_reply(speaking, server, ask):
    """Law 23: what the model wrote reaches the caller also where it is not of the format; reading it is a judge's work."""
    server.add(Completion(content="I can't say.", usage=usage(1, 2)))
    response = await ask(speaking, options=ChatOptions(response_format=City))
    assert (response.text, response.usage) == ("I can't say.", UsageDetails(1, 2, 3))


async def test_a_schema_of_ones_own_is_sent_as_it_stands(speaking, server, ask):
    """Law 23: a schema of the caller's is sent as it stands, its order included."""
    schema = {
        "type": "object",
        "properties": {"z": {"type": "string"}, "a": {"type": "boolean"}},
        "required": ["z", "a"],
        "additionalProperties": False,
    }
    await ask(speaking, options=ChatOptions(response_format=JsonSchemaFormat("mine", schema)))
    sent = server.bodies[0]["response_format"]
    assert sent == {"type": "json_schema", "json_schema": {"name": "mine", "schema": schema, "strict": True}}
    assert list(sent["json_schema"]["schema"]["properties"]) == ["z", "a"]


# --- what the caller gets


async def test_a_reply_has_its_text_and_role(client, server, ask):
    """Law: a reply is one message of the assistant with the text as the model wrote it, and an end that is `stop`."""
    server.add(Completion(content="  one\n\ntwo  "))
    response = await ask(client)
    assert texts(response.messages) == [("assistant", "  one\n\ntwo  ")]
    assert response.messages[0].contents == [TextContent("  one\n\ntwo  ")]
    assert response.finish_reason == FinishReason.STOP


@pytest.mark.parametrize(
    "reply",
    [
        Completion(content="one two three", usage=usage(3, 2)),
        Completion(content="half an ans", finish_reason="length"),
        Completion(content="so far", finish_reason="content_filter", usage=usage(3, 2)),
        Completion(content="Let me see.", tool_calls=(ADD, AGAIN), finish_reason="tool_calls", usage=usage(3, 2)),
        Completion(content=None, tool_calls=(ADD,), finish_reason="tool_calls"),
        Completion(content=""),
    ],
    ids=["text", "length", "filtered", "text and calls", "calls", "empty"],
)
async def test_streaming_equals_not_streaming(client, server, reply):
    """Law 8: the pieces of a stream make the same messages, usage, ids and end as the whole answer."""
    server.add(reply, reply)
    whole, streamed = await WHOLE(client), await STREAMED(client)
    assert [message.contents for message in streamed.messages] == [message.contents for message in whole.messages]
    assert texts(streamed.messages) == texts(whole.messages)
    assert streamed.usage == whole.usage
    assert streamed.finish_reason == whole.finish_reason
    assert (streamed.response_id, streamed.model_id) == (whole.response_id, whole.model_id)


async def test_a_stream_is_of_one_message(client, server):
    """Law 17: the pieces of a message share one id, which no other reply has."""
    server.add(*[Completion(content="one two three", usage=usage(1, 1))] * 2)
    ids = [{piece.message_id async for piece in client.get_streaming_response(ASK) if piece.text} for _ in range(2)]
    assert [len(found) for found in ids] == [1, 1]
    assert None not in ids[0]


@pytest.mark.parametrize(
    "subject", [subject for subject in CLIENT_SUBJECTS if subject.streams], ids=lambda subject: subject.name
)
async def test_a_stream_comes_in_pieces(subject, server):
    """Law 17: a stream yields the model's text as it comes."""
    subject.require()
    server.add(Completion(content="one two three four"))
    pieces = [piece.text async for piece in subject.make(server).get_streaming_response(ASK) if piece.text]
    assert len(pieces) > 1
    assert "".join(pieces) == "one two three four"


async def test_usage_is_counted_once(client, server, ask):
    """Law 16 (U1): the usage is what was reported, once, and stands in no message; nothing reported is `None`."""
    server.add(Completion(content="x", usage=usage(10, 5)), Completion(content="y"))
    response = await ask(client)
    assert response.usage == UsageDetails(10, 5, 15)
    contents = [content for message in response.messages for content in message.contents]
    assert not any(isinstance(content, UsageContent) for content in contents)
    assert (await ask(client)).usage is None


@pytest.mark.parametrize("reason", [FinishReason.STOP, FinishReason.LENGTH, FinishReason.CONTENT_FILTER])
async def test_an_end_is_mapped(client, server, ask, reason):
    """Law 25: an answer that was cut off or filtered is an answer with its text and usage that says why it ended."""
    server.add(Completion(content="half an ans", finish_reason=str(reason), usage=usage(3, 2)))
    response = await ask(client)
    assert (response.text, response.finish_reason) == ("half an ans", reason)
    assert response.usage == UsageDetails(3, 2, 5)


async def test_a_refusal_is_no_answer(client, server, ask):
    """Law 25: a refusal is told apart from an answer: its text is no text of the answer, and its end says so."""
    server.add(Completion(content=None, refusal="I can't help with that.", usage=usage(3, 2)))
    response = await ask(client)
    assert response.finish_reason == FinishReason.REFUSAL
    assert response.messages[0].contents == [ErrorContent("I can't help with that.", code="refusal")]
    assert (response.text, response.usage) == ("", UsageDetails(3, 2, 5))


async def test_a_filtered_prompt_is_an_outcome(speaking, server, ask):
    """Law 25: a prompt that the provider's filter rejects is an outcome that says so, and is not sent again."""
    server.add(Failure(400, "The prompt was filtered.", code="content_filter", param="prompt"))
    response = await ask(speaking)
    assert response.finish_reason == FinishReason.CONTENT_FILTER
    [content] = response.messages[0].contents
    assert (type(content), content.code, response.text) == (ErrorContent, "content_filter", "")
    assert "The prompt was filtered." in content.message
    assert len(server.requests) == 1


async def test_a_reply_of_calls_alone(client, server, ask):
    """Law: a reply of function calls alone is a reply; identical calls are both in it, and its end says so."""
    server.add(Completion(content=None, tool_calls=(ADD, AGAIN), finish_reason="tool_calls"))
    response = await ask(client)
    assert [message.role for message in response.messages] == ["assistant"]
    assert response.messages[0].contents == [
        FunctionCallContent("c1", "add", {"a": 1, "b": 2}),
        FunctionCallContent("c2", "add", {"a": 1, "b": 2}),
    ]
    assert (response.text, response.finish_reason) == ("", FinishReason.TOOL_CALLS)


async def test_tools_are_declared_and_not_run(speaking, server, ask):
    """Law 21: a client declares the tools and hands the calls back; it runs none of them and asks once."""
    ran: list[str] = []

    @tool
    def add(a: int, b: int) -> str:
        """Add two numbers."""
        ran.append("add")
        return str(a + b)

    server.add(Completion(content=None, tool_calls=(ADD,), finish_reason="tool_calls"))
    response = await ask(speaking, options=ChatOptions(tools=[add]))
    [declared] = server.bodies[0]["tools"]
    function = declared["function"]
    assert (function["name"], function["description"]) == ("add", "Add two numbers.")
    assert set(function["parameters"]["properties"]) == {"a", "b"}
    assert response.messages[0].contents == [FunctionCallContent("c1", "add", {"a": 1, "b": 2})]
    assert ran == []
    assert len(server.requests) == 1


async def test_our_agent_runs_its_tools_over_any_client(client, server, invoke):
    """Law 14: `ChatClientAgent` over any client runs a tool once and sends its result back under the call's id."""
    ran: list[int] = []

    def add(a: int, b: int) -> str:
        """Add two numbers."""
        ran.append(a + b)
        return str(a + b)

    server.add(Completion(content=None, tool_calls=(ADD,), finish_reason="tool_calls"), Completion(content="It is 3."))
    response = await invoke(ChatClientAgent(client, tools=[add]), "What is 1 + 2?")
    assert (response.text, ran) == ("It is 3.", [3])
    *_, result = server.bodies[1]["messages"]
    assert (result["role"], result["tool_call_id"], result["content"]) == ("tool", "c1", "3")


async def test_identical_replies_are_both_kept(client, invoke):
    """Law 14 (C5): a loop over any client keeps identical replies, each a message of its own."""
    response = await invoke(LoopAgent(ChatClientAgent(client), says(None, None)), "Go.")
    assert texts(response.messages) == [("assistant", "ok")] * 3


async def test_any_client_judges(client, server, invoke):
    """Law 21: a judge over any client goes on and passes as the verdicts say, and its usage is in the result."""
    server.add(
        Completion(content="a plan"),
        Completion(content='{"gapAnalysis": "no cost", "answered": false}', usage=usage(5, 1)),
        Completion(content="a plan with a cost"),
        Completion(content='{"gapAnalysis": "", "answered": true}', usage=usage(6, 1)),
    )
    response = await invoke(LoopAgent(ChatClientAgent(client), AIJudgeLoopEvaluator(client)), "Plan it.")
    result = LoopResult.of(response)
    assert (result.stop_reason, result.output) == (StopReason.SATISFIED, "a plan with a cost")
    assert result.usage == UsageDetails(11, 2, 13)


# --- errors, leaving early, many at once


async def test_an_error_is_raised_as_the_sdk_raises_it(subject, client, server, ask):
    """Law: what the SDK raises reaches the caller as it was raised, after one request; the key is not in it."""
    server.add(Failure(401, "wrong credentials"))
    with pytest.raises(subject.error, match="wrong credentials"):
        await ask(client)
    assert len(server.requests) == 1


async def test_a_client_works_on_after_an_error(subject, client, server, ask):
    """Law: an error leaves nothing behind: the next call is answered."""
    server.add(Failure(401, "wrong credentials"), Completion(content="fine"))
    with pytest.raises(subject.error):
        await ask(client)
    assert (await ask(client)).text == "fine"


async def end_of_others(before: set[asyncio.Task[Any]]) -> None:
    """Fails if a task that is not of `before` goes on; one that closes a generator may take its turn."""
    left = asyncio.all_tasks() - before
    if left:
        _, going_on = await asyncio.wait(left, timeout=60)
        assert going_on == set()


async def test_closing_a_stream_early_leaves_nothing(client, subject, server):
    """Law 19 (F5): closing a stream early closes the connection to the model, and leaves no task behind."""
    server.add(HALF)
    before = asyncio.all_tasks()
    stream = client.get_streaming_response(ASK)
    async for piece in stream:
        if piece.text:
            break
    await stream.aclose()
    if subject.speaks:
        assert await asyncio.to_thread(server.client_left.wait, 30)
    await end_of_others(before)


async def test_cancelling_leaves_nothing(client, server, ask):
    """Law 19: a cancelled call raises the cancellation, closes its connection, and leaves no task behind."""
    server.add(Silence())
    async with leaving_nothing():
        task = asyncio.create_task(ask(client))
        assert await asyncio.to_thread(server.asked.wait, 60)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert await asyncio.to_thread(server.client_left.wait, 30)


async def test_cancelling_within_an_answer_leaves_nothing(speaking, server):
    """Law 19: ... also where half of the answer was streamed."""
    server.add(HALF)
    came = asyncio.Event()

    async def read() -> None:
        async for piece in speaking.get_streaming_response(ASK):
            if piece.text:
                came.set()

    async with leaving_nothing():
        task = asyncio.create_task(read())
        async with asyncio.timeout(60):
            await came.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert await asyncio.to_thread(server.client_left.wait, 30)


@pytest.fixture
def echo() -> Iterator[Echo]:
    with Echo() as server:
        yield server


async def test_one_client_serves_many_callers_at_once(subject, echo, ask):
    """Law 20: one client used by many callers at once gives each its own answer and its own usage."""
    client = subject.make(echo)
    said = [f"{'x' * number} {number}" for number in range(20)]
    answers = await asyncio.gather(*[ask(client, [ChatMessage("user", text)]) for text in said])
    assert [answer.text for answer in answers] == said
    assert [answer.usage.input_token_count for answer in answers] == [len(text) for text in said]


async def test_a_stream_starts_nothing_until_it_is_read(client, server):
    """Law 17: asking for a stream sends nothing; reading it does."""
    stream = client.get_streaming_response(ASK)
    assert server.requests == []
    assert ChatResponse.from_updates([piece async for piece in stream]).text == "ok"


# --- a real model


async def test_a_real_model_keeps_the_contract():
    """Law 8: what a real model streams is what it says whole: text, usage and the end by length, for one seed."""
    assert "smollm2-135m" in KNOWN_MODELS
    pytest.importorskip("xllamacpp")
    from agents_loop.clients.local import LocalChatClient

    try:
        locate("smollm2-135m")
    except ModelNotFoundError:
        pytest.skip("the model is not on this machine")
    options = ChatOptions(temperature=0, seed=1, max_output_tokens=8)
    async with LocalChatClient("smollm2-135m", options=options, context_size=4096) as client:
        await WHOLE(client)  # a warm answer is repeatable
        whole, streamed = await WHOLE(client), await STREAMED(client)
    assert whole.text
    assert texts(streamed.messages) == texts(whole.messages)
    assert streamed.finish_reason == whole.finish_reason == FinishReason.LENGTH
    assert whole.usage.output_token_count == streamed.usage.output_token_count == 8
    assert whole.usage.input_token_count == streamed.usage.input_token_count
