"""F1: the attempts of Semantic Kernel's SDK and the policy's are never multiplied."""

from __future__ import annotations

import openai
import pytest
from fakes import RecordingAgent
from fault_server import Completion, Failure, FaultServer
from semantic_kernel.connectors.ai.open_ai import OpenAIChatCompletion
from semantic_kernel.exceptions import ServiceResponseException

from agents_loop import AIJudgeLoopEvaluator, AIJudgeLoopEvaluatorOptions, JudgeFailurePolicy, LoopAgent, LoopResult
from agents_loop.failures import FailureCause, cause_of


@pytest.mark.parametrize(
    ("own", "given", "asked", "waited"), [(2, None, 3, 0), (2, 5, 3, 0), (0, None, 1, 0), (0, 2, 3, 2)]
)
async def test_a_service_that_tries_again_is_left_to_it(server: FaultServer, own, given, asked, waited):
    """F1: where the service's SDK tries again by itself the policy does not; else it does as often as it says."""
    waits: list[float] = []

    async def sleep(seconds: float) -> None:
        waits.append(seconds)

    server.default = Failure(500, headers={"retry-after-ms": "1"})
    client = openai.AsyncOpenAI(base_url=server.base_url, api_key="k", max_retries=own)
    policy = JudgeFailurePolicy(retries=given, sleep=sleep)
    judge = AIJudgeLoopEvaluator(
        OpenAIChatCompletion(ai_model_id="m", async_client=client), AIJudgeLoopEvaluatorOptions(on_failure=policy)
    )
    with pytest.raises(ServiceResponseException) as caught:
        await LoopAgent(RecordingAgent(), judge).run("x")
    await client.close()
    assert cause_of(caught.value) == FailureCause.SERVER
    assert LoopResult.of(caught.value).output == "reply 1"
    assert (len(server.requests), len(waits)) == (asked, waited)


async def test_a_filtered_prompt_is_no_verdict(server: FaultServer, openai_service: OpenAIChatCompletion):
    """P6: by the policy the run goes on, and the agent hears nothing of it."""
    server.add(Failure(400, "no", code="content_filter"), Completion(content='{"gapAnalysis": "", "answered": true}'))
    options = AIJudgeLoopEvaluatorOptions(on_failure=JudgeFailurePolicy(content_filter="continue"))
    agent = RecordingAgent()
    result = LoopResult.of(await LoopAgent(agent, AIJudgeLoopEvaluator(openai_service, options)).run("x"))
    assert (result.stop_reason, agent.inputs) == ("satisfied", [["x"], []])
