"""What stands at a path that somebody gave as a file: what is none would be waited for, or read without an end."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Final

_OF_THE_SHELL: Final = ("/dev/fd/", "/proc/")
"""Where the pipes of a shell are, such as that of `<(command)`: somebody has begun to write into them."""


def why_not_read(path: Path) -> str | None:
    """Why a path can't be read as a file; `None` if it can (`/dev/null` can), or if opening it says more."""
    mode = _mode(path)
    if mode is None or stat.S_ISREG(mode) or _is_of_the_shell(path, mode) or os.path.realpath(path) == os.devnull:
        return None
    return _kind(mode)


def why_not_written(path: Path) -> str | None:
    """Why a path can't be written as a file, or as a device such as `/dev/null`; `None` as above."""
    mode = _mode(path)
    if mode is None or stat.S_ISREG(mode) or stat.S_ISCHR(mode) or _is_of_the_shell(path, mode):
        return None
    return _kind(mode)


def _mode(path: Path) -> int | None:
    try:
        return path.stat().st_mode
    except (OSError, ValueError):
        return None


def _is_of_the_shell(path: Path, mode: int) -> bool:
    return stat.S_ISFIFO(mode) and os.path.realpath(path).startswith(_OF_THE_SHELL)


def _kind(mode: int) -> str:
    if stat.S_ISDIR(mode):
        return "it is a folder, not a file"
    if stat.S_ISFIFO(mode):
        return "it is a named pipe, not a file"
    return "it is a socket, not a file" if stat.S_ISSOCK(mode) else "it is a device, not a file"
