from __future__ import annotations

import json
import random
from typing import Any

import pytest
from fakes import RecordingAgent, always, says, texts

from agents_loop import (
    AgentResponse,
    ChatMessage,
    EvaluatorDecided,
    EvaluatorFailedError,
    EvidenceLoopEvaluator,
    IterationRecord,
    LoopAgent,
    LoopAgentOptions,
    LoopEvaluation,
    LoopResult,
    StopReason,
    check,
)
from agents_loop.loop.criteria import criteria_met
from agents_loop.loop.no_verdict import NO_VERDICT


def scored(score: float | None, met: int | None = None) -> LoopEvaluation:
    """A wish to go on, with a score and a rubric's record of three criteria."""
    verdicts = [{"id": str(n), "verdict": "met" if n < (met or 0) else "not_met"} for n in range(3)]
    details: Any = None if met is None else {"criteria": verdicts}
    return LoopEvaluation.continue_("more", score=score, details=details)


async def run(*words: Any, replies: tuple[Any, ...] = (), **options: Any) -> LoopResult:
    options = {"max_iterations": len(words), "evaluate_final_iteration": True} | options
    agent = RecordingAgent(*replies)
    result = LoopResult.of(await LoopAgent(agent, says(*words), LoopAgentOptions(**options)).run("the request"))
    assert result is not None
    return result


def best_by_hand(history: list[tuple[float | None, int]]) -> int:
    """What the law says, written as a search: the place of the best, from 1."""
    best = 0
    for place in range(1, len(history)):
        score, met = history[place]
        score_before, met_before = history[best]
        if score is None and score_before is not None:
            continue
        if score_before is None and score is not None:
            best = place
            continue
        higher = score is not None and score_before is not None and score > score_before
        equal = score == score_before
        if higher or (equal and met >= met_before):
            best = place
    return best + 1


async def test_the_best_of_1000_histories():
    """`best` is the iteration with the highest score; of equals the one that met more criteria, then the later."""
    draw = random.Random(5)
    for _ in range(1000):
        history = [
            (draw.choice([None, 0.0, 0.5, 0.5, 1.0, round(draw.random(), 2)]), draw.randint(0, 3))
            for _ in range(draw.randint(1, 12))
        ]
        result = await run(*[scored(score, met) for score, met in history])
        assert result.best is not None
        assert result.best.number == best_by_hand(history), history
        highest = [score for score, _ in history if score is not None]
        assert result.best.score == (max(highest) if highest else None)


async def test_without_scores_the_last_answer():
    """Without any score the best is the last answer that is one, or the last of all."""
    empty = AgentResponse([ChatMessage("assistant", "")])
    for replies, best in [(("a", "b", "c"), 3), (("a", "b", empty), 2), ((empty, empty), 2)]:
        result = await run(*[scored(None)] * len(replies), replies=replies)
        assert result.best is not None
        assert result.best.number == best


async def test_an_unjudged_answer_is_not_better_than_a_judged_one():
    """The answer at the cap, which nobody judged, comes after all that have a score."""
    result = await run(scored(0.2), scored(0.1), None, evaluate_final_iteration=False)
    assert [record.score for record in result.iterations] == [0.2, 0.1, None]
    assert result.best is not None
    assert result.best.number == 1


async def test_several_scores_are_a_mean():
    """An iteration's score is the mean of those that its evaluators gave."""
    evaluators = [always(scored(score)) for score in (0.1, 0.2, None)]
    options = LoopAgentOptions(max_iterations=1, evaluate_final_iteration=True, evaluation_mode="all")
    result = LoopResult.of(await LoopAgent(RecordingAgent(), evaluators, options).run("the request"))
    assert result is not None
    assert result.iterations[0].score == pytest.approx(0.15)


@pytest.mark.parametrize("mode", ["first", "all"])
@pytest.mark.parametrize("failure", [OSError("down"), EvaluatorFailedError("gave up")], ids=["raises", "gives up"])
async def test_an_answer_that_only_some_could_judge(mode: Any, failure: Exception):
    """An answer is no better for an evaluator that failed: without all their scores it comes after those that have."""
    easy = always(LoopEvaluation.stop(score=1.0))
    evaluators = [easy, says(scored(0.4), scored(0.2), failure)]
    options = LoopAgentOptions(evaluation_mode=mode, return_best=True)
    try:
        result = LoopResult.of(await LoopAgent(RecordingAgent(), evaluators, options).run("the request"))
    except OSError as error:
        result = LoopResult.of(error)
    assert result is not None
    assert result.stop_reason == StopReason.EVALUATOR_FAILED
    assert [record.score for record in result.iterations] == [pytest.approx(0.7), pytest.approx(0.6), None]
    assert [record.is_half_judged for record in result.iterations] == [False, False, True]
    assert result.output == "reply 1"
    told = json.loads(result.to_json())
    assert (told["best"], [each.get("half_judged") for each in told["iterations"]]) == (1, [None, None, True])


async def test_an_answer_whose_judge_gave_no_verdict():
    """Nor is it better for a judge without a verdict, also one that stands beside evidence."""
    silent = LoopEvaluation.continue_(details={NO_VERDICT: "timeout"})
    unread = LoopEvaluation.continue_(details={"answered": False, "readable": False})
    passes = check("fine", lambda text: None)
    easy = always(LoopEvaluation.stop(score=1.0))
    for judge in (says(scored(0.4), silent, unread), EvidenceLoopEvaluator(says(scored(0.4), silent, unread), passes)):
        options = LoopAgentOptions(max_iterations=3, evaluate_final_iteration=True)
        result = LoopResult.of(await LoopAgent(RecordingAgent(), [easy, judge], options).run("the request"))
        assert result is not None
        assert [record.score for record in result.iterations] == [pytest.approx(0.7), None, None]
        assert result.best is not None
        assert result.best.number == 1


async def test_an_answer_whose_judge_had_spoken():
    """A judgment that was whole counts, however the run ends then."""
    loop = LoopAgent(RecordingAgent(), [always(LoopEvaluation.stop(score=0.9)), says(scored(0.5))])
    with pytest.raises(OSError, match="pipe") as caught:  # noqa: PT012 - it is raised while events are read
        async with loop.events("the request") as events:
            async for event in events:
                if isinstance(event, EvaluatorDecided) and event.evaluation.decision == "continue":
                    raise OSError("pipe")
    result = LoopResult.of(caught.value)
    assert result is not None
    assert [(record.score, record.is_half_judged) for record in result.iterations] == [(0.7, False)]


async def test_no_iteration_no_best():
    """A run that failed before its first answer has no best one."""
    with pytest.raises(OSError, match="down") as caught:
        await LoopAgent(RecordingAgent(OSError("down")), says()).run("the request")
    result = LoopResult.of(caught.value)
    assert result is not None
    assert result.best is None
    assert json.loads(result.to_json())["best"] is None


@pytest.mark.parametrize("streaming", [False, True], ids=["run", "stream"])
async def test_return_best(streaming: bool):
    """With `return_best` a run that ends unsatisfied gives its best answer: the response's transcript ends with it, its
    fields are that response's, and its usage is the whole run's."""
    loop = LoopAgent(
        RecordingAgent("a", "b", "c"),
        says(scored(0.1), scored(0.9), scored(0.5)),
        LoopAgentOptions(max_iterations=3, evaluate_final_iteration=True, return_best=True),
    )
    response = await loop.run_streaming("the request").final_response() if streaming else await loop.run("the request")
    result = LoopResult.of(response)
    assert result is not None
    assert (result.stop_reason, result.output) == (StopReason.MAX_ITERATIONS, "b")
    assert result.returned is result.best
    assert texts(response.messages) == [("assistant", "a"), ("user", "more"), ("assistant", "b")]
    assert response.response_id == "response-2"
    assert [record.number for record in result.iterations] == [1, 2, 3]
    assert json.loads(result.to_json())["best"] == 2


async def test_return_best_of_the_last_response_only():
    """`return_best` holds where only one iteration's messages are returned."""
    options = LoopAgentOptions(max_iterations=2, return_best=True, non_streaming_returns_last_response_only=True)
    response = await LoopAgent(RecordingAgent("a", "b"), says(scored(0.1)), options).run("the request")
    assert response.text == "a"


async def test_a_satisfied_run_gives_its_last_answer():
    """A run that is satisfied gives the answer that satisfied, whatever the scores."""
    result = await run(scored(0.9), LoopEvaluation.stop(score=0.5), return_best=True)
    assert (result.stop_reason, result.output) == (StopReason.SATISFIED, "reply 2")
    assert result.best is not None
    assert result.best.number == 1


async def test_a_waiting_run_gives_its_last_answer():
    """A run that waits for a person gives the answer that the question is about."""
    result = await run(scored(0.9), LoopEvaluation.ask("ok?", score=0.5), return_best=True)
    assert (result.stop_reason, result.output) == (StopReason.PENDING_INPUT, "reply 2")


async def test_a_failed_run_tells_its_best_answer():
    """With `return_best` the result of a run that raised holds the best answer so far."""
    agent = RecordingAgent("a", "b", OSError("down"))
    loop = LoopAgent(agent, says(scored(0.9), scored(0.1)), LoopAgentOptions(return_best=True))
    with pytest.raises(OSError, match="down") as caught:
        await loop.run("the request")
    result = LoopResult.of(caught.value)
    assert result is not None
    assert result.output == "a"


async def test_an_outer_loop_judges_the_best_answer_of_an_inner_one():
    """Where loops nest, the answer that the outer evaluators see is the one that the inner loop gave."""
    inner = LoopAgent(
        RecordingAgent("a good one", "worse"),
        says(scored(0.9), scored(0.1)),
        LoopAgentOptions(max_iterations=2, evaluate_final_iteration=True, return_best=True),
    )
    result = LoopResult.of(await LoopAgent(inner, says()).run("the request"))
    assert result is not None
    assert result.output == "a good one"


def test_criteria_are_found_where_evaluators_record_them():
    """Criteria and checks count within a panel and beside evidence too; a criterion that does not apply is none."""
    rubric: Any = {"criteria": [{"id": "a", "verdict": "met"}, {"id": "b", "verdict": "not_applicable"}]}
    nested: Any = {
        "tiers": [[{"details": {"checks": [{"check": "c", "passed": False}], "judge": {"details": rubric}}}]],
    }
    said = [LoopEvaluation.stop(details=rubric), LoopEvaluation.stop(details=nested), LoopEvaluation.stop(details="?")]
    assert criteria_met(said) == {"0/a": True, "1/0.0/check c": False, "1/0.0/judge/a": True}


@pytest.mark.parametrize(
    "details", [{"criteria": "x"}, {"criteria": [1, None]}, {"tiers": {"a": 1}}, {"judge": []}, [], 3, {"tiers": [3]}]
)
def test_details_of_any_kind_are_no_criteria(details: Any):
    """Details are any JSON value: what is no record of criteria is passed over."""
    assert criteria_met([LoopEvaluation.stop(details=details)]) == {}


def test_a_record_made_by_hand():
    """A result made without an engine has a best iteration too."""
    record = IterationRecord(1, (), AgentResponse("a"), (scored(0.3),), None, 0.0)
    result = LoopResult("id", StopReason.MAX_ITERATIONS, None, (record,), "a", None, None, 0.0)
    assert result.best is record
