"""A run's events in a file, one JSON object a line, as they happen."""

from __future__ import annotations

import json
import os
import stat
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import assert_never

from agents_loop.cli.text import redact, redact_details
from agents_loop.errors import ConfigurationError
from agents_loop.file_kinds import why_not_written
from agents_loop.loop.answer import answer_text
from agents_loop.loop.events import (
    AgentResponded,
    AgentUpdated,
    EvaluatorDecided,
    IterationStarted,
    LoopEvent,
    LoopStarted,
    LoopStopped,
    NodeChanged,
    NodeEvent,
    StallNoticed,
)
from agents_loop.loop.result import evaluation_to_json, result_to_json
from agents_loop.message_json import usage_to_json
from agents_loop.messages import ChatMessage, JsonValue

_START = b'{"event": '
"""How every trace begins."""


class TraceWriter:
    """Writes each event when it happens, but for the pieces of a stream. A disk that fails does not stop the run.

    Args:
        path: The file; what was in it is replaced by the first event, so that a run that can't begin leaves it.
        on_warning: Hears once that the disk failed.
        clock: Gives the seconds since the epoch.

    Raises:
        ConfigurationError: The file can't be written, or holds something else than a trace.
    """

    def __init__(self, path: Path, on_warning: Callable[[str], None], clock: Callable[[], float] = time.time) -> None:
        self._path = path
        self._on_warning = on_warning
        self._clock = clock
        if why := why_not_written(path):
            raise ConfigurationError(f"--trace {str(path)!r} can't be written: {why}")
        try:
            _require_trace(path)
            self._file = path.open("a", encoding="utf-8", errors="replace", newline="\n")
        except OSError as error:
            raise ConfigurationError(f"--trace {str(path)!r} can't be written: {error.strerror}") from error
        self._failed = self._has_begun = False

    def on_event(self, event: LoopEvent) -> None:
        """Write a line."""
        fields = event_to_json(event)
        if fields is None or self._failed:
            return
        line = json.dumps({"event": type(event).__name__, "time": self._clock(), **fields}, ensure_ascii=False)
        try:
            if not self._has_begun:
                self._has_begun = True
                self._clear()
            self._file.write(f"{line}\n")
            self._file.flush()
        except OSError as error:
            self._failed = True
            self._on_warning(f"the trace {str(self._path)!r} is not complete: {error.strerror}; the run goes on")

    def _clear(self) -> None:
        """Take away what was there, now that the run has begun; a pipe or a device holds nothing."""
        if stat.S_ISREG(os.fstat(self._file.fileno()).st_mode):
            self._file.truncate(0)

    def close(self) -> None:
        """Close the file."""
        with suppress(OSError):
            self._file.close()


def _require_trace(path: Path) -> None:
    """Let nobody lose a file of another kind to a slip of the command line."""
    if not path.is_file():
        return
    with path.open("rb") as file:
        start = file.read(len(_START))
    if start and start != _START:
        raise ConfigurationError(f"--trace {str(path)!r} is a file of another kind, and would be replaced")


def event_to_json(event: LoopEvent) -> dict[str, JsonValue] | None:  # noqa: PLR0911 - one for each kind
    """An event's fields; `None` for a piece of a stream, which the whole response repeats."""
    match event:
        case LoopStarted():
            return {
                "run_id": event.run_id,
                "messages": _messages(event.messages),
                "max_iterations": event.max_iterations,
            }
        case IterationStarted():
            return {
                "number": event.number,
                "input": _messages(event.input),
                "on_behalf_of": _messages(event.on_behalf_of),
            }
        case AgentUpdated():
            return None
        case AgentResponded():
            usage = event.response.usage
            return {
                "number": event.number,
                "output": answer_text(event.response),
                "finish_reason": event.response.finish_reason,
                "usage": None if usage is None else usage_to_json(usage),
            }
        case EvaluatorDecided():
            return {"number": event.number, "evaluation": evaluation_to_json(event.evaluation)}
        case StallNoticed():
            return dict(asdict(event))
        case NodeChanged():
            return {**asdict(event), "detail": None if event.detail is None else redact(event.detail)}
        case NodeEvent():
            inner = event_to_json(event.event)
            return inner and {"node": event.node, "inner": {"event": type(event.event).__name__, **inner}}
        case LoopStopped():
            return {"result": redact_details(result_to_json(event.result))}
        case _:
            assert_never(event)


def _messages(messages: Sequence[ChatMessage]) -> list[JsonValue]:
    return [{"role": str(message.role), "text": message.text} for message in messages]
