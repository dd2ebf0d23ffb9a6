"""`agents-loop models`."""

from __future__ import annotations

from typing import Annotated

import typer

from agents_loop.cli.exit_codes import ExitCode
from agents_loop.cli.local_models import list_models, pull_with_progress
from agents_loop.cli.streams import write_out

models = typer.Typer(help="The models on this machine.")


@models.command("list")
def list_() -> int:
    """List the known models, and where they are on this machine."""
    list_models()
    return ExitCode.SATISFIED


@models.command()
def pull(name: Annotated[str, typer.Argument(metavar="NAME", show_default=False)]) -> int:
    """Fetch a model, check it, and keep it. Its path goes to standard output."""
    write_out(f"{pull_with_progress(name)}\n")
    return ExitCode.SATISFIED
