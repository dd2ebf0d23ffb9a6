"""A lock that one process has at a time, and that goes with the process, however it ends."""

from __future__ import annotations

import sys
from contextlib import suppress
from pathlib import Path

if sys.platform == "win32":
    import msvcrt

    def _lock(handle: int) -> None:
        msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)
else:
    import fcntl

    def _lock(handle: int) -> None:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)


class FileLock:
    """A lock on a file, which stays there.

    Args:
        path: The file.

    Raises:
        OSError: It can't be opened.
    """

    def __init__(self, path: Path) -> None:
        self._file = path.open("ab")

    def acquire(self) -> bool:
        """Take it, unless somebody else has it; then the file is closed."""
        try:
            _lock(self._file.fileno())
        except OSError:
            self._file.close()
            return False
        return True

    def release(self) -> None:
        """Let others have it."""
        with suppress(OSError):
            self._file.close()
