from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from graphs import NO, TRIP, Cast, DownError, agent, graph, run, travellers

from agents_loop import ConfigurationError, LoopResult, StopReason
from agents_loop.files import RunFolder

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
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "letter.txt").write_text("old", "utf-8")
    built = travellers().build(TRIP, HERE, outputs_dir=tmp_path)
    (tmp_path / "out" / "plan.txt").mkdir()

    with pytest.raises(Exception, match=r"the outputs can't be written \(.*plan.txt\): .*; none of them is") as caught:
        await run(built)

    assert (tmp_path / "out" / "letter.txt").read_text("utf-8") == "old"
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["letter.txt", "plan.txt"]
    result = LoopResult.of(caught.value)
    assert (result.stop_reason, result.output) == (StopReason.FAILED, "Dear all")


# --- where they are written


def refused(cast: Cast, path: Path, folder: Path, **settings: Any) -> str:
    with pytest.raises(ConfigurationError) as caught:
        cast.build(path, outputs_dir=folder, **settings)
    assert cast.calls == 0
    return str(caught.value).removeprefix(f"{path}: outputs: ")


def test_outputs_stay_below_their_folder(write: Write, tmp_path: Path):
    """A path that a symbolic link leads out of the folder is refused before any call, wherever the link stands."""
    here, elsewhere = tmp_path / "here", tmp_path / "elsewhere"
    here.mkdir()
    (elsewhere / "deep").mkdir(parents=True)
    (here / "out").symlink_to(elsewhere)
    (here / "round").symlink_to("round")
    leads = "leads out of the directory below which outputs are written, through a symbolic link"

    for path, said in [
        ("out/a.txt", f"{leads} ({elsewhere}): name another file"),
        ("out/deep/new/a.txt", f"{leads} ({elsewhere / 'deep' / 'new'}): name another file"),
        ("round/a.txt", "leads nowhere, through symbolic links: name another file"),
    ]:
        text = f"{graph(agent('a'))}outputs: {{{path}: a}}\n"
        assert refused(Cast(m=["x"]), write(text), here) == f"{path!r} {said}"


async def test_a_link_within_the_folder_is_followed(write: Write, tmp_path: Path):
    """A link to a folder below is a folder like others; one in the file's own place is replaced, not followed."""
    here = tmp_path / "here"
    (here / "real").mkdir(parents=True)
    (here / "link").symlink_to("real")
    (tmp_path / "mine").write_text("mine", "utf-8")
    (here / "real" / "a.txt").symlink_to(tmp_path / "mine")
    text = f"{graph(agent('a'))}outputs: {{link/a.txt: a}}\n"

    await run(Cast(m=["x"]).build(write(text), outputs_dir=here))

    assert ((here / "real" / "a.txt").read_text("utf-8"), (here / "real" / "a.txt").is_symlink()) == ("x", False)
    assert (tmp_path / "mine").read_text("utf-8") == "mine"


async def test_a_folder_that_is_itself_behind_a_link_is_none_the_less_the_folder(write: Write, tmp_path: Path):
    """It is the folder's inside that may not lead out of it."""
    (tmp_path / "real").mkdir()
    (tmp_path / "here").symlink_to("real")
    text = f"{graph(agent('a'))}outputs: {{new/a.txt: a}}\n"

    await run(Cast(m=["x"]).build(write(text), outputs_dir=tmp_path / "here"))

    assert (tmp_path / "real" / "new" / "a.txt").read_text("utf-8") == "x"


async def test_a_link_that_was_made_meanwhile_is_refused_too(write: Write, tmp_path: Path):
    """At the end it is looked again: nothing is written, the run is `failed`, and its answer is not lost."""
    here = tmp_path / "here"
    here.mkdir()
    text = f"{graph(agent('a'))}outputs: {{out/a.txt: a}}\n"
    built = Cast(m=["x"]).build(write(text), outputs_dir=here)
    (here / "out").symlink_to(tmp_path)

    with pytest.raises(Exception, match=r"the outputs can't be written \(.*\): it leads out of the ") as caught:
        await run(built)

    assert not (tmp_path / "a.txt").exists()
    result = LoopResult.of(caught.value)
    assert result is not None
    assert (result.stop_reason, result.output) == (StopReason.FAILED, "x")


def test_an_output_that_can_not_be_written_is_told_before_any_call(write: Write, tmp_path: Path):
    """What stands in the way, or would be lost, is found before anything is spent."""
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").write_text("mine", "utf-8")
    (tmp_path / "link").symlink_to("folder")
    kept = RunFolder(tmp_path / "runs", "one")

    for paths, said in [
        ("folder: a", "'folder' is a folder"),
        ("file/a.txt: a", f"'file/a.txt' stands below {str(tmp_path / 'file')!r}, which is no folder"),
        ("file/b/a.txt: a", f"'file/b/a.txt' stands below {str(tmp_path / 'file')!r}, which is no folder"),
        ("loop.yaml: a", "'loop.yaml' is the loop file itself"),
        (f"{'x' * 300}: a", f"'{'x' * 300}' can't be written (File name too long)"),
        ("folder/x: a, link/x: a", "'link/x' is the same file as 'folder/x'"),
        ("runs/one/state.json: a", f"'runs/one/state.json' is in the folder in which the run is kept ({kept.path})"),
    ]:
        path = write(f"{graph(agent('a'))}outputs: {{{paths}}}\n")
        assert refused(Cast(m=["x"]), path, tmp_path, run_folder=kept) == f"{said}: name another file"
