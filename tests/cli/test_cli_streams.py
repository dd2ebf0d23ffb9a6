from __future__ import annotations

import errno
import io
import sys

import pytest

from agents_loop.cli.streams import Output, guarded_output, write_out


class Failing(io.StringIO):
    """A stream whose disk is full, or whose reader has gone, when it is flushed or already when it is written."""

    def __init__(self, error: OSError, moment: str) -> None:
        super().__init__()
        self.error, self.moment = error, moment

    def write(self, text: str) -> int:
        if self.moment == "write":
            raise self.error
        return len(text)

    def flush(self) -> None:
        if self.moment == "flush":
            raise self.error


@pytest.mark.parametrize("moment", ["write", "flush"])
@pytest.mark.parametrize(
    ("error", "is_lost"), [(OSError(errno.ENOSPC, "No space left"), True), (BrokenPipeError(), False)]
)
def test_output_that_is_lost_is_kept_in_mind(
    monkeypatch: pytest.MonkeyPatch, moment: str, error: OSError, *, is_lost: bool
):
    """A failure is kept and raises nothing, whoever wrote; a reader that has gone is none."""
    monkeypatch.setattr("sys.stdout", Failing(error, moment))

    with guarded_output() as output:
        write_out("a")
        print("b", flush=True)  # noqa: T201 - as a library would

    assert output.lost is (error if is_lost else None)


def test_without_standard_output_nothing_is_lost(monkeypatch: pytest.MonkeyPatch):
    """A process may have no standard output at all: then nobody wanted any."""
    monkeypatch.setattr("sys.stdout", None)

    with guarded_output() as output:
        write_out("a")
        assert sys.stdout.isatty() is False
        assert sys.stdout.encoding == "utf-8"
        with pytest.raises(io.UnsupportedOperation):
            sys.stdout.fileno()

    assert output.lost is None
    assert sys.stdout is None


def test_output_is_the_streams_own(capsys: pytest.CaptureFixture[str]):
    """What is asked of an output is answered by the stream behind it."""
    output = Output(sys.stdout)

    assert (output.encoding, output.isatty(), output.writable()) == (sys.stdout.encoding, False, True)
    assert output.write("abc") == 3
    assert capsys.readouterr().out == "abc"


def test_output_is_not_flushed_again_once_it_is_over(monkeypatch: pytest.MonkeyPatch):
    """What the output stood for may be closed by the time it is collected: then it must not be touched."""
    behind = io.StringIO()
    monkeypatch.setattr("sys.stdout", behind)
    with guarded_output() as output:
        write_out("a")

    output.write("b")  # as a library does that keeps the stream
    assert behind.getvalue() == "ab"
    behind.close()
    output.close()
    assert output.closed
