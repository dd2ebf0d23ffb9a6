"""`agents-loop judge`: its commands and their options."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from agents_loop.cli.judge_checking import check_judge
from agents_loop.cli.option_types import (
    AllowImports,
    AsJson,
    Backend,
    Deadline,
    Debug,
    File,
    Inputs,
    MaxCost,
    MaxIterations,
    MaxTokens,
    Models,
    PriceOf,
    Quiet,
)
from agents_loop.cli.option_values import parse_amount, parse_count, parse_share
from agents_loop.cli.running import RunRequest

judge = typer.Typer(help="The judges of loop files.")


@judge.callback()
def _judge() -> None:
    """What is asked of a judge stands in its commands."""


@judge.command()
def check(
    *,
    file: File,
    cases: Annotated[Path, typer.Option("--cases", metavar="CASES.jsonl", help="The drafts: one a line.")],
    repeats: Annotated[
        str, typer.Option("--repeats", metavar="N", help="How often a draft of the kind 'repeat' is judged.")
    ] = "2",
    min_agreement: Annotated[
        str, typer.Option("--min-agreement", metavar="SHARE", help="Which share of these must agree, from 0 to 1.")
    ] = "1",
    inputs: Inputs = None,
    backend: Backend = None,
    model: Models = None,
    max_iterations: MaxIterations = None,
    max_tokens: MaxTokens = None,
    max_cost: MaxCost = None,
    price: PriceOf = None,
    deadline: Deadline = None,
    allow_imports: AllowImports = False,
    as_json: AsJson = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> int:
    """Check the judge of a loop: the same draft twice, blind spots, a judge that never passes, small and real faults.

    Limits are those of all runs together. It ends with 0 if all is well, 1 if an agent or an evaluator failed, 2 for
    wrong use, 3 if a check is not passed, 4 at a budget or a deadline, and 130 when it is interrupted.
    """
    run = RunRequest(
        file=file,
        inputs=inputs or (),
        backend=backend,
        models=model or (),
        max_iterations=parse_count("--max-iterations", max_iterations),
        max_tokens=parse_count("--max-tokens", max_tokens),
        max_cost_usd=parse_amount("--max-cost", max_cost, "US dollars"),
        prices=price or (),
        deadline_s=parse_amount("--deadline", deadline, "seconds"),
        allow_imports=allow_imports,
        as_json=as_json,
        quiet=quiet,
        debug=debug,
    )
    least = parse_share("--min-agreement", min_agreement)
    return check_judge(run, cases, repeats=parse_count("--repeats", repeats) or 0, min_agreement=least)
