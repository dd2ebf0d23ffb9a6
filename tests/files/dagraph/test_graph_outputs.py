from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from graphs import NO, TRIP, DownError, run, travellers

from agents_loop import (
    LoopResult,
    StopReason,
)

Write = Callable[[str], Path]
HERE = {"town": "Ghent"}


async def test_outputs_are_written_after_success(tmp_path: Path):
    """Each file has its node's output; folders are made; nothing else is left there."""
    await run(travellers().build(TRIP, HERE, outputs_dir=tmp_path))

    assert {path.name: path.read_text("utf-8") for path in (tmp_path / "out").iterdir()} == {
        "letter.txt": "Dear all",
        "plan.txt": "plan 2",
    }


async def test_outputs_are_written_at_the_cap_too(tmp_path: Path):
    """A loop at its cap is a success; an output of a skipped node is empty; a library's run writes nothing by itself."""
    await run(travellers(NO, NO).build(TRIP, HERE, outputs_dir=tmp_path))

    assert (tmp_path / "out" / "plan.txt").read_text("utf-8") == "plan 2"


async def test_no_output_is_written_after_a_failure(tmp_path: Path):
    """A run that failed writes none of them, also where some nodes are done."""
    with pytest.raises(Exception, match="down"):
        await run(travellers(clerk=[DownError("down")]).build(TRIP, HERE, outputs_dir=tmp_path))

    assert not (tmp_path / "out").exists()


async def test_outputs_are_written_all_or_none(tmp_path: Path):
    """Where one can't be written the others are as they were, the run is `failed`, and its answer is not lost."""
    (tmp_path / "out" / "plan.txt").mkdir(parents=True)
    (tmp_path / "out" / "letter.txt").write_text("old", "utf-8")

    with pytest.raises(Exception, match=r"the outputs can't be written \(.*plan.txt\): .*; none of them is") as caught:
        await run(travellers().build(TRIP, HERE, outputs_dir=tmp_path))

    assert (tmp_path / "out" / "letter.txt").read_text("utf-8") == "old"
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["letter.txt", "plan.txt"]
    result = LoopResult.of(caught.value)
    assert (result.stop_reason, result.output) == (StopReason.FAILED, "Dear all")
