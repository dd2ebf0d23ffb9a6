"""A file of another format that is converted to ours makes the same calls."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from limerick import DATA, Models, verdict

from agents_loop import ChatMessage, ConfigurationError, FunctionCallContent, LoopResult, StopReason
from agents_loop.files import convert_loop_file, load_loop_file
from agents_loop.testing import ScriptedChatClient

Write = Callable[[str], Path]
Changed = Callable[..., Path]


async def ran(path: Path, words: list[Any], drafts: list[Any], **options: Any) -> Any:
    models = Models(drafts, words)
    built = models.build(load_loop_file(path), **options)
    try:
        result = LoopResult.of(await built.agent.run(built.message))
        ending: Any = (result.stop_reason, result.output, result.best and result.best.number)
    except Exception as error:  # noqa: BLE001 - the same error is the same behaviour
        ending = (type(error).__name__, str(error).replace("generator", "agent"))
    sent = [[(call.messages, call.options) for call in client.calls] for client in (models.poet, models.critic)]
    return ending, [
        [([m.text for m in messages], options.max_output_tokens) for messages, options in each] for each in sent
    ]


@pytest.mark.parametrize(
    "words",
    [
        [verdict(True)],
        [verdict(False), "prose", verdict(True)],
        ['```json\n{"approved": true}\n```', '{"approved": "true", "feedback": "f"}', verdict(False, score=0.5)],
        [RuntimeError("down")],
    ],
    ids=["approved", "malformed", "the cap", "a failure"],
)
@pytest.mark.parametrize("options", [{}, {"max_tokens": 400}, {"max_iterations": 1}, {"return_best": True}], ids=str)
async def test_a_converted_loop_does_the_same(write: Write, words: list[Any], options: dict[str, Any]):
    """dagraph: the converted file makes the same calls with the same prompts, and ends alike."""
    source = DATA / "limerick.yaml"
    converted = convert_loop_file(load_loop_file(source))
    assert converted.left_out == ()
    drafts = ["d1", "d2", "d3"]
    own = write(converted.text)
    assert await ran(own, words, drafts, **options) == await ran(source, words, drafts, **options)


async def test_the_budgets_are_carried(changed: Changed, write: Write):
    """dagraph: budgets of the run and of the node both hold in the converted file."""
    path = changed(("  - id:", "  - budget: {max_tokens: 60}\n    id:"))
    converted = convert_loop_file(load_loop_file(path))
    loop = Models([], []).build(load_loop_file(write(converted.text))).agent
    assert [budget.counts_cached_input for budget in loop.options.budget] == [False] * len(loop.options.budget)
    assert min(budget.max_tokens for budget in loop.options.budget) == 60


def test_what_is_not_carried_is_said(changed: Changed):
    """What our format can't say is told, a line each."""
    path = changed(("    max_iterations:", "    when: 'true'\n    retry: {max_attempts: 2}\n    max_iterations:"))
    said = convert_loop_file(load_loop_file(path)).left_out
    assert [line.partition(":")[0] for line in said] == ["when", "retry"]


@pytest.mark.parametrize(
    "nodes",
    [
        "  - {id: a, type: agent, model: m, prompt: p}\n",
        (
            "  - {id: a, type: evaluator_loop, generator: &g {model: m, prompt: p}, evaluator: *g}\n"
            "  - {id: b, type: evaluator_loop, generator: *g, evaluator: *g}\n"
        ),
    ],
    ids=["no loop", "two loops"],
)
def test_what_is_no_single_loop(write: Write, nodes: str):
    """A graph of several nodes, and a file without a loop, are no loop."""
    with pytest.raises(ConfigurationError, match="a file of our own is one loop: keep one evaluator_loop node"):
        convert_loop_file(load_loop_file(write(f"name: n\nnodes:\n{nodes}")))


def flow(*, functions: int = 2, workers: int = 1, system: str = "You cook. {% x %}", judged: str = "Judge.") -> str:
    parameters = {
        "type": "object",
        "properties": {"ask": {"type": "string", "description": "what"}},
        "required": ["ask"],
    }
    offered = [
        {"name": "again", "title": "Again", "description": "More.", "parameters": parameters},
        {"name": "fine", "title": "Fine", "description": "Enough.", "parameters": {"type": "object", "properties": {}}},
    ][:functions]
    worker = {
        "messages": [{"role": "system", "content": system}, {"role": "user", "content": "For {{$.who}} {{ x }}!"}]
    }
    judge = {"messages": [{"role": "system", "content": judged}, {"role": "user", "content": "{{$.w.messages}}"}]}
    nodes: list[dict[str, Any]] = [
        {"ref": "start", "kind": "startNode", "title": "S"},
        *[
            {"ref": f"w{n}", "kind": "llm", "title": "W", "key": "w", "data": {"settingsId": "cook", "body": worker}}
            for n in range(workers)
        ],
        {
            "ref": "j",
            "kind": "llm",
            "title": "J",
            "key": "j",
            "data": {"settingsId": "critic", "body": judge, "functions": offered},
        },
    ]
    edges = [
        {"from": "start", "to": "w0"},
        *[{"from": f"w{n}", "to": f"w{n + 1}"} for n in range(workers - 1)],
        {"from": f"w{workers - 1}", "to": "j"},
        {"from": "j", "to": "w0", "port": "again"},
    ]
    return json.dumps(
        {"flomorphic": {"kind": "workflow", "version": 1}, "title": "Dinner", "nodes": nodes, "edges": edges}
    )


async def test_a_flow_with_a_judge_that_calls_functions(tmp_path: Path, write: Write):
    """FloMorphic: a worker, a judge with functions and an edge back are an agent that hears the judge's question."""
    path = tmp_path / "flow.json"
    path.write_text(flow(), "utf-8")
    converted = convert_loop_file(load_loop_file(path))
    assert [line.partition(":")[0] for line in converted.left_out] == ["w0", "j"]
    calls = [
        ChatMessage("assistant", [FunctionCallContent("c", "again", {"ask": "Which soup?"})]),
        ChatMessage("assistant", [FunctionCallContent("d", "fine", {})]),
    ]
    clients = {"cook": ScriptedChatClient(["Soup.", "Leek soup."]), "critic": ScriptedChatClient(calls)}
    built = load_loop_file(write(converted.text)).build({"who": "Ann"}, clients.__getitem__)
    result = LoopResult.of(await built.agent.run(built.message))
    assert (result.stop_reason, result.output) == (StopReason.SATISFIED, "Leek soup.")
    heard = [message.text for message in clients["cook"].calls[1].messages]
    assert heard == ["You cook. {% x %}", "For Ann {{ x }}!", "Soup.", "Which soup?"]
    judge = clients["critic"].calls[0]
    assert judge.messages[0].text == "Judge."
    assert [tool["function"]["name"] for tool in judge.options.tools] == ["again", "fine"]


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"functions": 1}, "'j' needs a function back to 'w0', and one that ends"),
        ({"workers": 2}, "it has 2 `llm` nodes without functions, and 1 with: one of each makes a loop"),
    ],
    ids=str,
)
def test_a_flow_of_another_shape(tmp_path: Path, changed: dict[str, Any], said: str):
    """A flow that is not one worker and one judge is refused, with the reason."""
    path = tmp_path / "flow.json"
    path.write_text(flow(**changed), "utf-8")
    with pytest.raises(ConfigurationError) as caught:
        convert_loop_file(load_loop_file(path))
    assert said in str(caught.value)


def test_what_a_flow_makes_is_not_carried(tmp_path: Path):
    """What the flow fills into the judge's instructions is not known to a loop: the usual instructions stand in."""
    path = tmp_path / "flow.json"
    path.write_text(flow(judged="Round {{$.round}}."), "utf-8")
    converted = convert_loop_file(load_loop_file(path))
    assert "Round" not in converted.text
    assert any("{{$.round}}, which the flow makes" in line for line in converted.left_out)


@pytest.mark.parametrize("path", [DATA / "dinner_export.json"], ids=lambda path: path.name)
def test_an_export_becomes_a_valid_file(path: Path, write: Write):
    """An export with scripts between is converted to a valid file; the scripts are named."""
    converted = convert_loop_file(load_loop_file(path))
    assert load_loop_file(write(converted.text)).describe()[1] == "  evaluators: function_call"
    assert any(line.startswith("scripts (") for line in converted.left_out)


def test_an_own_file_is_not_converted(write: Write):
    """A file of our own is one already."""
    path = write("name: n\nloop: {agent: {model: m, request: r}, evaluators: [json]}\n")
    with pytest.raises(ConfigurationError, match="is of our own format already"):
        convert_loop_file(load_loop_file(path))
