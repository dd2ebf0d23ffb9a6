"""Candidates of every adapter: what a loop needs of an agent holds for several runs of it, of which one is kept."""

from __future__ import annotations

import json
from typing import Any

import pytest
from agent_subjects import DELETIONS, SUBJECTS, Subject
from fakes import says
from fault_server import Completion, FaultServer, usage

from agents_loop import (
    AgentResponse,
    CandidateAgent,
    ChatMessage,
    LoopAgent,
    LoopContext,
    LoopResult,
    StopReason,
    ToolApprovalRequestContent,
    ToolApprovalResponseContent,
    UsageDetails,
)
from agents_loop.testing import assert_loop_laws

pytestmark = [
    # The OpenAI Agents SDK drops a turn that is cancelled before it began.
    pytest.mark.filterwarnings("ignore:coroutine 'run_single_turn' was never awaited:RuntimeWarning"),
    pytest.mark.filterwarnings(
        "ignore:Exception ignored in. <coroutine object run_single_turn:pytest.PytestUnraisableExceptionWarning"
    ),
]


@pytest.fixture(params=SUBJECTS, ids=lambda subject: subject.name)
def subject(request: pytest.FixtureRequest) -> Subject:
    request.param.require()
    return request.param


def longest(context: LoopContext) -> float:
    return float(len(context.last_response.text))


def heard(server: FaultServer, number: int = -1) -> list[tuple[str, str]]:
    said = [(message["role"], message.get("content") or "") for message in server.bodies[number]["messages"]]
    return [pair for pair in said if pair[0] not in ("system", "developer")]


async def test_candidates_keep_the_laws(subject, server):
    """Law: what `assert_loop_laws` checks holds for candidates of every adapter."""
    server.default = Completion(content="Done, and here is why.", usage=usage(3, 4))
    await assert_loop_laws(CandidateAgent(subject.make(server), 2, longest))


async def test_the_next_iteration_goes_on_from_the_kept_candidate(subject, server, invoke):
    """Law 10, 13: one session, the caller's; it holds the kept candidate's turn alone, and so does the model's input."""
    agent = CandidateAgent(subject.make(server), 2, longest)
    session = await agent.create_session()
    server.add(Completion(content="short", usage=usage(1, 1)), Completion(content="much longer", usage=usage(1, 2)))
    server.add(Completion(content="tiny", usage=usage(2, 1)), Completion(content="longest of all", usage=usage(2, 2)))
    response = await invoke(LoopAgent(agent, says("More.")), "Go.", session=session)
    result = LoopResult.of(response)
    assert result.output == "longest of all"
    assert result.session is session
    assert heard(server) == [("user", "Go."), ("assistant", "much longer"), ("user", "More.")]
    assert response.usage == UsageDetails(6, 6, 12)
    assert [entry.usage.input_token_count for entry in result.ledger] == [1, 1, 2, 2]
    await invoke(agent.inner_agent, "Thanks.", session=session)
    assert heard(server)[-2:] == [("assistant", "longest of all"), ("user", "Thanks.")]


def call(call_id: str) -> Completion:
    asked = {"name": "delete", "arguments": json.dumps({"path": "a.txt"})}
    return Completion(
        content="",
        tool_calls=({"id": call_id, "type": "function", "function": asked},),
        finish_reason="tool_calls",
    )


def answer_to(response: AgentResponse) -> ChatMessage:
    [request] = [c for m in response.messages for c in m.contents if isinstance(c, ToolApprovalRequestContent)]
    return ChatMessage(
        "user", ToolApprovalResponseContent(request.request_id, approved=True, tool_call=request.tool_call)
    )


@pytest.fixture(params=[each for each in SUBJECTS if each.has_tools and each.approves], ids=lambda each: each.name)
def approving(request: pytest.FixtureRequest) -> Subject:
    request.param.require()
    return request.param


async def test_what_is_approved_is_done_once(approving, server, invoke):
    """Law 3a (C4): where all candidates ask, the first is kept; the answer resumes that one, and the tool runs once."""
    loop = LoopAgent(CandidateAgent(approving.make(server), 2, longest), says())
    session = await loop.create_session()
    server.add(call("c1"), call("c2"))
    asked = await invoke(loop, "Delete a.txt.", session=session)
    assert LoopResult.of(asked).stop_reason is StopReason.PENDING_APPROVAL
    assert len(server.requests) == 2
    assert DELETIONS.done == []
    server.add(Completion(content="Deleted."))
    response = await invoke(loop, answer_to(asked), session=session)
    assert (response.text, DELETIONS.done, len(server.requests)) == ("Deleted.", ["a.txt"], 3)


async def test_an_answer_is_kept_before_a_request_for_approval(approving, server, invoke):
    """Candidates: one that waits for a person is kept only where no other has an answer."""
    agent: Any = CandidateAgent(approving.make(server), 2, longest)
    session = await agent.create_session()
    server.add(call("c1"), Completion(content="I leave it."))
    response = await invoke(agent, "Delete a.txt?", session=session)
    assert response.text == "I leave it."
    server.add(Completion(content="Fine."))
    await invoke(agent.inner_agent, "Good.", session=session)
    assert [role for role, _ in heard(server)] == ["user", "assistant", "user"]
