"""The context of a run: one JSON document that nodes read and write, each within its scope."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Final, cast

from agents_loop.errors import AgentsLoopError
from agents_loop.files.flomorphic.paths import JsonPath, Parts
from agents_loop.messages import JsonValue

UNKNOWN_KEY: Final = "unknow"
"""Where a result without a key lands that is no object: FloMorphic's own word."""
MOST_CHARS: Final = 10_000_000
"""Of the context as JSON text: a flow whose scripts double it each time ends there, not with the memory."""


class ContextError(AgentsLoopError):
    """The context has no place for what a node reads or writes."""


@dataclass(frozen=True, slots=True)
class Element:
    """One value that a scope leads to: what a node runs on."""

    parts: Parts
    value: JsonValue
    exists: bool = True


class FlowContext:
    """The document, and what nodes do to it.

    Args:
        root: What it begins with.
    """

    def __init__(self, root: dict[str, JsonValue]) -> None:
        self.root = root

    def as_text(self) -> str:
        """The document as JSON text.

        Raises:
            ContextError: It has grown too big.
        """
        text = json.dumps(self.root)
        if len(text) > MOST_CHARS:
            raise ContextError(f"the context has grown to more than {MOST_CHARS:,} characters")
        return text

    def elements(self, scope: JsonPath) -> list[Element]:
        """What a node runs on: each value that its scope leads to.

        A scope that leads to one place, where nothing stands yet, gives an element without a value: what is written to
        it makes the place.
        """
        found = [Element(parts, value) for parts, value in scope.find(self.root)]
        return [Element(scope.parts, None, exists=False)] if not found and scope.is_single else found

    def current(self, element: Element) -> JsonValue:
        """What stands at an element now; `None` too where nothing does."""
        value: Any = self.root
        for part in element.parts:
            try:
                value = value[part]
            except (KeyError, IndexError, TypeError):
                return None
        return value

    def write(self, element: Element, key: str | None, output: JsonValue) -> None:
        """Let a node's output land: under its key, or merged into the element.

        Raises:
            ContextError: There is no object to hold it.
        """
        if not key and not isinstance(output, dict):
            current = self.current(element)
            if current is not None and not isinstance(current, dict):
                self._replace(element, output)
                return
        target = self._object_at(element)
        if key:
            target[key] = output
        elif isinstance(output, dict):
            target.update(cast("dict[str, JsonValue]", output))
        else:
            target[UNKNOWN_KEY] = output

    def _replace(self, element: Element, output: JsonValue) -> None:
        """Put something where a value stands that is no object, such as an item of a list of texts."""
        holder: Any = self.current(Element(element.parts[:-1], None))
        holder[element.parts[-1]] = output

    def _object_at(self, element: Element) -> dict[str, JsonValue]:
        """The object at an element; made where nothing stands."""
        value: Any = self.root
        for number, part in enumerate(element.parts, start=1):
            if isinstance(value, dict) and isinstance(part, str) and cast("dict[str, Any]", value).get(part) is None:
                value[part] = {}
            holder = cast("Any", value)
            try:
                value = None if isinstance(holder, str) else holder[part]
            except (KeyError, IndexError, TypeError) as error:
                raise ContextError(f"the context has no place {_shown(element.parts[:number])} to write to") from error
        if not isinstance(value, dict):
            raise ContextError(f"{_shown(element.parts)} is no object, so nothing can be put into it")
        return cast("dict[str, JsonValue]", value)


def _shown(parts: Parts) -> str:
    return "$" + "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in parts)
