"""A judge's confidence, and a verdict with more in it, over a real SDK and a real server."""

from __future__ import annotations

import json
import math

import pytest
from fakes import RecordingAgent
from fault_server import Completion, Failure, FaultServer, usage

from agents_loop import AIJudgeLoopEvaluator, AIJudgeLoopEvaluatorOptions, LoopAgent, LoopResult, OpenAIChatClient


def verdict(answered: bool, share: float | None = None, gap: str = "", **more) -> Completion:
    """A verdict, whose boolean has this probability of being true."""
    text = json.dumps({"gapAnalysis": gap, **more, "answered": answered})
    logprobs = None
    if share is not None:
        start = text.rindex(" ")
        content = [
            *[token(piece, {piece: 1.0}) for piece in (text[: start - 3], text[start - 3 : start])],
            token(text[start:-1], {" true": share * 0.9, "true": share * 0.1, " false": 1 - share}),
            token("}", {"}": 1.0}),
        ]
        logprobs = {"content": content, "refusal": None}
    return Completion(content=text, logprobs=logprobs, usage=usage(100, 10))


def token(text: str, shares: dict[str, float]) -> dict:
    def one(spelling: str, share: float) -> dict:
        return {"token": spelling, "logprob": math.log(share), "bytes": list(spelling.encode())}

    return {**one(text, max(shares.values())), "top_logprobs": [one(*pair) for pair in shares.items()]}


def judge(client: OpenAIChatClient, **options) -> AIJudgeLoopEvaluator:
    return AIJudgeLoopEvaluator(client, AIJudgeLoopEvaluatorOptions(**options))


async def run(evaluator: AIJudgeLoopEvaluator, *, streaming: bool = False) -> LoopResult:
    loop = LoopAgent(RecordingAgent(), evaluator)
    return LoopResult.of(await (loop.run_streaming("go").final_response() if streaming else loop.run("go")))


@pytest.mark.parametrize("streaming", [False, True])
async def test_the_probability_decides(server: FaultServer, client: OpenAIChatClient, streaming: bool):
    """Confidence: asked for on the wire, read from the SDK's objects; what it costs is in the result."""
    server.add(verdict(True, 0.6), verdict(True, 0.75), verdict(True, 0.97), verdict(True, 0.99))
    result = await run(judge(client, confidence_threshold=0.8, samples=2), streaming=streaming)
    words = [record.evaluations[0] for record in result.iterations]
    assert [word.decision for word in words] == ["continue", "stop"]
    assert [word.score for word in words] == [pytest.approx(0.6), pytest.approx(0.86)]
    assert [word.details["calls"] for word in words] == [1, 2]
    assert (result.stop_reason, result.usage.input_token_count) == ("satisfied", 300)
    assert {(body["logprobs"], body["top_logprobs"]) for body in server.bodies} == {(True, 20)}


async def test_a_server_without_log_probabilities(server: FaultServer, client: OpenAIChatClient):
    """Confidence: where asking is refused, it is asked without, once and for all, and the boolean decides."""
    server.rejects("logprobs", "top_logprobs")
    server.add(verdict(False, gap="no map"), verdict(True))
    result = await run(judge(client, confidence_threshold=0.9, samples=3))
    words = [record.evaluations[0] for record in result.iterations]
    assert [(word.decision, word.score, word.details["probability"]) for word in words] == [
        ("continue", None, None),
        ("stop", None, None),
    ]
    assert ["logprobs" in body for body in server.bodies] == [True, False, False]


async def test_a_plain_judge_asks_for_none(server: FaultServer, client: OpenAIChatClient):
    """Law 21: without options no log probability is asked for, nor looked at where a server gives it unasked."""
    server.add(verdict(True, 0.01))
    result = await run(judge(client))
    assert (result.stop_reason, result.iterations[0].evaluations[0].score) == ("satisfied", None)
    assert not {"logprobs", "top_logprobs"} & set(server.bodies[0])


async def test_a_schema_with_more_in_it(server: FaultServer, client: OpenAIChatClient):
    """P2: the schema is sent strict and closed; an honest "impossible" ends the run."""
    server.add(verdict(False, gap="no map", reasoning="r", score=0.5, impossible=False))
    server.add(verdict(False, gap="It can't be had.", reasoning="r", score=0, impossible=True))
    result = await run(judge(client, verdict_fields=["reasoning", "score", "impossible"]))
    assert (result.stop_reason, result.stop_detail, len(result.iterations)) == ("aborted", "It can't be had.", 2)
    sent = server.bodies[0]["response_format"]["json_schema"]
    assert (sent["strict"], sent["schema"]["additionalProperties"]) == (True, False)
    assert sent["schema"]["required"] == ["reasoning", "gapAnalysis", "score", "impossible", "answered"]


async def test_a_server_without_schemas(server: FaultServer, client: OpenAIChatClient):
    """P3: where schemas are refused, the prompt alone tells the fields."""
    server.rejects("json_schema", "json_object")
    server.default = verdict(False, gap="never", score=0, impossible=True)
    result = await run(judge(client, verdict_fields=["score", "impossible"]))
    assert (result.stop_reason, result.stop_detail) == ("aborted", "never")


async def test_a_contradiction_on_the_wire(server: FaultServer, client: OpenAIChatClient):
    """V10: the judge's own reply goes back to it with what is wrong; its second word stands."""
    server.add(verdict(True, gap="no map"), verdict(True))
    result = await run(judge(client, ask_again_on_contradiction=True))
    assert (result.stop_reason, result.usage.input_token_count) == ("satisfied", 200)
    assert [[message["role"] for message in body["messages"]] for body in server.bodies] == [
        ["system", "user"],
        ["system", "user", "assistant", "user"],
    ]


async def test_a_stronger_judge_of_another_server(server: FaultServer, client: OpenAIChatClient):
    """F1: it is asked where the first is unsure; where it is down, that is raised, never a verdict."""
    with FaultServer() as other:
        async with OpenAIChatClient("strong", api_key="k", base_url=other.base_url, max_retries=0) as strong:
            server.default = verdict(True, 0.78)
            other.add(verdict(False, gap="no map"), verdict(True), Failure(401))
            evaluator = judge(client, confidence_threshold=0.8, escalate_to=strong)
            result = await run(evaluator)
            assert (result.stop_reason, len(result.iterations)) == ("satisfied", 2)
            assert [body["model"] for body in other.bodies] == ["strong", "strong"]
            assert not any("logprobs" in body for body in other.bodies)
            with pytest.raises(Exception, match="401") as caught:
                await run(evaluator)
            assert LoopResult.of(caught.value).output == "reply 1"
