"""Budgets: checked before each call, shared by all that is within a run, and resumed with larger ones."""

from __future__ import annotations

import asyncio
import math
import pickle
from collections.abc import Callable
from typing import Any

import pytest
from fakes import HangingEvaluator, RecordingAgent, ScriptedEvaluator

from agents_loop import (
    AgentSession,
    AIJudgeLoopEvaluator,
    ChatClientAgent,
    ChatMessage,
    ChatResponse,
    CompletionMarkerLoopEvaluator,
    ConfigurationError,
    DelegateLoopEvaluator,
    FunctionCallContent,
    LoopAgent,
    LoopAgentOptions,
    LoopBudget,
    LoopContext,
    LoopEvaluation,
    LoopResult,
    ModelPrice,
    PanelLoopEvaluator,
    SessionStateError,
    StopReason,
    ToolApprovalRequestContent,
    ToolApprovalResponseContent,
    UsageDetails,
    tool,
)
from agents_loop.metering.spending import LimitReachedError, tokens_of
from agents_loop.testing import ScriptedChatClient

MORE = '{"gapAnalysis": "more", "answered": false}'
DONE = '{"gapAnalysis": "", "answered": true}'
PRICE = ModelPrice(input_usd_per_million=1_000_000, output_usd_per_million=1_000_000)
"""A dollar a token."""


def model(*texts: Any, tokens: int = 100, model_id: str | None = "m") -> ScriptedChatClient:
    """Answers with the texts, the last of them again and again; each reply uses so many tokens."""
    said = iter(texts)
    last: list[Any] = [None]

    def answer(*_: Any) -> Any:
        last[0] = next(said, last[0])
        if isinstance(last[0], str):
            return ChatResponse(last[0], usage=UsageDetails(tokens - 1, 1))
        return last[0]

    return ScriptedChatClient(answer, model_id=model_id)


class Run:
    """A worker and a judge, each call of 100 and 50 tokens by default, and a budget."""

    def __init__(self, budget: Any, *, worker: Any = None, judge: Any = None, **options: Any) -> None:
        self.worker = model("draft") if worker is None else worker
        self.judge = model(MORE, tokens=50) if judge is None else judge
        self.agent = ChatClientAgent(self.worker)
        self.options = {"max_iterations": 50, **options}
        self.budget = budget

    def loop(self, budget: Any = None, **options: Any) -> LoopAgent:
        made = LoopAgentOptions(budget=budget or self.budget, **{**self.options, **options})
        return LoopAgent(self.agent, AIJudgeLoopEvaluator(self.judge), made)

    async def result(self, *messages: str, budget: Any = None, session: Any = None, **options: Any) -> LoopResult:
        response = await self.loop(budget, **options).run(list(messages), session=session)
        result = LoopResult.of(response)
        assert result is not None
        assert response.text == "\n".join(
            [m.text for r in result.iterations for m in (*r.on_behalf_of, *r.response.messages)]
        )
        return result


async def test_a_budget_ends_the_run_with_its_answer_and_says_which():
    """U2: a normal end, by the limit that was reached first; no exception."""
    result = await Run(LoopBudget(max_tokens=400)).result("go")

    assert (result.stop_reason, result.output) == (StopReason.BUDGET_EXCEEDED, "draft")
    assert result.stop_detail == (
        "budget.max_tokens is 400, and the run has used 400 tokens in 5 calls: the next call was not made"
    )


@pytest.mark.parametrize(
    ("limit", "calls"),
    [(149, 2), (150, 2), (200, 2), (201, 3), (300, 4), (350, 4), (351, 5), (450, 6)],
)
async def test_what_the_verdict_will_need_is_kept_back(limit: int, calls: int):
    """U2: after a verdict of 50 tokens the agent is run only if 50 are left beside what its call begins with."""
    result = await Run(LoopBudget(max_tokens=limit)).result("go")

    assert result.stop_reason == StopReason.BUDGET_EXCEEDED
    assert len(result.ledger) == calls


async def test_keeping_back_can_be_switched_off():
    """Then a call begins as long as anything is left."""
    result = await Run(LoopBudget(max_tokens=151, keeps_back_verdict=False)).result("go")
    assert len(result.ledger) == 3


async def test_nothing_is_kept_back_where_there_will_be_no_verdict():
    """The answer that hits the cap is not judged by default (law 5)."""
    result = await Run(LoopBudget(max_model_calls=3), max_iterations=2).result("go")
    assert (result.stop_reason, len(result.ledger)) == (StopReason.MAX_ITERATIONS, 3)


@pytest.mark.parametrize(("limit", "calls"), [(1, 1), (2, 2), (3, 2), (4, 4)])
async def test_calls_are_counted_when_they_begin(limit: int, calls: int):
    """U2: so there are never more; one for the verdict is kept back."""
    result = await Run(LoopBudget(max_model_calls=limit)).result("go")
    assert (result.stop_reason, len(result.ledger)) == (StopReason.BUDGET_EXCEEDED, calls)


async def test_money_is_counted_by_the_models_prices():
    """U2: a dollar a token, $320: after 150 and 150, what is left does not cover a verdict."""
    result = await Run(LoopBudget(max_cost_usd=320), prices={"m": PRICE}).result("go")
    assert (result.stop_reason, result.ledger.total.cost_usd) == (StopReason.BUDGET_EXCEEDED, 300)


@pytest.mark.parametrize(("usage", "runs"), [(UsageDetails(None, None, 10), 3), (UsageDetails(9, None, 10), 9)])
async def test_a_sum_alone_is_counted_as_output(usage: UsageDetails, runs: int):
    """U2: a provider that reports no more than a total does not break a money budget; it is counted at its dearest."""
    reply = ChatResponse("draft", usage=usage)
    price = ModelPrice(input_usd_per_million=0, output_usd_per_million=1_000_000)
    options = LoopAgentOptions(budget=LoopBudget(max_cost_usd=30), prices={"m": price}, max_iterations=9)
    marker = CompletionMarkerLoopEvaluator("DONE")
    result = LoopResult.of(await LoopAgent(ChatClientAgent(model(reply)), marker, options).run("go"))
    assert result is not None
    assert (result.output, len(result.iterations)) == ("draft", runs)
    assert result.ledger.total.cost_usd is None


@pytest.mark.parametrize(("limit", "said"), [(1_234_567.5, "$1,234,567.5"), (150, "$150"), (0.25, "$0.25")])
async def test_a_limit_is_told_as_it_was_given(limit: float, said: str):
    """U2: not rounded, so that it is found again where it was set."""
    spent = int(limit) + 1
    draft = model(ChatResponse("draft", usage=UsageDetails(spent, 0)))
    result = await Run(LoopBudget(max_cost_usd=limit), worker=draft, prices={"m": PRICE}).result("go")
    assert str(result.stop_detail).startswith(f"budget allows {said}, and the run has spent ${spent}.000000")


REASONED = UsageDetails(20, 5, 125, reasoning_token_count=100)


@pytest.mark.parametrize("limits", [{"max_tokens": 300}, {"max_cost_usd": 300}])
async def test_reasoning_beside_the_output_is_counted_and_paid_for(limits: dict[str, Any]):
    """U2: some providers count reasoning in the total alone; what it costs is output all the same."""
    prices = {"m": PRICE}
    options = LoopAgentOptions(budget=LoopBudget(**limits), prices=prices, max_iterations=9)
    draft = ChatClientAgent(model(ChatResponse("draft", usage=REASONED)))
    result = LoopResult.of(await LoopAgent(draft, CompletionMarkerLoopEvaluator("DONE"), options).run("go"))
    assert result is not None
    assert (len(result.ledger), result.ledger.total.cost_usd) == (3, 375)
    assert result.ledger[0].usage == REASONED


def test_a_total_that_is_less_than_its_parts_says_nothing():
    """U2: a server that always writes a total of 0 makes no call smaller."""
    counted = [UsageDetails(20, 5, 0), UsageDetails(20, None, 0), UsageDetails(None, 5, 0)]
    assert [tokens_of(usage) for usage in counted] == [(25, 0), (20, 0), (5, 0)]


async def test_tools_stop_at_the_budget_too():
    """U2: checked before each round; the unfinished iteration is none, the one before it is the answer."""
    ran: list[int] = []

    @tool
    def look() -> str:
        """Look."""
        ran.append(1)
        return "x"

    call = ChatResponse([ChatMessage("assistant", [FunctionCallContent("1", "look", {})])], usage=UsageDetails(99, 1))
    worker = model("draft", call)
    run = Run(LoopBudget(max_tokens=500), worker=worker)
    run.agent = ChatClientAgent(worker, tools=[look])

    result = await run.result("go")

    assert (result.stop_reason, result.output, len(result.iterations)) == (StopReason.BUDGET_EXCEEDED, "draft", 1)
    assert result.ledger.total.usage == UsageDetails(99 * 4 + 49, 5)
    assert len(ran) == 3


async def test_a_verdict_that_is_free_is_still_heard():
    """A budget stops calls, not checks: an answer that passes one is satisfied, whatever it cost."""
    loop = LoopAgent(
        ChatClientAgent(model("DONE")),
        CompletionMarkerLoopEvaluator("DONE"),
        LoopAgentOptions(budget=LoopBudget(max_tokens=1)),
    )
    result = LoopResult.of(await loop.run("go"))
    assert result is not None
    assert result.stop_reason == StopReason.SATISFIED


@pytest.mark.parametrize("streaming", [False, True])
async def test_a_budget_that_allows_nothing_gives_an_empty_answer(*, streaming: bool):
    """The run has a result, also if it was not allowed its first call: of a run that is resumed with nothing left."""
    run = Run(LoopBudget(max_model_calls=1))
    first = await run.result("go")
    loop = run.loop(LoopBudget(max_model_calls=1))
    response = await (
        loop.run_streaming(session=first.session).final_response() if streaming else loop.run(session=first.session)
    )
    result = LoopResult.of(response)
    assert result is not None
    assert (result.stop_reason, result.output, len(run.judge.calls)) == (StopReason.BUDGET_EXCEEDED, "draft", 0)


# --- shared


async def test_loops_within_a_loop_draw_on_one_budget():
    """U2: the inner loop ends where the outer budget does, and its answer is the outer loop's."""
    inner = LoopAgent(ChatClientAgent(model("draft")), AIJudgeLoopEvaluator(model(MORE, tokens=50)))
    outer = LoopAgent(inner, AIJudgeLoopEvaluator(model(MORE)), LoopAgentOptions(budget=LoopBudget(max_tokens=400)))

    result = LoopResult.of(await outer.run("go"))

    assert result is not None
    assert (result.stop_reason, result.output) == (StopReason.BUDGET_EXCEEDED, "draft")
    within = LoopResult.of(result.iterations[0].response)
    assert within is not None
    assert within.stop_reason == StopReason.BUDGET_EXCEEDED
    assert result.ledger.total.calls == 5


async def test_an_inner_budget_ends_the_inner_loop_alone():
    """E4: the outer loop judges what the inner one could afford."""
    options = LoopAgentOptions(budget=LoopBudget(max_tokens=100))
    inner = LoopAgent(ChatClientAgent(model("draft")), AIJudgeLoopEvaluator(model(MORE)), options)
    outer = LoopAgent(inner, AIJudgeLoopEvaluator(model(DONE)), LoopAgentOptions(budget=LoopBudget(max_tokens=9000)))

    result = LoopResult.of(await outer.run("go"))

    assert result is not None
    assert (result.stop_reason, result.output) == (StopReason.SATISFIED, "draft")


async def test_evaluators_at_once_go_over_by_the_calls_in_flight():
    """U2: three judges begin together, and no further call does."""

    async def suspended(*_: Any) -> ChatResponse:
        await asyncio.sleep(0)
        return ChatResponse(MORE, usage=UsageDetails(99, 1))

    judges = PanelLoopEvaluator([AIJudgeLoopEvaluator(ScriptedChatClient(suspended)) for _ in range(3)])
    options = LoopAgentOptions(budget=LoopBudget(max_tokens=101))
    result = LoopResult.of(await LoopAgent(ChatClientAgent(model("draft")), judges, options).run("go"))
    assert result is not None
    assert (result.stop_reason, result.ledger.total.calls) == (StopReason.BUDGET_EXCEEDED, 4)


async def test_evaluators_that_report_are_not_asked_once_nothing_is_left():
    """U2: calls that are not seen are counted afterwards; from then on such an evaluator needs a budget, too."""
    asked: list[int] = []

    async def theirs(context: LoopContext) -> bool:
        asked.append(context.iteration)
        context.report_usage(UsageDetails(50, 0))
        return True

    options = LoopAgentOptions(budget=LoopBudget(max_tokens=160, keeps_back_verdict=False))
    agent = RecordingAgent(usage=UsageDetails(100, 0))
    result = LoopResult.of(await LoopAgent(agent, DelegateLoopEvaluator(theirs), options).run("go"))
    assert result is not None
    assert (result.stop_reason, len(agent.calls), asked) == (StopReason.BUDGET_EXCEEDED, 2, [1])


# --- money that can't be counted


@pytest.mark.parametrize("model_id", ["of-nobody", None])
@pytest.mark.parametrize("who", ["agent", "judge"])
async def test_money_without_a_price_is_an_error_before_the_first_call(who: str, model_id: str | None):
    """U2: of the agent's model, and of a judge's before the agent has spent anything."""
    named = {"worker": model("draft", model_id="gpt-4o"), "judge": model(MORE, model_id="gpt-4o")}
    named["worker" if who == "agent" else "judge"] = model("x", model_id=model_id)
    run = Run(LoopBudget(max_cost_usd=1), **named)
    with pytest.raises(
        ConfigurationError, match="'of-nobody' is not known" if model_id else "does not say which model"
    ):
        await run.result("go")
    assert run.worker.calls == run.judge.calls == []


async def test_a_reply_may_name_the_model_where_prices_are_given():
    """A client that does not say its model is asked; a reply of a model without a price ends the run with an error."""
    reply = ChatResponse("draft", usage=UsageDetails(1, 1), model_id="named")
    run = Run(LoopBudget(max_cost_usd=9), worker=model(reply, model_id=None), prices={"m": PRICE, "named": PRICE})
    assert (await run.result("go")).ledger[0].cost_usd == 2
    run = Run(LoopBudget(max_cost_usd=9), worker=model(reply, model_id=None), prices={"m": PRICE})
    with pytest.raises(ConfigurationError, match="'named' is not known") as caught:
        await run.result("go")
    result = LoopResult.of(caught.value)
    assert result is not None
    assert result.ledger.total.calls == 1


# --- time


@pytest.mark.parametrize("streaming", [False, True])
async def test_a_call_under_way_at_the_deadline_is_cancelled(*, streaming: bool):
    """U2: a call that hangs does not hang the run; the answer before it is the run's."""
    agent = RecordingAgent(hang_at=2)
    options = LoopAgentOptions(budget=LoopBudget(deadline_s=0.2))
    loop = LoopAgent(agent, ScriptedEvaluator([LoopEvaluation.continue_("more")] * 3), options)

    response = await (loop.run_streaming("go").final_response() if streaming else loop.run("go"))

    result = LoopResult.of(response)
    assert result is not None
    assert (result.stop_reason, result.output) == (StopReason.DEADLINE, "reply 1")
    assert result.stop_detail == "budget allows 0.2 s, and that time is up"
    assert agent.closed == [1, 2]


async def test_an_evaluator_under_way_at_the_deadline_is_cancelled():
    """U2: whatever hangs."""
    hanging = HangingEvaluator()
    options = LoopAgentOptions(budget=LoopBudget(deadline_s=0.2))
    result = LoopResult.of(await LoopAgent(RecordingAgent(), hanging, options).run("go"))
    assert result is not None
    assert (result.stop_reason, result.output) == (StopReason.DEADLINE, "reply 1")
    assert isinstance(hanging.ended_by, asyncio.CancelledError)


async def test_the_deadline_is_by_the_injected_clock():
    """Each look at the clock is a second later: no iteration begins after the tenth."""
    now = iter(range(1000))
    options = LoopAgentOptions(budget=LoopBudget(deadline_s=10), clock=lambda: float(next(now)), max_iterations=100)
    loop = LoopAgent(RecordingAgent(), ScriptedEvaluator([LoopEvaluation.continue_("more")] * 100), options)
    result = LoopResult.of(await loop.run("go"))
    assert result is not None
    assert result.stop_reason == StopReason.DEADLINE
    assert 0 < len(result.iterations) < 10


async def test_a_timeout_of_the_callers_own_is_no_deadline():
    """A `TimeoutError` that somebody else raised is raised on."""
    options = LoopAgentOptions(budget=LoopBudget(deadline_s=60))
    with pytest.raises(TimeoutError, match="theirs"):
        await LoopAgent(RecordingAgent(TimeoutError("theirs")), ScriptedEvaluator(), options).run("go")


# --- resuming


async def test_a_run_goes_on_with_a_larger_budget_from_where_it_was():
    """U3: without a message, in its session; nothing is asked twice, and the life's budget counts what was spent."""
    run = Run(LoopBudget(max_tokens=300))
    first = await run.result("go")
    assert (len(run.worker.calls), len(run.judge.calls)) == (2, 2)

    second = await run.result(session=first.session, budget=LoopBudget(max_tokens=600))

    assert (second.stop_reason, [record.number for record in second.iterations]) == (StopReason.BUDGET_EXCEEDED, [3, 4])
    assert [message.text for message in run.worker.calls[2].messages][-1] == second.iterations[0].input[-1].text
    assert "more" in second.iterations[0].input[-1].text
    assert second.ledger.total.calls == 4
    assert len(run.worker.calls) == 4


async def test_an_answer_that_was_not_judged_is_judged_first():
    """U3: the agent is not asked again for what it has answered already."""
    run = Run(LoopBudget(max_model_calls=1), judge=model(DONE))
    first = await run.result("go")
    assert (first.stop_reason, first.output) == (StopReason.BUDGET_EXCEEDED, "draft")

    second = await run.result(session=first.session, budget=LoopBudget(max_model_calls=2))

    assert (second.stop_reason, second.output, len(run.worker.calls)) == (StopReason.SATISFIED, "draft", 1)
    assert [record.number for record in second.iterations] == [1]


@pytest.mark.parametrize(
    ("usage", "tokens"),
    [(UsageDetails(20, None), 21), (UsageDetails(None, 20), 21), (UsageDetails(20, 1), 21), (None, 2)],
)
async def test_what_is_reported_in_part_counts(usage: UsageDetails | None, tokens: int):
    """U2: input without output, or the other way round, counts as it was reported; only the rest is estimated."""
    client = ScriptedChatClient(lambda *_: ChatResponse("four", usage=usage), model_id="m")
    loop = LoopAgent(
        ChatClientAgent(client),
        DelegateLoopEvaluator(lambda context: True),
        LoopAgentOptions(budget=LoopBudget(max_tokens=1)),
    )
    detail = LoopResult.of(await loop.run("four")).stop_detail
    assert (
        detail == f"budget.max_tokens is 1, and the run has used {tokens} tokens in 1 call: the next call was not made"
    )


async def test_a_stopped_run_that_is_spoilt_is_an_error():
    """A session's state that can't be read is an error that says where; no model is asked."""
    run = Run(LoopBudget(max_model_calls=1))
    first = await run.result("go")
    assert first.session is not None
    kept: Any = first.session.state["agents_loop"]
    kept["stopped"]["finish_reason"] = ["stop"]
    with pytest.raises(SessionStateError, match="agents_loop"):
        await run.result(session=first.session, budget=LoopBudget(max_model_calls=9))
    assert (len(run.worker.calls), len(run.judge.calls)) == (1, 0)


async def test_a_stream_has_the_answer_that_is_still_to_be_judged():
    """Law 8: a run that goes on with an answer streams it, as it stands in the response of one that is not streamed."""
    run = Run(LoopBudget(max_model_calls=1), judge=model(DONE))
    first = await run.result("go")
    stream = run.loop(LoopBudget(max_model_calls=2)).run_streaming(session=first.session)

    pieces = [update.text async for update in stream]

    response = await stream.final_response()
    assert (pieces, response.text, len(run.worker.calls)) == (["draft"], "draft", 1)


async def test_a_stored_session_can_be_resumed():
    """U3: what a stopped run needs is JSON in its session."""
    run = Run(LoopBudget(max_tokens=300))
    first = await run.result("go")
    assert first.session is not None
    stored = await run.agent.serialize_session(first.session)
    session = await run.agent.deserialize_session(stored)

    second = await run.result(session=session, budget=LoopBudget(max_tokens=450))

    assert [record.number for record in second.iterations] == [3]


async def test_limits_for_the_life_and_for_a_resume_are_two_numbers():
    """U3: `resume_budget` bounds what a resume spends, and does not bound the first run."""
    run = Run(LoopBudget(max_tokens=600), resume_budget=LoopBudget(max_tokens=150, name="resume_budget"))
    first = await run.result("go")
    assert first.ledger.total.calls == 8

    second = await run.result(session=first.session, budget=LoopBudget(max_tokens=1200))

    assert second.ledger.total.calls == 2
    assert second.stop_detail is not None
    assert second.stop_detail.startswith("resume_budget.max_tokens is 150, and the run has used 150 tokens in 2 calls")


async def test_a_message_begins_a_new_run():
    """A caller who says something new wants something new: the stopped run is gone, and so is what it spent."""
    run = Run(LoopBudget(max_tokens=300))
    first = await run.result("go")
    second = await run.result("something else", session=first.session)
    assert [record.number for record in second.iterations] == [1, 2]
    third = await run.result(session=AgentSession())
    assert [record.number for record in third.iterations] == [1, 2]


async def test_what_was_spent_goes_on_after_an_approval():
    """U3: the life's budget covers a run that waited for a person."""

    @tool(approval_required=True)
    def send() -> str:
        """Send."""
        return "sent"

    call = ChatResponse([ChatMessage("assistant", [FunctionCallContent("1", "send", {})])], usage=UsageDetails(99, 1))
    run = Run(LoopBudget(max_tokens=250), worker=model(call, "sent"))
    run.agent = ChatClientAgent(run.worker, tools=[send])
    first = await run.result("go")
    assert first.stop_reason == StopReason.PENDING_APPROVAL
    request = first.iterations[-1].response.messages[-1].contents[0]
    assert isinstance(request, ToolApprovalRequestContent)

    approved = ToolApprovalResponseContent(request.request_id, approved=True, tool_call=request.tool_call)
    response = await run.loop().run(ChatMessage("user", [approved]), session=first.session)

    second = LoopResult.of(response)
    assert second is not None
    assert (second.stop_reason, second.ledger.total.calls) == (StopReason.BUDGET_EXCEEDED, 2)


# --- the options


@pytest.mark.parametrize(
    ("make", "error", "said"),
    [
        (LoopBudget, ConfigurationError, "must set a limit"),
        (lambda: LoopBudget(max_tokens=0), ConfigurationError, "max_tokens must be more than 0, not 0"),
        (lambda: LoopBudget(max_tokens=1.5), TypeError, "max_tokens must be an int"),
        (lambda: LoopBudget(max_cost_usd=math.inf), ConfigurationError, "max_cost_usd must be more than 0"),
        (lambda: LoopBudget(max_cost_usd=math.nan), ConfigurationError, "max_cost_usd must be more than 0"),
        (lambda: LoopBudget(deadline_s="1"), TypeError, "deadline_s must be a number"),
        (lambda: LoopBudget(max_model_calls=True), TypeError, "max_model_calls must be an int"),
        (lambda: LoopBudget(deadline_s=10**400), ConfigurationError, "deadline_s must be .* a finite number"),
        (lambda: LoopBudget(max_tokens=1, name=None), TypeError, "name must be a str"),
        (lambda: LoopBudget(max_tokens=1, keeps_back_verdict="no"), TypeError, "keeps_back_verdict must be a bool"),
        (lambda: LoopBudget(max_tokens=1, counts_cached_input=0), TypeError, "counts_cached_input must be a bool"),
        (lambda: LoopBudget(max_tokens=1, on_estimate=1), TypeError, "on_estimate must be callable"),
        (lambda: LoopAgentOptions(budget=1), TypeError, "budget must be a LoopBudget"),
        (lambda: LoopAgentOptions(resume_budget=[1]), TypeError, "resume_budget must be a LoopBudget"),
        (lambda: LoopAgentOptions(prices=[1]), TypeError, "prices must map"),
        (lambda: LoopAgentOptions(prices={"m": 1}), TypeError, "not 'm' to 1"),
        (
            lambda: ModelPrice(input_usd_per_million=-1, output_usd_per_million=0),
            ConfigurationError,
            "at least 0, not -1",
        ),
        (
            lambda: ModelPrice(input_usd_per_million=0, output_usd_per_million=10**400),
            ConfigurationError,
            "a finite number",
        ),
        (lambda: ModelPrice(input_usd_per_million="1", output_usd_per_million=0), TypeError, "must be a number"),
    ],
)
def test_a_wrong_budget_is_an_error(make: Callable[[], Any], error: type[Exception], said: str):
    """E2: a limit that can't be read is a loud error, never "no limit"."""
    with pytest.raises(error, match=said):
        make()


def test_the_error_can_be_pickled():
    """Its message stays; whose budget it was does not."""
    error = pickle.loads(pickle.dumps(LimitReachedError("spent")))  # noqa: S301 - our own
    assert (str(error), error.spending) == ("spent", None)


@pytest.mark.parametrize("count", [-1000, 10**400])
async def test_counts_that_nobody_can_mean_are_not_reported(count: int):
    """U2: no call makes what was spent smaller, or loses the answer: its tokens are estimated."""

    def answer(*_: Any) -> ChatResponse:
        return ChatResponse("four", usage=UsageDetails(count, count, count, cached_input_token_count=count))

    heard: list[str] = []
    worker = ScriptedChatClient(answer)
    budget = LoopBudget(max_tokens=100, max_cost_usd=1e9, keeps_back_verdict=False, on_estimate=heard.append)
    options = LoopAgentOptions(budget=budget, max_iterations=1000, prices={"*": PRICE})
    loop = LoopAgent(ChatClientAgent(worker), DelegateLoopEvaluator(lambda _: "again"), options)
    result = LoopResult.of(await loop.run("x"))
    assert result.stop_reason is StopReason.BUDGET_EXCEEDED
    assert len(heard) == 1
    assert all(entry.usage == UsageDetails() and entry.cost_usd is None for entry in result.ledger)
