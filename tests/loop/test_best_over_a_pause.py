"""What a run remembers while it waits: its best answer, and which criteria were met."""

from __future__ import annotations

import json
from typing import Any

import pytest
from fakes import WAYS, RecordingAgent, ScriptedEvaluator, Way, says

from agents_loop import (
    AgentResponse,
    AgentSession,
    ChatClientAgent,
    ChatMessage,
    ChatResponse,
    FunctionCallContent,
    LoopAgent,
    LoopAgentOptions,
    LoopBudget,
    LoopContext,
    LoopEvaluation,
    LoopResult,
    PairwiseJudge,
    PreferenceLoopEvaluator,
    RubricCriterion,
    RubricLoopEvaluator,
    SessionStateError,
    StopReason,
    ToolApprovalRequestContent,
    ToolApprovalResponseContent,
    UsageDetails,
    check,
)
from agents_loop.testing import ScriptedChatClient

CAPPED: dict[str, Any] = {"max_iterations": 3, "evaluate_final_iteration": True, "return_best": True}


@pytest.fixture(params=WAYS, ids=["run", "stream"])
def invoke(request: pytest.FixtureRequest) -> Way:
    return request.param


async def stored(agent: RecordingAgent, session: AgentSession | None) -> AgentSession:
    """The session, as another process would read it."""
    assert session is not None
    return await agent.deserialize_session(json.loads(json.dumps(await agent.serialize_session(session))))


def scored(score: float) -> LoopEvaluation:
    return LoopEvaluation.continue_("more", score=score)


async def test_the_best_answer_before_a_question(invoke: Way):
    """U3: a run that a person continues returns the best answer of its whole life, not the best since."""
    agent = RecordingAgent("good", "asks", "poor")
    ask = LoopEvaluation.ask("Which year?", score=0.5)
    loop = LoopAgent(agent, says(scored(0.9), ask, scored(0.2)), LoopAgentOptions(**CAPPED))
    first = LoopResult.of(await invoke(loop))
    response = await invoke(loop, "2024", session=await stored(agent, first.session))
    result = LoopResult.of(response)
    assert (first.output, result.stop_reason, result.output) == ("asks", StopReason.MAX_ITERATIONS, "good")
    assert [record.number for record in result.iterations] == [3]
    assert (result.best, result.returned) == (result.best_before, result.best_before)
    assert (result.best.number, result.best.score) == (1, 0.9)
    assert response.text == "good"
    assert json.loads(result.to_json())["best"] == 1


async def test_a_better_answer_after_the_pause(invoke: Way):
    """U3: where a later answer is better it is the best, and the run gives it."""
    agent = RecordingAgent("good", "better")
    loop = LoopAgent(agent, says(LoopEvaluation.ask("Which?", score=0.5), scored(0.6), scored(0.1)))
    session = await stored(agent, LoopResult.of(await invoke(loop)).session)
    two = LoopAgent(agent, loop.evaluators, LoopAgentOptions(**CAPPED | {"max_iterations": 2}))
    result = LoopResult.of(await invoke(two, "This one.", session=session))
    assert (result.output, result.best.number) == ("better", 2)


async def test_the_best_answer_before_an_approval(invoke: Way):
    """U3: the same where a call waited for approval; the response that asks for it is no answer."""
    call = ToolApprovalRequestContent("r1", FunctionCallContent("c1", "send", {}))
    asks = AgentResponse([ChatMessage("assistant", [call])])
    agent = RecordingAgent("good", asks, "poor")
    loop = LoopAgent(agent, says(scored(0.9), "not asked", scored(0.2)), LoopAgentOptions(**CAPPED))
    first = LoopResult.of(await invoke(loop))
    assert first.stop_reason is StopReason.PENDING_APPROVAL
    approved = ChatMessage("user", [ToolApprovalResponseContent("r1", True, call.tool_call)])
    result = LoopResult.of(await invoke(loop, approved, session=await stored(agent, first.session)))
    assert (result.output, result.best.number) == ("good", 1)


async def test_the_best_answer_over_two_pauses(invoke: Way):
    """U3: a run that waits twice still knows the best answer from before the first pause."""
    session, asked = AgentSession(), LoopEvaluation.ask("Go on?", score=0.4)
    agent = RecordingAgent("good", "poor", "worse")
    loop = LoopAgent(
        agent, says(LoopEvaluation.ask("Go on?", score=0.9), asked, scored(0.2)), LoopAgentOptions(**CAPPED)
    )
    await invoke(loop, session=session)
    second = LoopResult.of(await invoke(loop, "Yes.", session=session))
    assert (second.stop_reason, second.output, second.best.number) == (StopReason.PENDING_INPUT, "poor", 1)
    third = LoopResult.of(await invoke(loop, "Yes.", session=session))
    assert (third.stop_reason, third.output) == (StopReason.MAX_ITERATIONS, "good")


async def test_the_best_answer_before_a_larger_budget():
    """U3: the same where a budget had stopped the run, and a larger one continues it."""
    texts = iter(["good", "poor", "worse"])
    client = ScriptedChatClient(lambda *_: ChatResponse(next(texts), usage=UsageDetails(50, 10)))
    agent, words, session = ChatClientAgent(client), [scored(0.9), scored(0.3), scored(0.2)], AgentSession()
    small = LoopAgentOptions(**CAPPED, budget=LoopBudget(max_tokens=100))
    first = LoopResult.of(await LoopAgent(agent, says(*words), small).run("x", session=session))
    assert (first.stop_reason, first.output) == (StopReason.BUDGET_EXCEEDED, "good")
    larger = LoopAgentOptions(**CAPPED, budget=LoopBudget(max_tokens=1000))
    result = LoopResult.of(await LoopAgent(agent, says(*words), larger).run(session=session))
    assert (result.stop_reason, result.output) == (StopReason.MAX_ITERATIONS, "good")


@pytest.mark.parametrize(
    ("path", "given"),
    [
        (("best", "evaluations", 0, "score"), "0.9"),
        (("best", "evaluations", 0, "score"), 3),
        (("best", "finish_reason"), ["stop"]),
        (("question", "feedback"), 3),
        (("question", "text"), None),
    ],
)
async def test_what_was_kept_and_is_spoilt_is_an_error(path: tuple[Any, ...], given: Any):
    """A session's state that can't be read is an error that says where, before the agent is run."""
    agent = RecordingAgent("draft")
    loop = LoopAgent(agent, says(LoopEvaluation.ask("Which year?", "Name it.", score=0.5)))
    session = await stored(agent, LoopResult.of(await loop.run("go")).session)
    spoilt: Any = session.state["agents_loop"]
    for key in path[:-1]:
        spoilt = spoilt[key]
    spoilt[path[-1]] = given
    with pytest.raises(SessionStateError, match="agents_loop"):
        await loop.run("2024", session=session)
    assert len(agent.calls) == 1


async def test_a_half_judged_answer_is_not_the_best(invoke: Way):
    """U3: what one of two evaluators said before the budget ended is no verdict: the answer is judged again."""
    client = ScriptedChatClient(["fair"] * 9)

    class AsksTwice(ScriptedEvaluator):
        async def evaluate(self, context: LoopContext) -> LoopEvaluation:
            for _ in range(2):
                await client.get_response([ChatMessage("user", "How good is it?")])
            return await super().evaluate(context)

    evaluators = [says(LoopEvaluation.stop(score=1.0), scored(0.6)), AsksTwice([scored(0.0)])]
    agent, session, options = RecordingAgent("first", "second"), AgentSession(), {**CAPPED, "max_iterations": 2}
    for calls, reason in ((1, StopReason.BUDGET_EXCEEDED), (9, StopReason.MAX_ITERATIONS)):
        loop = LoopAgent(agent, evaluators, LoopAgentOptions(**options, budget=LoopBudget(max_model_calls=calls)))
        result = LoopResult.of(await invoke(loop, "go" if calls == 1 else None, session=session))
        assert result.stop_reason == reason
    assert (result.best.number, result.best.score, result.output) == (2, 0.6, "second")


async def test_a_criterion_that_was_met_before_the_pause(invoke: Way):
    """Rubric: what an answer before the pause met and one after it does not is named as a regression."""

    def reply(price: str, dates: str) -> str:
        verdicts = {"price": {"reason": "", "verdict": price}, "dates": {"reason": "", "verdict": dates}}
        return json.dumps({"criteria": verdicts, "answered": False})

    criteria = [RubricCriterion("price", "It names a price."), RubricCriterion("dates", "It names the dates.")]

    def rubric(*replies: str) -> RubricLoopEvaluator:
        return RubricLoopEvaluator(ScriptedChatClient(replies), criteria)

    agent = RecordingAgent("EUR 5", "in May", "in June")
    options = LoopAgentOptions(**CAPPED | {"max_iterations": 2}, evaluation_mode="all")
    has_price = check("has a price", lambda text: "EUR" in text)
    asks = says(LoopEvaluation.ask("Which?"), None)
    first = LoopResult.of(await invoke(LoopAgent(agent, [rubric(reply("met", "not_met")), has_price, asks], options)))
    assert first.stop_reason is StopReason.PENDING_INPUT
    session = await stored(agent, first.session)
    has_price = check("has a price", lambda text: "EUR" in text)
    loop = LoopAgent(agent, [rubric(reply("not_met", "not_met")), has_price, asks], options)
    judged, checked, _ = LoopResult.of(await invoke(loop, "The first.", session=session)).iterations[-1].evaluations
    assert [each["regressed"] for each in judged.details["criteria"]] == [True, False]
    assert "It names a price (an earlier response met this)" in judged.feedback
    assert checked.details["regressed"] is True
    assert "an earlier answer passed this" in checked.feedback


@pytest.mark.parametrize("spoilt", [3, {"check has a price": 3}, {"check has a price": {"has a price": "1"}}])
async def test_what_was_met_and_is_spoilt_is_an_error(spoilt: Any):
    """A session in which what was met can't be read is an error that says where."""
    agent = RecordingAgent("EUR 5", "in May")
    has_price = check("has a price", lambda text: "EUR" in text)
    loop = LoopAgent(agent, [has_price, says(LoopEvaluation.ask("Which?"))])
    session = LoopResult.of(await loop.run("go")).session
    session.state["agents_loop"]["memory"]["met_at"] = spoilt
    with pytest.raises(SessionStateError, match=r"context\.memory\['met_at'\]"):
        await loop.run("2024", session=session)


async def test_checks_of_one_name_are_not_taken_for_each_other():
    """Checks: what one check saw passed is no regression of another one that has its name."""
    agent = RecordingAgent("b", "b", "b")
    checks = [check("same", lambda text: "a" in text), check("same", lambda text: "b" in text)]
    loop = LoopAgent(agent, checks, LoopAgentOptions(max_iterations=3, evaluation_mode="all"))
    result = LoopResult.of(await loop.run("x"))
    words = result.iterations[1].evaluations
    assert [word.details.get("regressed") for word in words] == [None, None]


async def test_a_comparison_goes_on_after_the_pause(invoke: Way):
    """Preference: the first answer after a pause is compared with the best one before it."""
    replies = ['{"better": "first"}', '{"better": "second"}'] * 4
    judge = PreferenceLoopEvaluator(PairwiseJudge(ScriptedChatClient(lambda *_: replies.pop(0))))
    agent = RecordingAgent("good", "poor")
    options = LoopAgentOptions(**CAPPED | {"max_iterations": 2}, evaluation_mode="all")
    loop = LoopAgent(agent, [judge, says(LoopEvaluation.ask("Which?"), "more")], options)
    session = await stored(agent, LoopResult.of(await invoke(loop)).session)
    result = LoopResult.of(await invoke(loop, "That.", session=session))
    assert result.iterations[-1].evaluations[0].details["preference"]["with"] == 1


async def test_what_evaluators_remember_survives_the_pause(invoke: Way):
    """U3: `context.memory` is there again after the pause, `context.additional_properties` is not."""
    seen: list[Any] = []

    class Remembers(ScriptedEvaluator):
        async def evaluate(self, context: LoopContext) -> LoopEvaluation:
            seen.append((dict(context.memory), dict(context.additional_properties), context.best_before))
            context.memory["mine"] = context.additional_properties["mine"] = context.iteration
            return await super().evaluate(context)

    agent = RecordingAgent("a", "b")
    loop = LoopAgent(agent, Remembers([LoopEvaluation.ask("Which?")]))
    session = await stored(agent, LoopResult.of(await invoke(loop)).session)
    await invoke(loop, "That.", session=session)
    assert seen[0] == ({}, {}, None)
    memory, bag, best_before = seen[1]
    assert (memory, bag, best_before.number) == ({"mine": 1}, {}, 1)
