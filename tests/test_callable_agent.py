"""A plain function as an agent."""

import asyncio
import functools

import pytest
from fakes import drain, leaving_nothing, says, texts

from agents_loop import (
    AgentResponse,
    AgentResponseUpdate,
    AgentSession,
    ChatMessage,
    ChatResponse,
    LoopAgent,
    LoopAgentOptions,
    LoopResult,
    UsageContent,
    UsageDetails,
)
from agents_loop.callable_agent import CallableAgent
from agents_loop.testing import assert_loop_laws


def shout(messages):
    """Shout the last word.

    And nothing else.
    """
    return messages[-1].text.upper() if messages else "NOTHING"


@pytest.mark.parametrize(
    ("reply", "said"),
    [
        ("hi", [("assistant", "hi")]),
        (ChatMessage("assistant", "hi"), [("assistant", "hi")]),
        (["hi", ChatMessage("tool", "x"), "ho"], [("assistant", "hi"), ("tool", "x"), ("assistant", "ho")]),
        (AgentResponse("hi"), [("assistant", "hi")]),
        (ChatResponse("hi"), [("assistant", "hi")]),
        ([], []),
    ],
    ids=["str", "message", "several", "agent response", "chat response", "nothing"],
)
@pytest.mark.parametrize("is_async", [False, True], ids=["sync", "async"])
async def test_it_gives_what_the_function_gives(reply, said, is_async, invoke):
    """Design: a function gives a str, a message, several of both, or a response; it may be sync or async."""

    async def later(messages):
        return reply

    response = await invoke(CallableAgent(later if is_async else lambda messages: reply), "Go.")
    assert texts(response.messages) == said


async def test_a_whole_response_is_the_very_one():
    """Law 16: a response that the function makes keeps its type and fields."""
    given = AgentResponse("hi", response_id="r", usage=UsageDetails(1, 2))
    assert await CallableAgent(lambda messages: given).run("x") is given


async def test_a_model_answer_keeps_its_usage(invoke):
    """Law 16: the usage and the finish reason of a `ChatResponse` are the agent's."""
    answer = ChatResponse("hi", usage=UsageDetails(3, 4, 7), finish_reason="stop", response_id="r")
    response = await invoke(CallableAgent(lambda messages: answer), "x")
    assert (response.usage, response.finish_reason, response.response_id) == (UsageDetails(3, 4, 7), "stop", "r")


@pytest.mark.parametrize("reply", [None, 3, b"bytes", [None], {"a": "b"}], ids=repr)
async def test_anything_else_is_an_error(reply, invoke):
    """Design: what is no answer is an error that names the function and the value."""

    def agent(messages):
        return reply

    with pytest.raises(TypeError, match="agent must give a str"):
        await invoke(CallableAgent(agent), "x")


async def test_a_function_of_one_parameter_is_given_the_conversation(invoke):
    """Design: a function has no memory, so it hears what the session holds, then what is new."""
    heard = []

    async def agent(messages):
        heard.append(texts(messages))
        return f"reply {len(heard)}"

    session = AgentSession()
    await invoke(LoopAgent(agent, says("More.")), "Go.", session=session)
    await invoke(CallableAgent(agent), "And?", session=session)
    assert heard[1] == [("user", "Go."), ("assistant", "reply 1"), ("user", "More.")]
    assert heard[2] == [*heard[1], ("assistant", "reply 2"), ("user", "And?")]


async def test_a_function_that_takes_the_session_is_given_what_is_new(invoke):
    """Design: a function with a parameter `session` keeps its own memory."""
    heard = []

    async def agent(messages, session):
        heard.append(texts(messages))
        session.state["runs"] = session.state.get("runs", 0) + 1
        return "reply"

    response = await invoke(LoopAgent(agent, says("More.")), "Go.")
    assert heard == [[("user", "Go.")], [("user", "More.")]]
    assert LoopResult.of(response).session.state["runs"] == 2


async def test_it_hears_the_request_again_in_fresh_context(invoke):
    """Law 11: with fresh context a function hears the request and the feedback, and no earlier draft."""
    heard = []

    async def agent(messages):
        heard.append([message.text for message in messages])
        return "reply"

    await invoke(LoopAgent(agent, says("More."), LoopAgentOptions(fresh_context_per_iteration=True)), "Go.")
    assert heard[1] == ["Go.", "## Feedback\n\n- More."]


async def test_a_generator_streams_its_pieces():
    """Law 17: the pieces of a generator are the updates of the stream, of one message."""

    async def agent(messages):
        for word in ("one ", "two ", "three"):
            yield word

    updates = await drain(CallableAgent(agent).run_streaming("x"))
    assert [update.text for update in updates] == ["one ", "two ", "three"]
    assert len({update.message_id for update in updates}) == 1
    assert AgentResponse.from_updates(updates).text == (await CallableAgent(agent).run("x")).text == "one two three"


async def test_a_generator_may_yield_updates(invoke):
    """Law 16: a generator may yield updates, with usage and messages of its own."""

    async def agent(messages):
        yield AgentResponseUpdate("tool", "looked up", message_id="a")
        yield AgentResponseUpdate("assistant", "found", message_id="b")
        yield AgentResponseUpdate(contents=UsageContent(UsageDetails(1, 2)))

    response = await invoke(CallableAgent(agent), "x")
    assert texts(response.messages) == [("tool", "looked up"), ("assistant", "found")]
    assert response.usage == UsageDetails(1, 2)


async def test_a_piece_of_another_type_is_an_error(invoke):
    """Design: what is no piece is an error, not text."""

    async def agent(messages):
        yield 3

    with pytest.raises(TypeError, match="agent must yield str or AgentResponseUpdate, not int"):
        await invoke(CallableAgent(agent), "x")


async def test_closing_the_stream_closes_the_generator():
    """Law 19: closing a stream early closes the function's generator, and the session is as it was."""
    closed = []

    async def agent(messages):
        try:
            yield "a"
            await asyncio.Event().wait()
        finally:
            closed.append(True)

    session = AgentSession()
    async with leaving_nothing():
        stream = CallableAgent(agent).run_streaming("x", session=session)
        await anext(stream)
        await stream.aclose()
    assert closed == [True]
    assert session.messages == []


async def test_a_failure_is_raised_as_it_is(invoke):
    """Law: what the function raises reaches the caller; the session is as it was."""

    def agent(messages):
        raise OSError("no disk")

    session = AgentSession()
    with pytest.raises(OSError, match="no disk"):
        await invoke(CallableAgent(agent), "x", session=session)
    assert session.messages == []


def test_its_name_and_description_are_the_functions():
    """Design: the name and the first line of the docstring, unless others are given."""
    agent = CallableAgent(shout)
    assert (agent.name, agent.description) == ("shout", "Shout the last word.")
    named = CallableAgent(shout, name="loud", description="Very loud.")
    assert (named.name, named.description) == ("loud", "Very loud.")
    assert named.run_sync("hi").messages[0].author_name == "loud"


def test_a_callable_object_and_a_partial_are_functions():
    """Design: any callable will do."""

    class Repeater:
        def __call__(self, messages):
            return messages[-1].text * 2

    assert CallableAgent(Repeater()).run_sync("ab").text == "abab"
    assert CallableAgent(Repeater()).name == "Repeater"
    assert CallableAgent(functools.partial(lambda word, messages: word, "hi")).run_sync("x").text == "hi"


@pytest.mark.parametrize(
    "function",
    [3, None, "text", shout.__class__, lambda: "x", lambda a, b: "x"],
    ids=["number", "none", "text", "type", "takes nothing", "takes two"],
)
def test_what_takes_no_messages_is_an_error(function):
    """Design: wrong use is found before anything runs."""
    with pytest.raises(TypeError):
        CallableAgent(function)


async def test_the_laws_hold():
    """Law: what a loop needs of an agent."""
    await assert_loop_laws(shout)
