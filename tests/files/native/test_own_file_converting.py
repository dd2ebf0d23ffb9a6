"""A file of another format that is converted to ours makes the same calls."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from limerick import DATA, Models, verdict

from agents_loop import ConfigurationError, LoopResult
from agents_loop.files import convert_loop_file, load_loop_file

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


def test_an_own_file_is_not_converted(write: Write):
    """A file of our own is one already."""
    path = write("name: n\nloop: {agent: {model: m, request: r}, evaluators: [json]}\n")
    with pytest.raises(ConfigurationError, match="is of our own format already"):
        convert_loop_file(load_loop_file(path))
