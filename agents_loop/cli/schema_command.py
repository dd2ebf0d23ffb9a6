"""`agents-loop schema`."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from agents_loop import files
from agents_loop.cli.exit_codes import ExitCode
from agents_loop.cli.streams import write_out
from agents_loop.errors import ConfigurationError

_FORMATS = ("loop", "dagraph")


def schema(
    format_: Annotated[str, typer.Option("--format", metavar="FORMAT", help=f"One of {', '.join(_FORMATS)}.")] = (
        "loop"
    ),
) -> int:
    """Write the JSON Schema of loop files to standard output: for editors, and to check files by other programs."""
    if format_ not in _FORMATS:
        raise ConfigurationError(f"--format must be one of {', '.join(_FORMATS)}, not {format_!r}")
    write_out(f"{json.dumps(files.loop_file_schema(format_), ensure_ascii=False, indent=2)}\n")  # pyright: ignore[reportArgumentType] - it is one of these
    return ExitCode.SATISFIED
