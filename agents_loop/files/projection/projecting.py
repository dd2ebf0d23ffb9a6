"""A projection: the very loop runs, with clients that call nobody."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Final

from agents_loop.errors import ConfigurationError
from agents_loop.files.counting import counted
from agents_loop.files.inputs import InputValue
from agents_loop.files.loop_file import LoopFile
from agents_loop.files.projected_values import PROJECTED_VALUES, ProjectedValues
from agents_loop.files.projection.answers import PROJECTED
from agents_loop.files.projection.assuming import asks_judges, at_its_worst, leaves_out_code
from agents_loop.files.projection.client import CallCounter, CountedCall, ProjectingChatClient
from agents_loop.files.projection.result import ProjectedCall, Projection
from agents_loop.files.prompts import PromptError
from agents_loop.files.run_settings import RunSettings
from agents_loop.loop.events import NodeChanged
from agents_loop.loop.result import LoopResult, StopReason
from agents_loop.messages import UsageDetails
from agents_loop.metering.prices import ModelPrice, PriceList, Prices

_NO_LIMIT: Final = 10**15
_FREE: Final = ModelPrice(input_usd_per_million=0, output_usd_per_million=0)
_ESTIMATED: Final = "tokens are estimated, not counted: one for 4 characters, and one for each word at least"
_AT_THE_CAP: Final = "the calls are those of a run that no answer satisfies; one that is satisfied sooner makes fewer"


async def project(
    loop_file: LoopFile,
    inputs: Mapping[str, InputValue],
    settings: RunSettings | None = None,
    *,
    model_ids: Mapping[str, str] | None = None,
) -> Projection:
    """What a run would use, if no answer satisfied. No model is called, and nothing is written.

    The engine itself makes the calls, to clients that answer with text that passes no contract and is as long as
    `max_output_tokens` allows. Budgets are lifted for that; one that would end the run sooner is named in the notes.

    Args:
        loop_file: The file.
        inputs: Values by name.
        settings: As for a run. Its `prices` say what models cost.
        model_ids: The model that stands for a name of the file, for its price.

    Raises:
        InputError: An input is missing, unknown, or not of its type.
        LoopFileError: A prompt can't be rendered.
        PromptError: A prompt of a later iteration can't be rendered.
    """
    settings = dataclasses.replace(settings or RunSettings(), on_notice=None, outputs_dir=None, run_folder=None)
    priced = dataclasses.replace(settings, prices={**(settings.prices or {}), "*": _FREE})
    lifted = dataclasses.replace(priced, max_tokens=_NO_LIMIT, max_cost_usd=float(_NO_LIMIT), deadline_s=None)
    counter, values = CallCounter(), ProjectedValues(PROJECTED)
    token = PROJECTED_VALUES.set(values)
    try:
        ended, detail = await _run(loop_file, inputs, lifted, counter)
        bounded = CallCounter()
        bounded_end, why = await _run(loop_file, inputs, priced, bounded)
    finally:
        PROJECTED_VALUES.reset(token)
    prices = PriceList(settings.prices)
    calls = tuple(_priced(call, prices, model_ids or {}) for call in counter.calls)
    unknowns = [*_unknowns(counter), *_unrendered(values)]
    notes = [_ESTIMATED, *_ending(ended, detail), *unknowns, *_unpriced(calls, settings.prices)]
    if bounded_end == StopReason.BUDGET_EXCEEDED:
        notes.append(f"the budget would end it after {counted(len(bounded.calls), 'call')}: {why}")
    return Projection(loop_file.name, calls, ended, tuple(notes))


async def _run(
    loop_file: LoopFile, inputs: Mapping[str, InputValue], settings: RunSettings, counter: CallCounter
) -> tuple[str, str | None]:
    """How the run ended, and the detail."""
    built = loop_file.build(inputs, lambda name: ProjectingChatClient(name, counter), settings)
    counter.leaves_out_code = leaves_out_code(built.agent)
    counter.asks_judges = asks_judges(built.agent)
    try:
        async with at_its_worst(built.agent).events(built.message) as events:
            async for event in events:
                if isinstance(event, NodeChanged) and event.status == "skipped":
                    counter.skipped_nodes.append(event.node)
        result = events.result
        assert result is not None  # noqa: S101 - a run that ends has one
    except (ConfigurationError, PromptError):
        raise
    except Exception as error:  # noqa: BLE001 - what an evaluator makes of an answer that is none
        so_far = LoopResult.of(error)
        reason = StopReason.FAILED if so_far is None else so_far.stop_reason
        return reason.value, f"{type(error).__name__}: {error}"
    return result.stop_reason.value, result.stop_detail


def _priced(call: CountedCall, prices: PriceList, model_ids: Mapping[str, str]) -> ProjectedCall:
    cost_of = prices.cost_of((model_ids.get(call.model), call.model))
    cost = None
    if cost_of is not None and call.tokens_out is not None:
        cost = cost_of(UsageDetails(call.tokens_in, call.tokens_out))
    return ProjectedCall(call.who, call.node, call.iteration, call.model, call.tokens_in, call.tokens_out, cost)


def _ending(ended: str, detail: str | None) -> list[str]:
    if ended == StopReason.MAX_ITERATIONS:
        return [_AT_THE_CAP]
    why = f" ({' '.join(detail.split())})" if detail else ""
    return [f"the projected run ended as {ended}{why}, not at its cap: a real one may make more calls, or fewer"]


def _unknowns(counter: CallCounter) -> list[str]:
    notes: list[str] = []
    unbounded = dict.fromkeys([repr(call.model) for call in counter.calls if call.tokens_out is None])
    if unbounded:
        said = f"{', '.join(unbounded)}: max_output_tokens is not set, so what it writes is unknown"
        notes.append(f"{said}, and missing in the prompts that hold it")
    if counter.skipped_nodes:
        names = ", ".join(map(repr, counter.skipped_nodes))
        notes.append(f"the condition of {names} does not hold for the projected answers: it may for real ones")
    if counter.offers_functions:
        notes.append("the flow goes on by the function that a model calls: the first one is assumed each time")
    if counter.offers_tools:
        notes.append("a model may call tools, and is then asked again: such calls are not projected")
    if counter.asks_judges:
        notes.append("a judge may be asked more than once, by what it answers: such calls are not projected")
    if counter.leaves_out_code:
        notes.append("checks by code, and evaluators that are imported, are not run: what they say is not counted")
    if counter.sends_files:
        notes.append("images and files are not counted")
    return notes


def _unrendered(values: ProjectedValues) -> list[str]:
    prompts = [f"{why}: with a projected answer; it is counted as it stands" for why in values.prompts.values()]
    conditions = [f"{why}: with a projected answer; it is taken as true" for why in values.conditions.values()]
    return prompts + conditions


def _unpriced(calls: tuple[ProjectedCall, ...], prices: Prices | None) -> list[str]:
    without = dict.fromkeys([repr(call.model) for call in calls if call.cost_usd is None])
    if not without:
        return []
    has_none = not prices and all(call.cost_usd is None for call in calls)
    said = "" if has_none else "so is the total"
    return [f"the cost is unknown of {', '.join(without)}" + (f", and {said}" if said else "")]
