"""Where a graph's outputs are written: below one folder, whatever symbolic links stand in it."""

from __future__ import annotations

import errno
from collections.abc import Mapping
from pathlib import Path, PurePosixPath

from agents_loop.errors import ConfigurationError
from agents_loop.files.run_folder import RunFolder


def output_paths(
    outputs: Mapping[str, str], base: Path, *, source: Path, run_folder: RunFolder | None
) -> dict[Path, str]:
    """The nodes whose outputs are written, by the files' paths.

    Args:
        outputs: The same, by the paths in the file.
        base: The folder below which they are written.
        source: The loop file.
        run_folder: Where the run is kept, if it is.

    Raises:
        ConfigurationError: One would be written elsewhere, over a folder, over another one, over the loop file, or into
            the run's own folder.
    """
    seen: dict[Path, str] = {}
    found: dict[Path, str] = {}
    for path, name in outputs.items():
        written = base / PurePosixPath(path)
        wrong = why_not_below(written, base) or _why_no_file(written)
        if wrong is None:
            target = _target(written)
            if (first := seen.setdefault(target, path)) != path:
                wrong = f"is the same file as {first!r}"
            elif target == source.resolve():
                wrong = "is the loop file itself"
            elif run_folder is not None and target.is_relative_to(run_folder.path.resolve()):
                wrong = f"is in the folder in which the run is kept ({run_folder.path})"
        if wrong is not None:
            raise ConfigurationError(f"{source}: outputs: {path!r} {wrong}: name another file")
        found[written] = name
    return found


def why_not_below(path: Path, base: Path) -> str | None:
    """Why a file that is written at a path would not be below a folder; `None` if it would.

    A link in the file's own place is replaced, and not followed.
    """
    if _is_in_circle(path.parent):
        return "leads nowhere, through symbolic links"
    target, around = _target(path), base.resolve()
    if target.is_relative_to(around):
        return None
    return f"leads out of the directory below which outputs are written, through a symbolic link ({target.parent})"


def _is_in_circle(path: Path) -> bool:
    """Whether links lead round in a circle there. From Python 3.13 on, `Path.resolve` says nothing of it."""
    try:
        path.stat()
    except OSError as error:
        return error.errno == errno.ELOOP
    return False


def _why_no_file(path: Path) -> str | None:
    """What stands in the way, found before anything is spent on the run."""
    try:
        if path.is_dir():
            return "is a folder"
    except OSError as error:
        return f"can't be written ({error.strerror})"
    nearest = next(folder for folder in path.parents if folder.exists())
    return None if nearest.is_dir() else f"stands below {str(nearest)!r}, which is no folder"


def _target(path: Path) -> Path:
    return path.parent.resolve() / path.name
