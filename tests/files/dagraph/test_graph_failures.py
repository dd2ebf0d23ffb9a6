from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from graphs import NO, TRIP, YES, Cast, DownError, agent, graph, nodes, run, travellers

from agents_loop import (
    ChatResponse,
    LoopResult,
    NodeEvent,
    StopReason,
)
from agents_loop.messages import ChatMessage

Write = Callable[[str], Path]
HERE = {"town": "Ghent"}


# --- failures


async def test_a_node_that_fails_ends_the_run_after_its_wave(write: Write):
    """The others of the wave come to their end, nothing after it begins, and the error is the model's own."""
    broken, came = RuntimeError("no"), asyncio.Event()

    async def slow(messages: Any, options: Any) -> str:
        await came.wait()
        return "late"

    def fail(messages: Any, options: Any) -> str:
        came.set()
        raise broken

    cast = Cast(m=fail, n=slow, o=[])
    lines = [agent("a"), agent("b", model="n"), agent("c", "depends_on: [b]", model="o")]

    with pytest.raises(RuntimeError) as caught:
        await run(cast.build(write(graph(*lines))))

    assert caught.value is broken
    result = LoopResult.of(broken)
    assert (result.stop_reason, result.stop_detail) == (StopReason.FAILED, "node 'a': RuntimeError: no")
    assert [(node["status"], node["output"]) for node in nodes(result).values()] == [
        ("failed", ""),
        ("done", "late"),
        ("waiting", ""),
    ]


async def test_several_failures_are_one_with_notes(write: Write):
    """The first failure of a wave is raised; the others stand in its notes."""

    def fail(messages: Any, options: Any) -> str:
        raise RuntimeError(messages[0].text)

    with pytest.raises(RuntimeError) as caught:
        await run(Cast(m=fail).build(write(graph(agent("a", prompt="one"), agent("b", prompt="two")))))

    assert str(caught.value) == "one"
    assert caught.value.__notes__ == ["Another node failed too: RuntimeError: two"]


async def test_an_evaluator_that_refuses_fails_its_node():
    """A refusal is no word on the candidate: the node fails, with its work so far in the report."""
    refused = ChatResponse([ChatMessage("assistant", "I won't")], finish_reason="refusal")

    with pytest.raises(Exception, match="refusal") as caught:
        await run(travellers(refused).build(TRIP, HERE))

    report = nodes(LoopResult.of(caught.value))["plan"]
    assert (report["status"], report["output"], report["stop_reason"]) == ("failed", "plan 1", "evaluator_failed")


@pytest.mark.parametrize("finish_reason", ["refusal", "content_filter", "length", "stop"])
async def test_an_agent_without_an_answer_fails(write: Write, finish_reason: str):
    """An agent's model that refuses, or gives no text, fails the node, and says what to change."""
    empty = ChatResponse([ChatMessage("assistant", "")], finish_reason=finish_reason)

    with pytest.raises(Exception, match="the agent gave no candidate") as caught:
        await run(Cast(m=lambda *_: empty).build(write(graph(agent("a"), agent("b")))))

    assert "generator" not in str(caught.value)


async def test_leaving_early_leaves_nothing_running(write: Write):
    """Closing the events cancels all nodes, and their calls."""
    cancelled: list[str] = []

    async def hang(messages: Any, options: Any) -> str:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled.append(messages[0].text)
            raise
        return ""

    built = Cast(m=hang).build(write(graph(agent("a", prompt="one"), agent("b", prompt="two"))))
    before = asyncio.all_tasks()

    async with built.agent.events() as events:
        async for event in events:
            if isinstance(event, NodeEvent) and event.node == "b":
                break
        for _ in range(5):
            await asyncio.sleep(0)

    assert sorted(cancelled) == ["one", "two"]
    assert asyncio.all_tasks() == before
    assert events.result.stop_reason == StopReason.CANCELLED
    assert [node["status"] for node in nodes(events.result).values()] == ["cancelled", "cancelled"]


async def test_cancelling_a_run_is_told_by_the_exception(write: Write):
    """A cancelled run's result can be read from the cancellation, with what was finished."""
    reached = asyncio.Event()

    async def hang(messages: Any, options: Any) -> str:
        reached.set()
        await asyncio.Event().wait()
        return ""

    built = Cast(m=["A"], n=hang).build(write(graph(agent("a"), agent("b", "depends_on: [a]", model="n"))))
    task = asyncio.create_task(built.run())
    await reached.wait()
    task.cancel()

    with pytest.raises(asyncio.CancelledError) as caught:
        await task

    result = LoopResult.of(caught.value)
    assert result.stop_reason == StopReason.CANCELLED
    assert nodes(result)["a"]["output"] == "A"


# --- retries, fallbacks, timeouts


def failing(times: int, error: Exception, then: str = "at last") -> Callable[..., str]:
    left = [error] * times

    def answer(messages: Any, options: Any) -> str:
        if left:
            raise left.pop()
        return then

    return answer


@pytest.mark.parametrize(
    ("retry", "error", "calls"),
    [
        ("{max_attempts: 3}", ValueError("x"), 3),
        ("{max_attempts: 3, retry_on: [ValueError]}", ValueError("x"), 3),
        ("{max_attempts: 3, retry_on: [LookupError, ArithmeticError]}", KeyError("x"), 3),
        ("{max_attempts: 3, retry_on: [OSError]}", ValueError("x"), None),
        ("{max_attempts: 2}", ValueError("x"), None),
        ("{}", ValueError("x"), None),
        ("{max_attempts: 3, retry_on: []}", ValueError("x"), None),
    ],
)
async def test_a_node_that_failed_is_run_again(write: Write, retry: str, error: Exception, calls: int | None):
    """`retry`: at most `max_attempts` attempts, for the exceptions that it names or that derive from them."""
    cast = Cast(m=failing(2, error))
    built = cast.build(write(graph(agent("a", f"retry: {retry}"), agent("b", "depends_on: [a]"))))

    if calls is None:
        with pytest.raises(type(error)):
            await run(built)
    else:
        result, events = await run(built)
        assert cast.calls == calls + 1
        assert nodes(result)["a"]["attempts"] == calls
        assert [event.detail for event in events if getattr(event, "status", "") == "retried"] == [
            f"attempt {n} of 3: {type(error).__name__}: {error}" for n in (1, 2)
        ]


async def test_a_loop_that_is_retried_begins_anew(write: Write):
    """An attempt of a loop knows nothing of the one before; its report is the last one's."""
    text = TRIP.read_text("utf-8").replace(
        "    max_iterations: 2", "    max_iterations: 2\n    retry: {max_attempts: 2}"
    )
    answers: list[Any] = ["plan 1", ValueError("x"), "plan A"]
    cast = travellers(NO, YES, planner=answers)
    built = cast.build(write(text), HERE)

    result, _ = await run(built)

    assert cast.heard("planner")[2] == "Plan Ghent: the tower / soup"
    assert [each["output"] for each in nodes(result)["plan"]["iterations"]] == ["plan A"]
    assert len(result.ledger) == 8


@pytest.mark.parametrize("is_alone", [True, False])
async def test_the_drafts_of_an_attempt_outlive_one_that_has_none(write: Write, is_alone: bool):
    """Finished work is never lost: where the last attempt of a loop has no draft, the one before is what there is."""
    models = "generator: {model: w, prompt: p}, evaluator: {model: j, prompt: '{{ candidate }}'}"
    loop = f"- {{id: l, type: evaluator_loop, max_iterations: 3, retry: {{max_attempts: 2}}, {models}}}\n"
    cast = Cast(w=["draft 1", "draft 2", ValueError("w")], j=[NO, OSError("j")], m=["x"])
    built = cast.build(write(graph(loop) if is_alone else graph(agent("a"), loop)))

    with pytest.raises(ValueError, match="w") as failure:
        await run(built)

    result = LoopResult.of(failure.value)
    assert result is not None
    assert (result.stop_reason, result.output) == ("failed", "draft 2")
    assert nodes(result)["l"]["attempts"] == 2
    assert [each["output"] for each in nodes(result)["l"]["iterations"]] == ["draft 1", "draft 2"]
    assert len(result.ledger) == (5 if is_alone else 6)


async def test_the_wait_before_an_attempt_is_the_file_s(write: Write, monkeypatch: pytest.MonkeyPatch):
    """`backoff_seconds` is waited before each further attempt."""
    from agents_loop.files.dagraph import graph_run

    waited: list[float] = []

    async def pause(seconds: float) -> None:
        waited.append(seconds)

    monkeypatch.setitem(graph_run.GraphRun.__init__.__kwdefaults__, "pause", pause)
    cast = Cast(m=failing(2, ValueError("x")))

    await run(cast.build(write(graph(agent("a", "retry: {max_attempts: 9, backoff_seconds: 2.5}"), agent("b")))))

    assert waited == [2.5, 2.5]


class RefusedError(Exception):
    status_code = 401


@pytest.mark.parametrize("where", ["agent", "generator", "evaluator"])
async def test_the_next_model_is_asked_where_one_is_down(write: Write, where: str):
    """`fallback_chain`: on 429, 5xx, network and timeouts; in agents, and in generators and evaluators too."""
    chain = "fallback_chain: [m2, m3]"
    down = DownError("down")
    if where == "agent":
        text = graph(agent("a", chain))
    else:
        parts = {
            part: "{model: n, prompt: '{{ candidate }}'}" if part == "evaluator" else "{model: n, prompt: p}"
            for part in ("generator", "evaluator")
        }
        parts[where] = parts[where].replace("model: n", f"model: m, {chain}")
        text = graph(
            f"- {{id: a, type: evaluator_loop, generator: {parts['generator']}, evaluator: {parts['evaluator']}}}\n"
        )
    cast = Cast(m=[down], m2=[down], m3=[YES], n=[YES])

    result, _ = await run(cast.build(write(text)))

    assert result.output == YES
    assert [len(cast.clients[name].calls) for name in ("m", "m2", "m3")] == [1, 1, 1]


async def test_a_rejected_call_is_not_taken_elsewhere(write: Write):
    """401 is no reason to ask another model."""
    cast = Cast(m=[RefusedError("key")], m2=["never"])

    with pytest.raises(RefusedError):
        await run(cast.build(write(graph(agent("a", "fallback_chain: [m2]")))))

    assert len(cast.clients["m2"].calls) == 0


async def hang(messages: Any, options: Any) -> str:
    await asyncio.Event().wait()
    return ""


@pytest.mark.parametrize("streaming", [False, True])
async def test_a_call_that_takes_too_long_goes_to_the_next_model(write: Write, streaming: bool):
    """`timeout_seconds` bounds each call; one that timed out falls on the next model of the chain."""

    text = graph(agent("a", "timeout_seconds: 0.001", "fallback_chain: [m2]"))
    result, _ = await run(Cast(m=hang, m2=["there"]).build(write(text)), streaming=streaming)
    assert result.output == "there"


@pytest.mark.parametrize("streaming", [False, True])
@pytest.mark.parametrize("part", ["", "generator", "evaluator"])
async def test_a_call_that_was_cut_is_told_as_a_timeout(write: Write, part: str, streaming: bool):
    """`timeout_seconds`: the error names the field and what to do, and the ledger says `timeout`, not `cancelled`."""
    parts = {
        each: f"{{model: {'m' if each == part else 'n'}, {'timeout_seconds: 0.001, ' if each == part else ''}prompt: p}}"
        for each in ("generator", "evaluator")
    }
    loop = f"- {{id: a, type: evaluator_loop, generator: {parts['generator']}, evaluator: {parts['evaluator']}}}\n"
    nodes_before = agent("first", model="n")
    text = graph(nodes_before, loop if part else agent("a", "timeout_seconds: 0.001"))

    with pytest.raises(TimeoutError) as failure:
        await run(Cast(m=hang, n=["x", "x"]).build(write(text)), streaming=streaming)

    place = f"nodes[1].{part}.timeout_seconds" if part else "nodes[1].timeout_seconds"
    said = f"{place}: the model 'm' did not answer within 0.001 s: allow more, or add another model to fallback_chain"
    assert str(failure.value) == said
    result = LoopResult.of(failure.value)
    assert result is not None
    assert [entry.outcome for entry in result.ledger if entry.model_id == "m"] == ["timeout"]
    assert result.stop_detail == f"node 'a': CallTimeoutError: {said}"


async def test_a_call_that_the_deadline_ends_is_no_timeout_of_its_own(write: Write):
    """`timeout_seconds`: a call under way at the run's deadline is `cancelled`, though it was bounded too."""
    built = Cast(m=hang).build(write(graph(agent("a", "timeout_seconds: 1000"))), deadline_s=0.5)

    result, _ = await run(built)

    assert (result.stop_reason, [entry.outcome for entry in result.ledger]) == ("deadline", ["cancelled"])
