"""How much a template may do, and build up: operations are weighed before they are made, and each costs work."""

from __future__ import annotations

import re
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Final, cast

from agents_loop.errors import MissingExtraError

try:
    from jinja2 import Environment, pass_environment
    from jinja2.exceptions import SecurityError
    from jinja2.utils import Namespace
except ImportError as error:
    raise MissingExtraError("agents_loop.files", "cli") from error

MAX_CHARACTERS: Final = 10_000_000
"""How long a rendered prompt, or a text on the way to it, may be."""
_MOST_WORK: Final = 1_000_000
"""How many steps of loops, calls and filters a template may take; a text or list counts by its size, too."""
_SIZE_OF_A_STEP: Final = 100
_ITEM: Final = 10
"""What a value that is no text counts, as characters: it takes time to look at."""
_NESTED_WIDTH: Final = re.compile(r"\{[^{}]*\{")
_NUMBERS: Final = re.compile(r"\d{1,5}")


@dataclass(slots=True)
class _Work:
    left: int = _MOST_WORK


_WORK: Final[ContextVar[_Work | None]] = ContextVar("agents_loop_template_work", default=None)


@contextmanager
def limited_work() -> Generator[None, None, None]:
    """Let what is rendered within do so much and no more."""
    token = _WORK.set(_Work())
    try:
        yield
    finally:
        _WORK.reset(token)


def charge(*values: object) -> int:
    """Count a step, and the size of what it is made of or makes, which it gives.

    Raises:
        SecurityError: It is too much.
    """
    size, work = weight(values), _WORK.get()
    if work is not None:
        work.left -= 1 + size // _SIZE_OF_A_STEP
        if work.left < 0:
            raise SecurityError("the template does too much")
    return size


def counted_steps(items: Iterable[Any]) -> Iterator[Any]:
    """The items, each of which is a step."""
    for item in items:
        charge()
        yield item


def weight(value: object) -> int:
    """About how long the value is as a text, all that it holds included; no more than needed to see that it is long."""
    total, left = 0, [value]
    while left and total <= MAX_CHARACTERS:
        each = left.pop()
        if isinstance(each, str):
            total += len(each)
            continue
        total += _ITEM
        if isinstance(each, Namespace):
            left.append(cast("object", each._Namespace__attrs))  # type: ignore[attr-defined] # noqa: SLF001 - its text holds them
        elif isinstance(each, Mapping):
            left += [*cast("Mapping[object, object]", each).keys(), *cast("Mapping[object, object]", each).values()]
        elif isinstance(each, list | tuple | set | frozenset):
            left += cast("Sequence[object]", each)
    return total


def require_size(size: int, what: str) -> None:
    """See that a result will not be too big.

    Raises:
        SecurityError: It will.
    """
    if size > MAX_CHARACTERS:
        raise SecurityError(f"the result of {what} is too big")


@pass_environment
def finished(environment: Environment, value: object) -> object:
    """A value that is about to be written as a text."""
    del environment  # asked for so that nothing is worked out when a template is read
    size = charge(value)
    if not isinstance(value, str):
        require_size(size, "an expression")
    return value


def concatenated(values: Sequence[object]) -> str:
    """What `~` makes of values."""
    require_size(charge(values), "'~'")
    return "".join(map(str, values))


def formatted_size(text: str, args: Sequence[object], kwargs: Mapping[str, object]) -> int:
    """How long at most a text becomes in which values are filled in."""
    widest = max([*map(int, _NUMBERS.findall(text)), weight([*args, kwargs])])
    if _NESTED_WIDTH.search(text):
        widest = max([widest, *[value for value in (*args, *kwargs.values()) if isinstance(value, int)]])
    return len(text) + (text.count("{") + text.count("%")) * widest


def joined_size(separator: object, items: Sequence[object]) -> int:
    """How long items become that are joined."""
    return weight(items) + weight(separator) * len(items)


def replaced_size(text: str, old: str, new: str) -> int:
    """How long a text becomes in which another one stands in for a part of it."""
    return len(text) + text.count(old) * len(new)


def grown(name: str, value: object, args: Sequence[Any], kwargs: Mapping[str, Any]) -> int:
    """How big at most a filter's result is; what grows no more than its values are long is 0."""
    size_of = _GROWING.get(name)
    given = [*args, *kwargs.values()]
    return 0 if size_of is None else size_of(value, given)


def _joins(value: object, given: Sequence[Any]) -> int:
    return joined_size(given[0] if given else "", cast("list[object]", value))


def _lines(value: object, given: Sequence[Any]) -> int:
    return weight(value) + (str(value).count("\n") + 1) * _longest(given)


def _each_character(value: object, given: Sequence[Any]) -> int:
    return weight(value) * max(1, _longest(given))


def _breaks(value: object, given: Sequence[Any]) -> int:
    return weight(value) * max([2, *[len(each) for each in given if isinstance(each, str)]])


def _replaces(value: object, given: Sequence[Any]) -> int:
    return replaced_size(str(value), str(given[0]), str(given[1])) if len(given) > 1 else 0


def _longest(given: Sequence[Any]) -> int:
    return max([0, *[each if isinstance(each, int) else weight(each) for each in given]])


_GROWING: Final[Mapping[str, Callable[[object, Sequence[Any]], int]]] = {
    "indent": _lines,
    "join": _joins,
    "replace": _replaces,
    "tojson": _each_character,
    "urlize": _breaks,
    "wordwrap": _breaks,
}
