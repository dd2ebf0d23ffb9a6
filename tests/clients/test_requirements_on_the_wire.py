"""The judge by requirements over a real SDK and a real server."""

from __future__ import annotations

import pytest
from fakes import RecordingAgent
from fault_server import Completion, Failure, FaultServer, Raw, RecordedRequest, Stream, usage

from agents_loop import (
    AIJudgeLoopEvaluator,
    AIJudgeLoopEvaluatorOptions,
    JudgeFailurePolicy,
    LoopAgent,
    LoopAgentOptions,
    LoopResult,
    OpenAIChatClient,
)

REQUEST = "Plan the move of our blog with the costs and the dates."
LISTED = Completion(content="1. plan the move of our blog\n2. the costs\n3. the dates", usage=usage(10, 5))
YES = Completion(content="yes", usage=usage(10, 1))
FAULTS = [
    Failure(401),
    Failure(403),
    Failure(429, headers={"Retry-After": "0"}),
    Failure(429, code="insufficient_quota"),
    Failure(500),
    Failure(503),
    Failure(400, code="content_filter"),
    Failure(400, code="context_length_exceeded"),
    Raw(b"<html>502 Bad Gateway</html>", "text/html"),
    Raw(b'{"choices": []}'),
    Raw(b"null"),
    Completion(content=None, refusal="I can't."),
    Completion(content="", refusal="I can't."),
    Completion(content="", finish_reason="content_filter"),
    Completion(content="ye", finish_reason="length"),
    Stream(({"error": {"message": "overloaded"}},)),
]


def judge(client: OpenAIChatClient, **policy: object) -> AIJudgeLoopEvaluator:
    on_failure = JudgeFailurePolicy(first_wait_s=0, **policy)  # type: ignore[arg-type]
    return AIJudgeLoopEvaluator(client, AIJudgeLoopEvaluatorOptions(design="requirements", on_failure=on_failure))


def is_listing(request: RecordedRequest) -> bool:
    return str(request.body["messages"][-1]["content"]).endswith("List what this request demands.")


def failing(server: FaultServer, fault: object, at: str) -> None:
    """One kind of call gets the fault, the others a proper reply."""

    def answer(request: RecordedRequest) -> object:
        if is_listing(request):
            return fault if at == "listing" else LISTED
        return fault if at == "a demand" and "\nthe costs\n" in request.body["messages"][-1]["content"] else YES

    server.answer = answer  # type: ignore[assignment]


@pytest.mark.parametrize("streaming", [False, True])
async def test_a_loop_over_the_wire(server: FaultServer, client: OpenAIChatClient, streaming: bool):
    """P4, U1: no sampling parameter, no tools, never streamed; all calls are counted."""
    failing(server, None, "")
    loop = LoopAgent(RecordingAgent("A plan."), judge(client))
    response = await (loop.run_streaming(REQUEST).final_response() if streaming else loop.run(REQUEST))
    result = LoopResult.of(response)
    assert (result.stop_reason, result.usage.output_token_count) == ("satisfied", 8)
    assert all(not {"stream", "temperature", "tools", "response_format"} & set(body) for body in server.bodies)


@pytest.mark.parametrize("at", ["listing", "a demand"])
@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: str(fault)[:60])
async def test_a_fault_is_no_verdict(server: FaultServer, client: OpenAIChatClient, fault: object, at: str):
    """F1: whichever of its calls fails: no pass, no feedback, no score; the work is kept."""
    failing(server, fault, at)
    with pytest.raises(Exception, match=r"(?s).*") as caught:
        await LoopAgent(RecordingAgent("A plan."), judge(client, retries=1)).run(REQUEST)
    result = LoopResult.of(caught.value)
    assert (result.stop_reason, result.output) == ("evaluator_failed", "A plan.")
    assert [record.evaluations for record in result.iterations] == [()]


@pytest.mark.parametrize("at", ["listing", "a demand"])
@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: str(fault)[:60])
async def test_a_fault_that_is_passed_over(server: FaultServer, client: OpenAIChatClient, fault: object, at: str):
    """Law 25: where the policy goes on, the agent runs again and is told nothing of it."""
    failing(server, fault, at)
    on_all = dict.fromkeys(("error", "length", "refusal", "content_filter", "unreadable"), "continue")
    agent = RecordingAgent(*["A plan."] * 3)
    loop = LoopAgent(agent, judge(client, retries=0, **on_all), LoopAgentOptions(max_iterations=3))
    result = LoopResult.of(await loop.run(REQUEST))
    assert result.stop_reason == "max_iterations"
    words = [word for record in result.iterations for word in record.evaluations]
    assert [(word.decision, word.feedback, word.score) for word in words] == [("continue", None, None)] * 2


async def test_a_server_without_log_probabilities(server: FaultServer, client: OpenAIChatClient):
    """P3: where they are refused, the word decides."""
    server.rejects("logprobs", "top_logprobs")
    failing(server, None, "")
    result = LoopResult.of(await LoopAgent(RecordingAgent("A plan."), judge(client)).run(REQUEST))
    assert result.stop_reason == "satisfied"
