"""`agents-loop convert`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from agents_loop import files
from agents_loop.cli.exit_codes import ExitCode
from agents_loop.cli.new_file import write_new
from agents_loop.cli.option_types import File
from agents_loop.cli.streams import write_err, write_out
from agents_loop.cli.text import one_line


def convert(
    file: File,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", metavar="FILE", help="Where it is written, in place of standard output."),
    ] = None,
) -> int:
    """Turn a loop file of another format into one of our own. What it can't carry is said on standard error."""
    converted = files.convert_loop_file(files.load_loop_file(file))
    for line in converted.left_out:
        write_err(f"notice: not carried over: {one_line(line)}\n")
    if out is None:
        write_out(converted.text)
    else:
        write_new(out, converted.text)
        write_out(f"{out}\n")
    return ExitCode.SATISFIED
