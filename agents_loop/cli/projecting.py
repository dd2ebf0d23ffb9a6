"""`--dry`: what a run would come to, found without a model, as a table or as JSON."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase

from agents_loop.cli.backends import Route, Spec
from agents_loop.cli.exit_codes import ExitCode
from agents_loop.cli.option_values import parse_inputs, parse_prices
from agents_loop.cli.running import RunRequest
from agents_loop.cli.streams import write_out
from agents_loop.cli.tables import render_table
from agents_loop.cli.text import one_line
from agents_loop.files import LoopFile, RunSettings, load_loop_file
from agents_loop.files.counting import counted
from agents_loop.files.projection import ProjectedCall, Projection, project
from agents_loop.metering.prices import ModelPrice, PriceList

_MOST_ROWS = 40
_FREE = ModelPrice(input_usd_per_million=0, output_usd_per_million=0)


def project_file(request: RunRequest) -> int:
    """Show what the run that is asked for would come to. No model is called, and nothing is written.

    Raises:
        ConfigurationError: Wrong use.
    """
    loop_file = load_loop_file(request.file)
    pricing = Pricing(loop_file, request.backend, request.models, parse_prices(request.prices))
    settings = RunSettings(
        max_iterations=request.max_iterations,
        max_tokens=request.max_tokens,
        max_cost_usd=request.max_cost_usd,
        return_best=request.return_best,
        allow_imports=request.allow_imports,
        prices=pricing.prices,
    )
    inputs = parse_inputs(request.inputs)
    found = asyncio.run(project(loop_file, inputs, settings, model_ids=pricing.model_ids))
    write_out(f"{json.dumps(found.to_json(), ensure_ascii=False)}\n" if request.as_json else projection_text(found))
    return ExitCode.SATISFIED


class Pricing:
    """By what models are priced that are not called: by the model that the options name, or by the file's name.

    Args:
        loop_file: The file.
        backend: The SPEC of `--backend`.
        models: The `NAME=SPEC`s of `--model`.
        prices: Those of `--price`.

    Raises:
        ConfigurationError: A SPEC is none.
    """

    def __init__(
        self, loop_file: LoopFile, backend: str | None, models: Sequence[str], prices: Mapping[str, ModelPrice]
    ) -> None:
        self.prices = dict(prices)
        """The given ones, and those of local models, for which nobody is paid."""
        self.model_ids: dict[str, str] = {}
        """What stands for a name of the file."""
        routes = [Route.parse(route) for route in models]
        default = None if backend is None else Spec.parse(backend)
        for name in loop_file.models:
            self._add(name, _spec_for(name, routes) or default)

    def _add(self, name: str, spec: Spec | None) -> None:
        if spec is None:
            return
        if spec.kind in ("openai", "azure"):
            self.model_ids[name] = spec.argument or name
        elif PriceList(self.prices).given_for((name,)) is None and spec.kind == "local":
            self.prices[name] = _FREE


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


def _spec_for(name: str, routes: Sequence[Route]) -> Spec | None:
    exact = [route.spec for route in routes if route.pattern == name]
    return next(iter([*exact, *[route.spec for route in routes if fnmatchcase(name, route.pattern)]]), None)
