"""Standard output and standard error, which may be anything: a terminal, a closed pipe, a full disk, or nothing."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from io import TextIOWrapper
from typing import TextIO


def use_utf8() -> None:
    """Write UTF-8 whatever the locale says; what can't be written becomes `?`."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(encoding="utf-8", errors="replace")


def write_out(text: str) -> OSError | None:
    """Write to standard output. A reader that has gone is no error; another failure is given back."""
    stream: TextIO | None = sys.stdout
    if stream is None:
        return None
    try:
        stream.write(text)
        stream.flush()
    except OSError as error:
        _silence(stream)
        return None if isinstance(error, BrokenPipeError) else error
    return None


def write_err(text: str) -> None:
    """Write to standard error, if anybody is there: a run goes on without an audience."""
    stream: TextIO | None = sys.stderr
    if stream is None:
        return
    try:
        stream.write(text)
        stream.flush()
    except OSError:
        _silence(stream)


def say_error(text: str) -> None:
    """One line for one error."""
    write_err(f"error: {text}\n")


def _silence(stream: TextIO) -> None:
    """Point a stream to nowhere, so that closing it at the end of the process fails no more."""
    with suppress(OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)
