"""A loop within a loop that ends by a limit of the outer one: the outer run says so, and keeps the answer."""

from __future__ import annotations

import asyncio
from typing import Any

from fakes import RecordingAgent, ScriptedEvaluator, Way, always, says

from agents_loop import (
    AgentResponse,
    AgentSession,
    ChatClientAgent,
    ChatMessage,
    ChatResponse,
    DelegateLoopEvaluator,
    LoopAgent,
    LoopAgentOptions,
    LoopBudget,
    LoopContext,
    LoopEvaluation,
    LoopResult,
    StopReason,
    UsageDetails,
)
from agents_loop.testing import ScriptedChatClient


class Clock:
    """Goes on by so many seconds with each call of a model."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now

    def model(self, seconds: float = 0.5) -> ScriptedChatClient:
        def answer(*_: Any) -> ChatResponse:
            self.now += seconds
            return ChatResponse(f"draft at {self.now:g}", usage=UsageDetails(50, 10))

        return ScriptedChatClient(answer)


def nested(clock: Clock, *words: Any, budget: LoopBudget) -> tuple[LoopAgent, ScriptedEvaluator]:
    inner = LoopAgent(ChatClientAgent(clock.model()), always(LoopEvaluation.continue_("More.")))
    evaluator = says(*words)
    return LoopAgent(inner, evaluator, LoopAgentOptions(budget=budget, clock=clock)), evaluator


async def test_a_deadline_that_ends_the_inner_loop_ends_the_outer_run(invoke: Way):
    """U2: time that is up is not satisfied: nobody is asked, and the answer so far is kept."""
    outer, evaluator = nested(Clock(), budget=LoopBudget(deadline_s=1))
    result = LoopResult.of(await invoke(outer, "Go."))
    assert (result.stop_reason, result.output, evaluator.seen) == (StopReason.DEADLINE, "draft at 1", [])
    assert LoopResult.of(result.iterations[0].response).stop_reason is StopReason.DEADLINE


async def test_with_more_time_the_answer_is_judged(invoke: Way):
    """U3: a run that is resumed judges the answer that it had no time for; the agent is not run for it."""
    clock, session = Clock(), AgentSession()
    outer, _ = nested(clock, budget=LoopBudget(deadline_s=1))
    await invoke(outer, "Go.", session=session)
    longer = LoopAgentOptions(budget=LoopBudget(deadline_s=60), clock=clock)
    result = LoopResult.of(await invoke(LoopAgent(outer.inner_agent, says(), longer), [], session=session))
    assert (result.stop_reason, result.output, clock.now) == (StopReason.SATISFIED, "draft at 1", 1.0)


async def test_a_deadline_two_loops_out_ends_all(invoke: Way):
    """U2: a deadline of the outermost run is that of all within."""
    clock = Clock()
    middle, evaluator = nested(clock, budget=LoopBudget(max_model_calls=100))
    outer = LoopAgent(middle, ScriptedEvaluator(), LoopAgentOptions(budget=LoopBudget(deadline_s=1), clock=clock))
    result = LoopResult.of(await invoke(outer, "Go."))
    assert (result.stop_reason, result.output, evaluator.seen) == (StopReason.DEADLINE, "draft at 1", [])


async def test_what_was_kept_back_judges_the_inner_loops_answer(invoke: Way):
    """U2: tokens are kept back for the verdict on the answer at hand, so there it is asked for."""
    outer, evaluator = nested(Clock(), budget=LoopBudget(max_tokens=100))
    result = LoopResult.of(await invoke(outer, "Go."))
    assert (result.stop_reason, evaluator.asked_at) == (StopReason.SATISFIED, [1])
    outer, _ = nested(Clock(), "More.", budget=LoopBudget(max_tokens=100))
    assert LoopResult.of(await invoke(outer, "Go.")).stop_reason is StopReason.BUDGET_EXCEEDED


async def test_a_loop_within_that_did_not_begin_gives_no_answer(invoke: Way):
    """U2: where the outer budget did not allow a first call there is nothing to judge: the earlier answer stands."""
    client = Clock().model()
    inner = LoopAgent(ChatClientAgent(client), ScriptedEvaluator())

    async def work(messages: list[ChatMessage]) -> AgentResponse:
        await client.get_response(messages)
        return await inner.run(messages)

    options = LoopAgentOptions(budget=LoopBudget(max_model_calls=3))
    evaluator = says("More.")
    result = LoopResult.of(await invoke(LoopAgent(work, evaluator, options), "Go."))
    assert (result.stop_reason, result.output) == (StopReason.BUDGET_EXCEEDED, "draft at 1")
    assert (len(result.iterations), evaluator.asked_at) == (1, [1])


async def test_a_deadline_while_an_inner_judge_hangs_keeps_the_inner_answer(invoke: Way):
    """Law 25: what the agent had finished is the outer run's output and its best, whatever the judge was doing."""

    async def hang(context: LoopContext) -> bool:
        await asyncio.Event().wait()
        raise AssertionError("never")

    inner = LoopAgent(RecordingAgent("inner draft", "inner draft"), DelegateLoopEvaluator(hang))
    middle = LoopAgent(inner, says("More."))
    for agent, earlier in [(inner, ()), (middle, ())]:
        options = LoopAgentOptions(budget=LoopBudget(deadline_s=0.05))
        response = await invoke(LoopAgent(agent, says("More."), options), "Go.")
        result = LoopResult.of(response)
        assert (result.stop_reason, result.output) == (StopReason.DEADLINE, "inner draft")
        assert result.best is result.iterations[-1]
        assert result.iterations[-1].evaluations == earlier
        assert result.unfinished is not None
        assert response.text.endswith("inner draft")


async def test_an_earlier_answer_of_the_outer_run_is_followed_by_the_inner_one(invoke: Way):
    """Law 25: in a later iteration too the newest finished work is the output, and `return_best` goes by scores."""
    asked = 0

    async def hang_at_the_second(context: LoopContext) -> bool:
        nonlocal asked
        asked += 1
        if asked > 1:
            await asyncio.Event().wait()
        return False

    for return_best, output in ((False, "second"), (True, "first")):
        asked = 0
        inner = LoopAgent(RecordingAgent("first", "second"), DelegateLoopEvaluator(hang_at_the_second))
        options = LoopAgentOptions(budget=LoopBudget(deadline_s=0.05), return_best=return_best)
        loop = LoopAgent(inner, always(LoopEvaluation.continue_("More.", score=0.4)), options)
        result = LoopResult.of(await invoke(loop, "Go."))
        assert (result.stop_reason, result.output) == (StopReason.DEADLINE, output)
        assert [record.number for record in result.iterations] == [1, 2]


async def test_an_inner_loop_that_its_own_budget_stopped_leaves_nothing_behind(invoke: Way):
    """U6: its answer was taken: the next iteration runs it anew, and no later run takes its state for its own."""
    clock, session = Clock(), AgentSession()
    limited = LoopAgentOptions(budget=LoopBudget(max_tokens=100, keeps_back_verdict=False), clock=clock)
    inner = LoopAgent(ChatClientAgent(clock.model()), always(LoopEvaluation.continue_("More.")), limited)
    evaluator = says(LoopEvaluation.continue_(), LoopEvaluation.continue_())
    first = LoopResult.of(await invoke(LoopAgent(inner, evaluator), "Go.", session=session))
    inside = [LoopResult.of(record.response) for record in first.iterations]
    assert [result.stop_reason for result in inside] == [StopReason.BUDGET_EXCEEDED] * 3
    assert all(result.usage is not None and result.usage.input_token_count for result in inside)
    assert session.state == {}
    again = LoopResult.of(await invoke(LoopAgent(inner, says()), [], session=session))
    assert [record.number for record in again.iterations] == [1]
