"""The command `agents-loop`: `main` is its entry point.

What the command is made of takes a while to load, and is loaded by `main`, which answers for an interrupt by then.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence

from agents_loop.cli.interrupts import (
    INTERRUPTED,
    end_at_interrupts,
    raise_at_interrupts,
    take_endings_for_interrupts,
)

_OF_THE_EXTRA = frozenset({"typer", "click", "rich", "jinja2", "yaml"})
_WRONG_USE = 2


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command. An interrupt is no traceback, whenever it comes.

    Args:
        arguments: What follows the command's name. When there are none, they are the process's own, and so is the
            process the command's: an interrupt ends it at once before the work has begun, and after it.

    Returns:
        The exit code.
    """
    if arguments is not None:
        return _run(arguments)
    try:
        end_at_interrupts()
        take_endings_for_interrupts()
        return _run(sys.argv[1:], when_loaded=raise_at_interrupts)
    except KeyboardInterrupt:
        return INTERRUPTED
    finally:
        end_at_interrupts()


def _run(arguments: Sequence[str], *, when_loaded: Callable[[], None] = lambda: None) -> int:
    try:
        from agents_loop.cli.app import run_command  # noqa: PLC0415 - what it needs comes with an extra
    except ImportError as error:
        from agents_loop.errors import MissingExtraError  # noqa: PLC0415 - loaded when an interrupt is answered for

        missing = (error.name or "").partition(".")[0]
        if not isinstance(error, MissingExtraError) and missing not in _OF_THE_EXTRA:
            raise
        sys.stderr.write(f"error: {MissingExtraError('the command agents-loop', 'cli')}\n")
        return _WRONG_USE
    try:
        when_loaded()
        return run_command(arguments)
    except KeyboardInterrupt:
        return INTERRUPTED
