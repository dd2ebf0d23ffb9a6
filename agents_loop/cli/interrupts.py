"""What Ctrl-C, and a signal to end, do to the process of the command."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any, Self

INTERRUPTED = 130


def end_at_interrupts() -> None:
    """From now on an interrupt ends the process: for when there is no work yet, or none any more.

    An exception would not do: raised while a module is imported, or while the interpreter comes to its end, it may be
    swallowed or shown as a traceback. Where interrupts are not left to Python (`nohup`, a host of its own) they stay
    as they are.
    """
    _replace(signal.default_int_handler, _end)


def raise_at_interrupts() -> None:
    """From now on an interrupt is a `KeyboardInterrupt` again, so that the work so far can be shown."""
    _replace(_end, signal.default_int_handler)


def take_endings_for_interrupts() -> None:
    """From now on SIGTERM is an interrupt: `timeout`, a job that is cancelled, a container that is stopped.

    Left to the system it would end the process with all that the work has come to. Only the first one counts: `timeout`
    sends two, and a second interrupt does not wait for the work to be closed. Where interrupts or endings are not left
    to Python they stay as they are.
    """
    hears = signal.getsignal(signal.SIGINT) in (signal.default_int_handler, _end)
    if hears and signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
        with suppress(ValueError):  # not the main thread, which alone is interrupted
            signal.signal(signal.SIGTERM, _interrupt)


def _interrupt(number: int, frame: object) -> None:
    del frame
    signal.signal(number, _ignore)
    signal.raise_signal(signal.SIGINT)


def _ignore(number: int, frame: object) -> None:
    """Not `SIG_IGN`, which the processes that the work starts would inherit."""
    del number, frame


def _replace(old: Callable[..., object], new: Callable[..., object]) -> None:
    if signal.getsignal(signal.SIGINT) is old:
        with suppress(ValueError):  # not the main thread, which alone is interrupted
            signal.signal(signal.SIGINT, new)


def _end(number: int, frame: object) -> None:
    del number, frame
    os._exit(INTERRUPTED)


class KeptWork:
    """Interrupts during work whose result is kept: the first one ends it, and none keeps the result from being shown.

    The first cancels the work, and what it holds is closed in order; a further one does not wait for that. None is
    raised inside the work, where it might be taken for a failure of what happens to be under way. Where interrupts are
    not left to Python they stay as they are.
    """

    def __init__(self) -> None:
        self.is_interrupted = False
        self._loop: asyncio.AbstractEventLoop | None = None
        self._task: asyncio.Task[object] | None = None
        self._is_holding = False

    def __enter__(self) -> Self:
        if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            with suppress(ValueError):  # not the main thread, which alone is interrupted
                signal.signal(signal.SIGINT, self._hear)
                self._is_holding = True
        return self

    def __exit__(self, *_: object) -> None:
        if self._is_holding:
            signal.signal(signal.SIGINT, signal.default_int_handler)

    def run(
        self, work: Callable[[], Coroutine[Any, Any, object]], close: Callable[[], Coroutine[Any, Any, None]]
    ) -> None:
        """Do the work, and close what it used.

        Args:
            work: Begins it.
            close: Closes what it used.

        Raises:
            Exception: What the work raised, if it was not interrupted.
        """
        try:
            with asyncio.Runner() as runner:
                self._loop = runner.get_loop()
                try:
                    runner.run(self._cancellable(work))
                finally:
                    runner.run(close())
        except KeyboardInterrupt:
            self.is_interrupted = True
        except (asyncio.CancelledError, RuntimeError):  # a loop that is stopped within its work raises the latter
            if not self.is_interrupted:
                raise
        finally:
            self._loop = None

    async def _cancellable(self, work: Callable[[], Coroutine[Any, Any, object]]) -> None:
        self._task = asyncio.current_task()
        if not self.is_interrupted:
            await work()

    def _hear(self, number: int, frame: object) -> None:
        del number, frame
        is_first, self.is_interrupted = not self.is_interrupted, True
        if self._loop is None:
            return
        with suppress(RuntimeError):  # it was closed just now
            if is_first and self._task is not None:
                self._loop.call_soon_threadsafe(self._task.cancel)
            else:
                self._loop.call_soon_threadsafe(self._loop.stop)
