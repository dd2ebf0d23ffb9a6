"""Which criteria an answer met, as its evaluations record it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, cast

from agents_loop.loop.evaluation import LoopEvaluation

_KEYS: Final = frozenset({"criteria", "checks", "judge", "tiers"})


def criteria_met(evaluations: Sequence[LoopEvaluation]) -> dict[str, bool]:
    """Each criterion that applies, by its place in the records, and whether the answer met it.

    They are read from `details`: the `criteria` of a rubric, the `checks` of an evaluator with evidence, and those of
    the evaluators within a panel. A judge's words are not among them.
    """
    met: dict[str, bool] = {}
    for place, evaluation in enumerate(evaluations):
        details: object = evaluation.details
        if isinstance(details, dict) and not _KEYS.isdisjoint(cast("dict[str, Any]", details)):
            _read(cast("dict[str, Any]", details), str(place), met)
    return met


def _read(details: object, place: str, met: dict[str, bool]) -> None:
    if not isinstance(details, dict):
        return
    fields = cast("dict[str, Any]", details)
    for each in _objects(fields.get("criteria")):
        if each.get("verdict") in ("met", "not_met"):
            met[f"{place}/{each.get('id')}"] = each["verdict"] == "met"
    for each in _objects(fields.get("checks")):
        met[f"{place}/check {each.get('check')}"] = each.get("passed") is True
    judge = fields.get("judge")
    if isinstance(judge, Mapping):
        _read(cast("Mapping[str, Any]", judge).get("details"), f"{place}/judge", met)
    tiers = fields.get("tiers")
    for number, tier in enumerate(cast("list[object]", tiers) if isinstance(tiers, list) else []):
        for member, each in enumerate(_objects(tier)):
            _read(each.get("details"), f"{place}/{number}.{member}", met)


def _objects(value: object) -> list[Mapping[str, Any]]:
    listed = cast("list[object]", value) if isinstance(value, list) else []
    return [cast("Mapping[str, Any]", each) for each in listed if isinstance(each, Mapping)]
