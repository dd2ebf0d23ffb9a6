"""A terminal on standard error to which text is added, with a spinner where it waits. Nothing in it is markup."""

from __future__ import annotations

from rich.console import Console
from rich.status import Status
from rich.text import Text


class ScreenConsole(Console):
    """A console whose reader may go: rich would end the process, and take standard output with it."""

    def on_broken_pipe(self) -> None:
        """Say nothing more."""
        self.quiet = True


class LiveScreen:
    """Writes to the terminal. A terminal that has gone is no error.

    Args:
        console: Where to write; standard error when there is none.
    """

    def __init__(self, console: ScreenConsole | None = None) -> None:
        self._console = console or ScreenConsole(stderr=True, highlight=False)
        self._status: Status | None = None
        self._is_inside_line = False
        self._has_gone = False

    def line(self, text: str, style: str = "") -> None:
        """A line of its own."""
        self._end_line()
        self._print(Text(text, style=style), end="\n")

    def write(self, text: str) -> None:
        """More of a text that grows."""
        if text:
            self._stop_waiting()
            self._is_inside_line = not text.endswith("\n")
            self._print(Text(text), end="")

    def wait(self, what: str) -> None:
        """Show that something is under way, until more is written."""
        self._end_line()
        if not self._has_gone:
            self._status = Status(what, console=self._console)
            try:
                self._status.start()
            except OSError:
                self._has_gone = True

    def close(self) -> None:
        """Leave the cursor at the start of a line."""
        self._end_line()

    def _end_line(self) -> None:
        self._stop_waiting()
        if self._is_inside_line:
            self._is_inside_line = False
            self._print(Text(""), end="\n")

    def _stop_waiting(self) -> None:
        status, self._status = self._status, None
        if status is not None:
            try:
                status.stop()
            except OSError:
                self._has_gone = True

    def _print(self, text: Text, *, end: str) -> None:
        if self._has_gone:
            return
        try:
            self._console.print(text, end=end, soft_wrap=True)
        except OSError:
            self._has_gone = True
