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
    assert {"who", "iteration", "model", "tokens_in", "tokens_out", "cost_usd"} == set(fields["calls"][0])


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
