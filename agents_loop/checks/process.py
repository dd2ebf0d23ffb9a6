"""A process that leaves nothing behind: its time and its output are bounded, and its whole group is killed."""

from __future__ import annotations

import asyncio
import os
import signal
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

_BYTES = 4
"""Of a character at most, in UTF-8."""
_NOTE = "\n[... output is left out here ...]\n"
_DRAIN_S = 1.0
"""How long output is still read when the group is dead: a process that left the group may hold the pipe open."""


@dataclass(frozen=True, slots=True)
class FinishedProcess:
    """How a process ended."""

    exit_code: int | None
    """Below 0 the signal that ended it; `None` if it was stopped when its time was over."""
    output: str
    """What it wrote to both of its outputs; if that is long, the head and the tail."""


async def run_process(
    command: Sequence[str],
    *,
    stdin: str,
    cwd: str | Path | None,
    env: Mapping[str, str],
    timeout_s: float,
    max_output_characters: int,
) -> FinishedProcess:
    """Run a program to its end, or until its time is over. Whatever it started is killed with it, on cancellation too.

    Raises:
        OSError: The program can't be started.
    """
    with tempfile.TemporaryFile() as given:
        given.write(stdin.encode("utf-8", "replace"))
        given.seek(0)
        starting = asyncio.get_running_loop().subprocess_exec(
            lambda: _Process(max_output_characters),
            *command,
            stdin=given,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            cwd=cwd,
            env=dict(env),
            start_new_session=True,
        )
        transport, process = await _started(asyncio.ensure_future(starting))
    exit_code = None
    try:
        async with asyncio.timeout(timeout_s):
            await process.has_exited.wait()
        exit_code = transport.get_returncode()
    except TimeoutError:
        pass
    finally:
        await _end(transport, process)
    return FinishedProcess(exit_code, process.output.text())


async def _started(
    starting: asyncio.Future[tuple[asyncio.SubprocessTransport, _Process]],
) -> tuple[asyncio.SubprocessTransport, _Process]:
    """The started process. Cancelled meanwhile, asyncio would kill it alone, and not what it has started by then."""
    try:
        return await asyncio.shield(starting)
    except asyncio.CancelledError:
        with suppress(OSError):
            await _end(*await starting)
        raise


async def _end(transport: asyncio.SubprocessTransport, process: _Process) -> None:
    """Kill the group, and read what it still wrote."""
    with suppress(ProcessLookupError, PermissionError):
        if hasattr(os, "killpg"):
            os.killpg(transport.get_pid(), signal.SIGKILL)
        else:
            transport.kill()
    try:
        async with asyncio.timeout(_DRAIN_S):
            await process.has_closed.wait()
    except TimeoutError:
        pass
    finally:
        transport.close()


class _Process(asyncio.SubprocessProtocol):
    """Hears of a process's output and of its end."""

    def __init__(self, most: int) -> None:
        self.output = _Output(most)
        self.has_exited = asyncio.Event()
        self.has_closed = asyncio.Event()

    def pipe_data_received(self, fd: int, data: bytes) -> None:  # noqa: ARG002 - both outputs are one pipe
        self.output.add(data)

    def process_exited(self) -> None:
        self.has_exited.set()

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - how the pipe ended says nothing
        self.has_closed.set()


class _Output:
    """The head and the tail of what a process writes, in bounded memory."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._size = most * _BYTES
        self._head = bytearray()
        self._tail = bytearray()
        self._left_out = 0

    def add(self, data: bytes) -> None:
        room = self._size - len(self._head)
        self._head += data[:room]
        self._tail += data[room:]
        surplus = len(self._tail) - self._size
        if surplus > 0:
            del self._tail[:surplus]
            self._left_out += surplus

    def text(self) -> str:
        if self._left_out:
            head, tail = self._head.decode("utf-8", "replace"), self._tail.decode("utf-8", "replace")
        else:
            head, tail = (self._head + self._tail).decode("utf-8", "replace"), ""
            if len(head) <= self._most:
                return head
        half = self._most // 2
        return (head[: self._most - half] + _NOTE + (tail or head)[-half:]) if half else head[: self._most]
