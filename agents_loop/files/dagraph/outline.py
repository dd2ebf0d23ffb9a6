"""What a file says of its graph and its templates, as far as that can be read: also where other things are wrong."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

OTHER_TYPES = frozenset({"loop", "map", "planner", "bash", "python_exec", "subgraph", "approval_gate", "user_input"})
"""Types of nodes that dagraph has, and this library has not."""


@dataclass(frozen=True, slots=True)
class NodeOutline:
    """What a node says, where it is of the right type."""

    index: int
    """Its place in the file."""
    id: str | None
    depends_on: dict[int, str]
    """Ids, by their places in the list."""
    prompts: dict[str, str]
    """By the key of the part that has it; empty for a node that is no more than that."""
    when: str | None


@dataclass(frozen=True, slots=True)
class Outline:
    """What a file says, where it is of the right type."""

    nodes: list[NodeOutline]
    inputs: frozenset[str] | None
    """The names of the inputs; `None`: the file declares none, so that any may be given."""
    outputs: dict[str, str]

    @property
    def ids(self) -> dict[str, int]:
        """The nodes' ids, with the place of the first that has it."""
        ids: dict[str, int] = {}
        for node in self.nodes:
            if node.id is not None:
                ids.setdefault(node.id, node.index)
        return ids


def outline_of(data: object) -> Outline:
    """The outline of a file's values, whatever they are."""
    fields = _mapping(data)
    inputs = fields.get("inputs")
    return Outline(
        [_node(index, _mapping(node)) for index, node in enumerate(_list(fields.get("nodes")))],
        None if inputs is None else frozenset(_mapping(inputs)),
        _texts(_mapping(fields.get("outputs"))),
    )


def _node(index: int, fields: dict[str, Any]) -> NodeOutline:
    depends_on = dict(enumerate(_list(fields.get("depends_on"))))
    parts = {key: _mapping(fields[key]) for key in ("generator", "evaluator") if key in fields} or {"": fields}
    prompts = _texts({key: part.get("prompt") for key, part in parts.items()})
    when = _text(fields.get("when"))
    if _text(fields.get("type")) in OTHER_TYPES:
        prompts, when = {}, None
    return NodeOutline(index, _text(fields.get("id")), _texts(depends_on), prompts, when)


def _mapping(value: object) -> dict[str, Any]:
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def _list(value: object) -> list[Any]:
    return cast("list[Any]", value) if isinstance(value, list) else []


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and value.strip() else None


def _texts(values: dict[Any, Any]) -> dict[Any, str]:
    return {key: text for key, value in values.items() if (text := _text(value)) is not None}
