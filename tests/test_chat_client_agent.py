from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest
from fakes import Way, drain, says, texts

from agents_loop import (
    AgentRunOptions,
    AgentSession,
    AIAgent,
    ChatClient,
    ChatClientAgent,
    ChatMessage,
    ChatOptions,
    ChatResponse,
    ChatResponseUpdate,
    ConfigurationError,
    LoopAgent,
    LoopAgentOptions,
    LoopResult,
    StopReason,
    UsageDetails,
)
from agents_loop.testing import ScriptedChatClient, ScriptExhaustedError


def test_an_agent_needs_a_client():
    """`None` for a client is a TypeError that names the parameter."""
    for wrong in (None, "gpt", ChatClient):
        with pytest.raises(TypeError, match="chat_client"):
            ChatClientAgent(wrong)


@pytest.mark.parametrize(
    ("given", "error", "said"),
    [
        ({"tools": [object()]}, TypeError, "a tool must be"),
        ({"tools": [{"name": "f"}, {"type": "function", "function": {"name": "f"}}]}, ConfigurationError, "'f'"),
        ({"context_providers": [object()]}, TypeError, "context_providers"),
        ({"max_tool_rounds": 0}, ConfigurationError, "max_tool_rounds"),
        ({"max_tool_rounds": True}, TypeError, "max_tool_rounds"),
    ],
)
def test_wrong_use(given: dict[str, Any], error: type[Exception], said: str):
    """What is of a wrong type, or twice there, is found when the agent is made."""
    with pytest.raises(error, match=said):
        ChatClientAgent(ScriptedChatClient([]), **given)


async def test_the_conversation(invoke: Way):
    """The session keeps what was said; the instructions come first in each call and are not part of it."""
    client, session = ScriptedChatClient(["one", "two"]), AgentSession()
    agent = ChatClientAgent(client, instructions="be brief")
    await invoke(agent, "first", session=session)
    await invoke(agent, ["second", "third"], session=session)
    assert texts(client.calls[1].messages) == [
        ("system", "be brief"),
        ("user", "first"),
        ("assistant", "one"),
        ("user", "second"),
        ("user", "third"),
    ]
    assert texts(session.messages) == [*texts(client.calls[1].messages)[1:], ("assistant", "two")]
    assert agent.instructions == "be brief"


async def test_without_a_session(invoke: Way):
    """Without a session each run is a conversation of its own."""
    client = ScriptedChatClient(["one", "two"])
    agent = ChatClientAgent(client)
    await invoke(agent, "first")
    await invoke(agent, "second")
    assert texts(client.calls[1].messages) == [("user", "second")]
    assert agent.instructions is None


async def test_identical_replies_are_kept(invoke: Way):
    """Identical exchanges are all kept in the history (C5)."""
    session = AgentSession()
    agent = ChatClientAgent(ScriptedChatClient(["same", "same"]))
    for _ in range(2):
        await invoke(agent, "again", session=session)
    assert texts(session.messages) == [("user", "again"), ("assistant", "same")] * 2


async def test_what_a_response_has(invoke: Way):
    """The client's ids, usage, finish reason and properties are the response's; the name is on its messages."""
    reply = ChatResponse(
        [ChatMessage("assistant", "hi"), ChatMessage("assistant", "there", author_name="other")],
        response_id="r",
        model_id="m",
        usage=UsageDetails(1, 2),
        finish_reason="length",
        created_at=5.0,
        additional_properties={"k": 1},
    )
    agent = ChatClientAgent(ScriptedChatClient([reply]), name="Ann", description="what she does")
    response = await invoke(agent)
    assert (response.response_id, response.agent_id, response.usage) == ("r", agent.id, UsageDetails(1, 2))
    assert (response.finish_reason, response.created_at) == ("length", 5.0)
    assert response.additional_properties == {"k": 1}
    assert [message.author_name for message in response.messages] == ["Ann", "other"]
    assert reply.messages[0].author_name is None
    assert (agent.name, agent.description) == ("Ann", "what she does")


async def test_options(invoke: Way):
    """A run's chat options are laid over the agent's; without any the client gets the agent's."""
    client = ScriptedChatClient(["a", "b", "c"])
    agent = ChatClientAgent(client, options=ChatOptions(seed=1, top_p=0.5))
    await invoke(agent)
    await invoke(agent, options=AgentRunOptions(chat_options=ChatOptions(seed=2, temperature=0.0)))
    await invoke(agent, options=AgentRunOptions(additional_properties={"k": 1}))
    assert client.calls[0].options == client.calls[2].options == ChatOptions(seed=1, top_p=0.5)
    assert client.calls[1].options == ChatOptions(seed=2, top_p=0.5, temperature=0.0)
    plain = ScriptedChatClient(["a"])
    await invoke(ChatClientAgent(plain))
    assert plain.calls[0].options is None


async def test_a_failed_run_leaves_the_session(invoke: Way):
    """A run that fails leaves the session as it was, so that it can be run again (C2)."""
    session, client = AgentSession(), ScriptedChatClient([OSError("down"), "ok"])
    agent = ChatClientAgent(client)
    with pytest.raises(OSError, match="down"):
        await invoke(agent, "go", session=session)
    assert session.messages == []
    await invoke(agent, "go", session=session)
    assert texts(session.messages) == [("user", "go"), ("assistant", "ok")]


async def test_a_closed_stream_leaves_the_session():
    """A stream that is closed early leaves the session as it was (C2)."""
    session = AgentSession()
    reply = ChatResponse([ChatMessage("assistant", "a"), ChatMessage("assistant", "b")])
    agent = ChatClientAgent(ScriptedChatClient([reply]))
    async with agent.run_streaming("go", session=session) as stream:
        await anext(stream)
    assert session.messages == []


class StreamingClient(ChatClient):
    """A client that streams pieces, as a plain async iterator or as a generator."""

    def __init__(self, *pieces: str, closable: bool) -> None:
        self.pieces, self.closable, self.closed = pieces, closable, 0

    async def get_response(self, messages, options=None):
        raise AssertionError

    def get_streaming_response(self, messages, options=None) -> AsyncIterator[ChatResponseUpdate]:
        return self._generator() if self.closable else PlainIterator(self.pieces)

    async def _generator(self):
        try:
            for piece in self.pieces:
                yield ChatResponseUpdate("assistant", piece, response_id="r", message_id="m")
        finally:
            self.closed += 1


class PlainIterator:
    """Has what the protocol asks for, and no `aclose`."""

    def __init__(self, pieces: tuple[str, ...]) -> None:
        self.left = list(pieces)

    def __aiter__(self) -> PlainIterator:
        return self

    async def __anext__(self) -> ChatResponseUpdate:
        if not self.left:
            raise StopAsyncIteration
        return ChatResponseUpdate("assistant", self.left.pop(0), response_id="r", message_id="m")


@pytest.mark.parametrize("closable", [True, False])
async def test_any_stream_of_a_client(closable: bool):
    """Streaming takes any async iterator of a client, and keeps the whole answer as one message."""
    session = AgentSession()
    agent = ChatClientAgent(StreamingClient("a", "b", "c", closable=closable))
    updates = await drain(agent.run_streaming("go", session=session))
    assert [update.text for update in updates] == ["a", "b", "c"]
    assert texts(session.messages) == [("user", "go"), ("assistant", "abc")]


async def test_closing_early_closes_the_clients_stream():
    """Law 19: closing early closes the client's stream."""
    client = StreamingClient("a", "b", closable=True)
    async with ChatClientAgent(client).run_streaming("go") as stream:
        await anext(stream)
        assert client.closed == 0
    assert client.closed == 1


def test_services():
    """The agent offers itself, and its client."""
    client = ScriptedChatClient([])
    agent = ChatClientAgent(client)
    assert agent.get_service(AIAgent) is agent
    assert agent.get_service(ChatClient) is agent.get_service(ScriptedChatClient) is client
    assert agent.get_service(LoopAgent) is None
    assert agent.get_service(ChatClient, "key") is None


@pytest.mark.parametrize("fresh", [False, True])
async def test_in_a_loop(invoke: Way, fresh: bool):
    """Laws 10 and 11: the model hears the feedback in the conversation, or the request and all feedback anew."""
    client = ScriptedChatClient(["draft 1", "draft 2", "done"])
    agent = ChatClientAgent(client, instructions="be brief")
    loop = LoopAgent(agent, says("one", "two"), LoopAgentOptions(fresh_context_per_iteration=fresh))
    response = await invoke(loop, "go")
    assert LoopResult.of(response).stop_reason is StopReason.SATISFIED
    heard = [[text for _, text in texts(call.messages)] for call in client.calls]
    if fresh:
        assert heard[1:] == [
            ["be brief", "go", "## Feedback\n\n- one"],
            ["be brief", "go", "## Feedback\n\n- one\n- two"],
        ]
    else:
        assert heard[1:] == [
            ["be brief", "go", "draft 1", "one"],
            ["be brief", "go", "draft 1", "one", "draft 2", "two"],
        ]


# The scripted client


async def test_a_scripted_client_that_runs_out():
    """Running out of replies is an error that names the call."""
    client = ScriptedChatClient(["a"], name="the judge")
    await client.get_response([ChatMessage("user", "one")])
    with pytest.raises(ScriptExhaustedError, match=r"the judge has 1 replies, and this is call 2.*'two'"):
        await client.get_response([ChatMessage("user", "two")])
    with pytest.raises(ScriptExhaustedError, match="call 3"):
        await client.get_response([])


async def test_a_scripted_client():
    """A reply is a text, a message, a response, an exception, or what a function gives, sync or async."""

    async def later(messages, options):
        return f"{messages[0].text} later"

    message = ChatMessage("tool", "m")
    client = ScriptedChatClient(["a", message, ChatResponse("r", response_id="x"), KeyError("k")])
    assert [(await client.get_response([])).messages for _ in range(2)] == [[ChatMessage("assistant", "a")], [message]]
    assert (await client.get_response([])).response_id == "x"
    with pytest.raises(KeyError):
        await client.get_response([])
    assert (await ScriptedChatClient(later).get_response([ChatMessage("user", "a")])).text == "a later"
    with pytest.raises(TypeError, match="replies"):
        ScriptedChatClient("abc")
