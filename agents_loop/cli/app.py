"""The command line: its commands, each of which has its own file, and what an error of theirs becomes."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Annotated

import typer

from agents_loop import __version__
from agents_loop.cli.convert_command import convert
from agents_loop.cli.eval_command import evaluate_file
from agents_loop.cli.exit_codes import ExitCode
from agents_loop.cli.explaining import debug_text, explain_each
from agents_loop.cli.judge_command import judge
from agents_loop.cli.models_command import models
from agents_loop.cli.new_command import new
from agents_loop.cli.run_command import run
from agents_loop.cli.schema_command import schema
from agents_loop.cli.streams import guarded_output, say_error, use_utf8, write_err, write_out
from agents_loop.cli.text import one_line
from agents_loop.cli.validate_command import validate
from agents_loop.errors import ConfigurationError

app = typer.Typer(
    name="agents-loop",
    help="Run loops that stand in files.",
    add_completion=False,
    pretty_exceptions_enable=False,
)
app.add_typer(models, name="models")
app.add_typer(judge, name="judge")
app.command()(run)
app.command()(validate)
app.command()(new)
app.command()(convert)
app.command()(schema)
app.command("eval")(evaluate_file)


def _show_version(asked: bool) -> None:  # noqa: FBT001 - Typer calls it
    if asked:
        write_out(f"agents-loop {__version__}\n")
        raise typer.Exit


@app.callback()
def _options(
    *,
    version: Annotated[
        bool, typer.Option("--version", help="Show the version.", is_eager=True, callback=_show_version)
    ] = False,
) -> None:
    del version  # it was shown by then


def run_command(arguments: Sequence[str]) -> int:
    """Do what the arguments ask for, and give the exit code. Nothing is raised but what ends the process."""
    use_utf8()
    logging.getLogger().addHandler(logging.NullHandler())  # what libraries log is no word of this command
    with guarded_output() as output:
        code = _code_of(arguments)
    if output.lost is None:
        return code
    say_error(f"the result can't be written to standard output: {output.lost.strerror}")
    return ExitCode.FAILED


def _code_of(arguments: Sequence[str]) -> int:
    try:
        code = app(list(arguments), prog_name="agents-loop", standalone_mode=False)
    except (KeyboardInterrupt, typer.Abort):
        return ExitCode.INTERRUPTED
    except Exception as error:  # noqa: BLE001 - the last place where an error can become one line
        return _report(error, debug="--debug" in arguments)
    return code if isinstance(code, int) else ExitCode.SATISFIED


def _report(error: Exception, *, debug: bool) -> int:
    if debug:
        write_err(debug_text(error))
    of_typer = getattr(error, "format_message", None)
    if callable(of_typer):
        say_error(f"{one_line(str(of_typer()))} (agents-loop --help shows the usage)")
        return ExitCode.WRONG_USE
    for line in explain_each(error):
        say_error(line)
    return ExitCode.WRONG_USE if isinstance(error, ConfigurationError) else ExitCode.FAILED
