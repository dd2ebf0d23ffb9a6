"""From plain values to a `Document`, or to the problems, each with its place."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeAlias, cast

from pydantic import ValidationError

from agents_loop.files.checking import input_problems, model_problems
from agents_loop.files.dagraph.schema import Document
from agents_loop.files.problems import Problem, path_text
from agents_loop.files.yaml_tree import PathIn, YamlTree

_NOT_YET_TOP = frozenset({"outputs", "hooks"})
_NOT_YET_NODE = frozenset({"depends_on", "when", "retry", "outputs"})
_NOT_YET_PART = frozenset(
    {"temperature", "fallback_chain", "timeout_seconds", "tools", "mcp_servers", "memory", "max_tool_iterations"}
)
_NOT_YET_TYPES = frozenset(
    {"agent", "loop", "map", "planner", "bash", "python_exec", "subgraph", "approval_gate", "user_input"}
)

_MESSAGES = {"too_short": "needs one node of type 'evaluator_loop'"}

_Fields: TypeAlias = dict[str, Any]


def check_document(tree: YamlTree) -> Document | list[Problem]:
    """The document, or everything that is wrong with it."""
    not_yet, unread = _not_yet(tree)
    try:
        document = Document.model_validate(tree.data)
    except ValidationError as error:
        found = model_problems(tree, Document, error, messages=_MESSAGES)
        return not_yet + [problem for problem in found if not _is_within(problem.place, unread)]
    return not_yet or input_problems(tree, document.inputs) or document


def _is_within(place: str, others: set[str]) -> bool:
    return any(place == other or place.startswith((f"{other}.", f"{other}[")) for other in others)


# --- what dagraph has, and this library has not yet


def _not_yet(tree: YamlTree) -> tuple[list[Problem], set[str]]:
    """What is not supported yet, and the places that are not looked at for that."""
    data = cast("_Fields", tree.data)
    problems = list(_keys_not_yet(tree, (), data, _NOT_YET_TOP))
    nodes = cast("list[Any]", data["nodes"]) if isinstance(data.get("nodes"), list) else []
    if len(nodes) > 1:
        problems.append(tree.problem(("nodes", 1), "several nodes are not supported yet: keep one `evaluator_loop`"))
    unread = {path_text(("nodes", index)) for index in range(1, len(nodes))}
    if nodes and isinstance(nodes[0], dict):
        node = cast("_Fields", nodes[0])
        kind = node.get("type")
        if isinstance(kind, str) and kind in _NOT_YET_TYPES:
            said = f"nodes of type {kind!r} are not supported yet, only 'evaluator_loop'"
            problems.append(tree.problem(("nodes", 0, "type"), said))
            unread.add("nodes[0]")
        else:
            problems += _node_not_yet(tree, node)
    return problems, unread | {problem.place for problem in problems}


def _node_not_yet(tree: YamlTree, node: _Fields) -> Iterator[Problem]:
    path: PathIn = ("nodes", 0)
    yield from _keys_not_yet(tree, path, node, _NOT_YET_NODE)
    for part in ("generator", "evaluator"):
        if isinstance(node.get(part), dict):
            yield from _keys_not_yet(tree, (*path, part), node[part], _NOT_YET_PART)


def _keys_not_yet(tree: YamlTree, path: PathIn, fields: _Fields, names: frozenset[str]) -> Iterator[Problem]:
    for name in sorted(fields.keys() & names):
        if fields[name] in (None, [], {}):
            del fields[name]  # it says nothing
        else:
            yield tree.problem((*path, name), "not supported yet: take it out", at_key=True)
