"""`agents-loop validate`."""

from __future__ import annotations

from agents_loop.cli.exit_codes import ExitCode
from agents_loop.cli.option_types import File
from agents_loop.cli.streams import write_out
from agents_loop.cli.text import one_line
from agents_loop.files import load_loop_file


def validate(file: File) -> int:
    """Check a file, and show everything that is wrong with it. No model is called."""
    for line in load_loop_file(file).describe():
        indent = line[: len(line) - len(line.lstrip(" "))]
        write_out(f"{indent}{one_line(line)}\n")
    return ExitCode.SATISFIED
