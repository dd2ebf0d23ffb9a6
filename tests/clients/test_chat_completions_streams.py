"""Streams that go right and streams that break, against a real server on loopback."""

from __future__ import annotations

import asyncio
import gc

import openai
import pytest
from fault_server import Completion, FaultServer, Stream, chunk, usage

from agents_loop.chat_client import ChatOptions, ChatResponse, ChatResponseUpdate, FinishReason
from agents_loop.clients.openai import OpenAIChatClient
from agents_loop.messages import ChatMessage, ErrorContent, FunctionCallContent, UsageDetails

ASK = [ChatMessage("user", "hi")]
CALL = {"id": "c1", "type": "function", "function": {"name": "add", "arguments": '{"a": 1}'}}


async def drain(client: OpenAIChatClient) -> ChatResponse:
    return ChatResponse.from_updates([update async for update in client.get_streaming_response(ASK)])


async def break_off(client: OpenAIChatClient) -> tuple[list[ChatResponseUpdate], openai.APIError]:
    updates: list[ChatResponseUpdate] = []

    async def read() -> None:
        async for update in client.get_streaming_response(ASK):
            updates.append(update)  # noqa: PERF401 - what came before the error is wanted too

    with pytest.raises(openai.APIError) as caught:
        await read()
    return updates, caught.value


@pytest.mark.parametrize(
    "reply",
    [
        Completion(content="hello there", usage=usage(3, 2)),
        Completion(content="hello", reasoning="they greet me"),
        Completion(content="I add", tool_calls=(CALL,), finish_reason="tool_calls", usage=usage(3, 2)),
        Completion(content="", refusal="no, sorry"),
        Completion(content="I would but", refusal="no, sorry", finish_reason="length"),
        Completion(content="", finish_reason="content_filter", usage=usage(3, 0)),
        Completion(content=""),
    ],
)
async def test_streamed_equals_whole(server: FaultServer, client: OpenAIChatClient, reply: Completion) -> None:
    """A drained stream amounts to the response that is got at once."""
    server.add(reply, reply)
    assert await drain(client) == await client.get_response(ASK)
    assert [body.get("stream", False) for body in server.bodies] == [True, False]


async def test_updates(server: FaultServer, client: OpenAIChatClient) -> None:
    """Each update holds the response's id and one message's, and text is given on as it comes."""
    server.add(Completion(content="hello there", usage=usage(3, 2)))
    updates = [update async for update in client.get_streaming_response(ASK)]
    assert [update.text for update in updates if update.text] == ["hell", "o th", "ere"]
    assert {update.response_id for update in updates} == {"reply-1"}
    assert len({update.message_id for update in updates}) == 1
    assert updates[0].message_id
    assert [update.finish_reason for update in updates if update.finish_reason] == [FinishReason.STOP]


async def test_usage_is_asked_for(server: FaultServer, client: OpenAIChatClient) -> None:
    """A stream is asked to report its usage, a whole reply does so anyway."""
    await drain(client)
    await client.get_response(ASK)
    assert server.bodies[0]["stream_options"] == {"include_usage": True}
    assert "stream_options" not in server.bodies[1]


async def test_cumulative_usage(server: FaultServer, client: OpenAIChatClient) -> None:
    """Where each chunk repeats the usage so far, the last counts, once."""
    pieces = [chunk({"content": word}, usage=usage(5, count)) for count, word in enumerate("abc", 1)]
    server.add(Stream((*pieces, chunk({}, finish_reason="stop", usage=usage(5, 4)))))
    assert (await drain(client)).usage == UsageDetails(5, 4, 9)


async def test_rejected_stream_options(server: FaultServer, client: OpenAIChatClient) -> None:
    """A server that rejects stream_options is asked again without, and is not sent it any more."""
    server.rejects("stream_options")
    assert (await drain(client)).text == (await drain(client)).text == "ok"
    assert ["stream_options" in body for body in server.bodies] == [True, False, False]


async def test_calls_told_apart(server: FaultServer, client: OpenAIChatClient) -> None:
    """Pieces of calls are put together by index; a server that numbers all 0 tells them apart by id."""

    def piece(call_id: str | None, name: str | None, arguments: str) -> dict[str, object]:
        return {"tool_calls": [{"index": 0, "id": call_id, "function": {"name": name, "arguments": arguments}}]}

    deltas = [piece("a", "f", '{"x"'), piece(None, None, ": 1}"), piece("b", "g", "{}")]
    server.add(Stream((*map(chunk, deltas), chunk({}, finish_reason="tool_calls"))))
    contents = (await drain(client)).messages[0].contents
    assert contents == [FunctionCallContent("a", "f", {"x": 1}), FunctionCallContent("b", "g", {})]


async def test_other_choices(server: FaultServer, client: OpenAIChatClient) -> None:
    """A choice beyond the first is not mixed into the answer."""
    other = chunk({"content": "other"})
    other["choices"][0]["index"] = 1
    server.add(Stream((chunk({"content": "a"}), other, chunk({}, finish_reason="stop"))))
    assert (await drain(client)).text == "a"


async def test_odd_chunks(server: FaultServer, client: OpenAIChatClient) -> None:
    """Chunks without ids, choices or a delta, as some servers send, do no harm."""
    odd = [{}, {"id": "", "model": "", "choices": []}, {"choices": [{"index": 0}]}, {"choices": None}]
    server.add(Stream((*odd, chunk({"content": "a"}), *odd, chunk({}, finish_reason="stop"), *odd)))
    response = await drain(client)
    assert (response.text, response.response_id, response.model_id) == ("a", "reply-1", "served-model")


async def test_error_event(server: FaultServer, client: OpenAIChatClient) -> None:
    """An error event inside a stream that began with 200 is an error, never text; what was spent is told before."""
    error = {"error": {"message": "overloaded", "code": "server_error"}}
    server.add(Stream((chunk({"content": "so "}, usage=usage(5, 1)), error)))
    updates, raised = await break_off(client)
    assert (raised.message, raised.code) == ("overloaded", "server_error")
    so_far = ChatResponse.from_updates(updates)
    assert (so_far.text, so_far.usage, so_far.finish_reason) == ("so ", UsageDetails(5, 1, 6), None)
    assert len(server.requests) == 1


async def test_error_event_at_the_start(server: FaultServer, client: OpenAIChatClient) -> None:
    """An error event that rejects nothing of the request is raised, also before any text."""
    server.add(Stream(({"error": {"message": "grammar server is down", "code": "server_error"}},)))
    updates, raised = await break_off(client)
    assert (updates, raised.code, len(server.requests)) == ([], "server_error", 1)


async def test_filter_event(server: FaultServer, client: OpenAIChatClient) -> None:
    """A filter that strikes in the middle of a stream is an ending; the text so far is kept."""
    error = {"error": {"message": "filtered", "code": "content_filter"}}
    server.add(Stream((chunk({"content": "so far"}), error)))
    response = await drain(client)
    assert (response.text, response.finish_reason) == ("so far", FinishReason.CONTENT_FILTER)
    assert response.messages[0].contents[-1] == ErrorContent("filtered", code="content_filter")


@pytest.mark.parametrize("end", ["done", "closed", "torn"])
async def test_cut_stream(server: FaultServer, client: OpenAIChatClient, end: str) -> None:
    """A stream that ends before the answer does is a connection error, however it ended; not a finished text."""
    server.add(Stream((chunk({"content": "half an"}),), end=end))
    updates, raised = await break_off(client)
    assert isinstance(raised, openai.APIConnectionError)
    assert [update.text for update in updates] == ["half an"]
    assert len(server.requests) == 1


async def test_error_event_before_any_text(server: FaultServer, client: OpenAIChatClient) -> None:
    """A format that is rejected by a stream's first event is put in another way, as after a 400."""
    error = {"error": {"message": "response_format is not supported", "code": 400}}
    server.add(Stream((chunk({"role": "assistant"}), error)), Completion(content="{}"))
    options = ChatOptions(response_format="json_object")
    updates = [update async for update in client.get_streaming_response(ASK, options)]
    assert ChatResponse.from_updates(updates).text == "{}"
    assert "response_format" not in server.bodies[1]


async def test_rejection_after_text(server: FaultServer, client: OpenAIChatClient) -> None:
    """Once a piece was given out nothing is asked again, so no text is shown twice."""
    error = {"error": {"message": "response_format is not supported", "code": 400}}
    server.add(Stream((chunk({"content": "once"}), error)))
    texts: list[str] = []

    async def read() -> None:
        async for update in client.get_streaming_response(ASK, ChatOptions(response_format="json_object")):
            texts.append(update.text)  # noqa: PERF401 - what came before the error is wanted too

    with pytest.raises(openai.APIError, match="response_format"):
        await read()
    assert (texts, len(server.requests)) == (["once"], 1)


async def test_closing_early(server: FaultServer, client: OpenAIChatClient) -> None:
    """Closing the iterator early closes the connection, and leaves no task behind."""
    server.add(Stream((chunk({"content": "one"}),), end="held"))
    gc.collect()
    before = asyncio.all_tasks()
    stream = client.get_streaming_response(ASK)
    assert (await anext(stream)).text == "one"
    await stream.aclose()
    assert await asyncio.to_thread(server.client_left.wait, 30)
    gc.collect()
    assert asyncio.all_tasks() <= before


async def test_cancelling(server: FaultServer, client: OpenAIChatClient) -> None:
    """Cancelling whoever reads the stream closes the connection."""
    server.add(Stream((chunk({"content": "one"}),), end="held"))
    has_begun = asyncio.Event()

    async def read() -> None:
        async for _ in client.get_streaming_response(ASK):
            has_begun.set()

    task = asyncio.create_task(read())
    await has_begun.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert await asyncio.to_thread(server.client_left.wait, 30)
