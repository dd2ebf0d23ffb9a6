"""The command line: what can be asked for. What is done about it stands in the other files."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from agents_loop import __version__
from agents_loop.cli.exit_codes import ExitCode
from agents_loop.cli.explaining import debug_text, explain_each
from agents_loop.cli.local_models import list_models, pull_with_progress
from agents_loop.cli.running import RunRequest, parse_amount, parse_count, run_file
from agents_loop.cli.streams import guarded_output, say_error, use_utf8, write_err, write_out
from agents_loop.cli.text import one_line
from agents_loop.errors import ConfigurationError
from agents_loop.files import load_loop_file

app = typer.Typer(
    name="agents-loop",
    help="Run loops that stand in files.",
    add_completion=False,
    pretty_exceptions_enable=False,
)
models = typer.Typer(help="The models on this machine.")
app.add_typer(models, name="models")

_File = Annotated[Path, typer.Argument(metavar="FILE", help="A loop as YAML.", show_default=False)]


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


@app.command()
def run(
    *,
    file: _File,
    inputs: Annotated[
        list[str] | None, typer.Option("--input", "-i", metavar="KEY=VALUE", help="A value for the prompts.")
    ] = None,
    backend: Annotated[
        str | None,
        typer.Option(metavar="SPEC", help="Who answers: openai, azure, local[:NAME or /path.gguf], scripted:FILE."),
    ] = None,
    model: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=SPEC", help="A backend for one model name of the file, or for a glob."),
    ] = None,
    max_iterations: Annotated[str | None, typer.Option(metavar="N", help="Instead of the file's.")] = None,
    max_tokens: Annotated[
        str | None, typer.Option(metavar="N", help="Input and output tokens at most, instead of the file's.")
    ] = None,
    max_cost: Annotated[
        str | None, typer.Option(metavar="USD", help="US dollars at most, instead of the file's.")
    ] = None,
    price: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=IN,OUT", help="What a model costs: US dollars for a million tokens."),
    ] = None,
    deadline: Annotated[str | None, typer.Option(metavar="SECONDS", help="How long the run may take.")] = None,
    return_best: Annotated[
        bool, typer.Option("--return-best", help="Where no draft satisfies, give the best one instead of the last.")
    ] = False,
    trace: Annotated[Path | None, typer.Option(metavar="FILE.jsonl", help="Write each event to a file.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Write the whole result as one JSON object.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Nothing but errors on standard error.")] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False,
) -> int:
    """Run a loop. The last answer goes to standard output.

    It ends with 0 if the loop is satisfied, 1 if an agent or an evaluator failed, 2 for wrong use, 3 at the cap, 4 at a
    budget or a deadline, 5 when a person is waited for, and 130 when it is interrupted.
    """
    request = RunRequest(
        file=file,
        inputs=inputs or (),
        backend=backend,
        models=model or (),
        max_iterations=parse_count("--max-iterations", max_iterations),
        max_tokens=parse_count("--max-tokens", max_tokens),
        max_cost_usd=parse_amount("--max-cost", max_cost, "US dollars"),
        prices=price or (),
        deadline_s=parse_amount("--deadline", deadline, "seconds"),
        return_best=return_best,
        trace=trace,
        as_json=as_json,
        quiet=quiet,
        debug=debug,
    )
    return run_file(request)


@app.command()
def validate(file: _File) -> int:
    """Check a file, and show everything that is wrong with it. No model is called."""
    loop_file = load_loop_file(file)
    waves = loop_file.waves
    lines = [f"✓ {one_line(loop_file.name)}: {sum(map(len, waves))} nodes, {len(waves)} wave(s)"]
    lines += [f"  wave {number}: {wave}" for number, wave in enumerate(waves, start=1)]
    write_out("".join(f"{line}\n" for line in lines))
    return ExitCode.SATISFIED


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
