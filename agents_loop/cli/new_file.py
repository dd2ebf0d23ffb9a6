"""Files that the command writes, and that were not there before."""

from __future__ import annotations

from pathlib import Path

from agents_loop.errors import ConfigurationError


def write_new(path: Path, text: str) -> None:
    """Write a file that is not there yet.

    Raises:
        ConfigurationError: It is there, or can't be written.
    """
    try:
        with path.open("x", encoding="utf-8", newline="\n") as file:
            file.write(text)
    except FileExistsError as error:
        raise ConfigurationError(f"{str(path)!r} is there already: nothing is written over it") from error
    except OSError as error:
        raise ConfigurationError(f"{str(path)!r} can't be written: {error.strerror}") from error
