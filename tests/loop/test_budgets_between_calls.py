"""Budgets where no call is under way: before the first, between two iterations, and in a run that goes on."""

from __future__ import annotations

import asyncio
import itertools
from typing import Any

import pytest
from fakes import WAYS, RecordingAgent, ScriptedEvaluator, Way

from agents_loop import (
    AgentSession,
    AIJudgeLoopEvaluator,
    ChatClientAgent,
    ChatResponse,
    DelegateLoopEvaluator,
    LoopAgent,
    LoopAgentOptions,
    LoopBudget,
    LoopContext,
    LoopEvaluation,
    LoopResult,
    SessionStateError,
    StopReason,
    UsageDetails,
)
from agents_loop.testing import ScriptedChatClient

MORE = '{"gapAnalysis": "more", "answered": false}'


@pytest.fixture(params=WAYS, ids=["run", "stream"])
def invoke(request: pytest.FixtureRequest) -> Way:
    return request.param


def result_of(response: Any) -> LoopResult:
    result = LoopResult.of(response)
    assert result is not None
    return result


def writer() -> ScriptedChatClient:
    numbers = itertools.count(1)
    return ScriptedChatClient(lambda *_: ChatResponse(f"draft {next(numbers)}", usage=UsageDetails(9, 1)))


def asks_at(number: int) -> DelegateLoopEvaluator:
    """Wants more until this iteration, and then asks a person."""

    def evaluate(context: LoopContext) -> LoopEvaluation:
        is_early = context.iteration < number
        return LoopEvaluation.continue_("more") if is_early else LoopEvaluation.ask("Which year?", "name it")

    return DelegateLoopEvaluator(evaluate)


class HangingSessions(RecordingAgent):
    """Makes so many sessions, and hangs at the next."""

    def __init__(self, most: int) -> None:
        super().__init__()
        self.most = most

    async def create_session(self) -> AgentSession:
        self.most -= 1
        if self.most < 0:
            await asyncio.Event().wait()
        return await super().create_session()


async def hang(_: AgentSession) -> None:
    await asyncio.Event().wait()


@pytest.mark.parametrize("streaming", [False, True])
@pytest.mark.parametrize("hangs", ["session", "callback"])
async def test_a_session_that_is_never_made_does_not_hang_the_run(invoke: Way, hangs: str, *, streaming: bool):
    """U2: the deadline holds before the first call too, however the events are read; then there is no answer."""
    agent, callback = (HangingSessions(0), None) if hangs == "session" else (RecordingAgent(), hang)
    options = LoopAgentOptions(budget=LoopBudget(deadline_s=0.1), session_created_callback=callback)
    loop = LoopAgent(agent, ScriptedEvaluator(), options)

    result = result_of(await invoke(loop))
    assert (result.stop_reason, result.output, result.session) == (StopReason.DEADLINE, "", None)

    async with loop.events("go", streaming=streaming) as events:
        async for _ in events:
            pass
    assert events.result is not None
    assert events.result.stop_reason == StopReason.DEADLINE


async def test_a_session_that_is_never_replaced_does_not_hang_the_run(invoke: Way):
    """U2: with the answer before it; a resume goes on with what that answer lacks."""
    agent = HangingSessions(1)
    options = LoopAgentOptions(fresh_context_per_iteration=True, budget=LoopBudget(deadline_s=0.1))
    wish = LoopEvaluation.continue_("name the year")
    first = result_of(await invoke(LoopAgent(agent, ScriptedEvaluator([wish]), options)))
    assert (first.stop_reason, first.output) == (StopReason.DEADLINE, "reply 1")

    second = result_of(await LoopAgent(agent, ScriptedEvaluator([LoopEvaluation.stop()])).run(session=first.session))

    assert (second.stop_reason, second.output) == (StopReason.SATISFIED, "reply 2")
    assert "name the year" in second.iterations[0].input[-1].text


@pytest.mark.parametrize("return_best", [False, True])
async def test_a_persons_answer_that_nothing_is_left_for(*, return_best: bool):
    """U3: the run ends with the answer at hand, and a larger budget goes on with the person's, at the same count."""

    def loop(calls: int) -> LoopAgent:
        budget = LoopBudget(max_model_calls=calls)
        return LoopAgent(agent, asks_at(3), LoopAgentOptions(budget=budget, max_iterations=4, return_best=return_best))

    agent = ChatClientAgent(writer())
    asked = result_of(await loop(3).run("go"))
    ended = result_of(await loop(3).run("2024", session=asked.session))
    assert (ended.stop_reason, ended.output) == (StopReason.BUDGET_EXCEEDED, "draft 3")

    more = result_of(await loop(9).run(session=ended.session))

    assert [record.number for record in more.iterations] == [4]
    assert [message.text for message in more.iterations[0].input] == ["name it", "2024"]
    assert more.stop_reason == StopReason.MAX_ITERATIONS


async def test_a_budget_for_resumes_alone():
    """U3: `resume_budget` needs no `budget` beside it, and each resume has it anew."""
    options = LoopAgentOptions(resume_budget=LoopBudget(max_model_calls=1))
    agent = ChatClientAgent(writer())
    loop = LoopAgent(agent, asks_at(3), options)
    first = result_of(await loop.run("go"))
    assert first.stop_reason == StopReason.PENDING_INPUT

    second = result_of(await loop.run("2024", session=first.session))
    assert (second.stop_reason, second.output) == (StopReason.PENDING_INPUT, "draft 4")

    third = result_of(await LoopAgent(agent, asks_at(9), options).run("2025", session=second.session))
    assert (third.stop_reason, third.output) == (StopReason.BUDGET_EXCEEDED, "draft 5")


async def test_the_verdict_of_an_answer_from_before_has_that_answers_number():
    """The ledger: a call belongs to the iteration whose answer it is about, also in a run that goes on."""

    def loop(calls: int) -> LoopAgent:
        budget = LoopBudget(max_model_calls=calls, keeps_back_verdict=False)
        return LoopAgent(agent, judge, LoopAgentOptions(budget=budget))

    agent = ChatClientAgent(writer())
    judge = AIJudgeLoopEvaluator(ScriptedChatClient([MORE] * 9))
    first = result_of(await loop(3).run("go"))

    second = result_of(await loop(5).run(session=first.session))

    assert [(entry.iteration, entry.role) for entry in second.ledger] == [(2, "evaluator"), (3, "agent")]


@pytest.mark.parametrize(
    "spent",
    [
        {"bogus": 1},
        [],
        {"spent": {"tokens": "9"}, "on_verdicts": {}, "verdicts": 0},
        {"spent": {"tokens": -9}, "on_verdicts": {}, "verdicts": 0},
        {"spent": {"cost_usd": float("nan")}, "on_verdicts": {}, "verdicts": 0},
        {"spent": {"elapsed_s": 10**400}, "on_verdicts": {}, "verdicts": 0},
        {"spent": {"calls": True}, "on_verdicts": {}, "verdicts": 0},
        {"spent": {}, "on_verdicts": {}, "verdicts": None},
    ],
)
async def test_amounts_that_cannot_be_read_are_an_error(spent: Any):
    """E2: never "nothing was spent", and no accident either."""
    loop = LoopAgent(ChatClientAgent(writer()), asks_at(1), LoopAgentOptions(budget=LoopBudget(max_tokens=1000)))
    session = result_of(await loop.run("go")).session
    assert session is not None
    session.state["agents_loop"]["spent"] = spent

    with pytest.raises(SessionStateError, match="had spent"):
        await loop.run("2024", session=session)
