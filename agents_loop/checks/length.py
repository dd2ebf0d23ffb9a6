"""A check that counts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, TypeAlias

from agents_loop.checks.check import Check, check_maker
from agents_loop.errors import ConfigurationError
from agents_loop.judging.measures import count_lines, count_sentences, count_words, list_items
from agents_loop.numeric import is_int

LengthUnit: TypeAlias = Literal["words", "characters", "sentences", "lines", "items"]

_COUNTS: dict[str, Callable[[str], int]] = {
    "words": count_words,
    "characters": lambda text: len(text.strip()),
    "sentences": count_sentences,
    "lines": count_lines,
    "items": lambda text: len(list_items(text)),
}


@check_maker
def length_check(
    unit: LengthUnit,
    *,
    at_least: int | None = None,
    at_most: int | None = None,
    name: str | None = None,
    required: bool = True,
) -> Check:
    """How long the answer must be at least or at most: `length_check("words", at_most=50)`.

    Args:
        unit: What is counted: `words` and `sentences` as a person counts them in Markdown, `characters` without space
            around the text, `lines` that are not blank, or `items` of lists, those of the outermost level.
        at_least: The lowest count that passes.
        at_most: The highest count that passes.
        name: What the check is called. `None`: made of the limits.
        required: Whether an `EvidenceLoopEvaluator` may call nothing done while this fails.

    Raises:
        TypeError: A limit is no int.
        ConfigurationError: The unit is unknown, there is no limit, one is below 0, or none can be met.
    """
    count = _COUNTS.get(unit)
    if count is None:
        raise ConfigurationError(f"unit must be one of {', '.join(_COUNTS)}, not {unit!r}")
    wanted = _wanted(at_least, at_most)

    def examine(text: str) -> str | None:
        found = count(text)
        if (at_least is None or found >= at_least) and (at_most is None or found <= at_most):
            return None
        return f"it has {_counted(found, unit)}, and {wanted} {'is' if wanted.endswith(' 1') else 'are'} asked for"

    return Check(name or f"{wanted} {_unit_of(unit, at_most or at_least or 0)}", examine, required=required)


def _wanted(at_least: int | None, at_most: int | None) -> str:
    for limit, value in (("at_least", at_least), ("at_most", at_most)):
        if value is None:
            continue
        if not is_int(value):
            raise TypeError(f"{limit} must be an int, not {value!r}")
        if value < 0:
            raise ConfigurationError(f"{limit} must not be below 0: {value}")
    if at_least is not None and at_most is not None:
        if at_least > at_most:
            raise ConfigurationError(f"at_least must not be above at_most: {at_least} > {at_most}")
        return f"exactly {at_least}" if at_least == at_most else f"{at_least} to {at_most}"
    if at_least is None and at_most is None:
        raise ConfigurationError("at_least or at_most must be given: without a limit nothing is checked")
    return f"at least {at_least}" if at_most is None else f"at most {at_most}"


def _counted(number: int, unit: str) -> str:
    return f"{number} {_unit_of(unit, number)}"


def _unit_of(unit: str, number: int) -> str:
    return unit[:-1] if number == 1 else unit
