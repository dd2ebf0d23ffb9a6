"""The limits of who runs a file: what messages call them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from graphs import agent, graph, used

from agents_loop import ChatMessage, ChatResponse, FunctionCallContent, ModelPrice, UsageDetails
from agents_loop.files import RunSettings, load_loop_file
from agents_loop.testing import ScriptedChatClient

Write = Callable[[str], Path]
GRAPH = graph(
    agent("a"), agent("b", "depends_on: [a]"), agent("c", "depends_on: [b]"), head="budget: {max_tokens: 9000}\n"
)
OWN = """\
name: own
loop:
  agent: {model: m, request: x}
  evaluators: [{type: completion_marker, marker: DONE}]
  budget: {max_tokens: 9000, name: purse}
"""
FLOW = """\
{"title": "f", "nodes": [
  {"ref": "s", "kind": "startNode"},
  {"ref": "w", "kind": "llm", "data": {"body": {"messages": [{"role": "user", "content": "x"}]},
    "functions": [{"name": "again", "description": "go on"}]}}],
 "edges": [{"from": "s", "to": "w"}, {"from": "w", "to": "w", "port": "again"}]}
"""


def client() -> ScriptedChatClient:
    again = ChatMessage("assistant", [FunctionCallContent("call-1", "again", {})])
    reply = ChatResponse([*used(60).messages, again], usage=UsageDetails(59, 1))
    return ScriptedChatClient(lambda messages, options: reply)


@pytest.mark.parametrize(
    "names", [{}, {"max_tokens": "--max-tokens", "max_cost_usd": "--max-cost", "deadline_s": "--deadline"}]
)
@pytest.mark.parametrize("text", [GRAPH, OWN, FLOW], ids=["graph", "own", "flow"])
@pytest.mark.parametrize(
    ("limit", "value", "said"),
    [
        ("max_tokens", 100, "{} is 100, and the run has used 120 tokens in 2 calls: "),
        ("max_cost_usd", 0.0001, "{} allows $0.0001, and the run has spent $0.000120: "),
        ("deadline_s", 1e-9, "{} allows 1e-09 s, and that time is up"),
    ],
)
async def test_a_limit_is_called_as_who_gave_it_calls_it(
    write: Write, text: str, names: dict[str, str], limit: str, value: float, said: str
):
    """A limit that stands in for the file's is told by the name of the option, or of the setting, not as the file's."""
    price = ModelPrice(input_usd_per_million=1, output_usd_per_million=1)
    settings = RunSettings(limit_names=names, prices={"*": price}, **{limit: value})
    model = client()

    result = await load_loop_file(write(text)).build({}, lambda name: model, settings).run()

    assert result.stop_detail is not None
    assert result.stop_detail.startswith(said.format(names.get(limit) or f"RunSettings.{limit}"))


async def test_the_file_s_own_limit_keeps_its_place(write: Write):
    """What the file itself says is told as the file's, beside limits that stand in for others of it."""
    model = client()
    text = GRAPH.replace("9000", "100")

    result = await load_loop_file(write(text)).build({}, lambda name: model, RunSettings(deadline_s=600)).run()

    assert result.stop_detail is not None
    assert result.stop_detail.startswith("budget.max_tokens is 100, and")
