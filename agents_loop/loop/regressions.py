"""What an earlier answer of the run met and the latest one does not, also where the run had to wait in between."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any, Final

from agents_loop.errors import SessionStateError
from agents_loop.loop.context import LoopContext

_MET_AT: Final = "_agents_loop.met_at"
"""Where a run's context keeps, by evaluator, in which iteration a criterion was met first."""
_MEMORY: Final = "met_at"
"""Where its memory does, by the evaluator's name."""


def regressed(
    context: LoopContext, evaluator: object, name: str, *, met: Iterable[str], unmet: Collection[str]
) -> set[str]:
    """Those of the unmet criteria that an earlier answer of the run met; those that are met now are remembered.

    Args:
        context: The run's.
        evaluator: Whose criteria they are.
        name: What it is called in a run that continues this one. Of several evaluators with one name in a loop, what
            the first one saw is remembered over a pause.
        met: The criteria that the latest answer meets.
        unmet: Those that it does not.

    Raises:
        SessionStateError: What stands in the session of earlier answers can't be read.
    """
    met_at = _met_at(context, evaluator, name)
    for criterion in met:
        met_at.setdefault(criterion, context.iteration)
    return {criterion for criterion in unmet if met_at.get(criterion, context.iteration) < context.iteration}


def _met_at(context: LoopContext, evaluator: object, name: str) -> dict[str, int]:
    of_all: dict[int, dict[str, int]] = context.additional_properties.setdefault(_MET_AT, {})
    if id(evaluator) not in of_all:
        remembered = _remembered(context.memory.setdefault(_MEMORY, {}), name)
        is_taken = any(each is remembered for each in of_all.values())
        of_all[id(evaluator)] = {} if is_taken else remembered
    return of_all[id(evaluator)]


def _remembered(by_name: Any, name: str) -> dict[str, int]:
    try:
        kept = by_name.setdefault(name, {})
        if all(type(number) is int for number in kept.values()):
            return kept
    except (AttributeError, TypeError):
        pass
    raise SessionStateError(
        f"context.memory[{_MEMORY!r}][{name!r}] can't be read: it must tell iterations by criterion"
    )
