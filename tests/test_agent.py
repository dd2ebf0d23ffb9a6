from __future__ import annotations

import threading
from collections.abc import AsyncIterator
from typing import Any

import pytest
from fakes import RecordingAgent, drain, leaving_nothing

from agents_loop import (
    AgentResponse,
    AgentResponseStream,
    AgentResponseUpdate,
    AgentRunOptions,
    AgentSession,
    AgentsLoopError,
    AIAgent,
    ChatClient,
    ChatMessage,
    DelegatingAIAgent,
    FunctionCallContent,
    FunctionResultContent,
    SessionStateError,
    TextContent,
    UsageDetails,
)


class Echo(AIAgent):
    """All that an agent needs: `run_core`."""

    def __init__(self) -> None:
        self.heard: list[list[ChatMessage]] = []

    async def run_core(self, messages, *, session, options) -> AgentResponse:
        assert isinstance(messages, list)
        self.heard.append(messages)
        written = [ChatMessage("assistant", message.text) for message in messages]
        return AgentResponse(written, response_id="r", agent_id=self.id, usage=UsageDetails(1), finish_reason="stop")


# Agents


def test_an_agent_needs_run_core():
    """`run_core` is all that is abstract, and `AIAgent()` takes no argument."""
    assert AIAgent.__abstractmethods__ == {"run_core"}

    class Bare(AIAgent):
        async def run_core(self, messages, *, session, options):
            raise NotImplementedError

    agent = Bare()
    assert (agent.name, agent.description) == (None, None)
    assert agent.id == agent.id
    assert agent.id != Bare().id


def test_an_id_may_be_given():
    """An agent's id may be given."""
    agent = Echo()
    agent.id = "mine"
    assert agent.id == "mine"


@pytest.mark.parametrize(
    ("messages", "expected"),
    [
        (None, []),
        ("a", ["a"]),
        (ChatMessage("user", "a"), ["a"]),
        (["a", ChatMessage("system", "b")], ["a", "b"]),
        (("a",), ["a"]),
    ],
)
async def test_what_a_caller_may_pass(messages: Any, expected: list[str]):
    """A caller passes None, a str, a message or a sequence; `run_core` gets a list of messages of its own."""
    agent = Echo()
    await agent.run(messages)
    await agent.run_streaming(messages).final_response()
    assert [[message.text for message in heard] for heard in agent.heard] == [expected, expected]
    assert agent.heard[0] is not messages


@pytest.mark.parametrize("messages", [7, [None], [7], {"role": "user"}])
async def test_what_a_caller_may_not_pass(agent: RecordingAgent, messages: Any):
    """Anything else is a TypeError, and nothing is run."""
    with pytest.raises(TypeError):
        await agent.run(messages)
    with pytest.raises(TypeError):
        agent.run_streaming(messages)
    assert agent.calls == []


async def test_options_and_session_arrive(agent: RecordingAgent):
    """The session and the options arrive as they are."""
    session, options = AgentSession(), AgentRunOptions(additional_properties={"k": 1})
    await agent.run("a", session=session, options=options)
    await drain(agent.run_streaming("a", session=session, options=options))
    for call in agent.calls:
        assert call.session is session
        assert call.options is options


async def test_the_default_stream():
    """By default a stream is `run_core`'s messages as updates; its final response is the very one."""
    agent = Echo()
    stream = agent.run_streaming(["a", "b"])
    updates = await drain(stream)
    assert [update.text for update in updates] == ["a", "b", ""]
    assert {(update.response_id, update.agent_id) for update in updates} == {("r", agent.id)}
    response = await stream.final_response()
    assert AgentResponse.from_updates(updates) == response
    assert response.usage == UsageDetails(1)
    assert len(agent.heard) == 1
    own = agent.run_core_streaming([ChatMessage("user", "a")], session=None, options=None)
    assert [update.text async for update in own] == ["a", ""]


def test_run_sync():
    """`run_sync` is `run` for scripts."""
    assert Echo().run_sync("a").text == "a"


async def test_run_sync_in_an_event_loop():
    """`run_sync` inside a running event loop is an error that says what to do, and runs nothing."""
    agent = Echo()
    with pytest.raises(ValueError, match="await run"):
        agent.run_sync("a")
    assert agent.heard == []


def test_get_service():
    """An agent is a service of its own types, under no key."""
    agent = Echo()
    assert agent.get_service(Echo) is agent.get_service(AIAgent) is agent
    assert agent.get_service(ChatClient) is None
    assert agent.get_service(Echo, "key") is None


# Streams


async def test_nothing_starts_until_it_is_iterated(agent: RecordingAgent):
    """A stream starts nothing until it is iterated."""
    stream = agent.run_streaming("a")
    assert agent.calls == []
    await anext(stream)
    assert len(agent.calls) == 1
    await stream.aclose()
    assert agent.closed == [1]


async def test_a_stream_closed_before_it_began(agent: RecordingAgent):
    """A stream may be closed before it is iterated, and more than once."""
    async with leaving_nothing():
        async with agent.run_streaming("a") as stream:
            pass
        await stream.aclose()
        assert await drain(stream) == []
    assert agent.calls == []


async def test_the_final_response(agent: RecordingAgent):
    """`final_response` runs to the end, whatever was read before, and gives the same again."""
    for read in range(4):
        stream = agent.run_streaming("a")
        for _ in range(min(read, 2)):
            await anext(stream)
        response = await stream.final_response()
        assert response.text == f"reply {read + 1}"
        assert await stream.final_response() == response


async def test_a_stream_that_failed():
    """A stream that failed has no final response: half an answer is never passed off as the whole."""
    error = OSError("down")
    stream = RecordingAgent(error).run_streaming("a")
    with pytest.raises(OSError, match="down"):
        await drain(stream)
    with pytest.raises(OSError, match="down") as again:
        await stream.final_response()
    assert again.value is error


async def test_a_default_stream_that_failed():
    """... and so it is for an agent without a stream of its own."""

    class Failing(AIAgent):
        async def run_core(self, messages, *, session, options):
            raise OSError("down")

    stream = Failing().run_streaming("a")
    with pytest.raises(OSError, match="down"):
        await drain(stream)
    with pytest.raises(OSError, match="down"):
        await stream.final_response()


@pytest.mark.parametrize("make", [RecordingAgent, Echo])
async def test_a_stream_that_was_closed_early(make: type[AIAgent]):
    """A stream that was closed early has no final response, and says so."""
    async with make().run_streaming(["a", "b"]) as stream:
        await anext(stream)
    with pytest.raises((AgentsLoopError, RuntimeError), match="closed"):
        await stream.final_response()


async def test_a_stream_closed_after_its_end(agent: RecordingAgent):
    """Closing after the end changes nothing."""
    async with agent.run_streaming("a") as stream:
        await drain(stream)
    assert (await stream.final_response()).text == "reply 1"


async def test_any_async_iterator_makes_a_stream():
    """A stream may be made of any async iterator, also one that can't be closed."""

    class Pieces:
        def __init__(self) -> None:
            self.left = ["a", "b"]

        def __aiter__(self) -> Pieces:
            return self

        async def __anext__(self) -> AgentResponseUpdate:
            if not self.left:
                raise StopAsyncIteration
            return AgentResponseUpdate("assistant", self.left.pop(0))

    async with AgentResponseStream(Pieces()) as stream:
        assert (await stream.final_response()).text == "ab"


# Delegating


@pytest.mark.parametrize("wrong", [None, "agent", AIAgent])
def test_a_delegating_agent_needs_an_agent(wrong: Any):
    """`None` for an agent is a TypeError that names the parameter."""
    with pytest.raises(TypeError, match="inner_agent"):
        DelegatingAIAgent(wrong)


async def test_a_delegating_agent(agent: RecordingAgent):
    """Its identity, sessions and services are the inner agent's; it finds itself first."""
    agent.description = "what it does"
    outer = DelegatingAIAgent(DelegatingAIAgent(agent))
    assert (outer.id, outer.name, outer.description) == (agent.id, "recorder", "what it does")
    session = await outer.create_session()
    assert session is agent.created[0]
    clone = await outer.deserialize_session(await outer.serialize_session(session))
    assert (agent.serialized, agent.deserialized) == ([session], [clone])
    assert outer.get_service(DelegatingAIAgent) is outer
    assert outer.get_service(AIAgent) is outer
    assert outer.get_service(RecordingAgent) is agent
    assert outer.get_service(ChatClient) is None


async def test_a_delegating_agent_delegates(agent: RecordingAgent):
    """`run` runs the inner agent and `run_streaming` streams it, with the same session and options."""
    outer, session, options = DelegatingAIAgent(agent), AgentSession(), AgentRunOptions()
    assert (await outer.run("a", session=session, options=options)).text == "reply 1"
    updates = await drain(outer.run_streaming("a", session=session, options=options))
    assert [update.text for update in updates] == ["rep", "ly 2"]
    assert [call.streaming for call in agent.calls] == [False, True]
    assert all(call.session is session and call.options is options for call in agent.calls)


async def test_a_wrapper_that_changes_the_stream(agent: RecordingAgent):
    """A wrapper overrides `run_core_streaming`; closing it early closes the inner agent's."""

    class Shouting(DelegatingAIAgent):
        async def run_core_streaming(self, messages, *, session, options) -> AsyncIterator[AgentResponseUpdate]:
            async for update in super().run_core_streaming(messages, session=session, options=options):
                update.contents = [TextContent(update.text.upper())]
                yield update

    assert (await Shouting(agent).run_streaming("a").final_response()).text == "REPLY 1"
    async with DelegatingAIAgent(agent).run_streaming("a") as stream:
        await anext(stream)
    assert agent.closed == [1, 2]


# Sessions


def test_a_session():
    """A session compares by identity; its state is always a dict; its id is drawn or given."""
    one, two = AgentSession(session_id="s"), AgentSession(session_id="s")
    assert one != two
    assert len({one, two}) == 2
    assert one.state == {}
    assert AgentSession().session_id != AgentSession().session_id
    assert "s" in repr(one)
    with pytest.raises(TypeError, match="state"):
        AgentSession(state=["a"])


async def test_a_session_survives():
    """A session's id, state and messages survive a round trip."""
    agent, session = Echo(), AgentSession(session_id="s", state={"a": [1, {"b": None}]})
    session.messages.append(ChatMessage("user", ["a", FunctionCallContent("c", "f", {"x": 1})], message_id="m"))
    clone = await agent.deserialize_session(await agent.serialize_session(session))
    assert clone is not session
    assert (clone.session_id, clone.state, clone.messages) == ("s", session.state, session.messages)
    assert clone.messages[0].message_id == "m"


async def test_a_stored_session_is_a_copy():
    """Later changes of a session don't reach what was stored."""
    agent, session = Echo(), AgentSession(state={"a": [1]})
    session.messages.append(ChatMessage("tool", [FunctionResultContent("c", {"rows": [1]})]))
    stored = await agent.serialize_session(session)
    session.state["a"].append(2)
    session.messages[0].contents[0].result["rows"].append(2)
    clone = await agent.deserialize_session(stored)
    assert clone.state == {"a": [1]}
    assert clone.messages[0].contents[0].result == {"rows": [1]}


@pytest.mark.parametrize("value", [{1, 2}, float("nan"), object(), b"bytes", threading.Lock()])
@pytest.mark.parametrize("where", ["state", "messages"])
async def test_what_is_no_json(value: Any, where: str):
    """A session that holds what is no JSON value is a SessionStateError that names it."""
    session = AgentSession(session_id="the-session")
    if where == "state":
        session.state["a"] = [value]
    else:
        session.messages.append(ChatMessage("tool", [FunctionResultContent("c", value)]))
    with pytest.raises(SessionStateError, match="the-session"):
        await Echo().serialize_session(session)


@pytest.mark.parametrize(
    "stored",
    [
        None,
        "text",
        [],
        7,
        {"state": []},
        {"messages": {}},
        {"messages": ["hi"]},
        {"messages": [{"role": "user", "contents": [{"type": "?"}]}]},
        {"session_id": 7},
        {"state": {"a": object()}},
    ],
)
async def test_what_is_no_stored_session(stored: Any):
    """What is no stored session is a SessionStateError."""
    with pytest.raises(SessionStateError):
        await Echo().deserialize_session(stored)
