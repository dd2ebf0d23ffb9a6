"""A Semantic Kernel agent's runs, and its chat service as a judge, in a run's ledger and within its budget."""

from __future__ import annotations

import pytest

pytest.importorskip("semantic_kernel")

from fault_server import Completion, Failure, FaultServer, Stream, chunk, usage
from semantic_kernel.agents import ChatCompletionAgent

from agents_loop import (
    AIJudgeLoopEvaluator,
    ConfigurationError,
    LoopAgent,
    LoopAgentOptions,
    LoopBudget,
    LoopResult,
    ModelPrice,
    StopReason,
)

MORE = '{"gapAnalysis": "more", "answered": false}'
DONE = '{"gapAnalysis": "", "answered": true}'
PRICE = ModelPrice(input_usd_per_million=1_000_000, output_usd_per_million=1_000_000)


def loop(service, **options) -> LoopAgent:
    agent = ChatCompletionAgent(service=service, name="writer")
    return LoopAgent(agent, AIJudgeLoopEvaluator(service), LoopAgentOptions(**options))


@pytest.mark.parametrize("streaming", [False, True])
async def test_each_run_of_a_kernel_agent_is_an_entry(openai_service, server: FaultServer, *, streaming: bool):
    """U1: a run is one entry, with the usage of its response; the judge's call over the same service is another."""
    server.add(
        Stream((chunk({"content": "a draft"}), chunk({}, finish_reason="stop", usage=usage(10, 5))))
        if streaming
        else Completion(content="a draft", usage=usage(10, 5)),
        Completion(content=DONE, usage=usage(20, 3)),
    )
    made = loop(openai_service)

    response = await (made.run_streaming("go").final_response() if streaming else made.run("go"))

    result = LoopResult.of(response)
    assert result is not None
    rows = [(entry.role, entry.model_id, entry.usage.input_token_count, entry.outcome) for entry in result.ledger]
    assert rows == [("agent", None, 10, "ok"), ("evaluator", "m", 20, "ok")]


async def test_a_budget_holds_over_a_kernel_agent(openai_service, server: FaultServer):
    """U2: checked before each of its runs; money at the price of what does not say its model."""
    server.add(
        *[
            reply
            for _ in range(5)
            for reply in (Completion(content="d", usage=usage(10, 5)), Completion(content=MORE, usage=usage(9, 1)))
        ]
    )

    result = LoopResult.of(
        await loop(openai_service, budget=LoopBudget(max_cost_usd=60), prices={"*": PRICE}).run("go")
    )

    assert result is not None
    assert (result.stop_reason, result.ledger.total.cost_usd) == (StopReason.BUDGET_EXCEEDED, 50)
    with pytest.raises(ConfigurationError, match="does not say which model"):
        await loop(openai_service, budget=LoopBudget(max_cost_usd=60), prices={"m": PRICE}).run("go")
    assert len(server.requests) == 4


async def test_a_kernel_agent_that_fails_is_an_entry(openai_service, server: FaultServer):
    """U1: with the cause."""
    server.add(Failure(500, "down"))
    with pytest.raises(Exception, match="failed to complete") as caught:
        await loop(openai_service).run("go")
    result = LoopResult.of(caught.value)
    assert result is not None
    assert [(entry.role, entry.outcome) for entry in result.ledger] == [("agent", "server")]
