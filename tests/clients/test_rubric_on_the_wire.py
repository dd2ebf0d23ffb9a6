"""A rubric over a real SDK and a real server."""

import json

import openai
import pytest
from fakes import RecordingAgent
from fault_server import Completion, Failure, FaultServer, usage

from agents_loop import (
    EvidenceLoopEvaluator,
    JudgeFailedError,
    LoopAgent,
    LoopResult,
    OpenAIChatClient,
    PanelLoopEvaluator,
    PanelLoopEvaluatorOptions,
    RubricCriterion,
    RubricLoopEvaluator,
    check,
)

RUBRIC = [RubricCriterion("price", "It names a price."), RubricCriterion("dates", "It names the dates.")]


def reply(price: str, dates: str) -> Completion:
    criteria = {"price": {"reason": "r", "verdict": price}, "dates": {"reason": "r", "verdict": dates}}
    answered = "not_met" not in (price, dates)
    return Completion(content=json.dumps({"criteria": criteria, "answered": answered}), usage=usage(100, 10))


@pytest.mark.parametrize("streaming", [False, True])
async def test_a_loop_over_the_wire(server: FaultServer, client: OpenAIChatClient, streaming: bool):
    """P2, P4: the schema is sent strict and as it stands, with no sampling parameter; a judge is never streamed."""
    server.add(reply("met", "not_met"), reply("met", "met"))
    loop = LoopAgent(RecordingAgent(), EvidenceLoopEvaluator(RubricLoopEvaluator(client, RUBRIC), [check("x", bool)]))
    response = await (loop.run_streaming("go").final_response() if streaming else loop.run("go"))
    result = LoopResult.of(response)
    assert (result.stop_reason, result.usage.input_token_count) == ("satisfied", 200)
    for body in server.bodies:
        sent = body["response_format"]["json_schema"]
        assert (sent["name"], sent["strict"]) == ("rubric_verdict", True)
        assert list(sent["schema"]["properties"]["criteria"]["properties"]) == ["price", "dates"]
        assert not {"stream", "temperature", "tools"} & set(body)
        assert [message["role"] for message in body["messages"]] == ["system", "user"]


async def test_a_server_without_schemas(server: FaultServer, client: OpenAIChatClient):
    """P3: where the schema is refused, the same criteria are judged by the prompt alone."""
    server.rejects("json_schema")
    server.add(reply("met", "met"), reply("met", "met"), reply("met", "met"))
    result = LoopResult.of(await LoopAgent(RecordingAgent(), RubricLoopEvaluator(client, RUBRIC)).run("go"))
    assert result.stop_reason == "satisfied"


async def test_a_refusal_is_no_verdict(server: FaultServer, client: OpenAIChatClient):
    """P5: a refusal is neither a pass nor a criterion that is not met; the work is kept."""
    server.add(*[Completion(content=None, refusal="I can't grade that.")] * 3)
    with pytest.raises(JudgeFailedError, match="refusal") as caught:
        await LoopAgent(RecordingAgent("draft"), RubricLoopEvaluator(client, RUBRIC)).run("go")
    assert LoopResult.of(caught.value).output == "draft"


async def test_an_outage_of_one_member(server: FaultServer, client: OpenAIChatClient):
    """F1: a member that is down abstains, and the others' verdict stands; if all are down, the error is raised."""
    down = RubricLoopEvaluator(client, RUBRIC)
    options = PanelLoopEvaluatorOptions(on_failure="abstain", vote="mean", threshold=0.9)
    server.add(*[Failure(status=401)] * 2)
    panel = PanelLoopEvaluator([down, check("fine", lambda text: True)], options)
    result = LoopResult.of(await LoopAgent(RecordingAgent(), panel).run("go"))
    assert result.stop_reason == "satisfied"
    assert "AuthenticationError" in result.iterations[0].evaluations[0].details["tiers"][0][0]["failure"]
    with pytest.raises(openai.AuthenticationError) as caught:
        await LoopAgent(RecordingAgent("draft"), PanelLoopEvaluator([down], options)).run("go")
    assert LoopResult.of(caught.value).output == "draft"
