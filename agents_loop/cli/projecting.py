"""`--dry`: what a run would come to, found without a model, as a table or as JSON."""

from __future__ import annotations

import asyncio
import json

from agents_loop.cli.exit_codes import ExitCode
from agents_loop.cli.option_values import parse_inputs
from agents_loop.cli.running import LIMIT_NAMES, RunRequest
from agents_loop.cli.streams import write_out
from agents_loop.cli.tables import render_table
from agents_loop.cli.text import one_line
from agents_loop.files import RunSettings, load_loop_file
from agents_loop.files.counting import counted
from agents_loop.files.projection import ProjectedCall, Projection, project

_MOST_ROWS = 40


def project_file(request: RunRequest) -> int:
    """Show what the run that is asked for would come to. No model is called, and nothing is written.

    Raises:
        ConfigurationError: Wrong use.
    """
    loop_file = load_loop_file(request.file)
    pricing = request.pricing(loop_file)
    settings = RunSettings(
        max_iterations=request.max_iterations,
        max_tokens=request.max_tokens,
        max_cost_usd=request.max_cost_usd,
        return_best=request.return_best,
        allow_imports=request.allow_imports,
        prices=pricing.prices,
        limit_names=LIMIT_NAMES,
    )
    inputs = parse_inputs(request.inputs)
    found = asyncio.run(project(loop_file, inputs, settings, model_ids=pricing.model_ids))
    write_out(f"{json.dumps(found.to_json(), ensure_ascii=False)}\n" if request.as_json else projection_text(found))
    return ExitCode.SATISFIED


def projection_text(projection: Projection) -> str:
    """A projection as a table, its sum, and what it can't know."""
    header = ("call", "who", "iteration", "model", "tokens in", "tokens out", "cost")
    rows = [(str(number), *_row(call)) for number, call in enumerate(projection.calls, start=1)]
    left_out = len(rows) - _MOST_ROWS
    if left_out > 0:
        half = _MOST_ROWS // 2
        rows = [*rows[:half], ("...", f"{left_out:,} more (--json has all)", *[""] * 5), *rows[-half:]]
    sums = (f"{projection.tokens_in:,}", _number(projection.tokens_out), money(projection.cost_usd))
    rows.append(("total", "", "", "", *sums))
    table = render_table(header, rows, right=("call", "iteration", "tokens in", "tokens out", "cost"))
    first = f"{projection.name}: {counted(len(projection.calls), 'call')}, projected; no model was called"
    notes = [f"- {note}" for note in projection.notes]
    return "\n".join([one_line(first), "", table, "", *map(one_line, notes)]) + "\n"


def money(cost_usd: float | None) -> str:
    """US dollars, or that nobody knows."""
    return "unknown" if cost_usd is None else f"${cost_usd:.4f}"


def _row(call: ProjectedCall) -> tuple[str, ...]:
    iteration = "" if call.iteration is None else str(call.iteration)
    who = call.who if call.node is None else f"{call.node}: {call.who}"
    return who, iteration, call.model, f"{call.tokens_in:,}", _number(call.tokens_out), money(call.cost_usd)


def _number(number: int | None) -> str:
    return "unknown" if number is None else f"{number:,}"
