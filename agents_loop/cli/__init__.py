"""The command `agents-loop`: `main` is its entry point."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from agents_loop.errors import MissingExtraError

_OF_THE_EXTRA = frozenset({"typer", "click", "rich", "jinja2", "yaml"})


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command.

    Args:
        arguments: What follows the command's name; the process's own when there are none.

    Returns:
        The exit code.
    """
    try:
        from agents_loop.cli.app import run_command  # noqa: PLC0415 - what it needs comes with an extra
    except ImportError as error:
        missing = (error.name or "").partition(".")[0]
        if not isinstance(error, MissingExtraError) and missing not in _OF_THE_EXTRA:
            raise
        sys.stderr.write(f"error: {MissingExtraError('the command agents-loop', 'cli')}\n")
        return 2
    return run_command(sys.argv[1:] if arguments is None else arguments)
