"""The iteration strategy over a real SDK and a real server."""

import json

import pytest
from fault_server import Completion, Failure, FaultServer, usage

from agents_loop import (
    AIJudgeLoopEvaluator,
    ChatClientAgent,
    IterationStrategyLoopEvaluator,
    IterationStrategyLoopEvaluatorOptions,
    LoopAgent,
    LoopResult,
    OpenAIChatClient,
    ReviewSignalDetector,
)


def review(**changed) -> Completion:
    fine = {"unmetRequirements": [], "unsupportedClaims": [], "lacking": "nothing", "confidence": 0.9}
    return Completion(content=json.dumps({**fine, **changed}), usage=usage(100, 20))


@pytest.mark.parametrize("streaming", [False, True])
async def test_a_loop_with_a_reviewer(server: FaultServer, client: OpenAIChatClient, streaming: bool):
    """P2: the review's schema is sent strict and as it stands; claims are named to the agent; both models are counted."""
    claims = [{"claim": "in 1987", "certain": True}]
    server.add(
        Completion(content="The concert is in 1987.", usage=usage(10, 5)),
        review(unsupportedClaims=claims, confidence=0.4),
        Completion(content="The concert is on Sunday.", usage=usage(30, 5)),
        review(),
    )
    loop = LoopAgent(ChatClientAgent(client), IterationStrategyLoopEvaluator([ReviewSignalDetector(client)]))
    response = await (loop.run_streaming("go").final_response() if streaming else loop.run("go"))
    result = LoopResult.of(response)
    assert (result.stop_reason, result.output) == ("satisfied", "The concert is on Sunday.")
    assert result.usage.total_token_count == 290
    numbers = [record.evaluations[0].details["numbers"] for record in result.iterations]
    assert numbers[1]["tokens_used"] >= 135
    sent = server.bodies[1]["response_format"]["json_schema"]
    assert (sent["name"], sent["strict"]) == ("answer_review", True)
    assert list(sent["schema"]["properties"])[-1] == "confidence"
    assert "nothing supports this: in 1987" in server.bodies[2]["messages"][-1]["content"]


async def test_a_budget_that_the_judge_uses_up(server: FaultServer, client: OpenAIChatClient):
    """U2: what a judge among the detectors uses counts in the budget, and a person hears of it with the work kept."""
    gap = Completion(content='{"gapAnalysis": "no price", "answered": false}', usage=usage(400, 100))
    server.add(*[Completion(content="a draft", usage=usage(20, 10)), gap] * 2)
    options = IterationStrategyLoopEvaluatorOptions(max_tokens=700)
    evaluator = IterationStrategyLoopEvaluator([AIJudgeLoopEvaluator(client)], options)
    result = LoopResult.of(await LoopAgent(ChatClientAgent(client), evaluator).run("go"))
    assert (result.stop_reason, result.output) == ("pending_input", "a draft")
    details = result.iterations[1].evaluations[0].details
    assert (details["strategy"], details["flags"]) == ("escalate", ["budget", "partial_acceptance"])


async def test_a_reviewer_that_is_down(server: FaultServer, client: OpenAIChatClient):
    """F1: an outage of the reviewer is no verdict: it is raised as it was, and the agent's work is in the result."""
    server.add(Completion(content="a draft"), Failure(status=401))
    loop = LoopAgent(ChatClientAgent(client), IterationStrategyLoopEvaluator([ReviewSignalDetector(client)]))
    with pytest.raises(Exception, match="401") as caught:
        await loop.run("go")
    assert LoopResult.of(caught.value).output == "a draft"
