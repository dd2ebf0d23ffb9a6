"""Which criteria an answer met, as its evaluators record it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, TypeAlias, cast

from agents_loop.loop.evaluation import LoopEvaluation

_KEYS: Final = frozenset({"criteria", "demands", "checks", "judge", "tiers"})
_NONE: Final = frozenset[str]()

_Found: TypeAlias = dict[str, str | None]
"""What is wrong by each criterion that applies; `None` where it is met, and blank where nothing says more."""


def criteria_met(evaluations: Sequence[LoopEvaluation]) -> dict[str, bool]:
    """Each criterion that applies, by its place in the records, and whether the answer met it.

    They are read from `details`: the `criteria` of a rubric, the `demands` of a judge that asks about each by itself,
    the `checks` of an evaluator with evidence, and those of the evaluators within a panel. A judge's words are not
    among them.
    """
    return {name: wrong is None for name, wrong in _found(evaluations).items()}


def failing_criteria(evaluations: Sequence[LoopEvaluation]) -> frozenset[str]:
    """The criteria that the answer does not meet, and the checks, each with what it found: it may find less next."""
    found = _found(evaluations)
    return frozenset([f"{name} {wrong}" for name, wrong in found.items() if wrong is not None]) if found else _NONE


def _found(evaluations: Sequence[LoopEvaluation]) -> _Found:
    found: _Found = {}
    for place, evaluation in enumerate(evaluations):
        details: object = evaluation.details
        if isinstance(details, dict) and not _KEYS.isdisjoint(cast("dict[str, Any]", details)):
            _read(cast("dict[str, Any]", details), str(place), found)
    return found


def _read(details: object, place: str, found: _Found) -> None:
    if not isinstance(details, dict):
        return
    fields = cast("dict[str, Any]", details)
    for each in _objects(fields.get("criteria")):
        if each.get("verdict") in ("met", "not_met"):
            found[f"{place}/{each.get('id')}"] = None if each["verdict"] == "met" else ""
    for each in _objects(fields.get("demands")):
        if each.get("readable") is not False:
            found[f"{place}/demand {each.get('demand')}"] = None if each.get("met") is True else str(each.get("fault"))
    for each in _objects(fields.get("checks")):
        found[f"{place}/check {each.get('check')}"] = None if each.get("passed") is True else str(each.get("problem"))
    judge = fields.get("judge")
    if isinstance(judge, Mapping):
        _read(cast("Mapping[str, Any]", judge).get("details"), f"{place}/judge", found)
    tiers = fields.get("tiers")
    for number, tier in enumerate(cast("list[object]", tiers) if isinstance(tiers, list) else []):
        for member, each in enumerate(_objects(tier)):
            _read(each.get("details"), f"{place}/{number}.{member}", found)


def _objects(value: object) -> list[Mapping[str, Any]]:
    listed = cast("list[object]", value) if isinstance(value, list) else []
    return [cast("Mapping[str, Any]", each) for each in listed if isinstance(each, Mapping)]
