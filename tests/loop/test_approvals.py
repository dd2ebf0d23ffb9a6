from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pytest
from fakes import RecordingAgent, Way, says, texts

from agents_loop import (
    AgentResponse,
    AgentSession,
    AIJudgeLoopEvaluator,
    ChatClientAgent,
    ChatMessage,
    ChatResponse,
    ConfigurationError,
    ContextProvider,
    FunctionCallContent,
    LoopAgent,
    LoopAgentOptions,
    LoopResult,
    ProvidedContext,
    ProviderContext,
    SessionStateError,
    StopReason,
    ToolApprovalRequestContent,
    ToolApprovalResponseContent,
    tool,
)
from agents_loop.testing import ScriptedChatClient

KEY = "agents_loop"


def asks(path: str = "a", *more: str) -> ChatResponse:
    """A model's reply that wants files deleted."""
    contents = [FunctionCallContent(f"call-{n}", "delete", {"path": p}) for n, p in enumerate((path, *more))]
    return ChatResponse([ChatMessage("assistant", contents)])


def requests_in(response: AgentResponse) -> list[ToolApprovalRequestContent]:
    return [c for message in response.messages for c in message.contents if isinstance(c, ToolApprovalRequestContent)]


def answer(response: AgentResponse, *, approved: bool = True, only: int | None = None) -> ChatMessage:
    requests = requests_in(response)
    chosen = requests if only is None else [requests[only]]
    return ChatMessage("user", [ToolApprovalResponseContent(r.request_id, approved, r.tool_call) for r in chosen])


class Reminder(ContextProvider):
    """Adds a line to the instructions, and counts its runs in the session."""

    async def provide(self, context: ProviderContext) -> ProvidedContext:
        state = self.state(context.session)
        state["runs"] = state.get("runs", 0) + 1
        return ProvidedContext(instructions="be careful")


@dataclass
class Setup:
    """A loop over an agent with a tool that needs approval."""

    client: ScriptedChatClient
    deleted: list[str]
    agent: ChatClientAgent
    loop: LoopAgent

    @property
    def heard(self) -> list[list[str]]:
        """What the model was sent, call by call: texts, and what calls and results say."""
        return [[_said(message) for message in call.messages] for call in self.client.calls]


def _said(message: ChatMessage) -> str:
    return message.text or " ".join([str(getattr(c, "result", getattr(c, "name", ""))) for c in message.contents])


def setup(
    replies: Sequence[Any], evaluator: Any, *, providers: Sequence[ContextProvider] = (), **options: Any
) -> Setup:
    deleted: list[str] = []

    @tool(approval_required=True)
    async def delete(path: str) -> str:
        deleted.append(path)
        return f"deleted {path}"

    client = ScriptedChatClient(replies)
    agent = ChatClientAgent(client, tools=[delete], context_providers=providers)
    return Setup(client, deleted, agent, LoopAgent(agent, evaluator, LoopAgentOptions(**options)))


def reason(response: AgentResponse) -> StopReason:
    return LoopResult.of(response).stop_reason


@pytest.mark.parametrize("given", [True, False], ids=["session given", "session made"])
@pytest.mark.parametrize("provided", [True, False], ids=["provider", "no provider"])
@pytest.mark.parametrize("approved", [True, False], ids=["approved", "rejected"])
@pytest.mark.parametrize("stored", [True, False], ids=["stored", "kept"])
async def test_the_matrix(invoke: Way, given: bool, provided: bool, approved: bool, stored: bool):
    """C4: a run goes on where it was, whoever made the session, streamed or not, with providers or not, also stored."""
    evaluator = says("more", "never asked", "and more")
    made = setup(["draft", asks(), "second", "third"], evaluator, providers=[Reminder()] if provided else [])
    session = AgentSession() if given else None
    first = await invoke(made.loop, "tidy up", session=session)
    assert reason(first) is StopReason.PENDING_APPROVAL
    assert (evaluator.asked_at, made.deleted) == ([1], [])
    kept = LoopResult.of(first).session
    assert (kept is session) is given
    if stored:
        kept = await made.loop.deserialize_session(json.loads(json.dumps(await made.loop.serialize_session(kept))))
    second = await invoke(made.loop, answer(first, approved=approved), session=kept)
    assert reason(second) is StopReason.SATISFIED
    assert made.deleted == (["a"] if approved else [])
    assert [record.number for record in LoopResult.of(second).iterations] == [3, 4]
    assert evaluator.asked_at == [1, 3, 4]
    assert KEY not in kept.state
    result = "deleted a" if approved else "Error: the user did not approve this call, so it was not run"
    heard = ["be careful"] if provided else []
    assert made.heard[2] == [*heard, "tidy up", "draft", "more", "delete", result]
    if provided:
        assert kept.state["Reminder"] == {"runs": len(made.client.calls)}


async def test_the_evaluators_see_one_run(invoke: Way):
    """C4: after an approval the evaluators see the original request, the whole feedback log and the count."""
    evaluator = says("one", "never asked")
    made = setup(["draft", asks(), "second", "third"], evaluator, max_iterations=4)
    first = await invoke(made.loop, ["the request", "in two"])
    await invoke(made.loop, answer(first), session=LoopResult.of(first).session)
    seen = evaluator.seen[-1]
    assert (seen.iteration, seen.feedback) == (3, ["one"])
    assert texts(seen.context.initial_messages) == [("user", "the request"), ("user", "in two")]
    assert seen.response.messages[-1].text == "second"


async def test_the_judge_sees_the_original_request(invoke: Way):
    """C4: the judge compares the answer with the original request, not with the approval."""
    judge = ScriptedChatClient(['{"gapAnalysis": "", "answered": true}'])
    made = setup([asks(), "all tidy"], AIJudgeLoopEvaluator(judge))
    first = await invoke(made.loop, "tidy up")
    second = await invoke(made.loop, answer(first), session=LoopResult.of(first).session)
    assert reason(second) is StopReason.SATISFIED
    asked = judge.calls[0].messages[1].text
    assert "tidy up" in asked
    assert "all tidy" in asked


async def test_the_same_cap(invoke: Way):
    """Law 4: iterations before and after an approval count towards one cap."""
    made = setup(["draft", asks(), "second", "third", "fourth"], says(*["more"] * 9), max_iterations=4)
    first = await invoke(made.loop, "go")
    second = await invoke(made.loop, answer(first), session=LoopResult.of(first).session)
    result = LoopResult.of(second)
    assert (result.stop_reason, [record.number for record in result.iterations]) == (StopReason.MAX_ITERATIONS, [3, 4])
    assert len(made.client.calls) == 4


async def test_an_approval_at_the_cap(invoke: Way):
    """C4: an answered approval is always taken to an answer; at the cap under the same number: N means N."""
    evaluator = says("more", "more")
    made = setup([asks(), "done"], evaluator, max_iterations=1)
    first = await invoke(made.loop, "go")
    second = await invoke(made.loop, answer(first), session=LoopResult.of(first).session)
    assert (reason(second), evaluator.asked_at) == (StopReason.MAX_ITERATIONS, [])
    assert (LoopResult.of(second).output, made.deleted) == ("done", ["a"])
    assert [record.number for record in LoopResult.of(second).iterations] == [1]
    assert LoopResult.of(second).stop_detail == "1 of 1 iterations"


@pytest.mark.parametrize("given", [True, False], ids=["session given", "session made"])
@pytest.mark.parametrize("stored", [True, False], ids=["stored", "kept"])
async def test_fresh_context(invoke: Way, given: bool, stored: bool):
    """Law 11: after an approval the next input is the original messages and all feedback, in a session made as before."""
    made = setup(["draft", asks(), "second", "third"], says("one", "-", "two"), fresh_context_per_iteration=True)
    session = None
    if given:
        session = AgentSession(session_id="mine")
        session.messages.append(ChatMessage("user", "before"))
    first = await invoke(made.loop, "tidy up", session=session)
    kept = LoopResult.of(first).session
    assert kept is not session
    if stored:
        kept = await made.loop.deserialize_session(json.loads(json.dumps(await made.loop.serialize_session(kept))))
    second = await invoke(made.loop, answer(first), session=kept)
    assert reason(second) is StopReason.SATISFIED
    before = ["before"] if given else []
    assert made.heard[2] == [*before, "tidy up", "## Feedback\n\n- one", "delete", "deleted a"]
    assert made.heard[3] == [*before, "tidy up", "## Feedback\n\n- one\n- two"]
    last = LoopResult.of(second).session
    assert last is not kept
    assert (last.session_id == "mine") is given
    assert (KEY in last.state, KEY in kept.state) == (False, False)


async def test_an_approval_in_the_first_iteration_of_a_fresh_context(invoke: Way):
    """Law 11: the snapshot is the caller's session before the first iteration, not with the pending call in it."""
    made = setup([asks(), "first", "second"], says(None, "one"), fresh_context_per_iteration=True)
    session = AgentSession()
    first = await invoke(made.loop, "go", session=session)
    assert LoopResult.of(first).session is session
    await invoke(made.loop, answer(first), session=session)
    assert made.heard[2] == ["go", "## Feedback\n\n- one"]


async def test_several_requests_in_several_runs(invoke: Way):
    """C4: while one request is left the run stays pending; the last answer takes it on."""
    evaluator = says()
    made = setup([asks("a", "b"), "done"], evaluator)
    first = await invoke(made.loop, "go")
    session = LoopResult.of(first).session
    half = await invoke(made.loop, answer(first, only=0), session=session)
    assert (reason(half), made.deleted, evaluator.asked_at) == (StopReason.PENDING_APPROVAL, [], [])
    assert [request.tool_call.arguments for request in requests_in(half)] == [{"path": "b"}]
    last = await invoke(made.loop, answer(half, approved=False), session=session)
    assert (reason(last), made.deleted) == (StopReason.SATISFIED, ["a"])
    assert texts(evaluator.seen[0].context.initial_messages) == [("user", "go")]


@pytest.mark.parametrize("approved", [True, False], ids=["the same", "changed"])
async def test_an_answer_stands(invoke: Way, approved: bool):
    """C4: an answer to what was answered before is an error and not a new run; both parts of what waits stay (U5)."""
    evaluator = says()
    made = setup([asks("a", "b"), "done"], evaluator)
    first = await invoke(made.loop, "go")
    session = LoopResult.of(first).session
    half = await invoke(made.loop, answer(first, only=0), session=session)
    kept = json.dumps(session.state, sort_keys=True)
    assert KEY in session.state
    assert "held_tool_calls" in session.state
    with pytest.raises(ConfigurationError, match="answered before") as raised:
        await invoke(made.loop, answer(first, only=0, approved=approved), session=session)
    assert LoopResult.of(raised.value).stop_reason is StopReason.FAILED
    assert json.dumps(session.state, sort_keys=True) == kept
    last = await invoke(made.loop, answer(half), session=session)
    assert (reason(last), made.deleted) == (StopReason.SATISFIED, ["a", "b"])
    assert texts(evaluator.seen[0].context.initial_messages) == [("user", "go")]


async def test_one_approval_after_another(invoke: Way):
    """C4: a run may wait more than once; it stays one run."""
    evaluator = says()
    made = setup([asks("a"), asks("b"), "done"], evaluator)
    first = await invoke(made.loop, "go")
    session = LoopResult.of(first).session
    second = await invoke(made.loop, answer(first), session=session)
    assert reason(second) is StopReason.PENDING_APPROVAL
    third = await invoke(made.loop, answer(second), session=session)
    assert (reason(third), made.deleted) == (StopReason.SATISFIED, ["a", "b"])
    assert texts(evaluator.seen[0].context.initial_messages) == [("user", "go")]
    assert session.state == {}


async def test_a_run_without_an_answer_is_a_new_run(invoke: Way):
    """C4: other messages in a waiting session begin a new run, with a count and a request of its own (C2)."""
    evaluator = says()
    made = setup([asks(), "hello"], evaluator)
    first = await invoke(made.loop, "go")
    session = LoopResult.of(first).session
    second = await invoke(made.loop, "never mind", session=session)
    assert [record.number for record in LoopResult.of(second).iterations] == [1]
    assert texts(evaluator.seen[0].context.initial_messages) == [("user", "never mind")]
    assert session.state == {}
    assert made.deleted == []


async def test_an_unknown_request(invoke: Way):
    """Approvals: an answer to another request is the agent's error; the right answer still works after it."""
    made = setup([asks(), "done"], says("one"))
    first = await invoke(made.loop, "go")
    session = LoopResult.of(first).session
    call = requests_in(first)[0].tool_call
    wrong = ChatMessage("user", [ToolApprovalResponseContent("other", approved=True, tool_call=call)])
    with pytest.raises(ConfigurationError, match="'other'"):
        await invoke(made.loop, wrong, session=session)
    second = await invoke(made.loop, answer(first), session=session)
    assert [record.number for record in LoopResult.of(second).iterations] == [2]


async def test_a_failed_attempt_can_be_repeated(invoke: Way):
    """U5: where the model fails after an approval, the same answer goes on; the approved call is not run again."""
    evaluator = says()
    made = setup([asks(), OSError("down"), "done"], evaluator)
    first = await invoke(made.loop, "go")
    session = LoopResult.of(first).session
    with pytest.raises(OSError, match="down"):
        await invoke(made.loop, answer(first), session=session)
    second = await invoke(made.loop, answer(first), session=session)
    assert (reason(second), made.deleted) == (StopReason.SATISFIED, ["a"])
    assert texts(evaluator.seen[0].context.initial_messages) == [("user", "go")]


async def test_loops_in_a_loop(invoke: Way):
    """C4: where loops nest each goes on with its own request, log and count, in the one session."""
    inner_says, outer_says = says("in 1"), says("out 1")
    made = setup(["one", "two", "three", asks(), "four"], inner_says)
    outer = LoopAgent(made.loop, outer_says)
    first = await invoke(outer, "go")
    assert reason(first) is StopReason.PENDING_APPROVAL
    session = LoopResult.of(first).session
    session = await outer.deserialize_session(json.loads(json.dumps(await outer.serialize_session(session))))
    second = await invoke(outer, answer(first), session=session)
    assert reason(second) is StopReason.SATISFIED
    assert [record.number for record in LoopResult.of(second).iterations] == [3]
    inner = LoopResult.of(LoopResult.of(second).iterations[0].response)
    assert [record.number for record in inner.iterations] == [3]
    assert inner_says.seen[-1].feedback == ["in 1"]
    assert texts(outer_says.seen[-1].context.initial_messages) == [("user", "go")]
    assert texts(inner_says.seen[-1].context.initial_messages) == [("user", "out 1")]
    assert session.state == {}


async def test_an_inner_loop_with_fresh_context(invoke: Way):
    """C4: where an inner loop has replaced the session, the outer one goes on in the session that it waits in."""
    made = setup(["one", asks(), "two", "three", "four"], says("in 1"), fresh_context_per_iteration=True)
    outer, session = LoopAgent(made.loop, says("-", "out 2")), AgentSession()
    first = await invoke(LoopAgent(made.loop, says("out 1", "out 2")), "go", session=session)
    kept = LoopResult.of(first).session
    assert kept is not session
    second = await invoke(outer, answer(first), session=kept)
    assert (reason(second), made.deleted) == (StopReason.SATISFIED, ["a"])
    assert [record.number for record in LoopResult.of(second).iterations] == [2, 3]
    assert made.heard[-1][-2:] == ["out 2", "## Feedback\n\n- in 1"]


async def test_any_agent(invoke: Way):
    """C4: the loop keeps its part for an agent of any kind that asks for approval."""
    call = FunctionCallContent("c", "delete", {})
    pending = AgentResponse([ChatMessage("assistant", [ToolApprovalRequestContent("r", call)])], response_id="x")
    agent, evaluator = RecordingAgent(pending, "done", "better"), says(None, "more")
    first = await invoke(LoopAgent(agent, evaluator), "go")
    given = ChatMessage("user", [ToolApprovalResponseContent("r", approved=True, tool_call=call)])
    second = await invoke(LoopAgent(agent, evaluator), given, session=LoopResult.of(first).session)
    assert (reason(second), LoopResult.of(second).output) == (StopReason.SATISFIED, "better")
    assert agent.calls[1].messages == [given]
    assert agent.inputs[2] == ["more"]


@pytest.mark.parametrize("broken", [1, {}, {"request_ids": []}])
async def test_a_broken_state(invoke: Way, agent: RecordingAgent, broken: Any):
    """Sessions: what can't be read is an error that names its place; it stays where it is."""
    session = AgentSession(state={KEY: broken})
    with pytest.raises(SessionStateError, match="agents_loop"):
        await invoke(LoopAgent(agent, says()), "go", session=session)
    assert session.state == {KEY: broken}


async def test_the_state_of_a_session_is_left_alone(invoke: Way, agent: RecordingAgent):
    """C4: a run that does not wait keeps nothing in the session's state."""
    session = AgentSession(state={"mine": 1})
    await invoke(LoopAgent(agent, says("more")), "go", session=session)
    assert session.state == {"mine": 1, "runs": 2}  # the agent's own
