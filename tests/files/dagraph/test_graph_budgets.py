from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from graphs import NO, Cast, agent, graph, nodes, run, used

from agents_loop import (
    ChatResponse,
    ModelPrice,
    StopReason,
    UsageDetails,
)
from agents_loop.errors import ConfigurationError
from agents_loop.messages import ChatMessage

Write = Callable[[str], Path]
HERE = {"town": "Ghent"}


async def test_nodes_share_the_budget_of_the_run(write: Write):
    """Nodes at once and one after the other spend from one budget; the next call is not made."""
    cast = Cast(m=lambda *_: used(60))
    text = graph(agent("a"), agent("b"), agent("c", "depends_on: [a, b]"), head="budget: {max_tokens: 100}\n")

    result, _ = await run(cast.build(write(text)))

    assert result.stop_reason == StopReason.BUDGET_EXCEEDED
    assert result.stop_detail.startswith("budget.max_tokens is 100, and the run has used 120 tokens in 2 calls")
    assert cast.calls == 2
    assert [node["status"] for node in nodes(result).values()] == ["done", "done", "failed"]
    assert nodes(result)["a"]["usage"]["input_token_count"] == 59


async def test_a_node_has_a_budget_of_its_own(write: Write):
    """A node's budget covers all its calls; the run ends with it, and what is under way in other nodes is cancelled."""
    cancelled: list[bool] = []

    async def hang(messages: Any, options: Any) -> str:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled.append(True)
            raise
        return ""

    loop = (
        "- {id: a, type: evaluator_loop, budget: {max_tokens: 5000}, generator: {model: m, prompt: p},"
        " evaluator: {model: n, prompt: '{{ candidate }}'}}\n"
    )
    cast = Cast(m=lambda *_: used(2000, "draft"), n=lambda *_: used(1000, NO), o=hang)

    result, _ = await run(cast.build(write(graph(loop, agent("b", model="o"), agent("c", "depends_on: [a]")))))

    assert result.stop_reason == StopReason.BUDGET_EXCEEDED
    assert result.stop_detail.startswith("node 'a': nodes[0].budget.max_tokens is 5,000, and the run has used 5,000")
    assert cancelled == [True]
    report = nodes(result)
    assert [node["status"] for node in report.values()] == ["failed", "cancelled", "waiting"]
    assert report["a"]["output"] == "draft"
    assert (len(cast.clients["m"].calls), len(cast.clients["n"].calls)) == (2, 1)


async def test_a_budget_covers_all_attempts_and_is_never_retried(write: Write):
    """What failed attempts spent counts, and a budget that is used up is no reason to try again."""

    def answer(messages: Any, options: Any) -> ChatResponse:
        return ChatResponse([ChatMessage("assistant", "")], usage=UsageDetails(59, 1), finish_reason="length")

    cast = Cast(m=answer)
    text = graph(agent("a", "retry: {max_attempts: 20}", "budget: {max_tokens: 100}"), agent("b", model="n"))

    result, _ = await run(Cast.build(cast, write(text.replace("model: n", "model: m"))))

    assert result.stop_reason == StopReason.BUDGET_EXCEEDED
    assert nodes(result)["a"]["attempts"] == 3


async def test_money_needs_each_price_before_anything_is_spent(write: Write):
    """A graph with `max_usd`, of the run or a node, and a model without a price is not run; fallbacks count."""
    for text in (
        graph(agent("a"), agent("b", model="n"), head="budget: {max_usd: 1}\n"),
        graph(agent("a"), agent("b", "budget: {max_usd: 1}", model="n")),
        graph(agent("a"), agent("b", "fallback_chain: [n]"), head="budget: {max_usd: 1}\n"),
    ):
        cast = Cast(m=[], n=[])
        priced = {"m": ModelPrice(input_usd_per_million=1, output_usd_per_million=1)}
        with pytest.raises(ConfigurationError, match="'n' is not known"):
            await run(cast.build(write(text), prices=priced))
        assert cast.calls == 0


async def test_the_run_s_limits_replace_the_file_s(write: Write):
    """`max_tokens` of the run stands in for the budgets of the file and of its nodes."""
    text = graph(
        agent("a", "budget: {max_tokens: 10}"), agent("b", "depends_on: [a]"), head="budget: {max_tokens: 5}\n"
    )

    result, _ = await run(Cast(m=lambda *_: used(60)).build(write(text), max_tokens=500))

    assert result.stop_reason == StopReason.SATISFIED


async def test_a_deadline_ends_a_graph_with_what_is_done(write: Write):
    """Time that is up cancels the calls under way; what was finished stands in the report."""

    async def hang(messages: Any, options: Any) -> str:
        await asyncio.Event().wait()
        return ""

    text = graph(agent("a"), agent("b", "depends_on: [a]", model="n"))

    result, _ = await run(Cast(m=["A"], n=hang).build(write(text), deadline_s=0.05))

    assert result.stop_reason == StopReason.DEADLINE
    assert [(node["status"], node["output"]) for node in nodes(result).values()] == [("done", "A"), ("cancelled", "")]


async def test_what_is_estimated_is_told_once(write: Write):
    """A model without usage is a notice, however many budgets count its calls."""
    told: list[str] = []
    node = agent("a", "budget: {max_tokens: 900}")

    await run(
        Cast(m=lambda *_: "x").build(
            write(graph(node, agent("b"), head="budget: {max_tokens: 900}\n")), on_notice=told.append
        )
    )

    assert told == ["'m' reports no token usage: estimated as a token for every 4 characters"]
