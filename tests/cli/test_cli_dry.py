from __future__ import annotations

from pathlib import Path

import pytest
from commanding import LIMERICK, Command

DRY = ("run", LIMERICK, "-i", "place=Delft", "--dry")


def test_a_dry_run_needs_no_backend_and_calls_nobody(command: Command):
    """`--dry` shows the calls, their tokens and the total, without a key and without a call."""
    ran = command(*DRY)

    assert ran.code == 0
    assert ran.err == ""
    lines = ran.out.splitlines()
    assert lines[0].startswith("limerick")
    assert "no model was called" in lines[0]
    assert any(line.lstrip().startswith("total") for line in lines)
    assert "unknown" in ran.out


def test_a_dry_run_writes_nothing(command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Not even the trace that is asked for."""
    monkeypatch.chdir(tmp_path)

    ran = command(*DRY, "--trace", str(tmp_path / "t.jsonl"))

    assert ran.code == 0
    assert [path.name for path in tmp_path.iterdir() if path.name != "home"] == []


def test_a_dry_run_is_one_json_object(command: Command):
    """With `--json` the projection is one object; what is not known is null, never 0."""
    fields = command(*DRY, "--json", "--max-iterations", "2").json

    assert fields["projection"] is True
    assert fields["total"]["calls"] == len(fields["calls"]) == 4
    assert fields["total"]["cost_usd"] is None
    assert fields["ended"] == "max_iterations"
    assert {"who", "node", "iteration", "model", "tokens_in", "tokens_out", "cost_usd"} == set(fields["calls"][0])


def test_prices_make_it_money(command: Command):
    """`--price` gives the cost; a model that stands in for the file's is priced by its own name; a local one is free."""
    priced = command(*DRY, "--json", "--price", "*=1,2").json["total"]["cost_usd"]
    standing_in = command(*DRY, "--json", "--backend", "openai:big", "--price", "big=1,2").json["total"]["cost_usd"]
    local = command(*DRY, "--json", "--backend", "local").json["total"]["cost_usd"]

    assert priced is not None
    assert priced > 0
    assert standing_in == priced
    assert local == 0


def test_wrong_use_of_a_dry_run_is_2(command: Command):
    """A missing input and a backend that is none are found before anything is shown."""
    assert command("run", LIMERICK, "--dry").code == 2
    assert command(*DRY, "--backend", "nobody").code == 2


def test_the_nodes_of_a_graph_are_named_and_no_output_is_written(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """Each call has its node; what the file calls its outputs is not written; a condition that fails is told."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "graph.yaml").write_text(
        """
name: trip
outputs: {out.txt: plan}
nodes:
  - {id: facts, type: agent, model: small, max_output_tokens: 100, prompt: "Facts"}
  - {id: food, type: agent, model: small, prompt: "Food", when: "'yes' in facts", depends_on: [facts]}
  - {id: plan, type: agent, depends_on: [facts, food], model: big, max_output_tokens: 9, prompt: "Plan {{ facts }}"}
""",
        encoding="utf-8",
    )

    ran = command("run", "graph.yaml", "--dry")

    assert ran.code == 0
    assert "facts: agent" in ran.out
    assert "the condition of 'food' does not hold" in ran.out
    assert sorted(path.name for path in tmp_path.iterdir() if path.name != "home") == ["graph.yaml"]


def test_a_flow_is_bounded_by_its_visits_and_a_long_table_is_cut(command: Command):
    """The first function is assumed each time, so that only the cap on visits ends it; JSON has every call."""
    flow = str(Path(LIMERICK).parents[3] / "samples" / "dinner_flow.json")

    ran = command("run", flow, "--dry")
    fields = command("run", flow, "--dry", "--json").json

    assert ran.code == 0
    assert len(ran.out.splitlines()) < 60
    assert "more (--json has all)" in ran.out
    assert "the first one is assumed each time" in ran.out
    assert len(fields["calls"]) > 100
    assert fields["ended"] == "max_iterations"
