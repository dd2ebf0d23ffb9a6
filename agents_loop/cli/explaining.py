"""An error in one line: what happened, and what to do."""

from __future__ import annotations

import traceback

from agents_loop.cli.outages import explain_outage
from agents_loop.cli.text import one_line, printable, redact
from agents_loop.errors import AgentsLoopError
from agents_loop.files import InputError, LoopFileError

_LONGEST = 1000


def explain(error: BaseException, *, model: str | None = None, backend: str | None = None) -> str:
    """What happened and what to do, in one line and without secrets.

    Args:
        error: What was raised.
        model: The model of the latest call, by its name in the file.
        backend: The kind of backend that answers for it.
    """
    if isinstance(error, AgentsLoopError):
        return one_line(redact(str(error)), _LONGEST)
    outage = explain_outage(error, model, backend)
    if outage is not None:
        return outage
    said = one_line(redact(f"{type(error).__name__}: {error}"), _LONGEST)
    return said if model is None else f"{said} -- --debug shows where it was raised"


def explain_each(error: BaseException) -> list[str]:
    """One line for each problem of a file or of questions' inputs, and for another error one."""
    if isinstance(error, LoopFileError | InputError):
        lines = error.lines if isinstance(error, LoopFileError) else str(error).splitlines()
        return [one_line(redact(line), _LONGEST) for line in lines]
    return [explain(error)]


def debug_text(error: BaseException) -> str:
    """The whole traceback, without secrets."""
    return printable(redact("".join(traceback.format_exception(error))))
