from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from agents_loop.files.atomic import clear_folder, clear_leftovers, write_all, write_whole
from agents_loop.files.file_lock import FileLock


def names(folder: Path) -> list[str]:
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*"))


def test_a_file_is_written_as_a_whole(tmp_path: Path):
    """The new content stands in place of the old, and nothing beside it."""
    path = tmp_path / "a"
    write_whole(path, b"old")
    write_whole(path, b"new")

    assert (path.read_bytes(), names(tmp_path)) == (b"new", ["a"])


def test_a_file_that_can_not_be_replaced_stays(tmp_path: Path):
    """A failure leaves what was there, and nothing beside it."""
    (tmp_path / "a").mkdir()

    with pytest.raises(OSError, match="directory"):
        write_whole(tmp_path / "a", b"new")

    assert names(tmp_path) == ["a"]


def test_several_files_are_written_or_none(tmp_path: Path):
    """A folder that can't be made: the files before it are not written, the folders made for them are gone."""
    (tmp_path / "file").write_bytes(b"mine")

    with pytest.raises(OSError, match=r"file"):
        write_all({tmp_path / "new" / "deep" / "a": b"1", tmp_path / "file" / "b": b"2"})

    assert names(tmp_path) == ["file"]


def test_what_was_replaced_is_put_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """A rename that fails: what was renamed before it is as it was, also where there was nothing."""
    for name in ("a", "c"):
        (tmp_path / name).write_bytes(b"old")
    rename = Path.replace

    def fail_for_c(self: Path, target: Path) -> Path:
        if target.name == "c" and self.suffix == ".tmp":
            raise OSError(5, "Input/output error", str(target))
        return rename(self, target)

    monkeypatch.setattr(Path, "replace", fail_for_c)

    with pytest.raises(OSError, match="Input/output"):
        write_all({tmp_path / "a": b"1", tmp_path / "b": b"2", tmp_path / "c": b"3"})

    assert names(tmp_path) == ["a", "c"]
    assert [(tmp_path / name).read_bytes() for name in ("a", "c")] == [b"old", b"old"]


@pytest.mark.parametrize("at", ["replace", "unlink"])
def test_what_a_kill_leaves_is_taken_away(tmp_path: Path, at: str):
    """Killed between two steps: what is left beside the files is never one of them, and the next run clears it."""
    (tmp_path / "a").write_bytes(b"old")
    code = (
        "import os, pathlib, sys\n"
        "from agents_loop.files.atomic import write_all\n"
        f"at, step = {at!r}, getattr(pathlib.Path, {at!r})\n"
        "def kill(self, *more, **options):\n"
        "    if self.name.endswith('.tmp' if at == 'replace' else '.old'): os.kill(os.getpid(), 9)\n"
        "    return step(self, *more, **options)\n"
        "setattr(pathlib.Path, at, kill)\n"
        "write_all({pathlib.Path(sys.argv[1], name): b'new' for name in 'ab'}, 'run')\n"
    )
    subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=False, timeout=60)
    left = names(tmp_path)

    clear_leftovers([tmp_path / name for name in ("a", "b", "c")], "other")
    assert names(tmp_path) == left
    clear_leftovers([tmp_path / name for name in ("a", "b", "c")], "run")

    assert len(left) > len(names(tmp_path))
    assert names(tmp_path) == (["a"] if at == "replace" else ["a", "b"])
    assert (tmp_path / "a").read_bytes() == (b"old" if at == "replace" else b"new")


def test_what_was_set_aside_without_a_link_comes_back(tmp_path: Path):
    """A file system without hard links, killed between two renames: the old file is the only one."""
    (tmp_path / ".a.run.old").write_bytes(b"old")

    clear_leftovers([tmp_path / "a"], "run")

    assert (names(tmp_path), (tmp_path / "a").read_bytes()) == (["a"], b"old")


def test_a_folder_is_cleared_of_leftovers_alone(tmp_path: Path):
    """What a kill left of a `write_whole` goes; files that have another name stay."""
    stay = [".a.tmp", ".a.0123abcd.old", "a.0123abcd.tmp", "b", ".a.0123ABCD.tmp"]
    for name in [*stay, ".a.0123abcd.tmp", ".x.json.01234567.tmp"]:
        (tmp_path / name).write_bytes(b"")

    clear_folder(tmp_path)
    clear_folder(tmp_path / "nowhere")

    assert names(tmp_path) == sorted(stay)


def test_a_link_is_replaced_and_not_followed(tmp_path: Path):
    """A file elsewhere, to which a link leads, stays as it is."""
    (tmp_path / "elsewhere").write_bytes(b"mine")
    (tmp_path / "a").symlink_to(tmp_path / "elsewhere")

    write_all({tmp_path / "a": b"1"})

    assert (tmp_path / "elsewhere").read_bytes() == b"mine"
    assert (tmp_path / "a").read_bytes() == b"1"


def test_a_lock_goes_with_its_process(tmp_path: Path):
    """One process has a lock at a time; a process that was killed has it no more."""
    path = tmp_path / "lock"
    code = (
        "import sys, pathlib\nfrom agents_loop.files.file_lock import FileLock\n"
        "lock = FileLock(pathlib.Path(sys.argv[1]))\nprint(lock.acquire(), flush=True)\nsys.stdin.read()\n"
    )
    holder = subprocess.Popen(
        [sys.executable, "-c", code, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=dict(os.environ)
    )
    assert holder.stdout is not None
    assert holder.stdout.readline() == b"True\n"
    assert not FileLock(path).acquire()

    holder.kill()
    holder.communicate()

    lock = FileLock(path)
    assert lock.acquire()
    lock.release()
    again = FileLock(path)
    assert again.acquire()
    again.release()
