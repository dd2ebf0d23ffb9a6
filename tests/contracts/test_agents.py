"""What a loop needs of an agent, whatever framework it comes from: one suite, over a real server, on every adapter."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from typing import Any

import pytest
from agent_subjects import DELETIONS, SUBJECTS, Subject
from fakes import always, says, texts
from fault_server import Completion, Failure, FaultServer, Stream, chunk, usage

from agents_loop import (
    AgentResponse,
    AIAgent,
    ChatMessage,
    ConfigurationError,
    DataContent,
    FunctionCallContent,
    FunctionResultContent,
    LoopAgent,
    LoopAgentOptions,
    LoopEvaluation,
    LoopResult,
    StopReason,
    TextContent,
    ToolApprovalRequestContent,
    ToolApprovalResponseContent,
    UsageDetails,
)
from agents_loop.adapting import as_agent
from agents_loop.testing import assert_loop_laws

pytestmark = [
    # The OpenAI Agents SDK drops a turn that is cancelled before it began.
    pytest.mark.filterwarnings("ignore:coroutine 'run_single_turn' was never awaited:RuntimeWarning"),
    pytest.mark.filterwarnings(
        "ignore:Exception ignored in. <coroutine object run_single_turn:pytest.PytestUnraisableExceptionWarning"
    ),
]
WITH_TOOLS = [subject for subject in SUBJECTS if subject.has_tools]


def call(name: str, call_id: str, **arguments: Any) -> dict[str, Any]:
    """A tool call as the server sends it."""
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}


def calls(*tool_calls: dict[str, Any], content: str = "", **given: Any) -> Completion:
    return Completion(content=content, tool_calls=tool_calls, finish_reason="tool_calls", **given)


def heard(server: FaultServer, number: int = -1) -> list[tuple[str, str]]:
    """What a request held, after the instructions: who said what."""
    said = [(message["role"], message.get("content") or "") for message in server.bodies[number]["messages"]]
    return [pair for pair in said if pair[0] not in ("system", "developer")]


@pytest.fixture(params=SUBJECTS, ids=lambda subject: subject.name)
def subject(request: pytest.FixtureRequest) -> Subject:
    request.param.require()
    return request.param


@pytest.fixture
def agent(subject: Subject, server: FaultServer) -> AIAgent:
    return as_agent(subject.make(server))


async def test_it_keeps_the_laws(subject, server):
    """Law: what `assert_loop_laws` checks holds for every adapter."""
    server.default = Completion(content="Done, and here is why.", usage=usage(3, 4))
    await assert_loop_laws(subject.make(server))


async def test_the_conversation_grows_in_order(agent, server, invoke):
    """Law 10 (C1): in one session the model hears all that was said, in order, and the feedback once, verbatim."""
    server.add(Completion(content="first"), Completion(content="second"), Completion(content="third"))
    response = await invoke(LoopAgent(agent, says("Add the cost.", "Add the owner.")), "Write a plan.")
    assert response.text.splitlines() == ["first", "Add the cost.", "second", "Add the owner.", "third"]
    assert heard(server, 0) == [("user", "Write a plan.")]
    assert heard(server) == [
        ("user", "Write a plan."),
        ("assistant", "first"),
        ("user", "Add the cost."),
        ("assistant", "second"),
        ("user", "Add the owner."),
    ]


async def test_identical_turns_are_kept(agent, server, invoke):
    """Law (C5): identical replies and identical feedback are none of them dropped from the history."""
    await invoke(LoopAgent(agent, says("More.", "More.", "More.")), "Go.")
    assert heard(server) == [("user", "Go."), *[("assistant", "ok"), ("user", "More.")] * 3]


async def test_going_on_without_feedback_asks_again(agent, server):
    """Law 10: with no feedback the next input is no message at all, and the model is asked again."""
    await LoopAgent(agent, says(None)).run("Go.")
    assert len(server.requests) == 2
    assert heard(server) == [("user", "Go."), ("assistant", "ok")]


async def test_fresh_context_clones_the_callers_session(agent, server, invoke):
    """Law 11: each re-invocation sees the caller's session as it was before the run, the request and the feedback."""
    session = await agent.create_session()
    await invoke(agent, "Before.", session=session)
    options = LoopAgentOptions(fresh_context_per_iteration=True)
    await invoke(LoopAgent(agent, says("Shorter.", "Shorter still."), options), "Now.", session=session)
    roles, said = zip(*heard(server), strict=True)
    assert roles[:2] == ("user", "assistant")
    assert set(roles[2:]) == {"user"}
    assert flat(said) == ["Before.", "ok", "Now.", "## Feedback\n\n- Shorter.\n- Shorter still."]


def flat(said: Any) -> list[str]:
    """Texts; a message that holds several parts as several texts."""
    return [
        part if isinstance(part, str) else part["text"]
        for message in said
        for part in ([message] if isinstance(message, str) else message)
    ]


async def test_a_session_survives_the_process(subject, agent, server):
    """Law: a session that was written is read by another agent object, in a later process, with all that was said."""
    session = await agent.create_session()
    server.add(Completion(content="Understood."))
    await agent.run("Remember 42.", session=session)
    stored = json.dumps(await agent.serialize_session(session))
    later = as_agent(subject.make(server))
    await later.run("What was it?", session=await later.deserialize_session(json.loads(stored)))
    assert heard(server) == [("user", "Remember 42."), ("assistant", "Understood."), ("user", "What was it?")]


async def test_two_adapters_of_one_agent_share_a_session(subject, server):
    """Law 18: the session of a run's result goes on in another loop around the same agent."""
    inner = subject.make(server)
    response = await LoopAgent(as_agent(inner), says()).run("One.")
    await LoopAgent(as_agent(inner), says()).run("Two.", session=LoopResult.of(response).session)
    assert heard(server) == [("user", "One."), ("assistant", "ok"), ("user", "Two.")]


async def test_usage_is_counted_once(agent, server, invoke):
    """Law 16 (U1): the usage of a loop is the sum over its iterations, streamed or not."""
    server.add(Completion(content="a", usage=usage(10, 1)), Completion(content="b", usage=usage(20, 2)))
    response = await invoke(LoopAgent(agent, says("More.")), "Go.")
    assert response.usage == UsageDetails(30, 3, 33)


async def test_usage_nobody_reported_is_none(agent, server):
    """Law 16: a counter that nobody reported stays `None`."""
    response = await agent.run("Go.")
    assert response.usage is None


async def test_an_error_is_raised_as_the_sdk_raises_it(subject, agent, server, invoke):
    """Law: an exception of the inner agent reaches the caller as it was raised, with the result so far."""
    server.add(Completion(content="a draft"), Failure(401, "wrong key"))
    with pytest.raises(subject.error) as raised:
        await invoke(LoopAgent(agent, says("More.")), "Go.")
    assert LoopResult.of(raised.value).stop_reason is StopReason.FAILED
    assert LoopResult.of(raised.value).output == "a draft"


async def test_an_image_reaches_the_model(agent, server):
    """Law 1: the caller's message reaches the model unchanged, an image included, its text before it."""
    await agent.run(ChatMessage("user", ["What is this?", DataContent(b"\x89PNG", "image/png")]))
    said = [content for _, content in heard(server)]  # Agent Framework sends a message for each part
    parts = [part for content in said for part in ([content] if isinstance(content, str) else content)]
    shown = [part if isinstance(part, str) else part.get("text") or part["image_url"]["url"] for part in parts]
    assert shown == ["What is this?", "data:image/png;base64,iVBORw=="]


@pytest.fixture(params=[subject for subject in SUBJECTS if subject.streams], ids=lambda subject: subject.name)
def streaming(request: pytest.FixtureRequest, server: FaultServer) -> AIAgent:
    request.param.require()
    return as_agent(request.param.make(server))


async def test_a_stream_comes_in_pieces(streaming, server):
    """Law 17: a stream yields the model's text as it comes, and its pieces are its final response."""
    server.add(Completion(content="one two three four", usage=usage(1, 2)))
    stream = streaming.run_streaming("Go.")
    updates = [update async for update in stream]
    assert len([update for update in updates if update.text]) > 1
    final = await stream.final_response()
    assert AgentResponse.from_updates(updates).messages == final.messages
    assert texts(final.messages) == [("assistant", "one two three four")]
    assert [message.message_id for message in final.messages] == [updates[0].message_id]


async def test_closing_a_stream_closes_the_connection(streaming, server):
    """Law 19 (F5): closing a stream early closes the connection to the model."""
    opening = (
        chunk({"role": "assistant", "content": ""}),
        chunk({"content": "half an "}),
        chunk({"content": "answer"}),
    )
    server.add(Stream(opening, end="held"))
    stream = streaming.run_streaming("Go.")
    async for update in stream:
        if update.text:
            break
    await stream.aclose()
    assert await asyncio.to_thread(server.client_left.wait, 30)


async def test_any_of_them_is_a_line_away(subject, server):
    """Design: `LoopAgent(x, y)` takes the framework's own agent; the loop has its name, where it has one."""
    looped = LoopAgent(subject.make(server), always(LoopEvaluation.stop()))
    assert (await looped.run("Go.")).text == "ok"
    assert looped.id
    assert looped.name in (None, "worker", "ask")


# --- tools


@pytest.fixture(params=WITH_TOOLS, ids=lambda subject: subject.name)
def tooled(request: pytest.FixtureRequest, server: FaultServer) -> AIAgent:
    request.param.require()
    return as_agent(request.param.make(server))


async def test_a_tool_round_is_in_the_response(tooled, server, invoke):
    """Law 14: the response holds the call, its result and the answer, in order; its usage is that of both calls."""
    server.add(calls(call("add", "c1", a=1, b=2), content="Let me see.", usage=usage(5, 1)))
    server.add(Completion(content="It is 3.", usage=usage(6, 2)))
    response = await invoke(tooled, "What is 1 + 2?")
    assert contents(response) == [
        ("assistant", TextContent("Let me see.")),
        ("assistant", FunctionCallContent("c1", "add", {"a": 1, "b": 2})),
        ("tool", FunctionResultContent("c1", "3")),
        ("assistant", TextContent("It is 3.")),
    ]
    assert response.usage == UsageDetails(11, 3, 14)


async def test_a_streamed_tool_round_is_the_same_in_pieces(tooled, server):
    """Law 8: streamed, the pieces of a tool round make the messages of the final response."""
    server.add(calls(call("add", "c1", a=1, b=2), call("add", "c2", a=2, b=2), content="Let me see."))
    server.add(Completion(content="3 and 4."))
    stream = tooled.run_streaming("What is 1 + 2, and 2 + 2?")
    updates = [update async for update in stream]
    final = await stream.final_response()
    assert AgentResponse.from_updates(updates).messages == final.messages
    assert [content for role, content in contents(final) if role == "tool"] == [
        FunctionResultContent("c1", "3"),
        FunctionResultContent("c2", "4"),
    ]


def contents(response: AgentResponse) -> list[tuple[str, Any]]:
    return [(str(message.role), content) for message in response.messages for content in message.contents]


# --- approvals


@pytest.fixture(params=[subject for subject in WITH_TOOLS if subject.approves], ids=lambda subject: subject.name)
def approving(request: pytest.FixtureRequest, server: FaultServer) -> AIAgent:
    """Those that can wait for a person: a graph can with a checkpointer alone."""
    request.param.require()
    return as_agent(request.param.make(server))


def answer_to(response: AgentResponse, *, approved: bool) -> ChatMessage:
    [request] = [content for _, content in contents(response) if isinstance(content, ToolApprovalRequestContent)]
    return ChatMessage("user", ToolApprovalResponseContent(request.request_id, approved, request.tool_call))


async def test_a_request_for_approval_ends_the_loop(approving, server, invoke):
    """Law 3a: a pending request for approval ends the run at once; the tool has not run."""
    server.add(calls(call("delete", "c1", path="a.txt")))
    response = await invoke(LoopAgent(approving, says("More.")), "Delete a.txt.")
    assert LoopResult.of(response).stop_reason is StopReason.PENDING_APPROVAL
    assert len(server.requests) == 1
    assert DELETIONS.done == []


@pytest.mark.parametrize("stored", [False, True], ids=["same session", "stored session"])
@pytest.mark.parametrize("approved", [True, False], ids=["approved", "rejected"])
async def test_the_answer_resumes_the_run(approving, server, invoke, approved, stored):
    """Law (C2, C4): the answer resumes the run where it was: call, result and answer are balanced, the tool ran once."""
    session = await approving.create_session()
    server.add(calls(call("delete", "c1", path="a.txt"), usage=usage(5, 5)))
    asked = await invoke(approving, "Delete a.txt.", session=session)
    if stored:
        session = await approving.deserialize_session(
            json.loads(json.dumps(await approving.serialize_session(session)))
        )
    server.add(Completion(content="Deleted.", usage=usage(7, 1)))
    response = await invoke(approving, answer_to(asked, approved=approved), session=session)
    assert DELETIONS.done == (["a.txt"] if approved else [])
    assert response.text == "Deleted."
    assert response.usage == UsageDetails(7, 1, 8)
    roles = [role for role, _ in heard(server)]
    assert roles == ["user", "assistant", "tool"]
    await invoke(approving, "Thanks.", session=session)
    assert [role for role, _ in heard(server)] == ["user", "assistant", "tool", "assistant", "user"]


async def test_a_foreign_answer_runs_nothing(approving, server):
    """Law: an answer to a request that is not pending is an error before anything is called."""
    forged = ToolApprovalResponseContent(
        "forged", approved=True, tool_call=FunctionCallContent("c1", "delete", {"path": "a"})
    )
    with pytest.raises(ConfigurationError, match="not pending in the session"):
        await approving.run(["Hello.", ChatMessage("user", forged)], session=await approving.create_session())
    with pytest.raises(ConfigurationError, match="not pending in the session"):
        await approving.run(ChatMessage("user", forged))
    assert (DELETIONS.done, server.requests) == ([], [])


async def test_a_wrong_answer_leaves_what_waits(approving, server, invoke):
    """Law: after a wrong answer the request waits as before; answered, it is answered once."""
    session = await approving.create_session()
    server.add(calls(call("delete", "c1", path="a.txt")))
    answer = answer_to(await invoke(approving, "Delete a.txt.", session=session), approved=True)
    wrong = ToolApprovalResponseContent("wrong", True, FunctionCallContent("c1", "delete", {"path": "a.txt"}))
    with pytest.raises(ConfigurationError, match="not pending in the session"):
        await invoke(approving, [answer, ChatMessage("user", wrong)], session=session)
    assert (len(server.requests), DELETIONS.done) == (1, [])
    await invoke(approving, answer, session=session)
    with pytest.raises(ConfigurationError, match="not pending in the session"):
        await invoke(approving, answer, session=session)
    assert (len(server.requests), DELETIONS.done) == (2, ["a.txt"])


@pytest.mark.parametrize("approved", [1, "yes", None])
async def test_only_true_approves(approving, server, approved):
    """Law: what is merely truthy approves nothing."""
    session = await approving.create_session()
    server.add(calls(call("delete", "c1", path="a.txt")))
    asked = await approving.run("Delete a.txt.", session=session)
    await approving.run(answer_to(asked, approved=approved), session=session)
    assert DELETIONS.done == []
    assert [role for role, _ in heard(server)] == ["user", "assistant", "tool"]


async def test_another_message_while_pending_is_balanced(approving, server, invoke):
    """Law (C2): another message goes on without the call, every call heard has its result, and a late answer is late."""
    session = await approving.create_session()
    server.add(calls(call("delete", "c1", path="a.txt")))
    answer = answer_to(await invoke(approving, "Delete a.txt.", session=session), approved=True)
    await invoke(approving, "Never mind.", session=session)
    said = server.bodies[-1]["messages"]
    asked = [made["id"] for message in said for made in message.get("tool_calls") or ()]
    assert [message["tool_call_id"] for message in said if message["role"] == "tool"] == asked
    assert said[-1]["content"] == "Never mind."
    with pytest.raises(ConfigurationError, match="not pending in the session"):
        await invoke(approving, answer, session=session)
    assert (len(server.requests), DELETIONS.done) == (2, [])


@pytest.mark.parametrize("stored", [False, True], ids=["same session", "stored session"])
async def test_answers_are_collected(approving, server, invoke, stored):
    """Law: one answer of two gives the other request again, and runs nothing; the last one resumes the run."""
    session = await approving.create_session()
    server.add(calls(call("delete", "c1", path="a.txt"), call("delete", "c2", path="b.txt")))
    asked = await invoke(approving, "Delete both.", session=session)
    requests = approvals_in(asked)
    if len(requests) == 1:
        pytest.skip("a task of a graph asks for one thing after the other")
    again = await invoke(approving, answering(requests[0], approved=True), session=session)
    assert [request.request_id for request in approvals_in(again)] == [requests[1].request_id]
    assert (len(server.requests), DELETIONS.done) == (1, [])
    if stored:
        session = await restored(approving, session)
    await invoke(approving, answering(requests[1], approved=False), session=session)
    assert DELETIONS.done == ["a.txt"]
    assert [role for role, _ in heard(server)] == ["user", "assistant", "tool", "tool"]


@pytest.mark.parametrize("stored", [False, True], ids=["same session", "stored session"])
@pytest.mark.parametrize("way", ["the same answer", "another message"])
async def test_an_approved_call_outlives_a_failure(subject_that_approves, server, invoke, stored, way):
    """Law: where the model fails after an approved call, what comes next hears its result, and it is not run again."""
    approving = as_agent(subject_that_approves.make(server))
    session = await approving.create_session()
    server.add(calls(call("delete", "c1", path="a.txt")), Failure(401))
    answer = answer_to(await invoke(approving, "Delete a.txt.", session=session), approved=True)
    with pytest.raises(subject_that_approves.error):
        await invoke(approving, answer, session=session)
    if stored:
        session = await restored(approving, session)
    response = await invoke(approving, answer if way == "the same answer" else "And?", session=session)
    assert response.text.endswith("ok")
    assert DELETIONS.done == ["a.txt"]
    assert_balanced(server)
    said = [pair for pair in heard(server) if pair[0] != "assistant"]
    assert ("tool", "deleted a.txt") in said
    await invoke(approving, "Thanks.", session=session)
    assert heard(server)[-1] == ("user", "Thanks.")


async def test_text_beside_an_answer_follows_the_result(approving, server, invoke):
    """Law (C2): what is said beside an answer reaches the model after the call's result, never between the two."""
    session = await approving.create_session()
    server.add(calls(call("delete", "c1", path="a.txt")))
    asked = await invoke(approving, "Delete a.txt.", session=session)
    await invoke(approving, [answer_to(asked, approved=True), "And hurry."], session=session)
    assert_balanced(server)
    if approving.framework != "langgraph":
        assert heard(server)[-1] == ("user", "And hurry.")


def assert_balanced(server: FaultServer) -> None:
    """In the last request, results stand right after their calls."""
    roles = [role for role, _ in heard(server)]
    assert roles.count("tool") == 1
    assert server.bodies[-1]["messages"][-len(roles) :][roles.index("tool") - 1].get("tool_calls")


@pytest.fixture(params=[subject for subject in WITH_TOOLS if subject.approves], ids=lambda subject: subject.name)
def subject_that_approves(request: pytest.FixtureRequest) -> Subject:
    request.param.require()
    return request.param


def approvals_in(response: AgentResponse) -> list[ToolApprovalRequestContent]:
    return [content for _, content in contents(response) if isinstance(content, ToolApprovalRequestContent)]


def answering(request: ToolApprovalRequestContent, *, approved: bool) -> ChatMessage:
    return ChatMessage("user", ToolApprovalResponseContent(request.request_id, approved, request.tool_call))


async def restored(agent: AIAgent, session: Any) -> Any:
    return await agent.deserialize_session(json.loads(json.dumps(await agent.serialize_session(session))))


@pytest.mark.parametrize("subject", [replace(SUBJECTS[0], needs=("no_such_module",))])
def test_a_subject_without_its_sdk_is_skipped(subject):
    """Contract: what is not installed is skipped, by name."""
    with pytest.raises(pytest.skip.Exception):
        subject.require()
