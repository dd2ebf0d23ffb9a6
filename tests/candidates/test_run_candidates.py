"""`run_candidates`: several whole loops at once, of which the best is given."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from fakes import RecordingAgent, ScriptedEvaluator, always, leaving_nothing, says

from agents_loop import (
    AgentSession,
    ChatClientAgent,
    ChatMessage,
    ChatResponse,
    ConfigurationError,
    DelegateLoopEvaluator,
    FunctionCallContent,
    LoopAgent,
    LoopAgentOptions,
    LoopBudget,
    LoopContext,
    LoopEvaluation,
    LoopEvaluator,
    LoopResult,
    StopReason,
    ToolApprovalRequestContent,
    ToolApprovalResponseContent,
    UsageDetails,
    accept_answer,
    run_candidates,
)
from agents_loop.testing import ScriptedChatClient

USED = UsageDetails(10, 5)


class ByAnswer(LoopEvaluator):
    """Says of an answer what a table says."""

    def __init__(self, **words: Any) -> None:
        self._words = words

    async def evaluate(self, context: LoopContext) -> LoopEvaluation:
        word = self._words[context.last_response.text]
        if isinstance(word, BaseException):
            raise word
        return word


def more(score: float | None = None) -> LoopEvaluation:
    return LoopEvaluation.continue_("More.", score=score)


def done(score: float | None = None) -> LoopEvaluation:
    return LoopEvaluation.stop(score=score)


async def runs_of(*answers: Any, words: dict[str, Any] | None = None, chooser: Any = None, **options: Any) -> Any:
    """One run an answer, each with one iteration that is judged."""
    given = {"max_iterations": 1, "evaluate_final_iteration": True, **options}
    loop = LoopAgent(RecordingAgent(*answers, usage=USED), ByAnswer(**(words or {})), LoopAgentOptions(**given))
    return await run_candidates(loop, len(answers), "Go.", chooser=chooser)


@pytest.mark.parametrize(
    ("words", "best"),
    [
        ({"a": more(0.9), "b": done(0.1)}, "b"),
        ({"a": done(0.1), "b": done(0.2)}, "b"),
        ({"a": more(0.3), "b": more(0.2)}, "a"),
        ({"a": done(), "b": done(0.0)}, "b"),
        ({"a": more(), "b": more()}, "a"),
        ({"a": LoopEvaluation.ask("Which?"), "b": LoopEvaluation.abort("can't be done")}, "b"),
        ({"a": ValueError("broken"), "b": LoopEvaluation.ask("Which?")}, "b"),
        ({"a": done(0.1 + 0.2), "b": done(0.3)}, "a"),
    ],
)
async def test_runs_rank_by_how_they_ended_then_by_score(words: dict[str, Any], best: str):
    """Candidates: satisfied, unsatisfied with an answer, waiting, failed; then the score, one being better than none."""
    runs = await runs_of("a", "b", words=words)
    assert runs.best.output == best


async def test_of_equal_runs_the_shorter_is_better():
    """Candidates: with equal scores it is the run of fewer iterations."""

    class Twice(LoopEvaluator):
        async def evaluate(self, context: LoopContext) -> LoopEvaluation:
            return more(0.5) if context.last_response.text == "reply 1" else done(0.5)

    runs = await run_candidates(LoopAgent(RecordingAgent(), Twice()), 2, "Go.")
    assert [len(each.iterations) for each in runs.results] == [2, 1]
    assert len(runs.best.iterations) == 1


@pytest.mark.parametrize(("return_best", "best"), [(False, "b2"), (True, "a1")])
async def test_the_score_is_that_of_the_answer_that_is_given(*, return_best: bool, best: str):
    """Candidates: a run's earlier, better answer counts where the run gives that one."""
    words = {"a1": more(0.9), "a2": more(0.1), "b1": more(0.2), "b2": more(0.3)}
    options = LoopAgentOptions(max_iterations=2, evaluate_final_iteration=True, return_best=return_best)
    inner = RecordingAgent("a1", "b1", "a2", "b2")
    assert (await run_candidates(LoopAgent(inner, ByAnswer(**words), options), 2, "Go.")).best.output == best


async def test_a_chooser_decides_among_the_best_ended():
    """Candidates: a chooser is asked among runs that ended alike; where it knows nothing, the scores stand."""
    words = {"a": more(0.9), "bbb": done(0.1), "bb": done(0.2)}
    scored = await runs_of("a", "bbb", "bb", words=words, chooser=lambda context: len(context.last_response.text))
    assert scored.best.output == "bbb"
    assert (await runs_of("a", "bbb", "bb", words=words, chooser=lambda context: None)).best.output == "bb"


async def test_what_is_given():
    """Candidates: the best result and its response, all results in order, and every call in the ledger."""
    words = {"a": done(0.1), "b": done(0.2), "c": ValueError("broken")}
    runs = await runs_of("a", "b", "c", words=words)
    assert [each.stop_reason for each in runs.results] == ["satisfied", "satisfied", "evaluator_failed"]
    assert runs.best.run_id == runs.results[1].run_id
    assert runs.response.text == "b"
    assert LoopResult.of(runs.response) is runs.best
    assert runs.response.usage == UsageDetails(20, 10)
    assert [entry.usage for entry in runs.ledger] == [USED] * 3
    assert runs.response.additional_properties["candidates"]["of"][2]["error"] == "ValueError: broken"


async def test_the_calls_of_the_choice_are_at_the_end_of_the_ledger():
    """U1: what a chooser spends is an evaluator's, of no iteration."""
    judge = ScriptedChatClient(lambda *_: ChatResponse("0.5", usage=UsageDetails(1, 1)))

    async def score(context: LoopContext) -> float:
        return float((await judge.get_response([ChatMessage("user", context.last_response.text)])).text)

    runs = await runs_of("a", "b", words={"a": done(), "b": done()}, chooser=score)
    assert [(entry.role, entry.iteration) for entry in runs.ledger] == [("agent", 1)] * 2 + [("evaluator", 0)] * 2
    assert runs.ledger.total.usage == UsageDetails(22, 12)


async def test_all_failed_raises_the_first():
    """Candidates: the first error as it was raised, the others as notes, its result on it."""
    words = {"a": ValueError("one"), "b": ValueError("two")}
    with pytest.raises(ValueError, match="one") as raised:
        await runs_of("a", "b", words=words)
    assert raised.value.__notes__ == ["candidate 2 of 2 failed too: ValueError: two"]
    assert LoopResult.of(raised.value).output == "a"


# --- sessions and people


async def test_the_callers_session_becomes_the_best_runs():
    """Candidates: each run has a clone; the caller's own object goes on from the best."""
    session = AgentSession(state={"k": 1})
    inner = RecordingAgent("a", "b")
    loop = LoopAgent(inner, ByAnswer(a=done(0.1), b=done(0.2)))
    runs = await run_candidates(loop, 2, "Go.", session=session)
    assert session not in inner.sessions
    assert [message.text for message in session.messages] == ["b"]
    assert session.state == {"k": 1, "runs": 1}
    assert runs.best.session is session


async def test_a_run_that_waits_is_gone_on_with_once():
    """Candidates: a question, an acceptance and an approval are answered to the one run that is kept."""
    inner, session = RecordingAgent(), AgentSession()
    loop = LoopAgent(inner, always(LoopEvaluation.ask("Good?")))
    runs = await run_candidates(loop, 2, "Go.", session=session)
    assert (runs.best.stop_reason, len(inner.calls)) == (StopReason.PENDING_INPUT, 2)
    runs = await run_candidates(loop, 2, accept_answer(), session=session)
    assert (runs.best.stop_reason, len(inner.calls), len(runs.results)) == (StopReason.SATISFIED, 2, 1)

    call = FunctionCallContent("c", "pay", {})
    request = ChatMessage("assistant", ToolApprovalRequestContent("r", call))
    inner = RecordingAgent(request, request, "paid")
    loop = LoopAgent(inner, ScriptedEvaluator())
    runs = await run_candidates(loop, 2, "Pay.", session=session)
    assert runs.best.stop_reason is StopReason.PENDING_APPROVAL
    answer = ChatMessage("user", ToolApprovalResponseContent("r", True, call))
    assert (await run_candidates(loop, 2, answer, session=session)).best.output == "paid"
    assert len(inner.calls) == 3


async def test_one_run_is_the_loops_own():
    """Candidates: n = 1 is the loop as it is, in the caller's session."""
    inner, session = RecordingAgent(usage=USED), AgentSession()
    runs = await run_candidates(LoopAgent(inner, ScriptedEvaluator()), 1, "Go.", session=session)
    assert inner.sessions == [session]
    assert (runs.results, runs.ledger) == ((runs.best,), runs.best.ledger)


# --- budgets, cancelling, wrong use


def worker() -> ScriptedChatClient:
    async def answer(*_: Any) -> ChatResponse:
        await asyncio.sleep(0)
        return ChatResponse("draft", usage=UsageDetails(9, 1))

    return ScriptedChatClient(answer)


@pytest.mark.parametrize("calls", range(1, 12))
async def test_all_runs_draw_on_the_loops_budget(calls: int):
    """U2: the budget bounds all runs together; each ends with its answer so far."""
    client = worker()
    options = LoopAgentOptions(budget=LoopBudget(max_model_calls=calls), max_iterations=50)
    loop = LoopAgent(ChatClientAgent(client), always(LoopEvaluation.continue_()), options)
    runs = await run_candidates(loop, 3, "Go.")
    assert {each.stop_reason for each in runs.results} == {StopReason.BUDGET_EXCEEDED}
    assert len(client.calls) == len(runs.ledger) == calls
    assert runs.best.output == "draft"


async def test_an_estimate_is_told_by_each_run_alone():
    """U2: that tokens are estimated is said once a run, not once more for all."""
    heard: list[str] = []
    options = LoopAgentOptions(budget=LoopBudget(max_tokens=1000, on_estimate=heard.append))
    loop = LoopAgent(ChatClientAgent(ScriptedChatClient(lambda *_: "x")), ScriptedEvaluator(), options)
    await run_candidates(loop, 3, "Go.")
    assert len(heard) == 3


async def test_a_choice_that_is_out_of_time_goes_by_score():
    """U2: at the deadline the chooser is stopped, and the runs' own scores decide."""

    async def never(context: LoopContext) -> float:
        await asyncio.Event().wait()
        raise AssertionError

    budget = LoopBudget(deadline_s=0.05)
    async with leaving_nothing():
        runs = await runs_of("a", "b", words={"a": done(0.1), "b": done(0.2)}, chooser=never, budget=budget)
    assert runs.best.output == "b"


async def test_within_a_loop_the_calls_are_the_outer_ones_too():
    """U1, U2: runs within another run draw on its budget, and stand in its ledger."""
    client = worker()
    inner = LoopAgent(ChatClientAgent(client), says("More."))

    async def work(messages: list[ChatMessage]) -> str:
        return (await run_candidates(inner, 3, "A part.")).best.output

    outer = LoopAgent(work, ScriptedEvaluator(), LoopAgentOptions(budget=LoopBudget(max_model_calls=5)))
    result = LoopResult.of(await outer.run("All."))
    assert len(result.ledger) == len(client.calls) == 5


async def test_cancelling_stops_all_runs():
    """Law 19: a cancellation leaves no task, and no run goes on."""
    ended: list[int] = []
    started = asyncio.Event()

    async def wait(messages: list[ChatMessage]) -> str:
        try:
            started.set()
            await asyncio.Event().wait()
        finally:
            ended.append(1)
        raise AssertionError

    async with leaving_nothing():
        task = asyncio.ensure_future(run_candidates(LoopAgent(wait, ScriptedEvaluator()), 3, "Go."))
        await started.wait()
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    assert ended == [1, 1, 1]


@pytest.mark.parametrize(
    ("given", "error"),
    [((None, 2), TypeError), ((RecordingAgent(), 2), TypeError), (("loop", 0), ConfigurationError)],
)
async def test_wrong_use_is_told(given: Any, error: type[Exception]):
    """Errors: wrong use is found before anything ran."""
    loop = LoopAgent(RecordingAgent(), DelegateLoopEvaluator(lambda context: False))
    with pytest.raises(error, match=r"loop must be|n must be"):
        await run_candidates(loop if given[0] == "loop" else given[0], given[1], "Go.")
    with pytest.raises(TypeError, match="chooser must be"):
        await run_candidates(loop, 2, "Go.", chooser="best")
