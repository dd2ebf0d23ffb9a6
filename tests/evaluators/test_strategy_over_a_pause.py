"""What the iteration strategy remembers while its run waits."""

from __future__ import annotations

import json
from typing import Any

import pytest
from fakes import WAYS, RecordingAgent, Way, says

from agents_loop import (
    AgentResponse,
    AgentSession,
    ChatClientAgent,
    ChatMessage,
    ChatResponse,
    DelegateLoopEvaluator,
    FunctionCallContent,
    IterationSignals,
    IterationStrategyLoopEvaluator,
    IterationStrategyLoopEvaluatorOptions,
    LoopAgent,
    LoopAgentOptions,
    LoopBudget,
    LoopContext,
    LoopEvaluation,
    LoopResult,
    SessionStateError,
    StopReason,
    ToolApprovalRequestContent,
    ToolApprovalResponseContent,
    UsageDetails,
    UserFeedback,
    ValidationFailure,
)
from agents_loop.testing import ScriptedChatClient

WRONG = IterationSignals(validation_failures=[ValidationFailure("MISSING_FIELD", "is missing", "$.price")])
VAGUE = IterationSignals(user_feedback=[UserFeedback("Hm.", actionable=False)])
CALL = ToolApprovalRequestContent("r1", FunctionCallContent("c1", "send", {}))
ASKS = AgentResponse([ChatMessage("assistant", [CALL])])
APPROVED = ChatMessage("user", [ToolApprovalResponseContent("r1", True, CALL.tool_call)])


@pytest.fixture(params=WAYS, ids=["run", "stream"])
def invoke(request: pytest.FixtureRequest) -> Way:
    return request.param


def strategy(find: Any = None, **options: Any) -> IterationStrategyLoopEvaluator:
    return IterationStrategyLoopEvaluator(
        [find or (lambda context: WRONG)], IterationStrategyLoopEvaluatorOptions(**options)
    )


async def stored(agent: Any, session: AgentSession | None) -> AgentSession:
    """The session, as another process would read it."""
    assert session is not None
    return await agent.deserialize_session(json.loads(json.dumps(await agent.serialize_session(session))))


def details(result: LoopResult) -> list[Any]:
    return [record.evaluations[0].details for record in result.iterations if record.evaluations]


def rules(result: LoopResult) -> list[tuple[str, str]]:
    return [(each["strategy"], each["rule"]) for each in details(result)]


async def test_what_was_tried_before_an_approval(invoke: Way):
    """Strategy: over an approval the history goes on: what was tried is not tried anew, and a stuck run is noticed."""
    agent = RecordingAgent("one", "two", ASKS, "three", "four")
    loop = LoopAgent(agent, strategy())
    first = LoopResult.of(await invoke(loop))
    assert (first.stop_reason, rules(first)[-1]) == (StopReason.PENDING_APPROVAL, ("refine", "validation_repeated"))
    result = LoopResult.of(await invoke(loop, APPROVED, session=await stored(agent, first.session)))
    assert rules(result) == [("expand", "infinite_loop"), ("escalate", "infinite_loop")]
    assert details(result)[0]["numbers"]["last_strategy"] == "refine"


async def test_what_was_tried_before_a_larger_budget(invoke: Way):
    """Strategy: where a budget stopped the run, the history goes on with a larger one."""
    client = ScriptedChatClient(lambda *_: ChatResponse("a draft", usage=UsageDetails(50, 10)))
    agent, session = ChatClientAgent(client), AgentSession()
    for calls, given, expected in (
        (1, "go", [("retry", "validation_first")]),
        (9, None, [("refine", "validation_repeated"), ("expand", "infinite_loop"), ("escalate", "infinite_loop")]),
    ):
        loop = LoopAgent(agent, strategy(), LoopAgentOptions(budget=LoopBudget(max_model_calls=calls)))
        result = LoopResult.of(await invoke(loop, given, session=session))
        assert rules(result) == expected


async def test_a_person_makes_a_new_beginning(invoke: Way):
    """Strategy: what a person answers is new: no strategy is held against the agent that it had without the answer."""
    agent = RecordingAgent()
    loop = LoopAgent(agent, strategy(lambda context: VAGUE if context.iteration == 2 else WRONG))
    first = LoopResult.of(await invoke(loop))
    assert rules(first) == [("retry", "validation_first"), ("escalate", "vague_feedback")]
    session = await stored(agent, first.session)
    result = LoopResult.of(await invoke(loop, "Name the price.", session=session))
    assert rules(result)[:2] == [("retry", "validation_first"), ("refine", "validation_repeated")]


async def test_another_ones_question_changes_nothing(invoke: Way):
    """Strategy: the history goes on over a question that another evaluator asked."""
    agent = RecordingAgent()
    other = says(LoopEvaluation.stop(), LoopEvaluation.ask("Which year?"), *[LoopEvaluation.stop()] * 9)
    loop = LoopAgent(agent, [strategy(), other], LoopAgentOptions(evaluation_mode="all"))
    first = LoopResult.of(await invoke(loop))
    assert first.stop_reason == StopReason.PENDING_INPUT
    result = LoopResult.of(await invoke(loop, "2024", session=await stored(agent, first.session)))
    assert rules(result)[0] == ("expand", "infinite_loop")


async def test_what_was_used_before_a_pause(invoke: Way):
    """Strategy: `max_tokens` and `max_s` are for the run: what the iterations before a pause used counts."""
    agent = RecordingAgent("one", ASKS, "two", "three", usage=UsageDetails(30, 10))
    now = iter(range(1000))
    options = LoopAgentOptions(clock=lambda: float(next(now)), max_iterations=4)
    loop = LoopAgent(agent, strategy(max_tokens=1000, max_s=1000), options)
    first = LoopResult.of(await invoke(loop))
    result = LoopResult.of(await invoke(loop, APPROVED, session=await stored(agent, first.session)))
    before, after = details(first)[0]["numbers"], details(result)[0]["numbers"]
    assert (before["tokens_used"], after["tokens_used"], after["next_tokens"]) == (40, 80, 40)
    assert after["elapsed_s"] > before["elapsed_s"] + 0.5


async def test_an_answer_that_is_judged_again_is_one_attempt():
    """Strategy: an answer whose judgment a budget broke off is judged again, and is one attempt all the same."""
    client = ScriptedChatClient(["good"] * 9)

    async def asks(context: LoopContext) -> LoopEvaluation:
        await client.get_response([ChatMessage("user", "How good is it?")])
        return LoopEvaluation.stop()

    agent, session = RecordingAgent(), AgentSession()
    for calls in (1, 9):
        options = LoopAgentOptions(evaluation_mode="all", budget=LoopBudget(max_model_calls=calls), max_iterations=4)
        loop = LoopAgent(agent, [DelegateLoopEvaluator(asks), DelegateLoopEvaluator(asks), strategy()], options)
        result = LoopResult.of(await loop.run("go" if calls == 1 else None, session=session))
        said = [(each.number, word.details["rule"]) for each in result.iterations for word in each.evaluations[2:]]
    assert said[:2] == [(1, "validation_first"), (2, "validation_repeated")]


@pytest.mark.parametrize(
    "spoilt",
    [
        {"attempts": [{"iteration": 1}]},
        {"attempts": 3},
        {"used": {"tokens": 1, "more": 2}},
        {"attempts": [{"iteration": 1, "triggers": [], "quality": None, "strategy": "hope"}]},
        [],
    ],
)
async def test_what_was_remembered_and_is_spoilt_is_an_error(spoilt: Any):
    """Strategy: what the session keeps of attempts and can't be read is an error that says where."""
    agent = RecordingAgent("one", ASKS, "two")
    loop = LoopAgent(agent, strategy())
    session = LoopResult.of(await loop.run("go")).session
    assert session is not None
    session.state["agents_loop"]["memory"]["iteration_strategy"]["IterationStrategyLoopEvaluator"] = spoilt
    with pytest.raises(SessionStateError, match=r"context\.memory\['iteration_strategy'\]"):
        await loop.run(APPROVED, session=session)
