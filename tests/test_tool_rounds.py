from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from fakes import WAYS, Way, drain, leaving_nothing, says, texts
from hypothesis import given
from hypothesis import strategies as st

from agents_loop import (
    AgentResponse,
    AgentRunOptions,
    AgentSession,
    BudgetExceededError,
    ChatClient,
    ChatClientAgent,
    ChatMessage,
    ChatOptions,
    ChatResponse,
    ChatResponseUpdate,
    ConfigurationError,
    FunctionCallContent,
    FunctionResultContent,
    LoopAgent,
    SessionStateError,
    ToolApprovalRequestContent,
    ToolApprovalResponseContent,
    UsageDetails,
    tool,
)
from agents_loop.testing import ScriptedChatClient


def calls(*asked: tuple[str, Any], text: str | None = None, **fields: Any) -> ChatResponse:
    """A reply that calls tools; the ids count from 1 in each reply."""
    contents: list[Any] = [] if text is None else [text]
    contents += [FunctionCallContent(f"call-{n}", name, given) for n, (name, given) in enumerate(asked, 1)]
    return ChatResponse(
        [ChatMessage("assistant", contents)], **{"finish_reason": "tool_calls", "response_id": "r", **fields}
    )


def said(messages: list[ChatMessage]) -> list[Any]:
    """Roles, and what each content says."""
    return [(str(message.role), *[_said(content) for content in message.contents]) for message in messages]


def _said(content: Any) -> Any:
    match content:
        case FunctionCallContent(_, name):
            return f"call {name}"
        case FunctionResultContent(_, result):
            return {"result": result}
        case ToolApprovalRequestContent():
            return f"may I {content.tool_call.name}?"
        case _:
            return content.text


def is_balanced(messages: list[ChatMessage]) -> bool:
    """Whether each call is followed by its result."""
    asked = [c.call_id for m in messages for c in m.contents if isinstance(c, FunctionCallContent)]
    got = [c.call_id for m in messages for c in m.contents if isinstance(c, FunctionResultContent)]
    return asked == got


DECLARED = {"type": "function", "function": {"name": "look", "parameters": {}}}


def add(a: int, b: int = 1) -> int:
    """Add."""
    return a + b


class Deleter:
    """A tool that needs approval, and what it deleted."""

    def __init__(self) -> None:
        self.deleted: list[str] = []
        self.tool = tool(approval_required=True)(self.delete)

    async def delete(self, path: str) -> str:
        """Delete a file."""
        self.deleted.append(path)
        return f"deleted {path}"


@pytest.fixture
def deleter() -> Deleter:
    return Deleter()


def answer(response: AgentResponse, *, approved: bool = True, only: int | None = None) -> ChatMessage:
    """The caller's word on the requests in a response, or on one of them."""
    requests = [c for m in response.messages for c in m.contents if isinstance(c, ToolApprovalRequestContent)]
    chosen = requests if only is None else [requests[only]]
    return ChatMessage("user", [ToolApprovalResponseContent(r.request_id, approved, r.tool_call) for r in chosen])


# Rounds


async def test_a_round(invoke: Way):
    """Tools: the call is run and its result sent; response and session have the whole exchange, in order."""
    client, session = ScriptedChatClient([calls(("add", {"a": 2}), text="let me see"), "it is 3"]), AgentSession()
    agent = ChatClientAgent(client, instructions="be brief", name="Ann", tools=[add])
    response = await invoke(agent, "1 + 2?", session=session)
    exchange = [("assistant", "let me see", "call add"), ("tool", {"result": 3}), ("assistant", "it is 3")]
    assert said(response.messages) == exchange
    assert said(session.messages) == [("user", "1 + 2?"), *exchange]
    assert said(client.calls[1].messages) == [("system", "be brief"), ("user", "1 + 2?"), *exchange[:2]]
    assert [message.author_name for message in response.messages] == ["Ann", None, "Ann"]
    assert [t.name for t in client.calls[0].options.tools] == ["add"]
    assert session.state == {}
    assert len({message.message_id for message in session.messages[1:]}) == 3 or not invoke.streaming


async def test_the_fields_of_the_response(invoke: Way):
    """Tools: usage is that of all rounds, counted once; the other fields are the last reply's."""
    first = calls(("add", {"a": 1}), usage=UsageDetails(1, 2), response_id="r1", additional_properties={"a": 1})
    last = ChatResponse(
        "done", usage=UsageDetails(10, 20), response_id="r2", finish_reason="stop", additional_properties={"b": 2}
    )
    response = await invoke(ChatClientAgent(ScriptedChatClient([first, last]), tools=[add]), "go")
    assert response.usage == UsageDetails(11, 22)
    assert (response.response_id, response.finish_reason) == ("r2", "stop")
    assert response.additional_properties == {"a": 1, "b": 2}
    assert first.messages[0].contents[0].name == "add"


async def test_several_calls_at_once(invoke: Way):
    """Tools: several calls of a reply run at the same time; their results stand in the calls' order."""
    arrived, both = [], asyncio.Event()

    async def meet(who: str) -> str:
        arrived.append(who)
        if len(arrived) == 2:
            both.set()
        await both.wait()
        return who

    client = ScriptedChatClient([calls(("meet", {"who": "a"}), ("meet", {"who": "b"})), "done"])
    async with leaving_nothing():
        response = await asyncio.wait_for(invoke(ChatClientAgent(client, tools=[meet]), "go"), 60)
    assert said(response.messages)[1] == ("tool", {"result": "a"}, {"result": "b"})
    assert [content.call_id for content in response.messages[1].contents] == ["call-1", "call-2"]


async def test_what_goes_wrong_is_told_to_the_model(invoke: Way):
    """Tools: unknown tools, wrong arguments and failing tools give error results, and the model goes on."""

    def fails() -> None:
        raise OSError("disk full")

    asked = calls(("ad", {"a": 1}), ("add", "{"), ("add", {"a": "x"}), ("fails", None))
    client, session = ScriptedChatClient([asked, "sorry"]), AgentSession()
    response = await invoke(ChatClientAgent(client, tools=[add, fails]), "go", session=session)
    results = [content.result for content in response.messages[1].contents]
    assert results[0] == "Error: there is no tool 'ad'; there are: add, fails"
    assert results[3] == "Error: 'fails' failed: OSError: disk full"
    assert "Invalid JSON" in results[1]
    assert "valid integer" in results[2]
    assert response.messages[-1].text == "sorry"
    assert is_balanced(session.messages)


@pytest.mark.parametrize("error", [BudgetExceededError("spent")])
async def test_what_ends_a_run_ends_all_its_calls(invoke: Way, error: BaseException):
    """Tools: a spent budget is not swallowed; the other calls are stopped, the session is as it was."""
    stopped: list[bool] = []

    async def hangs() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            stopped.append(True)

    async def ends() -> None:
        await asyncio.sleep(0)
        raise error

    client, session = ScriptedChatClient([calls(("hangs", None), ("ends", None))]), AgentSession()
    async with leaving_nothing():
        with pytest.raises(type(error)):
            await invoke(ChatClientAgent(client, tools=[hangs, ends]), "go", session=session)
    assert stopped == [True]
    assert (session.messages, session.state) == ([], {})


async def test_cancelling_a_run(invoke: Way):
    """Law 19: cancelling a run while tools run stops them; nothing is left, and the session is as it was (C2)."""
    running, session = asyncio.Event(), AgentSession()

    async def hangs() -> None:
        running.set()
        await asyncio.Event().wait()

    agent = ChatClientAgent(ScriptedChatClient([calls(("hangs", None), ("hangs", None))]), tools=[hangs])
    async with leaving_nothing():
        task = asyncio.ensure_future(invoke(agent, "go", session=session))
        await running.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    assert session.messages == []


async def test_closing_a_stream_between_call_and_result():
    """C2: a stream closed between a call and its result leaves the session balanced, here: as it was."""
    session = AgentSession()
    agent = ChatClientAgent(ScriptedChatClient([calls(("add", {"a": 1}))]), tools=[add])
    async with leaving_nothing():
        async with agent.run_streaming("go", session=session) as stream:
            await anext(stream)
        del stream
    assert (session.messages, session.state) == ([], {})


async def test_a_model_that_fails_in_a_later_round(invoke: Way):
    """C2: what the client raises reaches the caller, and the session is as it was."""
    client, session = ScriptedChatClient([calls(("add", {"a": 1})), OSError("down")]), AgentSession()
    with pytest.raises(OSError, match="down"):
        await invoke(ChatClientAgent(client, tools=[add]), "go", session=session)
    assert session.messages == []


async def test_the_bound_on_rounds(invoke: Way):
    """Tools: after `max_tool_rounds` the model is asked once more without tools, so that an answer comes."""
    client = ScriptedChatClient(lambda _, options: calls(("add", {"a": 1})) if options and options.tools else "enough")
    response = await invoke(ChatClientAgent(client, tools=[add], max_tool_rounds=2), "go")
    assert [bool(call.options and call.options.tools) for call in client.calls] == [True, True, False]
    assert response.messages[-1].text == "enough"
    assert client.calls[2].options is None


async def test_a_model_that_calls_past_the_bound(invoke: Way, deleter: Deleter):
    """Tools: a call in the last reply is not run, nor asked about; its result says why, and the session is balanced."""
    client, session = ScriptedChatClient([calls(("add", {"a": 1})), calls(("delete", {"path": "a"}))]), AgentSession()
    options = ChatOptions(seed=1, additional_properties={"tool_choice": "auto", "user": "me"})
    agent = ChatClientAgent(client, tools=[add, deleter.tool], max_tool_rounds=1, options=options)
    response = await invoke(agent, "go", session=session)
    assert "limit of tool rounds" in response.messages[-1].contents[0].result
    assert is_balanced(session.messages)
    assert deleter.deleted == []
    assert client.calls[0].options.additional_properties == options.additional_properties
    assert client.calls[1].options == ChatOptions(seed=1, additional_properties={"user": "me"})


async def test_tools_of_a_run(invoke: Way):
    """Tools: those in the chat options come after the agent's; they are run too."""
    client = ScriptedChatClient([calls(("add", {"a": 1})), "done"] * 2)
    options = AgentRunOptions(chat_options=ChatOptions(tools=[add], seed=1))
    response = await invoke(ChatClientAgent(client), "go", options=options)
    assert said(response.messages)[1] == ("tool", {"result": 2})
    other = ChatClientAgent(client, tools=[tool(name="other")(add)])
    await invoke(other, "go", options=options)
    assert [t.name for t in client.calls[2].options.tools] == ["other", "add"]
    with pytest.raises(ConfigurationError, match="two tools"):
        await invoke(ChatClientAgent(client, tools=[add]), "go", options=options)


class SameIds(ChatClient):
    """Streams every reply under the same ids."""

    def __init__(self, *replies: ChatResponse) -> None:
        self.replies = list(replies)

    async def get_response(self, messages, options=None):
        raise AssertionError

    async def get_streaming_response(self, messages, options=None):
        for content in self.replies.pop(0).messages[0].contents:
            yield ChatResponseUpdate("assistant", content, response_id="r", message_id="m")


async def test_rounds_stay_apart_in_a_stream():
    """Tools: a server that gives every reply the same ids does not make one message of several rounds."""
    client = SameIds(calls(("add", {"a": 1}), text="one"), calls(text="two"))
    updates = await drain(ChatClientAgent(client, tools=[add]).run_streaming("go"))
    merged = AgentResponse.from_updates(updates)
    assert said(merged.messages) == [("assistant", "one", "call add"), ("tool", {"result": 2}), ("assistant", "two")]


CALLS = st.sampled_from([("add", {"a": 1}), ("add", "{"), ("nothing", None), ("delete", {"path": "a"}), ("look", {})])
REPLIES = st.lists(st.tuples(st.lists(CALLS, max_size=3), st.sampled_from([None, "text"])), max_size=5)
INPUTS = st.lists(st.sampled_from(["yes", "no", "half", "result", "other"]), min_size=1, max_size=5)


async def conversation(invoke: Way, replies: Any, inputs: list[str]) -> list[Any]:
    """What a conversation amounts to: each run's response, and what the session holds after it."""
    script = [calls(*asked, text=text, usage=UsageDetails(1)) for asked, text in replies]
    client = ScriptedChatClient([*script, *["done"] * 20])
    agent = ChatClientAgent(client, tools=[add, Deleter().tool, DECLARED], name="Ann", max_tool_rounds=3)
    session, amounts = AgentSession(), list[Any]()
    response = AgentResponse([])
    for word in inputs:
        response = await invoke(agent, _input(word, response), session=session)
        assert is_balanced(session.messages)
        assert all(is_balanced(call.messages) for call in client.calls)
        amounts.append((said(response.messages), response.usage, response.finish_reason, said(session.messages)))
        session = await agent.deserialize_session(await agent.serialize_session(session))
    return amounts


def _input(given: str, last: AgentResponse) -> Any:
    contents = [content for message in last.messages for content in message.contents]
    requests = [content for content in contents if isinstance(content, ToolApprovalRequestContent)]
    asked = [content for content in contents if isinstance(content, FunctionCallContent) and content.name == "look"]
    waits = bool(contents) and contents[-1] in [*requests, *asked]
    if given == "result" and asked and waits:
        return ChatMessage("tool", [FunctionResultContent(asked[-1].call_id, "seen")])
    if given in ("yes", "no", "half") and requests and waits:
        return answer(last, approved=given != "no", only=0 if given == "half" else None)
    return given


@given(REPLIES, INPUTS)
async def test_a_conversation_is_the_same_streamed(replies: Any, inputs: list[str]):
    """Law 8: whatever is called, approved, answered or left open, streamed and not are the same, and balanced (C2)."""
    ran, streamed = [await conversation(way, replies, inputs) for way in WAYS]
    assert ran == streamed


# Calls that are the caller's to answer


@pytest.mark.parametrize("stored", [False, True])
async def test_a_declared_tool(invoke: Way, stored: bool):
    """Tools: a call of a mere declaration ends the run; the caller's result goes on from there."""
    client, session = ScriptedChatClient([calls(("look", None), ("add", {"a": 1})), "seen"]), AgentSession()
    agent = ChatClientAgent(client, tools=[DECLARED, {"type": "web_search"}, add])
    response = await invoke(agent, "go", session=session)
    assert said(response.messages) == [("assistant", "call look", "call add")]
    assert session.messages == []
    if stored:
        session = await agent.deserialize_session(json.loads(json.dumps(await agent.serialize_session(session))))
    result = ChatMessage("tool", [FunctionResultContent("call-1", "a cat")])
    response = await invoke(agent, [result, "and?"], session=session)
    assert said(response.messages) == [("tool", {"result": "a cat"}, {"result": 2}), ("assistant", "seen")]
    assert said(session.messages)[2:4] == [("tool", {"result": "a cat"}, {"result": 2}), ("user", "and?")]
    assert session.state == {}


async def test_a_call_though_nothing_was_offered(invoke: Way):
    """C2: an agent without tools gives a call to its caller; a session that goes on without a result is balanced."""
    client, session = ScriptedChatClient([calls(("look", None)), "hello", "again"]), AgentSession()
    agent = ChatClientAgent(client)
    response = await invoke(agent, "go", session=session)
    assert said(response.messages) == [("assistant", "call look")]
    response = await invoke(agent, "hi", session=session)
    assert said(response.messages) == [("assistant", "hello")]
    assert is_balanced(client.calls[1].messages)
    assert "was not run" in client.calls[1].messages[2].contents[0].result
    await invoke(agent, "hi", session=session)
    assert texts(session.messages)[-3:] == [("assistant", "hello"), ("user", "hi"), ("assistant", "again")]


async def test_a_loop_over_open_calls(invoke: Way):
    """C2: a loop that goes on after a reply with a call never sends it without a result."""
    client = ScriptedChatClient([calls(("look", None)), calls(("look", None)), "done"])
    await invoke(LoopAgent(ChatClientAgent(client), says("more", "more")), "go")
    assert all(is_balanced(call.messages) for call in client.calls)
    assert len(client.calls[2].messages) == 7


# Approvals


@pytest.mark.parametrize("approved", [True, False])
@pytest.mark.parametrize("stored", [False, True])
async def test_an_approval(invoke: Way, deleter: Deleter, approved: bool, stored: bool):
    """C4: a call that needs approval ends the run; the answer goes on from there, approved or rejected, also stored."""
    asked = calls(("delete", {"path": "a"}), ("add", {"a": 1}), text="hm", usage=UsageDetails(1))
    client = ScriptedChatClient([asked, ChatResponse("done", usage=UsageDetails(2))])
    agent, session = ChatClientAgent(client, tools=[deleter.tool, add], name="Ann"), AgentSession()
    first = await invoke(agent, "delete a", session=session)
    assert said(first.messages) == [("assistant", "hm", "may I delete?", "call add")]
    assert (first.finish_reason, first.usage, deleter.deleted) == ("tool_calls", UsageDetails(1), [])
    assert session.messages == []
    if stored:
        session = await agent.deserialize_session(json.loads(json.dumps(await agent.serialize_session(session))))
    second = await invoke(agent, answer(first, approved=approved), session=session)
    assert deleter.deleted == (["a"] if approved else [])
    result = "deleted a" if approved else "Error: the user did not approve this call, so it was not run"
    exchange = [("tool", {"result": result}, {"result": 2}), ("assistant", "done")]
    assert said(second.messages) == exchange
    assert second.usage == UsageDetails(2)
    assert said(session.messages) == [("user", "delete a"), ("assistant", "hm", "call delete", "call add"), *exchange]
    assert session.state == {}


@pytest.mark.parametrize("together", [True, False])
async def test_several_requests(invoke: Way, deleter: Deleter, together: bool):
    """Approvals: several requests of a turn are answered in one run or in several; nothing runs before the last answer."""
    asked = calls(("delete", {"path": "a"}), ("delete", {"path": "b"}))
    client, session = ScriptedChatClient([asked, "done"]), AgentSession()
    agent = ChatClientAgent(client, tools=[deleter.tool])
    first = await invoke(agent, "go", session=session)
    if together:
        last = await invoke(agent, [answer(first, only=1, approved=False), answer(first, only=0)], session=session)
    else:
        given = answer(first, only=1, approved=False)
        half = await invoke(agent, ChatMessage("user", [*given.contents, "be careful"]), session=session)
        assert said(half.messages) == [("assistant", "may I delete?")]
        assert (deleter.deleted, session.messages, len(client.calls)) == ([], [], 1)
        session = await agent.deserialize_session(await agent.serialize_session(session))
        last = await invoke(agent, answer(half), session=session)
    assert deleter.deleted == ["a"]
    assert [content.call_id for content in last.messages[0].contents] == ["call-1", "call-2"]
    assert last.messages[-1].text == "done"
    assert is_balanced(session.messages)
    assert ("user", "be careful") in texts(session.messages) or together


@pytest.mark.parametrize("later", [False, True])
async def test_auto_approval(invoke: Way, deleter: Deleter, later: bool):
    """Approvals: the callback lets calls through, sync or async; anything but `True` still needs a person."""

    def is_harmless(asked: FunctionCallContent) -> Any:
        return asked.arguments["path"] == "a" or "maybe"

    async def is_harmless_later(asked: FunctionCallContent) -> Any:
        return is_harmless(asked)

    client = ScriptedChatClient([calls(("delete", {"path": "a"})), calls(("delete", {"path": "b"}))])
    rule = is_harmless_later if later else is_harmless
    response = await invoke(ChatClientAgent(client, tools=[deleter.tool], auto_approve=rule), "go")
    assert deleter.deleted == ["a"]
    assert said(response.messages)[-1] == ("assistant", "may I delete?")


async def test_an_unknown_request(invoke: Way, deleter: Deleter):
    """Approvals: an answer to a request that is not pending here is an error that says so, and changes nothing."""
    client, session = ScriptedChatClient([calls(("delete", {"path": "a"})), "done"]), AgentSession()
    agent = ChatClientAgent(client, tools=[deleter.tool])
    first = await invoke(agent, "go", session=session)
    asked = FunctionCallContent("call-1", "delete", {"path": "a"})
    with pytest.raises(ConfigurationError, match=r"'other'.*it waits for "):
        await invoke(agent, ChatMessage("user", [ToolApprovalResponseContent("other", True, asked)]), session=session)
    with pytest.raises(ConfigurationError, match="waits for none"):
        await invoke(agent, answer(first))
    await invoke(agent, answer(first), session=session)
    with pytest.raises(ConfigurationError, match="waits for none"):
        await invoke(agent, answer(first), session=session)
    assert deleter.deleted == ["a"]


async def test_only_what_was_asked_is_run(invoke: Way, deleter: Deleter):
    """Approvals: what runs is the call that the model made, not what an answer says it was."""
    client, session = ScriptedChatClient([calls(("delete", {"path": "a"})), "done"]), AgentSession()
    agent = ChatClientAgent(client, tools=[deleter.tool])
    given = answer(await invoke(agent, "go", session=session))
    given.contents[0].tool_call = FunctionCallContent("call-1", "delete", {"path": "everything"})
    await invoke(agent, given, session=session)
    assert deleter.deleted == ["a"]


async def test_going_on_without_an_answer(invoke: Way, deleter: Deleter):
    """C2: a session that goes on without an answer has the turn with results that say it was not run."""
    client, session = ScriptedChatClient([calls(("delete", {"path": "a"})), "fine", "ok"]), AgentSession()
    agent = ChatClientAgent(client, tools=[deleter.tool])
    first = await invoke(agent, "go", session=session)
    await invoke(agent, "never mind", session=session)
    assert [role for role, _ in texts(session.messages)] == ["user", "assistant", "tool", "user", "assistant"]
    assert is_balanced(session.messages)
    assert deleter.deleted == []
    with pytest.raises(ConfigurationError):
        await invoke(agent, answer(first), session=session)


async def test_an_approved_call_runs_once(invoke: Way, deleter: Deleter):
    """U5: where the model fails after an approved call has run, the same answer goes on without running it again."""
    client = ScriptedChatClient([calls(("delete", {"path": "a"})), OSError("down"), "done"])
    agent, session = ChatClientAgent(client, tools=[deleter.tool]), AgentSession()
    given = answer(await invoke(agent, "go", session=session))
    with pytest.raises(OSError, match="down"):
        await invoke(agent, given, session=session)
    assert session.messages == []
    response = await invoke(agent, given, session=session)
    assert said(response.messages) == [("tool", {"result": "deleted a"}), ("assistant", "done")]
    assert deleter.deleted == ["a"]


async def test_a_call_that_finished_does_not_run_again(invoke: Way):
    """U5: of several approved calls one that finished is kept at once; if another is cancelled, only that runs again."""
    ran: list[str] = []
    quick_is_kept = asyncio.Event()

    @tool(approval_required=True)
    async def step(name: str) -> str:
        ran.append(name)
        if name == "slow" and ran.count("slow") == 1:
            for _ in range(10):
                await asyncio.sleep(0)
            quick_is_kept.set()
            await asyncio.Event().wait()
        return f"{name} done"

    client = ScriptedChatClient([calls(("step", {"name": "quick"}), ("step", {"name": "slow"})), "done"])
    agent, session = ChatClientAgent(client, tools=[step]), AgentSession()
    given = answer(await invoke(agent, "go", session=session))
    running = asyncio.ensure_future(invoke(agent, given, session=session))
    await quick_is_kept.wait()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    session = await agent.deserialize_session(json.loads(json.dumps(await agent.serialize_session(session))))
    response = await invoke(agent, given, session=session)
    assert ran == ["quick", "slow", "slow"]
    assert said(response.messages)[0] == ("tool", {"result": "quick done"}, {"result": "slow done"})


@pytest.mark.parametrize("approved", [True, False], ids=["the same", "changed"])
async def test_an_answer_stands(invoke: Way, deleter: Deleter, approved: bool):
    """Approvals: an answer to what was answered before is an error, changed or not, and what waits goes on waiting."""
    asked = calls(("delete", {"path": "a"}), ("delete", {"path": "b"}))
    client, session = ScriptedChatClient([asked, "done"]), AgentSession()
    agent = ChatClientAgent(client, tools=[deleter.tool])
    first = await invoke(agent, "go", session=session)
    half = await invoke(agent, answer(first, only=0), session=session)
    kept = json.dumps(session.state)
    again = answer(first, only=0, approved=approved)
    for sent in (again, [again, answer(half)], [answer(half), again]):
        with pytest.raises(ConfigurationError, match="answered before: the call was approved"):
            await invoke(agent, sent, session=session)
        assert json.dumps(session.state) == kept
    await invoke(agent, answer(half), session=session)
    assert deleter.deleted == ["a", "b"]


async def test_an_answer_that_contradicts_itself(invoke: Way, deleter: Deleter):
    """Approvals: one input that approves and rejects a call is an error, and nothing runs."""
    client, session = ScriptedChatClient([calls(("delete", {"path": "a"})), "done"]), AgentSession()
    agent = ChatClientAgent(client, tools=[deleter.tool])
    first = await invoke(agent, "go", session=session)
    with pytest.raises(ConfigurationError, match="the call was rejected"):
        await invoke(agent, [answer(first, approved=False), answer(first)], session=session)
    await invoke(agent, [answer(first), answer(first)], session=session)
    assert deleter.deleted == ["a"]


async def test_an_approval_that_ran_can_not_be_taken_back(invoke: Way, deleter: Deleter):
    """Approvals: where the model fails after an approved call has run, a rejection of it is an error."""
    client = ScriptedChatClient([calls(("delete", {"path": "a"})), OSError("down"), "done"])
    agent, session = ChatClientAgent(client, tools=[deleter.tool]), AgentSession()
    first = await invoke(agent, "go", session=session)
    with pytest.raises(OSError, match="down"):
        await invoke(agent, answer(first), session=session)
    with pytest.raises(ConfigurationError, match="answered before"):
        await invoke(agent, answer(first, approved=False), session=session)
    assert (await invoke(agent, answer(first), session=session)).text == "done"


@pytest.mark.parametrize("approved", [(True, False), (False, True), (True, True)])
async def test_two_calls_with_one_id(invoke: Way, deleter: Deleter, approved: tuple[bool, bool]):
    """Approvals: calls that a model gave one id are told apart: each runs, or not, as it was answered."""
    asked = [FunctionCallContent("same", "delete", {"path": path}) for path in "ab"]
    client, session = ScriptedChatClient([ChatResponse([ChatMessage("assistant", asked)]), "done"]), AgentSession()
    agent = ChatClientAgent(client, tools=[deleter.tool])
    first = await invoke(agent, "go", session=session)
    given = [answer(first, only=n, approved=yes) for n, yes in enumerate(approved)]
    response = await invoke(agent, given, session=session)
    results = [content.result for content in response.messages[0].contents]
    assert deleter.deleted == [path for path, yes in zip("ab", approved, strict=True) if yes]
    assert [result.startswith("deleted") for result in results] == list(approved)
    assert ["did not approve" in result for result in results] == [not yes for yes in approved]


@pytest.mark.parametrize("together", [True, False])
async def test_two_open_calls_with_one_id(invoke: Way, together: bool):
    """Tools: results of the caller's under one id go to the calls in order; as often as they are sent."""
    asked = [FunctionCallContent("same", "look", {}) for _ in range(2)]
    reply = ChatResponse([ChatMessage("assistant", asked)])
    client, session = ScriptedChatClient([reply, OSError("down"), "seen"]), AgentSession()
    agent = ChatClientAgent(client, tools=[DECLARED])
    await invoke(agent, "go", session=session)
    one, two = [ChatMessage("tool", [FunctionResultContent("same", result)]) for result in ("one", "two")]
    if not together:
        assert said((await invoke(agent, one, session=session)).messages) == [("assistant", "call look")]
    with pytest.raises(OSError, match="down"):
        await invoke(agent, [one, two] if together else two, session=session)
    response = await invoke(agent, [one, two], session=session)
    assert said(response.messages) == [("tool", {"result": "one"}, {"result": "two"}), ("assistant", "seen")]


async def test_the_bound_holds_across_an_approval(invoke: Way, deleter: Deleter):
    """Approvals: rounds before and after an answer count towards the same bound."""
    client = ScriptedChatClient([calls(("add", {"a": 1})), calls(("delete", {"path": "a"})), "enough"])
    agent, session = ChatClientAgent(client, tools=[deleter.tool, add], max_tool_rounds=2), AgentSession()
    first = await invoke(agent, "go", session=session)
    last = await invoke(agent, answer(first), session=session)
    assert last.messages[-1].text == "enough"
    assert client.calls[2].options is None


@pytest.mark.parametrize("broken", [1, {}, {"messages": 1}, {"messages": [], "calls": [1]}])
async def test_a_broken_state(invoke: Way, broken: Any):
    """Sessions: a held exchange that can't be read is an error that names its place."""
    session = AgentSession(state={"held_tool_calls": broken})
    with pytest.raises(SessionStateError, match="held_tool_calls"):
        await invoke(ChatClientAgent(ScriptedChatClient(["x"])), "go", session=session)
