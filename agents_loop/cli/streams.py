"""Standard output and standard error, which may be anything: a terminal, a closed pipe, a full disk, or nothing."""

from __future__ import annotations

import os
import sys
from collections.abc import Generator
from contextlib import contextmanager, redirect_stdout, suppress
from io import TextIOBase, TextIOWrapper
from typing import TextIO, cast

from agents_loop.cli.text import printable


def use_utf8() -> None:
    """Write UTF-8 whatever the locale says; what can't be written becomes `?`."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(encoding="utf-8", errors="replace")


class Output(TextIOBase):
    """A stream that is written to without an error; the first one, which lost what was written, is kept.

    A reader that has gone is none: it has what it wanted.

    Args:
        stream: Where the text goes; nowhere when there is none.
    """

    def __init__(self, stream: TextIO | None) -> None:
        self._stream = stream
        self.lost: OSError | None = None

    @property
    def encoding(self) -> str:  # pyright: ignore[reportIncompatibleVariableOverride] - it is read only
        """The stream's."""
        return "utf-8" if self._stream is None else self._stream.encoding

    def writable(self) -> bool:
        """It always is."""
        return True

    def isatty(self) -> bool:
        """Whether the text goes to a terminal."""
        return self._stream is not None and self._stream.isatty()

    def fileno(self) -> int:
        """The stream's, if it has one."""
        return super().fileno() if self._stream is None else self._stream.fileno()

    def write(self, text: str, /) -> int:
        """Write, or lose the text."""
        if self._stream is not None:
            try:
                self._stream.write(text)
            except OSError as error:
                self._lose(self._stream, error)
        return len(text)

    def flush(self) -> None:
        """Flush, or lose what was written."""
        if self._stream is not None:
            try:
                self._stream.flush()
            except OSError as error:
                self._lose(self._stream, error)

    def _lose(self, stream: TextIO, error: OSError) -> None:
        _silence(stream)
        if self.lost is None and not isinstance(error, BrokenPipeError):
            self.lost = error


def is_live_terminal() -> bool:
    """Whether standard error goes to a terminal in which lines can be written anew."""
    return sys.stderr is not None and sys.stderr.isatty() and os.environ.get("TERM") != "dumb"


def is_person_there() -> bool:
    """Whether there is a person at a terminal, who reads standard error and writes to standard input."""
    return sys.stdin is not None and sys.stderr is not None and sys.stdin.isatty() and sys.stderr.isatty()


@contextmanager
def guarded_output() -> Generator[Output, None, None]:
    """Let whatever writes to standard output within it, this command or a library of its, write to an `Output`."""
    output = Output(sys.stdout)
    with redirect_stdout(cast("TextIO", output)):
        try:
            yield output
        finally:
            output.close()  # it flushes; one that is left open does so once more when it is collected


def write_out(text: str) -> None:
    """Write to standard output: to a terminal what can be shown, elsewhere the text as it is."""
    stream: TextIO | None = sys.stdout
    if stream is not None:
        stream.write(printable(text) if stream.isatty() else text)
        stream.flush()


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
