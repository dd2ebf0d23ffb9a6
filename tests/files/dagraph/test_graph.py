from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from graphs import NO, TRIP, YES, Cast, agent, graph, nodes, run, travellers

from agents_loop import (
    LoopStarted,
    LoopStopped,
    NodeChanged,
    NodeEvent,
    StopReason,
)
from agents_loop.files import InputError, LoopFileError, PromptError, load_loop_file

Write = Callable[[str], Path]
HERE = {"town": "Ghent"}


# --- the order


def test_waves_have_what_can_run_at_once():
    """Kahn's waves: a node runs as soon as all that it depends on is over; within a wave in the order of the file."""
    loop_file = load_loop_file(TRIP)

    assert loop_file.waves == [["sights", "food"], ["plan", "extra"], ["letter"]]
    assert loop_file.models == ["scout", "cook", "planner", "editor", "clerk"]
    assert loop_file.describe() == [
        "✓ trip: 5 nodes, 3 wave(s)",
        "  wave 1: ['sights', 'food']",
        "  wave 2: ['plan', 'extra']",
        "  wave 3: ['letter']",
    ]


async def test_each_node_gets_what_is_upstream():
    """Inputs and the outputs of all nodes before reach prompts, of generators and evaluators alike."""
    cast = travellers()

    result, _ = await run(cast.build(TRIP, {**HERE, "days": "2", "appendix": "true"}))

    assert cast.heard("scout") == ["Sights of Ghent, 2 day(s).", "More on the tower."]
    assert cast.heard("cook") == ["Food in Ghent."]
    assert cast.heard("planner") == [
        "Plan Ghent: the tower / soup",
        "Plan Ghent: the tower / soup\nBefore: plan 1. Said: shorter",
    ]
    assert cast.heard("editor") == [
        "Check plan 1 against soup (round 1).",
        "Check plan 2 against soup (round 2).",
    ]
    assert cast.heard("clerk") == ["Letter: plan 2|more towers|the tower"]
    assert (result.stop_reason, result.stop_detail, result.output) == (StopReason.SATISFIED, None, "Dear all")
    assert cast.clients["scout"].calls[0].options.max_output_tokens == 50


async def test_nodes_of_a_wave_run_at_once(write: Write):
    """Two nodes that wait for each other come to their end."""
    both, asked = asyncio.Event(), []

    async def answer(messages: Any, options: Any) -> str:
        asked.append(messages[0].text)
        if len(asked) == 2:
            both.set()
        await both.wait()
        return "x"

    result, _ = await run(Cast(m=answer).build(write(graph(agent("a"), agent("b")))))

    assert result.stop_reason == StopReason.SATISFIED
    assert [node["status"] for node in nodes(result).values()] == ["done", "done"]


async def test_the_output_is_that_of_the_last_sink(write: Write):
    """Of several nodes on which no other depends, the last in the file that was not skipped."""
    lines = [agent("a"), agent("b", "depends_on: [a]"), agent("c"), agent("d", "when: 'false'")]
    replies = iter("ACB")

    result, _ = await run(Cast(m=lambda *_: next(replies)).build(write(graph(*lines))))

    assert result.output == "C"


@pytest.mark.parametrize(
    ("lines", "output"),
    [
        ([agent("a"), agent("b", "depends_on: [a]", "when: 'false'", model="n")], "A"),
        ([agent("c", "depends_on: [b]", model="n"), agent("b", "depends_on: [a]", "when: 'false'"), agent("a")], "N"),
        ([agent("a", "when: 'false'"), agent("b", "depends_on: [a]", "when: 'false'")], ""),
    ],
)
async def test_a_node_that_was_skipped_leaves_the_output_to_what_came_before(
    write: Write, lines: list[str], output: str
):
    """What only skipped nodes depend on is the output; what a node that ran has upstream is not."""
    result, _ = await run(Cast(m=["A"], n=["N"]).build(write(graph(*lines))))

    assert result.output == output


# --- what the report says


async def test_the_report_has_each_node():
    """`nodes`: in the order of the file, what became of each, with the iterations of loops."""
    result, _ = await run(travellers().build(TRIP, HERE))

    report = nodes(result)
    assert [(name, node["type"], node["status"], node["output"]) for name, node in report.items()] == [
        ("sights", "agent", "done", "the tower"),
        ("food", "agent", "done", "soup"),
        ("plan", "evaluator_loop", "done", "plan 2"),
        ("extra", "agent", "skipped", ""),
        ("letter", "agent", "done", "Dear all"),
    ]
    plan = report["plan"]
    assert (plan["stop_reason"], plan["attempts"]) == ("satisfied", 1)
    assert [each["output"] for each in plan["iterations"]] == ["plan 1", "plan 2"]
    assert plan["iterations"][1]["evaluations"][0]["note"] == "fine"
    assert "iterations" not in report["letter"]
    assert len(result.ledger) == 7
    assert [entry.role for entry in result.ledger].count("evaluator") == 2


async def test_a_score_and_the_feedback_of_an_approval_are_in_the_record():
    """Facts: extra keys such as `score` change nothing and are kept, and so is the feedback of an approved reply."""
    words = (
        '{"approved": false, "feedback": "no", "score": 0.25}',
        '{"approved": true, "feedback": "neat", "score": 1}',
    )

    result, _ = await run(travellers(*words).build(TRIP, HERE))

    said = [each["evaluations"][0] for each in nodes(result)["plan"]["iterations"]]
    assert [each["score"] for each in said] == [0.25, 1]
    assert said[1]["details"] == {"approved": True, "feedback": "neat", "score": 1}


@pytest.mark.parametrize(
    ("words", "calls", "output"), [([YES], 5, "plan 1"), ([NO, YES], 7, "plan 2"), ([NO, NO], 7, "plan 2")]
)
async def test_a_loop_costs_two_calls_an_iteration(words: list[str], calls: int, output: str):
    """Facts: approved at k is 2k calls, never is twice the cap; the output is the last candidate, approved or not."""
    cast = travellers(*words)

    result, _ = await run(cast.build(TRIP, HERE))

    assert (cast.calls, nodes(result)["plan"]["output"]) == (calls, output)


async def test_a_fenced_reply_is_not_approved():
    """Facts: a code fence makes the reply malformed, and its raw text the feedback."""
    fenced = '```json\n{"approved": true}\n```'
    cast = travellers(fenced, YES)

    await run(cast.build(TRIP, HERE))

    assert f"Said: {fenced}" in cast.heard("planner")[1]


async def test_a_loop_at_its_cap_is_a_success_that_is_told():
    """At the cap the last candidate is the output, what depends on it runs, and the run ends as `max_iterations`."""
    cast = travellers(NO, NO)

    result, _ = await run(cast.build(TRIP, HERE))

    assert cast.heard("clerk") == ["Letter: plan 2||the tower"]
    assert (result.stop_reason, result.output) == (StopReason.MAX_ITERATIONS, "Dear all")
    assert result.stop_detail.startswith("node 'plan': 2 of 2 iterations")
    assert nodes(result)["plan"]["stop_reason"] == "max_iterations"


async def test_settings_hold_for_each_loop():
    """`max_iterations` replaces the cap of each loop, `return_best` gives the best candidate of one at its cap."""
    best = ('{"approved": false, "feedback": "a", "score": 0.9}', '{"approved": false, "feedback": "b", "score": 0.1}')

    capped, _ = await run(travellers(NO).build(TRIP, HERE, max_iterations=1))
    chosen, _ = await run(travellers(*best).build(TRIP, HERE, return_best=True))

    assert nodes(capped)["plan"]["output"] == "plan 1"
    assert nodes(chosen)["plan"]["output"] == "plan 1"


# --- events


async def test_the_events_are_those_of_the_nodes():
    """A graph begins and ends once; in between stands what happens in its nodes, under their ids."""
    _, events = await run(travellers().build(TRIP, HERE))

    assert isinstance(events[0], LoopStarted)
    assert isinstance(events[-1], LoopStopped)
    assert {type(event) for event in events[1:-1]} == {NodeChanged, NodeEvent}
    of_plan = [type(event.event).__name__ for event in events if isinstance(event, NodeEvent) and event.node == "plan"]
    assert of_plan == [
        "LoopStarted",
        *["IterationStarted", "AgentResponded", "EvaluatorDecided"] * 2,
        "LoopStopped",
    ]
    changes = [(event.node, event.status) for event in events if isinstance(event, NodeChanged)]
    assert changes.index(("sights", "done")) < changes.index(("plan", "started"))
    assert ("extra", "skipped") in changes


async def test_nodes_stream_where_that_is_asked():
    """A streaming run has the pieces of each node's answer."""
    _, events = await run(travellers().build(TRIP, HERE), streaming=True)

    pieces = [
        event.event.update.text
        for event in events
        if getattr(event, "event", None).__class__.__name__ == "AgentUpdated"
    ]
    assert "Dear all" in "".join(pieces)


async def test_events_that_are_over_stay_over():
    """Who asks for more after the last event gets none, as with any iterator."""
    async with travellers().build(TRIP, HERE).agent.events() as events:
        first = [event async for event in events]
        second = [event async for event in events]

    assert first
    assert second == []


async def test_a_graph_runs_again_and_again():
    """A graph keeps nothing between its runs: two at once don't mix."""
    cast = travellers(*[YES] * 2, scout=["t"] * 2, cook=["s"] * 2, planner=["p"] * 2, clerk=["one", "two"])
    built = cast.build(TRIP, HERE)

    results = await asyncio.gather(run(built), run(built))

    assert sorted(result.output for result, _ in results) == ["one", "two"]


# --- conditions


@pytest.mark.parametrize(
    ("when", "runs"),
    [
        ("'yes' in a", True),
        ("a == 'no'", False),
        ("(b | fromjson).go", True),
        ("(b | fromjson).stop", False),
        ("a and not b", False),
        ("x is defined", False),
        ("c", False),
    ],
)
async def test_a_condition_decides_whether_a_node_runs(write: Write, when: str, runs: bool):
    """`when` sees inputs and the outputs upstream; a node whose condition is falsy has an empty output."""
    lines = [
        agent("a"),
        agent("b", model="j"),
        agent("c", "when: 'false'"),
        agent("d", "depends_on: [a, b, c]", f"when: {json.dumps(when)}", model="n"),
        agent("e", "depends_on: [d]", model="n", prompt="[{{ d }}]"),
    ]
    cast = Cast(m=["yes"], j=['{"go": 1, "stop": 0}'], n=["D", "E"] if runs else ["E"])

    result, events = await run(cast.build(write(graph(*lines))))

    assert cast.heard("n")[-1] == ("[D]" if runs else "[]")
    assert nodes(result)["d"]["status"] == ("done" if runs else "skipped")
    if not runs:
        assert NodeChanged("d", "skipped", f"`when` is not true: {when}") in events


async def test_a_condition_that_fails_fails_its_node(write: Write):
    """What can't be worked out is an error with its place, and no call of that node."""
    lines = [agent("a"), agent("b", "depends_on: [a]", "when: (a | fromjson).x", model="n")]
    cast = Cast(m=["no JSON"], n=[])

    with pytest.raises(
        PromptError, match=r":4:\d+: nodes\[1\].when: can't be worked out: 'fromjson': 'no JSON' is not"
    ):
        await run(cast.build(write(graph(*lines))))

    assert cast.calls == 1


# --- prompts


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        (
            [agent("a"), agent("b", prompt="{{ a }}")],
            "nodes[1].prompt: 'a' is a node that this one does not depend on: add it to `depends_on`",
        ),
        (
            [agent("a"), agent("b", prompt="{{ b }}")],
            "nodes[1].prompt: 'b' is this very node: its own output is not there yet",
        ),
        (
            [agent("a"), agent("b", prompt="{{ a | default('') }}")],
            "nodes[1].prompt: 'a' is a node that this one does not depend on: add it to `depends_on`",
        ),
        (
            [agent("a"), agent("b", "when: a == 'x'")],
            "nodes[1].when: 'a' is a node that this one does not depend on: add it to `depends_on`",
        ),
        ([agent("a", prompt="{{ iteration }}")], "nodes[0].prompt: 'iteration' is not a variable of the prompt"),
        (
            [agent("a"), agent("a")],
            "nodes[1].id: the id 'a' is given twice; first in line 3",
        ),
        (
            [agent("a"), agent("candidate")],
            "nodes[1].id: 'candidate' is a variable of the loop itself: call the node something else",
        ),
        (
            [agent("a", "depends_on: [c]"), agent("b", "depends_on: [a]"), agent("c", "depends_on: [b]")],
            "nodes[0].depends_on: a cycle, in which no node can be first: a → b → c → a",
        ),
        (
            [agent("a"), agent("b", "depends_on: [b]")],
            "nodes[1].depends_on[0]: a node can't depend on itself",
        ),
        (
            [agent("first"), agent("b", "depends_on: [frist]")],
            "nodes[1].depends_on[0]: unknown node 'frist'; did you mean 'first'?",
        ),
    ],
)
def test_a_graph_that_can_not_run_is_refused(write: Write, lines: list[str], said: str):
    """Ids, dependencies and what prompts mention are checked before any call, with their place."""
    path = write(graph(*lines))

    with pytest.raises(LoopFileError) as caught:
        load_loop_file(path)

    assert len(caught.value.lines) == 1
    line = caught.value.lines[0].removeprefix(f"{path}:")
    assert line.split(": ", 1)[1].startswith(said), line


def test_every_kind_of_problem_is_told_at_once(write: Write):
    """Wrong values, what is not supported, the graph and the templates: all in one go, in the order of the file."""
    path = write(
        """\
name: 7
hooks: {on_dag_start: x}
inputs: {town: {type: city}}
nodes:
- {id: a, type: agent, model: m, prompt: "{{ b }} {{ twon }}", tools: [x]}
- {id: b, type: evaluator_loop, max_iterations: 0, depends_on: [c], generator: {model: m, prompt: "{{"},
   evaluator: {model: m, promt: x}}
- {id: c, type: agent, model: m, depends_on: [b, d], when: town ==, prompt: p}
- {id: a, type: bash, when: "{{"}
outputs: {../x: z}
"""
    )

    with pytest.raises(LoopFileError) as caught:
        load_loop_file(path)

    found = [line.removeprefix(f"{path}:") for line in caught.value.lines]
    assert [line.split(": ")[1] for line in found] == [
        "name",
        "hooks",
        "inputs.town.type",
        "nodes[0].prompt",
        "nodes[0].prompt",
        "nodes[0].tools",
        "nodes[1].generator.prompt",
        "nodes[1].max_iterations",
        "nodes[1].depends_on",
        "nodes[1].evaluator.prompt",
        "nodes[1].evaluator.promt",
        "nodes[2].depends_on[1]",
        "nodes[2].when",
        "nodes[3].type",
        "outputs.../x",
        "outputs.../x",
    ], found


def test_every_cycle_is_told_at_once(write: Write):
    """Two cycles are two problems."""
    pairs = [("a", "b"), ("b", "a"), ("c", "d"), ("d", "c")]
    path = write(graph(*[agent(name, f"depends_on: [{other}]") for name, other in pairs]))

    with pytest.raises(LoopFileError) as caught:
        load_loop_file(path)

    assert [line.rpartition(": ")[2] for line in caught.value.lines] == ["a → b → a", "c → d → c"]


def test_an_input_is_no_node(write: Write):
    """A name is either an input or a node, in the file and on the command line."""
    with pytest.raises(LoopFileError, match="'a' is an input too: call the node something else"):
        load_loop_file(write(graph(agent("a"), agent("b"), head="inputs: {a: {}}\n")))
    with pytest.raises(InputError, match="'a' is a node of the file, and no input"):
        Cast(m=[]).build(write(graph(agent("a"), agent("b"))), {"a": "x"})


def test_a_missing_input_is_found_before_any_call(write: Write):
    """Without an `inputs` block what any prompt or condition needs must be given."""
    cast = Cast(m=[])
    path = write(graph(agent("a"), agent("b", "depends_on: [a]", "when: size > 1", prompt="{{ a }}")))

    with pytest.raises(InputError, match="the input 'size' is missing: the condition uses it"):
        cast.build(path)

    assert load_loop_file(path).unused_inputs({"size": 1, "colour": "red"}) == ["colour"]


async def test_an_output_is_never_a_template(write: Write):
    """Jinja in the output of a node stays text in the prompts downstream."""
    cast = Cast(m=["{{ 7 * 7 }}{% include 'x' %}"], n=["ok"])

    await run(cast.build(write(graph(agent("a"), agent("b", "depends_on: [a]", model="n", prompt="<{{ a }}>")))))

    assert cast.heard("n") == ["<{{ 7 * 7 }}{% include 'x' %}>"]


def test_the_first_prompts_are_rendered_before_a_model_is_asked(write: Write):
    """What needs no other node, and can't be rendered, is an error of the file."""
    with pytest.raises(LoopFileError, match=r"nodes\[1\]\.prompt: can't be rendered: .*zero"):
        Cast(m=[]).build(write(graph(agent("a"), agent("b", prompt="{{ 1 // 0 }}"))))


async def test_fromjson_reads_a_node_s_output(write: Write):
    """`fromjson` gives the value of a JSON text, as for a list of items."""
    cast = Cast(m=['["x", "y"]'], n=["ok"])
    prompt = "{% for item in a | fromjson %}- {{ item }} {% endfor %}"

    await run(cast.build(write(graph(agent("a"), agent("b", "depends_on: [a]", model="n", prompt=prompt)))))

    assert cast.heard("n") == ["- x - y"]


# --- one loop


ONE = "- {id: a, type: evaluator_loop, EXTRA max_iterations: 2, generator: {model: m, prompt: p}, evaluator: {model: n, prompt: '{{ candidate }}'}}\n"


@pytest.mark.parametrize("extra", ["", "when: '1',", "retry: {max_attempts: 2},"])
async def test_a_file_of_one_loop_has_that_loop_s_result(write: Write, extra: str):
    """Iterations, reason and ledger are the loop's own, also where the file says more of it."""
    cast = Cast(m=["one", "two"], n=[NO, NO])

    result, _ = await run(cast.build(write(graph(ONE.replace("EXTRA", extra)))))

    assert result.stop_reason == StopReason.MAX_ITERATIONS
    assert result.stop_detail.startswith("2 of 2 iterations")
    assert [record.response.text for record in result.iterations] == ["one", "two"]
    assert [(entry.role, entry.iteration) for entry in result.ledger] == [
        ("agent", 1),
        ("evaluator", 1),
        ("agent", 2),
        ("evaluator", 2),
    ]
    assert ("nodes" in result.report) is bool(extra)


async def test_a_file_of_one_loop_that_is_skipped(write: Write):
    """Nothing was asked, and nothing is the output."""
    cast = Cast(m=[], n=[])

    result, _ = await run(cast.build(write(graph(ONE.replace("EXTRA", "when: 'false',")))))

    assert (result.stop_reason, result.output, cast.calls) == (StopReason.SATISFIED, "", 0)
