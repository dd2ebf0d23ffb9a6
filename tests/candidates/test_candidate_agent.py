"""`CandidateAgent`: several runs at once, of which one is kept."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Callable
from typing import Any

import pytest
from fakes import Call, RecordingAgent, ScriptedEvaluator, always, drain, leaving_nothing, says, texts

from agents_loop import (
    AgentResponse,
    AgentSession,
    AIAgent,
    AIJudgeLoopEvaluator,
    AIJudgeLoopEvaluatorOptions,
    BudgetExceededError,
    CandidateAgent,
    ChatClientAgent,
    ChatMessage,
    ChatResponse,
    ConfigurationError,
    DelegateLoopEvaluator,
    FunctionCallContent,
    JudgeFailurePolicy,
    LoopAgent,
    LoopAgentOptions,
    LoopBudget,
    LoopContext,
    LoopEvaluation,
    LoopEvaluator,
    LoopResult,
    PairwiseJudge,
    PairwiseJudgeOptions,
    StopReason,
    ToolApprovalRequestContent,
    ToolApprovalResponseContent,
    UsageDetails,
    accept_answer,
)
from agents_loop.adapting import as_agent
from agents_loop.testing import ScriptedChatClient, ScriptedJudge, ScriptedVerdict, assert_loop_laws

USED = UsageDetails(10, 5)


def longest(context: LoopContext) -> float:
    return float(len(context.last_response.text))


def never(context: LoopContext) -> float:
    raise AssertionError("there is nothing to choose")


def numbered(*replies: Any, **more: Any) -> RecordingAgent:
    """Gives the replies in order, one a call."""
    return RecordingAgent(*replies, **more)


def record(response: AgentResponse) -> Any:
    return response.additional_properties["candidates"]


# --- which is kept


async def test_the_highest_score_is_kept(invoke):
    """Candidates: each runs in a clone of the session; the one with the highest score is the response."""
    inner = numbered("aa", "aaaa", "aaa", usage=USED)
    session = AgentSession(session_id="s", state={"k": [1]})
    response = await invoke(CandidateAgent(inner, 3, longest), "Go.", session=session)
    assert texts(response.messages) == [("assistant", "aaaa")]
    assert inner.inputs == [["Go."]] * 3
    assert len({id(each) for each in inner.sessions}) == 3
    assert session not in inner.sessions
    assert session.state == {"k": [1], "runs": 1}
    assert [message.text for message in session.messages] == ["aaaa"]
    assert session.session_id == "s"


async def test_the_record_says_why(invoke):
    """Candidates: the response's additional properties tell which is kept, and each one's standing and score."""
    response = await invoke(CandidateAgent(numbered("aa", ValueError("broken"), ""), 3, longest), "Go.")
    assert record(response) == {
        "kept": 1,
        "of": [
            {"number": 1, "standing": "answered", "score": None},
            {"number": 2, "standing": "failed", "score": None, "error": "ValueError: broken"},
            {"number": 3, "standing": "no_answer", "score": None},
        ],
    }


@pytest.mark.parametrize("is_async", [False, True])
async def test_a_function_may_be_async_and_may_give_no_score(*, is_async: bool):
    """Candidates: one with a score is kept before one without; of equals it is the first."""
    scores = {"a": None, "b": -3.0, "c": -3}

    def score(context: LoopContext) -> float | None:
        return scores[context.last_response.text]

    async def score_later(context: LoopContext) -> float | None:
        await asyncio.sleep(0)
        return score(context)

    response = await CandidateAgent(numbered("a", "b", "c"), 3, score_later if is_async else score).run("Go.")
    assert response.text == "b"


@pytest.mark.parametrize(
    ("evaluations", "kept"),
    [
        ([LoopEvaluation.continue_("x", score=0.2), LoopEvaluation.stop(score=0.9)], 2),
        ([LoopEvaluation.continue_("x", score=0.9), LoopEvaluation.stop(score=0.2)], 1),
        ([LoopEvaluation.continue_("x", score=0.9), LoopEvaluation.stop(score=0.9)], 2),
        ([LoopEvaluation.continue_("x"), LoopEvaluation.stop()], 2),
        ([LoopEvaluation.stop(), LoopEvaluation.continue_("x", score=0.0)], 2),
        ([LoopEvaluation.stop(score=0.1 + 0.2), LoopEvaluation.stop(score=0.3)], 1),
        ([LoopEvaluation.stop(), LoopEvaluation.stop()], 1),
    ],
)
async def test_an_evaluator_chooses_by_score_then_by_its_word(evaluations, kept):
    """Candidates: the score decides; of equal ones asking for no more does; then it is the first."""

    class Scripted(LoopEvaluator):
        async def evaluate(self, context: LoopContext) -> LoopEvaluation:
            return evaluations[int(context.last_response.text.split()[-1]) - 1]

    response = await CandidateAgent(RecordingAgent(), 2, Scripted()).run("Go.")
    assert record(response)["kept"] == kept


async def test_an_evaluator_sees_request_session_and_options():
    """Candidates: the context is that candidate's: its session, its answer, what was asked."""
    inner, evaluator = RecordingAgent(), always(LoopEvaluation.stop())
    await CandidateAgent(inner, 2, evaluator).run("Go.")
    assert [seen.session for seen in evaluator.seen] == inner.sessions
    assert [seen.response.text for seen in evaluator.seen] == ["reply 1", "reply 2"]
    assert [[m.text for m in seen.context.initial_messages] for seen in evaluator.seen] == [["Go."]] * 2
    assert {seen.context.agent for seen in evaluator.seen} == {inner}


@pytest.mark.parametrize("fresh", [False, True])
async def test_in_a_loop_answers_are_judged_by_the_request_and_the_feedback(*, fresh: bool):
    """Candidates: feedback alone would not tell what is asked, so the loop's request stands before it, once."""
    evaluator = always(LoopEvaluation.stop())
    options = LoopAgentOptions(fresh_context_per_iteration=fresh)
    await LoopAgent(CandidateAgent(RecordingAgent(), 2, evaluator), says("More."), options).run("Write.")
    asked = [[m.text for m in seen.context.initial_messages] for seen in evaluator.seen]
    assert asked == [["Write."]] * 2 + [["Write.", "## Feedback\n\n- More." if fresh else "More."]] * 2


async def test_in_a_tool_of_a_loop_the_request_is_its_own():
    """Candidates: an agent that a loop's agent calls is judged by what it was asked, not by the loop's request."""
    evaluator = always(LoopEvaluation.stop())
    helper = CandidateAgent(RecordingAgent(), 2, evaluator)

    async def work(messages: list[ChatMessage]) -> str:
        return (await helper.run("A part of it.")).text

    await LoopAgent(as_agent(work), ScriptedEvaluator()).run("All of it.")
    assert [[m.text for m in seen.context.initial_messages] for seen in evaluator.seen] == [["A part of it."]] * 2


def better(preferred: str) -> ScriptedChatClient:
    """A judge that prefers an answer that holds a text, wherever it stands, and else says neither."""

    def compare(messages: Any, options: Any) -> str:
        first, second = messages[-1].text.split("The second answer:")
        first = first.split("The first answer:")[1]
        word = "first" if preferred in first else "second" if preferred in second else "neither"
        return json.dumps({"reason": "", "better": word})

    return ScriptedChatClient(compare)


@pytest.mark.parametrize("n", range(2, 8))
async def test_a_pairwise_judge_finds_the_best_wherever_it_stands(n: int, invoke):
    """Candidates: rounds of pairs, n - 1 comparisons, each in both orders where the first is decided."""
    for place in range(1, n + 1):
        client = better(f"reply {place}.")
        inner = RecordingAgent(answer=lambda call, number: f"reply {number}.")
        response = await invoke(CandidateAgent(inner, n, PairwiseJudge(client)), "Go.")
        assert response.text == f"reply {place}."
        assert len(client.calls) <= 2 * (n - 1)


async def test_a_judge_that_prefers_a_place_decides_nothing():
    """Candidates: the order is swapped, so a preference for the second place is a tie, and the first is kept."""
    judge = PairwiseJudge(ScriptedChatClient(lambda messages, options: '{"better": "second"}'))
    response = await CandidateAgent(RecordingAgent(), 4, judge).run("Go.")
    assert response.text == "reply 1"


# --- standing


def approval(request_id: str = "r") -> ChatMessage:
    return ChatMessage("assistant", ToolApprovalRequestContent(request_id, FunctionCallContent("c", "pay", {})))


async def test_an_answer_then_a_wait_then_no_answer(invoke):
    """Candidates: an answer is kept before one that waits, and that before one that is none; no chooser is asked."""
    for replies, kept in [
        (("", approval(), "an answer"), 3),
        (("", approval("a"), approval("b")), 2),
        (("", " "), 1),
        ((approval("a"), ValueError("x")), 1),
    ]:
        response = await invoke(CandidateAgent(numbered(*replies), len(replies), never), "Go.")
        assert record(response)["kept"] == kept


async def test_a_satisfied_loop_then_an_unsatisfied_one_then_one_that_asks():
    """Candidates: loops are kept by how they ended, before any chooser is asked."""
    endings: dict[str, LoopEvaluation] = {
        "asks": LoopEvaluation.ask("Which one?"),
        "gives up": LoopEvaluation.abort("can't be done"),
        "passes": LoopEvaluation.stop(),
    }

    class ByAnswer(LoopEvaluator):
        async def evaluate(self, context: LoopContext) -> LoopEvaluation:
            return endings[context.last_response.text]

    async def kept(*answers: str) -> LoopResult:
        loop = LoopAgent(numbered(*answers), ByAnswer())
        response = await CandidateAgent(loop, len(answers), never).run("Go.", session=AgentSession())
        return LoopResult.of(response)

    assert (await kept("asks", "gives up", "passes")).stop_reason is StopReason.SATISFIED
    assert (await kept("asks", "gives up")).stop_reason is StopReason.ABORTED
    assert (await kept("asks")).stop_reason is StopReason.PENDING_INPUT


# --- one run


async def test_one_candidate_is_the_agent_as_it_is():
    """Candidates: with n = 1 the inner agent runs in the caller's session, and its stream is the stream."""
    inner, session = RecordingAgent(), AgentSession()
    agent = CandidateAgent(inner, 1, never)
    response = await agent.run("Go.", session=session)
    assert response.additional_properties is None
    updates = await drain(agent.run_streaming("Go.", session=session))
    assert inner.sessions == [session, session]
    assert len(updates) == 2


async def test_an_answer_to_an_approval_is_one_run(invoke):
    """Candidates: what a person allowed once is done once, in the session itself."""
    inner, session = RecordingAgent(), AgentSession()
    answer = ChatMessage("user", ToolApprovalResponseContent("r", True, FunctionCallContent("c", "pay", {})))
    await invoke(CandidateAgent(inner, 3, never), answer, session=session)
    assert inner.sessions == [session]


async def test_an_answer_to_a_question_is_one_run_and_resumes(invoke):
    """Candidates: a loop that waits for a person's answer in the session goes on once; outer and inner agree on it."""
    asks = says(LoopEvaluation.ask("Which town?"))
    inner = RecordingAgent()
    outer = LoopAgent(CandidateAgent(LoopAgent(inner, asks), 2, never), ScriptedEvaluator())
    session = await outer.create_session()
    waiting = LoopResult.of(await invoke(outer, "Plan.", session=session))
    assert (waiting.stop_reason, waiting.stop_detail) == (StopReason.PENDING_INPUT, "Which town?")
    assert waiting.session is session
    assert len(inner.calls) == 2
    done = LoopResult.of(await invoke(outer, "Bern.", session=session))
    assert done.stop_reason is StopReason.SATISFIED
    assert len(inner.calls) == 3
    assert inner.inputs[-1] == ["Bern."]


async def test_a_question_of_all_candidates_can_be_accepted():
    """Candidates: accepting the kept one's answer needs no further run."""
    loop = LoopAgent(RecordingAgent(), says(LoopEvaluation.ask("Good?")))
    agent, session = CandidateAgent(loop, 2, never), AgentSession()
    await agent.run("Plan.", session=session)
    response = await agent.run(accept_answer(), session=session)
    assert LoopResult.of(response).stop_reason is StopReason.SATISFIED
    assert response.text == "reply 1"


# --- sessions


async def test_in_a_loop_the_session_stays_the_callers(invoke):
    """Law 11, 13: context.session is the caller's own object in each iteration, and the kept turns are in it."""
    inner, evaluator, session = RecordingAgent(), says("More.", "More."), AgentSession()
    response = await invoke(LoopAgent(CandidateAgent(inner, 2, longest), evaluator), "Go.", session=session)
    assert [seen.session for seen in evaluator.seen] == [session] * 3
    assert LoopResult.of(response).session is session
    assert [message.text for message in session.messages] == ["reply 1", "reply 3", "reply 5"]


async def test_fresh_context_clones_as_ever(invoke):
    """Law 11: with fresh context each re-invocation's candidates start from the caller's session before the run."""
    inner, session = RecordingAgent(), AgentSession()
    session.messages.append(ChatMessage("user", "Before."))
    options = LoopAgentOptions(fresh_context_per_iteration=True)
    await invoke(LoopAgent(CandidateAgent(inner, 2, longest), says("More."), options), "Go.", session=session)
    assert [[m.text for m in each.messages][:-1] for each in inner.sessions] == [["Before."]] * 4
    assert [message.text for message in session.messages] == ["Before.", "reply 1"]


async def test_without_a_session_each_has_its_own():
    """Candidates: no session given is a conversation of its own for each."""
    inner = RecordingAgent()
    await CandidateAgent(inner, 2, longest).run("Go.")
    assert inner.created == inner.sessions


# --- failures


async def test_all_failed_raises_the_first_with_the_others_as_notes(invoke):
    """Candidates: the first error reaches the caller as it was raised; the session is as it was."""
    errors = [ConnectionError("down"), ValueError("odd"), TimeoutError("slow")]
    session = AgentSession()
    with pytest.raises(ConnectionError) as raised:
        await invoke(CandidateAgent(numbered(*errors), 3, never), "Go.", session=session)
    assert raised.value is errors[0]
    assert raised.value.__notes__ == [
        "candidate 2 of 3 failed too: ValueError: odd",
        "candidate 3 of 3 failed too: TimeoutError: slow",
    ]
    assert (session.state, session.messages) == ({}, [])


async def test_a_loop_around_has_the_result_so_far(invoke):
    """Law 18: where all candidates of an iteration fail, the run's result so far is on the error."""
    inner = numbered("a", "bb", ConnectionError("down"), ConnectionError("down too"))
    with pytest.raises(ConnectionError) as raised:
        await invoke(LoopAgent(CandidateAgent(inner, 2, longest), says("More.")), "Go.")
    result = LoopResult.of(raised.value)
    assert (result.stop_reason, result.output) == (StopReason.FAILED, "bb")


@pytest.mark.parametrize("error", [ConnectionError("down"), BudgetExceededError("spent")])
async def test_a_chooser_whose_provider_fails_is_no_verdict(error, caplog):
    """Law 25: the answers are not lost: one that was rated is kept before one that was not; the log tells."""

    def score(context: LoopContext) -> float:
        if context.last_response.text == "reply 1":
            raise error
        return 0.1

    with caplog.at_level(logging.WARNING, "agents_loop"):
        response = await CandidateAgent(RecordingAgent(), 2, score).run("Go.")
    assert response.text == "reply 2"
    assert record(response)["of"][0]["note"] == f"{type(error).__name__}: {error}"
    assert len(caplog.records) == 1


async def test_a_judge_that_gives_no_verdict_leaves_the_first(caplog):
    """Law 23, 25: a judge that can't be read, or is down, prefers none."""
    policy = JudgeFailurePolicy(retries=0)
    judge = ScriptedJudge([ConnectionError("down"), ScriptedVerdict(answered=True)])
    evaluator = AIJudgeLoopEvaluator(judge, AIJudgeLoopEvaluatorOptions(on_failure=policy))
    assert (await CandidateAgent(RecordingAgent(), 2, evaluator).run("Go.")).text == "reply 2"
    client = ScriptedChatClient([ConnectionError("down")])
    pairwise = PairwiseJudge(client, PairwiseJudgeOptions(on_failure=policy))
    assert (await CandidateAgent(RecordingAgent(), 2, pairwise).run("Go.")).text == "reply 1"
    assert len(caplog.records) == 2


@pytest.mark.parametrize("score", [True, "0.5", float("nan"), float("inf"), 10**400])
async def test_what_is_no_score_is_an_error(score: Any):
    """Candidates: a mistake in a function is not passed over."""
    with pytest.raises((TypeError, ConfigurationError), match="a score must be a"):
        await CandidateAgent(RecordingAgent(), 2, lambda context: score).run("Go.")


async def test_a_mistake_in_a_chooser_reaches_the_caller():
    """Candidates: what is no outage is raised as it was."""
    with pytest.raises(ZeroDivisionError):
        await CandidateAgent(RecordingAgent(), 2, lambda context: 1 / 0).run("Go.")


@pytest.mark.parametrize(
    ("given", "error"),
    [
        ((None, 2, longest), TypeError),
        ((RecordingAgent(), 2, None), TypeError),
        ((RecordingAgent(), 2, "longest"), TypeError),
        ((RecordingAgent(), 2, ScriptedEvaluator), TypeError),
        ((RecordingAgent(), True, longest), TypeError),
        ((RecordingAgent(), "3", longest), TypeError),
        ((RecordingAgent(), 0, longest), ConfigurationError),
    ],
)
def test_wrong_use_is_told(given, error):
    """Errors: wrong use is found before anything ran."""
    with pytest.raises(error, match=r"inner_agent|chooser|n must be"):
        CandidateAgent(*given)


# --- streaming, cancelling


async def test_streamed_the_kept_ones_pieces_come_once_it_is_chosen():
    """Law 8, 16, 17: the inner agent is streamed; the pieces are the kept one's, and one for what the others used."""
    inner = numbered("aa", "aaaa", usage=USED)
    agent = CandidateAgent(inner, 2, longest)
    stream = agent.run_streaming("Go.", session=AgentSession())
    updates = await drain(stream)
    final = await stream.final_response()
    assert all(call.streaming for call in inner.calls)
    assert [update.text for update in updates] == ["aa", "aa", "", ""]
    merged = AgentResponse.from_updates(updates)
    assert texts(merged.messages) == texts(final.messages) == [("assistant", "aaaa")]
    assert merged.usage == final.usage == UsageDetails(20, 10)
    assert merged.additional_properties == final.additional_properties


async def test_the_pieces_can_be_had_without_a_stream():
    """Design: `run_core_streaming` gives the pieces of `run_streaming`, for agents that wrap this one."""
    agent = CandidateAgent(numbered("aa", "aaaa"), 2, longest)
    updates = [
        each async for each in agent.run_core_streaming([ChatMessage("user", "Go.")], session=None, options=None)
    ]
    assert AgentResponse.from_updates(updates).text == "aaaa"


class Hanging(AIAgent):
    """Waits for ever, and says how it ended; the first so many answer at once."""

    def __init__(self, answering: int = 0) -> None:
        self.started = self.ended = 0
        self._answering = answering
        self.all_started = asyncio.Event()

    async def run_core(self, messages, *, session, options):
        self.started += 1
        number = self.started
        if number == 3:
            self.all_started.set()
        if number <= self._answering:
            return AgentResponse("done")
        try:
            await asyncio.Event().wait()
        finally:
            self.ended += 1


async def test_cancelling_stops_all(invoke):
    """Law 19: a cancelled run leaves no task behind, and no candidate running; the session is as it was."""
    inner, session = Hanging(answering=1), AgentSession(state={"k": 1})
    async with leaving_nothing():
        task = asyncio.ensure_future(invoke(CandidateAgent(inner, 3, never), "Go.", session=session))
        await inner.all_started.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert inner.ended == 2
    assert session.state == {"k": 1}


async def test_a_candidate_that_cancels_itself_is_one_that_failed():
    """Candidates: only a cancellation from outside ends them all."""

    def answer(call: Call, number: int) -> Any:
        return asyncio.CancelledError() if number == 1 else "an answer"

    assert (await CandidateAgent(RecordingAgent(answer=answer), 2, never).run("Go.")).text == "an answer"


async def test_cancelling_while_it_chooses_stops_the_chooser():
    """Law 19: evaluators under way are cancelled too."""
    asked, ended = [asyncio.Event(), asyncio.Event()], []

    async def score(context: LoopContext) -> float:
        number = int(context.last_response.text.split()[1])
        asked[number - 1].set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.append(number)
        raise AssertionError

    async with leaving_nothing():
        task = asyncio.ensure_future(CandidateAgent(RecordingAgent(), 2, score).run("Go."))
        for each in asked:
            await each.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    assert sorted(ended) == [1, 2]


async def test_a_chooser_that_raises_stops_the_others():
    """Law 6: if one raises, the others are cancelled and awaited, and that very exception is raised."""

    async def score(context: LoopContext) -> float:
        if context.last_response.text == "reply 2":
            raise ZeroDivisionError
        await asyncio.Event().wait()
        raise AssertionError

    async with leaving_nothing():
        with pytest.raises(ZeroDivisionError):
            await CandidateAgent(RecordingAgent(), 2, score).run("Go.")


async def test_closing_a_stream_early_leaves_nothing():
    """Law 19: nothing is left, and the session is as it was, as with any agent whose stream is left."""
    session, agent = AgentSession(), CandidateAgent(RecordingAgent(), 3, longest)
    async with leaving_nothing():
        stream = agent.run_streaming("Go.", session=session)
        await anext(stream)
        await stream.aclose()
    assert session.messages == []


@pytest.mark.parametrize("chooser", [longest, always(LoopEvaluation.stop(score=0.5)), PairwiseJudge(better("x"))])
async def test_it_keeps_the_laws_of_a_loop(chooser):
    """Law: what a loop needs of any agent, with every kind of chooser, and for candidates of candidates."""
    model = ChatClientAgent(ScriptedChatClient(lambda *_: ChatResponse("Hello, you.", usage=USED), name="m"))
    await assert_loop_laws(CandidateAgent(model, 2, chooser))
    await assert_loop_laws(CandidateAgent(CandidateAgent(model, 2, longest), 2, chooser))


async def test_a_loop_inside_keeps_the_laws_too():
    """Law: candidates of whole loops are an agent like any other."""
    model = ChatClientAgent(ScriptedChatClient(lambda *_: ChatResponse("Hello, you.", usage=USED), name="m"))
    await assert_loop_laws(CandidateAgent(LoopAgent(model, DelegateLoopEvaluator(lambda c: False)), 2, longest))


async def test_services_and_names_are_the_inner_agents():
    """Design: a delegating agent is found itself first, and else offers what the inner agent does."""
    inner = RecordingAgent()
    agent = CandidateAgent(inner, 2, longest)
    assert (agent.id, agent.name) == (inner.id, inner.name)
    assert agent.get_service(CandidateAgent) is agent
    assert agent.get_service(RecordingAgent) is inner


# --- budgets and the ledger


def worker(reply: Callable[[int], str] = "draft {}".format, tokens: int = 10) -> ScriptedChatClient:
    numbers = iter(range(1, 10_000))

    async def answer(*_: Any) -> ChatResponse:
        number = next(numbers)
        await asyncio.sleep(0)
        return ChatResponse(reply(number), usage=UsageDetails(tokens - 1, 1))

    return ScriptedChatClient(answer, model_id="worker")


async def test_the_ledger_has_the_losers_and_the_choice(invoke):
    """U1: each candidate's calls are the agent's, the chooser's an evaluator's, of the iteration that they belong to."""
    client, judge = worker(), better("draft 2")
    agent = CandidateAgent(ChatClientAgent(client), 3, PairwiseJudge(judge))
    result = LoopResult.of(await invoke(LoopAgent(agent, says("More.")), "Go."))
    sums = result.ledger.by_role()
    assert (sums["agent"].calls, sums["evaluator"].calls) == (6, len(judge.calls))
    assert sums["agent"].usage == UsageDetails(54, 6)
    compared = [4, 2]  # two comparisons in both orders, then two that are ties
    assert [each.calls for each in result.ledger.by_iteration().values()] == [3 + number for number in compared]
    assert result.iterations[0].usage == UsageDetails(27, 3)


async def test_usage_of_agents_whose_calls_are_not_seen_is_there_once(invoke):
    """U1: a run that says what it used is one call, each candidate's; what the response sums up is not counted again."""
    agent = CandidateAgent(RecordingAgent(usage=USED), 3, longest)
    result = LoopResult.of(await invoke(LoopAgent(agent, ScriptedEvaluator()), "Go."))
    assert [entry.usage for entry in result.ledger] == [USED] * 3


async def test_what_a_chooser_reports_is_there_once():
    """U1: calls that an evaluator makes by other means are reported to the candidate's context, and are kept."""

    class Reports(LoopEvaluator):
        async def evaluate(self, context: LoopContext) -> LoopEvaluation:
            context.report_usage(UsageDetails(1, 1))
            return LoopEvaluation.stop(score=0.5)

    agent = CandidateAgent(RecordingAgent(usage=USED), 2, Reports())
    result = LoopResult.of(await LoopAgent(agent, ScriptedEvaluator()).run("Go."))
    assert result.ledger.by_role()["evaluator"].usage == UsageDetails(2, 2)


async def test_a_sum_that_an_evaluator_reports_is_seen_beside_the_calls_of_a_choice():
    """U1: an evaluator that reports the sum of calls which were seen adds nothing, whatever the candidates' choice took."""
    judge = ScriptedChatClient(lambda *_: ChatResponse("fine", usage=UsageDetails(2, 2)))

    class Twice(LoopEvaluator):
        async def evaluate(self, context: LoopContext) -> LoopEvaluation:
            for _ in range(2):
                await judge.get_response([ChatMessage("user", "?")])
            context.report_usage(UsageDetails(4, 4))
            return LoopEvaluation.stop()

    used = ChatResponse('{"better": "first"}', usage=UsageDetails(7, 7))
    agent = CandidateAgent(ChatClientAgent(worker()), 2, PairwiseJudge(ScriptedChatClient(lambda *_: used)))
    result = LoopResult.of(await LoopAgent(agent, Twice()).run("Go."))
    assert result.ledger.by_role()["evaluator"].usage == UsageDetails(18, 18)


@pytest.mark.parametrize("calls", range(1, 8))
async def test_candidates_draw_on_one_budget(calls: int, invoke):
    """U2: no call too many is made, also at once; the run ends with what answers there are."""
    client = worker()
    options = LoopAgentOptions(budget=LoopBudget(max_model_calls=calls), max_iterations=50)
    loop = LoopAgent(CandidateAgent(ChatClientAgent(client), 3, longest), always(LoopEvaluation.continue_()), options)
    result = LoopResult.of(await invoke(loop, "Go."))
    assert result.stop_reason is StopReason.BUDGET_EXCEEDED
    assert len(client.calls) == len(result.ledger) == calls
    assert result.output.startswith("draft")


async def test_a_chooser_out_of_budget_leaves_the_first():
    """U2: where the choice can't be paid any more, the iteration has an answer all the same."""
    judge = better("draft 2")
    agent = CandidateAgent(ChatClientAgent(worker()), 2, PairwiseJudge(judge))
    options = LoopAgentOptions(budget=LoopBudget(max_model_calls=2))
    result = LoopResult.of(await LoopAgent(agent, ScriptedEvaluator(), options).run("Go."))
    assert (result.output, judge.calls) == ("draft 1", [])


async def test_a_deadline_stops_all_candidates(invoke):
    """U2: at the deadline those under way are cancelled, and the run ends as `deadline`."""
    inner = Hanging(answering=1)
    options = LoopAgentOptions(budget=LoopBudget(deadline_s=0.01))
    async with leaving_nothing():
        result = LoopResult.of(await invoke(LoopAgent(CandidateAgent(inner, 3, longest), says(), options), "Go."))
    assert result.stop_reason is StopReason.DEADLINE
    assert inner.ended == 2


async def test_one_instance_serves_runs_at_once():
    """Law 20: it holds no state of a run."""
    agent = CandidateAgent(ChatClientAgent(worker(reply=lambda n: "x" * n)), 2, longest)
    responses = await asyncio.gather(*[agent.run("Go.", session=AgentSession()) for _ in range(5)])
    assert max(len(response.text) for response in responses) == 10
    assert [response.usage for response in responses] == [UsageDetails(18, 2)] * 5
