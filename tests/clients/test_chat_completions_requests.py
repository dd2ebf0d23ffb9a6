"""What goes out on the wire for messages and options."""

from __future__ import annotations

import base64

import pytest
from fault_server import FaultServer

from agents_loop.chat_client import ChatOptions
from agents_loop.clients.openai import OpenAIChatClient
from agents_loop.errors import ConfigurationError
from agents_loop.messages import (
    ChatMessage,
    Content,
    DataContent,
    ErrorContent,
    FunctionCallContent,
    FunctionResultContent,
    TextContent,
    TextReasoningContent,
    ToolApprovalRequestContent,
    ToolApprovalResponseContent,
    UriContent,
    UsageContent,
    UsageDetails,
)
from agents_loop.tools import FunctionTool

ASK = [ChatMessage("user", "hi")]
CALL = FunctionCallContent("c1", "add", {"a": 1})


async def sent(server: FaultServer, client: OpenAIChatClient, *messages: ChatMessage) -> list[dict[str, object]]:
    await client.get_response(list(messages))
    return server.bodies[-1]["messages"]


async def test_nothing_is_sent_unless_asked(server: FaultServer, client: OpenAIChatClient) -> None:
    """Without options a request holds the model and the messages, and nothing else."""
    await client.get_response(ASK)
    assert server.bodies == [{"model": "m", "messages": [{"role": "user", "content": "hi"}]}]


async def test_function_tools(server: FaultServer, client: OpenAIChatClient) -> None:
    """A function tool is declared with its schema; a plain function becomes one, and a mapping goes out as it is."""

    def add(a: int) -> int:
        """Add one."""
        return a + 1

    await client.get_response(ASK, ChatOptions(tools=[add, FunctionTool(lambda: 1, name="one"), {"type": "x"}]))
    schema = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}
    nothing = {"type": "object", "properties": {}, "additionalProperties": False}
    assert server.bodies[-1]["tools"] == [
        {
            "type": "function",
            "function": {
                "name": "add",
                "description": "Add one.",
                "parameters": {**schema, "additionalProperties": False},
            },
        },
        {"type": "function", "function": {"name": "one", "parameters": nothing}},
        {"type": "x"},
    ]


async def test_options(server: FaultServer, client: OpenAIChatClient) -> None:
    """Every option that is set is sent, zeros too; what has no name here goes out as it is."""
    options = ChatOptions(
        model_id="other",
        temperature=0.0,
        top_p=0.5,
        max_output_tokens=7,
        stop_sequences=["END"],
        seed=0,
        frequency_penalty=0.1,
        presence_penalty=0.2,
        tools=[{"type": "function", "function": {"name": "f"}}],
        additional_properties={"top_k": 3, "reasoning_effort": "low"},
    )
    await client.get_response(ASK, options)
    assert server.bodies == [
        {
            "model": "other",
            "messages": [{"role": "user", "content": "hi"}],
            "temperature": 0.0,
            "top_p": 0.5,
            "max_tokens": 7,
            "stop": ["END"],
            "seed": 0,
            "frequency_penalty": 0.1,
            "presence_penalty": 0.2,
            "tools": [{"type": "function", "function": {"name": "f"}}],
            "top_k": 3,
            "reasoning_effort": "low",
        }
    ]


async def test_default_options(server: FaultServer) -> None:
    """The client's options are laid under each call's."""
    defaults = ChatOptions(temperature=0.5, seed=1)
    async with OpenAIChatClient("m", base_url=server.base_url, options=defaults) as client:
        await client.get_response(ASK, ChatOptions(seed=2))
    assert (server.bodies[0]["temperature"], server.bodies[0]["seed"]) == (0.5, 2)


async def test_roles(server: FaultServer, client: OpenAIChatClient) -> None:
    """Texts of any role are one plain string a message, in order, repeated ones too."""
    messages = [
        ChatMessage("system", "be brief"),
        ChatMessage("user", ["two ", "parts"]),
        ChatMessage("assistant", "done"),
        ChatMessage("user", "again"),
        ChatMessage("assistant", "done"),
        ChatMessage("user", ""),
    ]
    assert await sent(server, client, *messages) == [
        {"role": "system", "content": "be brief"},
        {"role": "user", "content": "two parts"},
        {"role": "assistant", "content": "done"},
        {"role": "user", "content": "again"},
        {"role": "assistant", "content": "done"},
        {"role": "user", "content": ""},
    ]


@pytest.mark.parametrize(
    ("content", "part"),
    [
        (DataContent(b"\x89", "image/png"), {"type": "image_url", "image_url": {"url": "data:image/png;base64,iQ=="}}),
        (UriContent("https://x/y.jpg", "image/jpeg"), {"type": "image_url", "image_url": {"url": "https://x/y.jpg"}}),
        (DataContent(b"a", "audio/x-wav"), {"type": "input_audio", "input_audio": {"data": "YQ==", "format": "wav"}}),
        (DataContent(b"a", "audio/mpeg"), {"type": "input_audio", "input_audio": {"data": "YQ==", "format": "mp3"}}),
        (
            DataContent(b"a", "application/pdf"),
            {"type": "file", "file": {"filename": "document.pdf", "file_data": "data:application/pdf;base64,YQ=="}},
        ),
    ],
)
async def test_media(server: FaultServer, client: OpenAIChatClient, content: Content, part: dict[str, object]) -> None:
    """Images, audio and PDF stand beside the text as parts, in order."""
    [message] = await sent(server, client, ChatMessage("user", ["see", content, "!"]))
    assert message["content"] == [{"type": "text", "text": "see"}, part, {"type": "text", "text": "!"}]


@pytest.mark.parametrize(
    ("message", "named"),
    [
        (ChatMessage("user", DataContent(b"v", "video/mp4")), "video/mp4"),
        (ChatMessage("user", UriContent("https://x/y.pdf", "application/pdf")), "application/pdf"),
        (ChatMessage("user", CALL), "FunctionCallContent"),
        (ChatMessage("assistant", DataContent(b"i", "image/png")), "image/png"),
        (ChatMessage("system", ["x", DataContent(b"i", "image/png")]), "image/png"),
        (ChatMessage("tool", "text"), "TextContent"),
        (ChatMessage("critic", "x"), "critic"),
    ],
)
async def test_what_the_api_does_not_know(
    server: FaultServer, client: OpenAIChatClient, message: ChatMessage, named: str
) -> None:
    """A role or a content the API has no place for is an error that names it, before anything is sent."""
    with pytest.raises(ConfigurationError, match=named):
        await client.get_response([message])
    with pytest.raises(ConfigurationError, match=named):
        await anext(client.get_streaming_response([message]))
    assert server.requests == []


async def test_what_stays_here(server: FaultServer, client: OpenAIChatClient) -> None:
    """Reasoning, usage, errors and approvals are not sent, nor a message of nothing else."""
    kept = [
        TextReasoningContent("hm"),
        UsageContent(UsageDetails(1)),
        ErrorContent("no", code="refusal"),
        ToolApprovalRequestContent("r", CALL),
        ToolApprovalResponseContent("r", approved=True, tool_call=CALL),
    ]
    messages = [ChatMessage("assistant", [*kept, "said"]), ChatMessage("assistant", kept), *ASK]
    assert await sent(server, client, *messages) == [
        {"role": "assistant", "content": "said"},
        {"role": "user", "content": "hi"},
    ]


async def test_tool_calls_and_results(server: FaultServer, client: OpenAIChatClient) -> None:
    """Calls stand in the assistant's message, each result in a tool message; what isn't a str is JSON."""
    other = FunctionCallContent("c2", "now")
    broken = FunctionCallContent("c3", "f", "{oops")
    results = [FunctionResultContent("c1", {"sum": "é"}), FunctionResultContent("c2", "noon")]
    messages = [ChatMessage("assistant", ["adding", CALL, other, broken]), ChatMessage("tool", results)]
    assert await sent(server, client, *messages) == [
        {
            "role": "assistant",
            "content": "adding",
            "tool_calls": [
                {"id": "c1", "type": "function", "function": {"name": "add", "arguments": '{"a": 1}'}},
                {"id": "c2", "type": "function", "function": {"name": "now", "arguments": "{}"}},
                {"id": "c3", "type": "function", "function": {"name": "f", "arguments": "{oops"}},
            ],
        },
        {"role": "tool", "tool_call_id": "c1", "content": '{"sum": "é"}'},
        {"role": "tool", "tool_call_id": "c2", "content": "noon"},
    ]


async def test_calls_and_results_in_one_message(server: FaultServer, client: OpenAIChatClient) -> None:
    """A message that holds a call, its result and an answer becomes three, in that order."""
    message = ChatMessage("assistant", [CALL, FunctionResultContent("c1", 3), TextContent("it is 3")])
    assert [(m["role"], m.get("content")) for m in await sent(server, client, message)] == [
        ("assistant", None),
        ("tool", "3"),
        ("assistant", "it is 3"),
    ]


@pytest.mark.parametrize(("author", "is_sent"), [("ann_1-b", True), ("Ann B", False), ("a" * 65, False), ("", False)])
async def test_author(server: FaultServer, client: OpenAIChatClient, author: str, is_sent: bool) -> None:
    """An author's name is sent where the API can hold it."""
    [message] = await sent(server, client, ChatMessage("user", "hi", author_name=author))
    assert ("name" in message) == is_sent


async def test_lone_surrogates(server: FaultServer, client: OpenAIChatClient) -> None:
    """Half of a surrogate pair, which can't be encoded, goes out as U+FFFD wherever it stands; a whole pair as its character."""
    odd = "a\ud800b \ud83d\ude00"
    messages = [
        ChatMessage("user", odd),
        ChatMessage("user", [odd, DataContent(b"", "image/png")]),
        ChatMessage("assistant", FunctionCallContent("c", "f", {"x": odd})),
        ChatMessage("tool", FunctionResultContent("c", odd)),
    ]
    await client.get_response(messages, ChatOptions(stop_sequences=[odd]))
    body = server.bodies[0]
    plain, parts, call, result = body["messages"]
    even = "a\ufffdb \U0001f600"
    assert (plain["content"], parts["content"][0]["text"], result["content"]) == (even, even, even)
    assert even in call["tool_calls"][0]["function"]["arguments"]
    assert body["stop"] == [even]


async def test_bytes_survive(server: FaultServer, client: OpenAIChatClient) -> None:
    """An image's bytes arrive as they were."""
    data = bytes(range(256))
    [message] = await sent(server, client, ChatMessage("user", DataContent(data, "image/webp")))
    url = message["content"][0]["image_url"]["url"]
    assert base64.b64decode(url.removeprefix("data:image/webp;base64,")) == data
