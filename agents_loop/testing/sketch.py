"""What an object keeps, written down: so that a change shows, and its place."""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from functools import cached_property
from inspect import getattr_static
from types import CellType, FunctionType, MethodType
from typing import Any, cast

from agents_loop.agent import AIAgent
from agents_loop.chat_client import ChatClient
from agents_loop.loop.evaluator import LoopEvaluator

_PLAIN = (str, bytes, int, float, complex, bool, type(None), Enum, itertools.count)
_DEEPEST = 8


def sketch_of(evaluator: LoopEvaluator) -> dict[str, str]:
    """Everything that an evaluator keeps, by its place: attributes, those of its class, and variables of its functions.

    Containers, dataclasses, evaluators and objects of the evaluator's own module are looked into. A chat client, an
    agent or any other object counts as the same while it is the same object. What `cached_property` keeps is left out.
    """
    return dict(_Sketch(type(evaluator).__module__).parts(evaluator))


def changed_places(before: Mapping[str, str], after: Mapping[str, str]) -> Iterator[tuple[str, str, str]]:
    """The places that are not as they were, with what was there and what is."""
    nothing = "nothing"
    for place in [*before, *[place for place in after if place not in before]]:
        was, now = before.get(place, nothing), after.get(place, nothing)
        if was != now:
            yield place, was, now


class _Sketch:
    def __init__(self, module: str) -> None:
        self._module = module
        self._within: list[int] = []

    def parts(self, evaluator: LoopEvaluator) -> Iterator[tuple[str, str]]:
        for name, value in _attributes(evaluator):
            yield from self._parts_of(name, value)
        for kind in type(evaluator).__mro__:
            if kind.__module__ == self._module and issubclass(kind, LoopEvaluator):
                for name, value in vars(kind).items():
                    if not name.startswith("__") and not callable(value) and not hasattr(value, "__get__"):
                        yield f"{kind.__name__}.{name}", self.written(value)

    def _parts_of(self, name: str, value: object) -> Iterator[tuple[str, str]]:
        yield name, self.written(value)
        function = value.__func__ if isinstance(value, MethodType) else value
        if isinstance(function, FunctionType):
            for variable, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
                yield f"{name}.{variable}", self._of_cell(cell)
            yield f"{name}.__defaults__", self.written(function.__defaults__)

    def _of_cell(self, cell: CellType) -> str:
        try:
            return self.written(cell.cell_contents)
        except ValueError:
            return "not set"

    def written(self, value: object) -> str:
        if isinstance(value, _PLAIN):
            return repr(cast("object", value))
        if id(value) in self._within or len(self._within) >= _DEEPEST:
            return "..."
        self._within.append(id(value))
        try:
            return self._looked_into(value)
        finally:
            self._within.pop()

    def _looked_into(self, value: object) -> str:
        kind = type(value).__name__
        if isinstance(value, dict):
            pairs = cast("dict[Any, Any]", value).items()
            return f"{kind}({', '.join([f'{self.written(key)}: {self.written(item)}' for key, item in pairs])})"
        if isinstance(value, list | tuple | deque):
            return f"{kind}({', '.join([self.written(item) for item in cast('list[Any]', value)])})"
        if isinstance(value, set | frozenset):
            return f"{kind}({', '.join(sorted([self.written(item) for item in cast('set[Any]', value)]))})"
        if isinstance(value, bytearray):
            return repr(value)
        if self._is_open(value):
            attributes = [f"{name}={self.written(item)}" for name, item in _attributes(value)]
            return f"{kind}({', '.join(attributes)})"
        return f"<{kind} {id(value):x}>"

    def _is_open(self, value: object) -> bool:
        """Whether an object is a part of what keeps it, not a thing of its own."""
        if isinstance(value, ChatClient | AIAgent | type) or callable(value):
            return False
        return isinstance(value, LoopEvaluator) or is_dataclass(value) or type(value).__module__ == self._module


def _attributes(value: object) -> Iterator[tuple[str, object]]:
    named: dict[str, object] = dict(getattr(value, "__dict__", {}))
    slots = [name for kind in type(value).__mro__ for name in _slots_of(kind)]
    if is_dataclass(value):
        slots += [field.name for field in fields(value)]
    for name in slots:
        if name not in named and hasattr(value, name):
            named[name] = getattr(value, name)
    for name, item in named.items():
        if not isinstance(getattr_static(type(value), name, None), cached_property):
            yield name, item


def _slots_of(kind: type) -> list[str]:
    slots = kind.__dict__.get("__slots__", ())
    names = [slots] if isinstance(slots, str) else list(slots)
    own = [f"_{kind.__name__.lstrip('_')}{name}" if name.startswith("__") else name for name in names]
    return [name for name in own if name not in ("__dict__", "__weakref__")]
