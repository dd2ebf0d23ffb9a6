"""What Ctrl-C does to the process of the command."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from contextlib import suppress

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


def _replace(old: Callable[..., object], new: Callable[..., object]) -> None:
    if signal.getsignal(signal.SIGINT) is old:
        with suppress(ValueError):  # not the main thread, which alone is interrupted
            signal.signal(signal.SIGINT, new)


def _end(number: int, frame: object) -> None:
    del number, frame
    os._exit(INTERRUPTED)
