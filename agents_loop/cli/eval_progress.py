"""What a person sees of an evaluation on standard error: a bar in a terminal, a line for each question elsewhere."""

from __future__ import annotations

from contextlib import suppress

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

from agents_loop.cli.live import ScreenConsole
from agents_loop.cli.streams import is_live_terminal, write_err
from agents_loop.cli.text import one_line, redact
from agents_loop.evals.grading import Grade
from agents_loop.evals.record import QuestionRecord
from agents_loop.files.counting import counted

_LONGEST = 160


class EvalProgress:
    """Shows nothing; the others show more."""

    def begin(self, total: int) -> None:
        """The questions begin."""

    def notice(self, text: str) -> None:
        """Something that a person should know."""

    def on_record(self, record: QuestionRecord, total: int) -> None:
        """A question is over."""

    def close(self) -> None:
        """Leave the screen in order."""


class PlainProgress(EvalProgress):
    """A line for each question."""

    def __init__(self) -> None:
        self._done = 0

    def notice(self, text: str) -> None:
        """A line."""
        write_err(f"{one_line(text)}\n")

    def on_record(self, record: QuestionRecord, total: int) -> None:
        """A line."""
        self._done += 1
        self.notice(f"{self._done}/{total} {line_of(record)}")


class BarProgress(EvalProgress):
    """A bar, and a line above it for what failed. A terminal that has gone is no error."""

    def __init__(self) -> None:
        self._progress = Progress(
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            MofNCompleteColumn(),
            TimeRemainingColumn(),
            console=ScreenConsole(stderr=True, highlight=False, markup=False),
        )
        self._task: TaskID | None = None
        self._right = self._graded = 0

    def begin(self, total: int) -> None:
        """Show the bar."""
        self._task = self._progress.add_task("questions", total=total)
        with suppress(OSError):
            self._progress.start()

    def notice(self, text: str) -> None:
        """A line above the bar."""
        with suppress(OSError):
            self._progress.console.print(one_line(text))

    def on_record(self, record: QuestionRecord, total: int) -> None:
        """Move on."""
        del total  # the bar knows it
        if record.grade is not None and record.grade.passed is not None:
            self._graded += 1
            self._right += record.grade.passed
        if record.status != "done":
            self.notice(line_of(record))
        if self._task is not None:
            with suppress(OSError):
                self._progress.update(self._task, advance=1, description=f"right {self._right}/{self._graded}")

    def close(self) -> None:
        """Leave the bar as it is."""
        if self._task is not None:
            with suppress(OSError):
                self._progress.stop()


def choose_progress(*, quiet: bool) -> EvalProgress:
    """What suits where standard error goes."""
    if quiet:
        return EvalProgress()
    return BarProgress() if is_live_terminal() else PlainProgress()


def line_of(record: QuestionRecord) -> str:
    """A question that is over, in one line."""
    if record.status != "done":
        return one_line(redact(f"{record.id}: {record.status}: {record.error}"), _LONGEST)
    words = f"draft {word_of(record.first_draft_grade)}, loop {word_of(record.grade)}"
    return one_line(f"{record.id}: {words} ({record.stop_reason}, {counted(record.revisions, 'revision')})", _LONGEST)


def word_of(grade: Grade | None) -> str:
    """A grade in a word."""
    if grade is None or grade.passed is None:
        return "ungraded"
    return "right" if grade.passed else "wrong"
