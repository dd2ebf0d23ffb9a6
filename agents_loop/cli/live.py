"""A terminal on standard error to which text is added, with a spinner where it waits. Nothing in it is markup."""

from __future__ import annotations

from rich.console import Console
from rich.status import Status
from rich.text import Text


class LiveScreen:
    """Writes to the terminal. A terminal that has gone is no error.

    Args:
        console: Where to write; standard error when there is none.
    """

    def __init__(self, console: Console | None = None) -> None:
        self._console = console or Console(stderr=True, highlight=False, soft_wrap=True)
        self._status: Status | None = None
        self._is_inside_line = False
        self._has_gone = False

    def line(self, text: str, style: str = "") -> None:
        """A line of its own."""
        self._stop_waiting()
        start = "\n" if self._is_inside_line else ""
        self._is_inside_line = False
        self._print(Text(start + text, style=style), end="\n")

    def write(self, text: str) -> None:
        """More of a text that grows."""
        if text:
            self._stop_waiting()
            self._is_inside_line = not text.endswith("\n")
            self._print(Text(text), end="")

    def wait(self, what: str) -> None:
        """Show that something is under way, until more is written."""
        self._stop_waiting()
        if self._is_inside_line:
            self.line("")
        if not self._has_gone:
            self._status = Status(what, console=self._console)
            self._status.start()

    def close(self) -> None:
        """Leave the cursor at the start of a line."""
        self._stop_waiting()
        if self._is_inside_line:
            self.line("")

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
