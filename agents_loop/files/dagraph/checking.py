"""From plain values to a `Document`, or to the problems, each with its place."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeAlias, cast

from pydantic import ValidationError

from agents_loop.files.checking import input_problems, model_problems, shown
from agents_loop.files.dagraph.graph import graph_problems
from agents_loop.files.dagraph.outline import OTHER_TYPES, outline_of
from agents_loop.files.dagraph.schema import Document
from agents_loop.files.problems import Problem, path_text
from agents_loop.files.yaml_tree import PathIn, YamlTree

_TYPES = ("agent", "evaluator_loop")
_NOT_AT_TOP = frozenset({"hooks"})
_NOT_IN_PART = frozenset({"temperature", "tools", "mcp_servers", "memory", "max_tool_iterations"})
_MESSAGES = {"too_short": "needs a node"}

_Fields: TypeAlias = dict[str, Any]


def check_document(tree: YamlTree) -> tuple[Document | None, list[Problem]]:
    """The document, if it is one, and what is wrong with it; templates aside."""
    refused, unread = _refused(tree)
    document, wrong = None, list[Problem]()
    try:
        document = Document.model_validate(tree.data)
    except ValidationError as error:
        wrong = model_problems(tree, Document, error, messages=_MESSAGES)
    if document is not None:
        wrong += input_problems(tree, document.inputs)
    wrong += _repeated_models(tree)
    wrong += graph_problems(tree, outline_of(tree.data))
    return document, refused + [problem for problem in wrong if not _is_within(problem.place, unread)]


def _is_within(place: str, others: set[str]) -> bool:
    return any(place == other or place.startswith((f"{other}.", f"{other}[")) for other in others)


# --- what dagraph has, and this library has not


def _refused(tree: YamlTree) -> tuple[list[Problem], set[str]]:
    """What is not supported, and the places that are not looked at for that."""
    data = cast("_Fields", tree.data)
    problems = list(_keys_refused(tree, (), data, _NOT_AT_TOP))
    unread: set[str] = set()
    nodes = cast("list[Any]", data["nodes"]) if isinstance(data.get("nodes"), list) else []
    for index, node in enumerate(nodes):
        if not isinstance(node, dict):
            continue
        path: PathIn = ("nodes", index)
        fields = cast("_Fields", node)
        wrong = _wrong_type(tree, path, fields)
        if wrong is not None:
            problems.append(wrong)
        if _is_of_another_type(fields):
            unread.add(path_text(path))
        else:
            problems += _node_refused(tree, path, fields)
    return problems, unread | {problem.place for problem in problems}


def _wrong_type(tree: YamlTree, path: PathIn, node: _Fields) -> Problem | None:
    kind = node.get("type")
    if kind in _TYPES:
        return None
    path = (*path, "type")
    if "type" not in node:
        return tree.problem(path, "is missing")
    if _is_of_another_type(node):
        return tree.problem(path, f"nodes of type {kind!r} are not supported, only 'agent' and 'evaluator_loop'")
    return tree.problem(path, f"must be 'agent' or 'evaluator_loop', not {shown(kind)}")


def _is_of_another_type(node: _Fields) -> bool:
    kind = node.get("type")
    return isinstance(kind, str) and kind in OTHER_TYPES


def _node_refused(tree: YamlTree, path: PathIn, node: _Fields) -> Iterator[Problem]:
    yield from _keys_refused(tree, path, node, _NOT_IN_PART)
    for part in ("generator", "evaluator"):
        if isinstance(node.get(part), dict):
            yield from _keys_refused(tree, (*path, part), node[part], _NOT_IN_PART)
    for name in ("when", "depends_on", "retry"):
        if name in node and node[name] is None:
            del node[name]  # it says nothing


def _keys_refused(tree: YamlTree, path: PathIn, fields: _Fields, names: frozenset[str]) -> Iterator[Problem]:
    for name in sorted(fields.keys() & names):
        if fields[name] in (None, [], {}):
            del fields[name]  # it says nothing
        else:
            yield tree.problem((*path, name), "not supported: take it out", at_key=True)


# --- what each part says by itself is right, and both together are not


def _repeated_models(tree: YamlTree) -> Iterator[Problem]:
    """Models in a `fallback_chain` that were asked by then: one that is down is no help to itself (`retry` is)."""
    nodes = tree.data.get("nodes")
    for index, node in enumerate(cast("list[Any]", nodes) if isinstance(nodes, list) else []):
        fields = cast("_Fields", node) if isinstance(node, dict) else {}
        for keys in ((), ("generator",), ("evaluator",)):
            part = fields.get(keys[0]) if keys else fields
            if isinstance(part, dict):
                yield from _repeated_in(tree, ("nodes", index, *keys), cast("_Fields", part))


def _repeated_in(tree: YamlTree, path: PathIn, part: _Fields) -> Iterator[Problem]:
    chain = part.get("fallback_chain")
    seen = {part["model"]: "it is the model itself"} if isinstance(part.get("model"), str) else {}
    for number, name in enumerate(cast("list[Any]", chain) if isinstance(chain, list) else []):
        if not isinstance(name, str):
            continue
        if name in seen:
            said = f"{name!r} was asked by then ({seen[name]}): take it out; `retry` asks again"
            yield tree.problem((*path, "fallback_chain", number), said)
        seen.setdefault(name, f"it is fallback_chain[{number}]")
