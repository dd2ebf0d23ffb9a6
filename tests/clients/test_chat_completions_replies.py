"""Whole replies, their endings, and errors, against a real server on loopback."""

from __future__ import annotations

import asyncio

import openai
import pytest
from fault_server import Completion, Failure, FaultServer, Raw, Silence, usage

from agents_loop.chat_client import ChatOptions, ChatResponse, FinishReason
from agents_loop.clients.openai import OpenAIChatClient
from agents_loop.messages import (
    ChatMessage,
    ErrorContent,
    FunctionCallContent,
    TextContent,
    TextReasoningContent,
    UsageDetails,
)

ASK = [ChatMessage("user", "hi")]
FILTERED_PROMPT = Failure(400, "The prompt was filtered.", code="content_filter", param="prompt")


async def ask(client: OpenAIChatClient, *, streaming: bool, options: ChatOptions | None = None) -> ChatResponse:
    if not streaming:
        return await client.get_response(ASK, options)
    return ChatResponse.from_updates([u async for u in client.get_streaming_response(ASK, options)])


both_ways = pytest.mark.parametrize("streaming", [False, True], ids=["whole", "streamed"])


@both_ways
async def test_reply(server: FaultServer, client: OpenAIChatClient, streaming: bool) -> None:
    """A reply comes with its text, ids, reason and usage."""
    server.add(Completion(content="hello", usage=usage(3, 2)))
    response = await ask(client, streaming=streaming)
    assert (response.text, response.response_id, response.model_id) == ("hello", "reply-1", "served-model")
    assert (response.finish_reason, response.created_at) == (FinishReason.STOP, 1_700_000_000)
    assert response.usage == UsageDetails(3, 2, 5)
    assert response.messages[0].message_id


@both_ways
async def test_cut_off_reply_keeps_text_and_usage(
    server: FaultServer, client: OpenAIChatClient, streaming: bool
) -> None:
    """An answer cut off by the token limit is a reply with its partial text and its usage, not an exception."""
    server.add(Completion(content="half an ans", finish_reason="length", usage=usage(3, 2)))
    response = await ask(client, streaming=streaming)
    assert (response.text, response.finish_reason) == ("half an ans", FinishReason.LENGTH)
    assert response.usage == UsageDetails(3, 2, 5)


@both_ways
@pytest.mark.parametrize("content", ["", None])
async def test_refusal(server: FaultServer, client: OpenAIChatClient, streaming: bool, content: str | None) -> None:
    """A refusal is known as one, whether the content beside it is empty or null."""
    server.add(Completion(content=content, refusal="I can't help with that.", usage=usage(3, 2)))
    response = await ask(client, streaming=streaming)
    assert response.finish_reason == FinishReason.REFUSAL
    assert response.messages[0].contents == [ErrorContent("I can't help with that.", code="refusal")]
    assert (response.text, response.usage) == ("", UsageDetails(3, 2, 5))


@both_ways
@pytest.mark.parametrize(
    "failure",
    [
        FILTERED_PROMPT,
        Failure(400, "The prompt was filtered.", inner={"code": "ResponsibleAIPolicyViolation"}),
    ],
)
async def test_filtered_prompt(
    server: FaultServer, client: OpenAIChatClient, streaming: bool, failure: Failure
) -> None:
    """A prompt that the provider's filter rejects is an outcome, and is not sent again."""
    server.add(failure)
    response = await ask(client, streaming=streaming, options=ChatOptions(response_format="json_object"))
    assert response.finish_reason == FinishReason.CONTENT_FILTER
    assert response.messages[0].contents == [ErrorContent("The prompt was filtered.", code="content_filter")]
    assert response.model_id == "m"
    assert len(server.requests) == 1


@both_ways
async def test_filtered_answer(server: FaultServer, client: OpenAIChatClient, streaming: bool) -> None:
    """An empty answer that ended by the filter says so in its contents; a partial one keeps its text."""
    server.add(
        Completion(content=None, finish_reason="content_filter"),
        Completion(content="so far", finish_reason="content_filter"),
    )
    empty = await ask(client, streaming=streaming)
    partial = await ask(client, streaming=streaming)
    assert empty.finish_reason == partial.finish_reason == FinishReason.CONTENT_FILTER
    assert [content.code for content in empty.messages[0].contents] == ["content_filter"]
    assert partial.messages[0].contents == [TextContent("so far")]


@both_ways
async def test_foreign_finish_reason(server: FaultServer, client: OpenAIChatClient, streaming: bool) -> None:
    """A finish reason that only this provider knows is kept as it is."""
    server.add(Completion(content="x", finish_reason="eos_token"))
    assert (await ask(client, streaming=streaming)).finish_reason == "eos_token"


@both_ways
async def test_empty_reply(server: FaultServer, client: OpenAIChatClient, streaming: bool) -> None:
    """An empty answer is one message without contents."""
    server.add(Completion(content=""))
    response = await ask(client, streaming=streaming)
    assert response.messages == [ChatMessage("assistant", [])]


@pytest.mark.parametrize("name", ["reasoning_content", "reasoning"])
async def test_reasoning(server: FaultServer, client: OpenAIChatClient, name: str) -> None:
    """Reasoning, under either name servers give it, is a content of its own and no text."""
    server.add(Completion(content="42", extra={name: "six times seven"}))
    response = await client.get_response(ASK)
    assert response.messages[0].contents == [TextReasoningContent("six times seven"), TextContent("42")]
    assert response.text == "42"


async def test_content_as_parts(server: FaultServer, client: OpenAIChatClient) -> None:
    """Text that a server writes as a list of parts is read."""
    server.add(Completion(content=[{"type": "text", "text": "a"}, {"type": "other"}, {"type": "text", "text": "b"}]))
    assert (await client.get_response(ASK)).text == "ab"


@both_ways
async def test_function_calls(server: FaultServer, client: OpenAIChatClient, streaming: bool) -> None:
    """Function calls come whole; arguments that are no JSON object, or not clear, stay as they were written."""
    calls = (
        {"id": "c1", "type": "function", "function": {"name": "add", "arguments": '{"a": 1, "b": [2]}'}},
        {"id": "c2", "type": "function", "function": {"name": "add", "arguments": '{"a": 1,'}},
        {"id": "c3", "type": "function", "function": {"name": "now", "arguments": ""}},
        {"id": "c4", "type": "function", "function": {"name": "add", "arguments": '{"a": {"b": 1, "b": 2}}'}},
        {"id": "c5", "type": "function", "function": {"name": "add", "arguments": "[" * 100_000}},
    )
    server.add(Completion(content=None, tool_calls=calls, finish_reason="tool_calls"))
    response = await ask(client, streaming=streaming)
    assert response.finish_reason == FinishReason.TOOL_CALLS
    assert response.messages[0].contents == [
        FunctionCallContent("c1", "add", {"a": 1, "b": [2]}),
        FunctionCallContent("c2", "add", '{"a": 1,'),
        FunctionCallContent("c3", "now", None),
        FunctionCallContent("c4", "add", '{"a": {"b": 1, "b": 2}}'),
        FunctionCallContent("c5", "add", "[" * 100_000),
    ]


@both_ways
async def test_all_counters(server: FaultServer, client: OpenAIChatClient, streaming: bool) -> None:
    """Every counter is kept, those without a field of their own under the ancestor's names; the rest stay None."""
    prompt = {"cached_tokens": 4, "audio_tokens": 1}
    completion = {"reasoning_tokens": 3, "audio_tokens": 0, "accepted_prediction_tokens": 2}
    details = {"prompt_tokens_details": prompt, "completion_tokens_details": completion}
    server.add(Completion(content="x", usage=usage(10, 5, **details)), Completion(content="y"))
    response = await ask(client, streaming=streaming)
    counts = {
        "InputTokenDetails.AudioTokenCount": 1,
        "OutputTokenDetails.AudioTokenCount": 0,
        "OutputTokenDetails.AcceptedPredictionTokenCount": 2,
    }
    assert response.usage == UsageDetails(10, 5, 15, 4, 3, counts)
    assert (await ask(client, streaming=streaming)).usage is None


@both_ways
async def test_log_probabilities(server: FaultServer, client: OpenAIChatClient, streaming: bool) -> None:
    """Log probabilities that were asked for are kept."""
    token = {"token": "x", "bytes": [120], "logprob": -0.5, "top_logprobs": []}
    server.add(Completion(content="x", logprobs={"content": [token]}))
    options = ChatOptions(additional_properties={"logprobs": True})
    response = await ask(client, streaming=streaming, options=options)
    assert response.additional_properties == {"logprobs": [token]}
    assert server.bodies[0]["logprobs"] is True


@pytest.mark.parametrize(
    ("reply", "said"),
    [
        (Raw(b'{"id": "x", "object": "chat.completion", "choices": []}'), "without a message"),
        (Raw(b'{"id": "x", "choices": null, "error": {"message": "upstream is down"}}'), "upstream is down"),
        (Raw(b'{"choices": [{"index": 0, "message": null, "finish_reason": null}]}'), "without a message"),
        (Raw(b"{}"), "without a message"),
        (Raw(b"<html>welcome</html>", "text/html"), "address"),
    ],
)
async def test_reply_without_message(server: FaultServer, client: OpenAIChatClient, reply: Raw, said: str) -> None:
    """A reply without a message in it is an error that says so, of the SDK's own kind."""
    server.add(reply)
    with pytest.raises(openai.APIError, match=said) as caught:
        await client.get_response(ASK)
    assert str(caught.value.request.url) == f"{server.base_url}/chat/completions"


@both_ways
@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (400, openai.BadRequestError),
        (401, openai.AuthenticationError),
        (404, openai.NotFoundError),
        (429, openai.RateLimitError),
        (500, openai.InternalServerError),
    ],
)
async def test_errors_as_raised(
    server: FaultServer, client: OpenAIChatClient, streaming: bool, status: int, kind: type[Exception]
) -> None:
    """An error of the SDK reaches the caller as it was raised, after one request."""
    server.add(Failure(status, "no", code="why"))
    with pytest.raises(kind) as caught:
        await ask(client, streaming=streaming, options=ChatOptions(response_format="json_object", temperature=0.5))
    assert caught.value.code == "why"
    assert "test-key" not in str(caught.value)
    assert len(server.requests) == 1


@both_ways
async def test_no_server(streaming: bool) -> None:
    """A server that isn't there is the SDK's connection error."""
    async with OpenAIChatClient("m", base_url="http://127.0.0.1:9/v1", max_retries=0) as client:
        with pytest.raises(openai.APIConnectionError):
            await ask(client, streaming=streaming)


@both_ways
async def test_no_answer_in_time(server: FaultServer, streaming: bool) -> None:
    """A server that says nothing is given up after the time limit, with the SDK's own error."""
    server.add(Silence())
    async with OpenAIChatClient("m", base_url=server.base_url, timeout_s=0.05, max_retries=0) as client:
        with pytest.raises(openai.APITimeoutError):
            await ask(client, streaming=streaming)


async def test_cancelling(server: FaultServer, client: OpenAIChatClient) -> None:
    """Cancelling a call closes its connection."""
    server.add(Silence())
    task = asyncio.create_task(client.get_response(ASK))
    assert await asyncio.to_thread(server.asked.wait, 60)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert await asyncio.to_thread(server.client_left.wait, 30)


@both_ways
@pytest.mark.parametrize("status", [429, 500])
async def test_the_sdk_tries_again(server: FaultServer, streaming: bool, status: int) -> None:
    """A failure that may pass is tried again as often as was asked for, after the time the server says."""
    again = Failure(status, headers={"retry-after-ms": "1"})
    async with OpenAIChatClient("m", base_url=server.base_url, max_retries=2) as client:
        server.add(again, again, Completion(content="at last"))
        assert (await ask(client, streaming=streaming)).text == "at last"
        server.add(again, again, again)
        with pytest.raises(openai.APIStatusError):
            await ask(client, streaming=streaming)
    assert len(server.requests) == 6
