"""`agents-loop run`: its options."""

from __future__ import annotations

from agents_loop.cli.option_types import (
    AllowImports,
    AsJson,
    Backend,
    Deadline,
    Debug,
    Dry,
    File,
    Inputs,
    MaxCost,
    MaxIterations,
    MaxTokens,
    Models,
    PriceOf,
    Quiet,
    Record,
    Replay,
    ReturnBest,
    RunId,
    RunsDir,
    Trace,
)
from agents_loop.cli.option_values import parse_amount, parse_count
from agents_loop.cli.projecting import project_file
from agents_loop.cli.running import RunRequest, run_file


def run(
    *,
    file: File,
    inputs: Inputs = None,
    backend: Backend = None,
    model: Models = None,
    max_iterations: MaxIterations = None,
    max_tokens: MaxTokens = None,
    max_cost: MaxCost = None,
    price: PriceOf = None,
    deadline: Deadline = None,
    return_best: ReturnBest = False,
    allow_imports: AllowImports = False,
    dry: Dry = False,
    run_id: RunId = None,
    runs_dir: RunsDir = None,
    record: Record = None,
    replay: Replay = None,
    trace: Trace = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
    debug: Debug = False,
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
        allow_imports=allow_imports,
        run_id=run_id,
        runs_dir=runs_dir,
        record=record,
        replay=replay,
        trace=trace,
        as_json=as_json,
        quiet=quiet,
        debug=debug,
    )
    return project_file(request) if dry else run_file(request)
