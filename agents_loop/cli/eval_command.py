"""`agents-loop eval`: its options."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from agents_loop.cli.evaluating import EvalRequest, evaluate
from agents_loop.cli.option_types import (
    AllowImports,
    AsJson,
    Backend,
    Debug,
    Dry,
    Inputs,
    MaxIterations,
    Models,
    PriceOf,
    Quiet,
    ReturnBest,
)
from agents_loop.cli.option_values import parse_amount, parse_count, parse_seed


def evaluate_file(
    *,
    file: Annotated[
        Path,
        typer.Argument(metavar="FILE", help="A loop as a file, or the result of an evaluation.", show_default=False),
    ],
    questions: Annotated[
        Path | None, typer.Option("--questions", metavar="FILE.jsonl", help="The questions: a JSON object a line.")
    ] = None,
    question_input: Annotated[
        str, typer.Option("--question-input", metavar="NAME", help="The input of the file that gets the question.")
    ] = "question",
    inputs: Inputs = None,
    backend: Backend = None,
    model: Models = None,
    price: PriceOf = None,
    max_iterations: MaxIterations = None,
    return_best: ReturnBest = False,
    allow_imports: AllowImports = False,
    grader: Annotated[
        str | None,
        typer.Option("--grader", metavar="NAME", help="The model that grades by rubrics; by default the file's first."),
    ] = None,
    grader_tokens: Annotated[
        str | None, typer.Option("--grader-tokens", metavar="N", help="What a grade may take; by default 10.")
    ] = None,
    kind: Annotated[
        list[str] | None, typer.Option("--kind", metavar="KIND", help="Only questions of this kind.")
    ] = None,
    limit: Annotated[str | None, typer.Option("--limit", metavar="N", help="Only the first N questions.")] = None,
    concurrency: Annotated[
        str | None,
        typer.Option("--concurrency", metavar="N", help="Questions at once; by default 4, and 1 for a local model."),
    ] = None,
    budget_tokens: Annotated[
        str | None, typer.Option("--budget-tokens", metavar="N", help="Tokens at most, of all questions together.")
    ] = None,
    max_cost: Annotated[
        str | None, typer.Option("--max-cost", metavar="USD", help="US dollars at most, of all questions together.")
    ] = None,
    cache_dir: Annotated[
        Path | None,
        typer.Option("--cache-dir", metavar="DIR", help="Keep replies by the exact call, and use them again."),
    ] = None,
    review_seed: Annotated[
        str, typer.Option("--review-seed", metavar="N", help="Which questions a person should look at.")
    ] = "0",
    allow_stub: Annotated[
        bool, typer.Option("--allow-stub", help="Evaluate scripted replies; the result is marked so.")
    ] = False,
    against: Annotated[
        Path | None, typer.Option("--against", metavar="OLD.json", help="Compare with an earlier result.")
    ] = None,
    out: Annotated[Path | None, typer.Option("--out", metavar="FILE.json", help="Write the result to a file.")] = None,
    dry: Dry = False,
    as_json: AsJson = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> int:
    """Run a loop over questions, grade its first drafts and its answers, and say what the loop adds and costs.

    It ends with 0 when it is done, whatever the score; 1 if all questions failed, or the grader did; 2 for wrong use;
    4 at a budget; and 130 when it is interrupted. What is done by then is kept.
    """
    del debug  # the command reads it itself
    request = EvalRequest(
        file=file,
        questions=questions,
        question_input=question_input,
        inputs=inputs or (),
        backend=backend,
        models=model or (),
        prices=price or (),
        max_iterations=parse_count("--max-iterations", max_iterations),
        return_best=return_best,
        allow_imports=allow_imports,
        grader=grader,
        grader_max_output_tokens=parse_count("--grader-tokens", grader_tokens),
        kinds=kind or (),
        limit=parse_count("--limit", limit),
        concurrency=parse_count("--concurrency", concurrency),
        budget_tokens=parse_count("--budget-tokens", budget_tokens),
        max_cost_usd=parse_amount("--max-cost", max_cost, "US dollars"),
        cache_dir=cache_dir,
        review_seed=parse_seed("--review-seed", review_seed),
        allow_stub=allow_stub,
        against=against,
        out=out,
        dry=dry,
        as_json=as_json,
        quiet=quiet,
    )
    return evaluate(request)
