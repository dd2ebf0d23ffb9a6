"""`agents-loop new`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from agents_loop.cli.exit_codes import ExitCode
from agents_loop.cli.new_file import write_new
from agents_loop.cli.streams import write_out
from agents_loop.cli.text import as_utf8
from agents_loop.files.native.starter import starter_text


def new(
    name: Annotated[str, typer.Argument(metavar="NAME", help="What the loop is called.", show_default=False)],
) -> int:
    """Write NAME.yaml, a commented loop file to begin with. Its path goes to standard output."""
    text = starter_text(as_utf8(name, "NAME"))
    path = Path(f"{name}.yaml")
    write_new(path, text)
    write_out(f"{path}\n")
    return ExitCode.SATISFIED
