"""F1: the attempts of Agent Framework's SDK and the policy's are never multiplied."""

from __future__ import annotations

import openai
import pytest
from agent_framework.openai import OpenAIChatCompletionClient
from fakes import RecordingAgent
from fault_server import Failure, FaultServer

from agents_loop import AIJudgeLoopEvaluator, AIJudgeLoopEvaluatorOptions, JudgeFailurePolicy, LoopAgent, LoopResult
from agents_loop.failures import FailureCause, cause_of


@pytest.mark.parametrize(
    ("own", "given", "asked", "waited"), [(2, None, 3, 0), (2, 5, 3, 0), (0, None, 1, 0), (0, 2, 3, 2)]
)
async def test_a_client_that_tries_again_is_left_to_it(server: FaultServer, own, given, asked, waited):
    """F1: where the client's SDK tries again by itself the policy does not; else it does as often as it says."""
    waits: list[float] = []

    async def sleep(seconds: float) -> None:
        waits.append(seconds)

    server.default = Failure(500, headers={"retry-after-ms": "1"})
    client = openai.AsyncOpenAI(base_url=server.base_url, api_key="k", max_retries=own)
    policy = JudgeFailurePolicy(retries=given, sleep=sleep)
    judge = AIJudgeLoopEvaluator(
        OpenAIChatCompletionClient(model="m", async_client=client), AIJudgeLoopEvaluatorOptions(on_failure=policy)
    )
    with pytest.raises(Exception) as caught:  # noqa: PT011 - the cause is looked at
        await LoopAgent(RecordingAgent(), judge).run("x")
    await client.close()
    assert cause_of(caught.value) == FailureCause.SERVER
    assert LoopResult.of(caught.value).output == "reply 1"
    assert (len(server.requests), len(waits)) == (asked, waited)
