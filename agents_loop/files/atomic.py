"""Files that are there as a whole, or not at all."""

from __future__ import annotations

import os
import re
import secrets
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path

_NEW, _OLD = ".tmp", ".old"
_LEFT = re.compile(r"\..+\.[0-9a-f]{8}\.tmp")


def write_whole(path: Path, content: bytes) -> None:
    """Write a file so that a reader, also after a crash, finds the old content or the new one.

    Raises:
        OSError: It can't be written; what was there is still there.
    """
    written = _written_beside(path, content)
    try:
        written.replace(path)
    except OSError:
        written.unlink(missing_ok=True)
        raise
    _sync_folder(path.parent)


def write_all(files: Mapping[Path, bytes], mark: str | None = None) -> None:
    """Write several files, all or none: as far as a file system goes, which renames one at a time.

    All are written under other names before the first is renamed. Where a rename fails, what was renamed before it is
    put back; a crash between two renames is not noticed.

    Args:
        files: What is written, by path.
        mark: What the other names hold, so that `clear_leftovers` finds what a crash leaves; something new, if it is
            left out. Nobody else may write with it at the same time.

    Raises:
        OSError: One can't be written; the others are as they were.
    """
    written: dict[Path, Path] = {}
    replaced: dict[Path, Path | None] = {}
    made: list[Path] = []
    try:
        for path, content in files.items():
            made += _make_folders(path.parent)
            if path.is_dir():
                raise IsADirectoryError(21, "Is a directory", str(path))  # noqa: TRY301 - one way out for all that fails
            written[path] = _written_beside(path, content, mark)
        for path in files:
            replaced[path] = _set_aside(path, mark)
            written[path].replace(path)
    except BaseException:
        _put_back(replaced)
        for each in written.values():
            each.unlink(missing_ok=True)
        for folder in reversed(made):
            with suppress(OSError):
                folder.rmdir()
        raise
    for earlier in replaced.values():
        if earlier is not None:
            earlier.unlink(missing_ok=True)
    for folder in {path.parent for path in files}:
        _sync_folder(folder)


def clear_leftovers(paths: Iterable[Path], mark: str) -> None:
    """Take away what a `write_all` that was killed has left beside these files; it was never one of them.

    Args:
        paths: The files.
        mark: That of the `write_all`.
    """
    for path in paths:
        with suppress(OSError):
            _beside(path, mark, _NEW).unlink(missing_ok=True)
            aside = _beside(path, mark, _OLD)
            if os.path.lexists(aside) and not os.path.lexists(path):
                aside.rename(path)  # a file system without hard links: it is the only one
            aside.unlink(missing_ok=True)


def clear_folder(folder: Path) -> None:
    """Take away what a `write_whole` that was killed has left in a folder, in which nobody writes now."""
    with suppress(OSError):
        for path in folder.glob(f".*{_NEW}"):
            if _LEFT.fullmatch(path.name):
                path.unlink(missing_ok=True)


def _beside(path: Path, mark: str | None, ending: str) -> Path:
    return path.with_name(f".{path.name[:100]}.{mark or secrets.token_hex(4)}{ending}")


def _put_back(replaced: Mapping[Path, Path | None]) -> None:
    for path, earlier in replaced.items():
        with suppress(OSError):
            if earlier is None:
                path.unlink(missing_ok=True)
            else:
                earlier.replace(path)
                earlier.unlink(missing_ok=True)  # two names of one file: then a rename does nothing


def _written_beside(path: Path, content: bytes, mark: str | None = None) -> Path:
    beside = _beside(path, mark, _NEW)
    if mark is not None:
        beside.unlink(missing_ok=True)
    try:
        with beside.open("xb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
    except BaseException:
        beside.unlink(missing_ok=True)
        raise
    return beside


def _set_aside(path: Path, mark: str | None) -> Path | None:
    """The earlier file under another name too, as long as the new one may not stay; `None` if there is none."""
    if not path.exists() and not path.is_symlink():
        return None
    aside = _beside(path, mark, _OLD)
    try:
        os.link(path, aside, follow_symlinks=False)  # so that at every moment there is the old file or the new one
    except OSError:  # a file system without hard links
        path.rename(aside)
    return aside


def _make_folders(folder: Path) -> list[Path]:
    """Make a folder and those around it; gives those that were not there, outermost first."""
    missing = [each for each in (folder, *folder.parents) if not each.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    return missing[::-1]


def _sync_folder(folder: Path) -> None:
    """Let a rename survive a crash; not every system can, or needs it."""
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
