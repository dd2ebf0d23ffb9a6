"""From plain values to a `Document`, or to the problems, each with its place."""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from typing import Any, TypeAlias, cast

from pydantic import BaseModel, ValidationError

from agents_loop.files.dagraph.schema import Budget, Document, EvaluatorLoopNode, Part
from agents_loop.files.fields import InputSpec
from agents_loop.files.inputs import InputError, check_name, coerce
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

_Fields: TypeAlias = dict[str, Any]


def check_document(tree: YamlTree) -> Document | list[Problem]:
    """The document, or everything that is wrong with it."""
    not_yet, unread = _not_yet(tree)
    try:
        document = Document.model_validate(tree.data)
    except ValidationError as error:
        found = [_problem(tree, cast("_Fields", details)) for details in error.errors()]
        return not_yet + [problem for problem in found if not _is_within(problem.place, unread)]
    return not_yet or list(_wrong_declarations(tree, document)) or document


def _is_within(place: str, others: set[str]) -> bool:
    return any(place == other or place.startswith((f"{other}.", f"{other}[")) for other in others)


def _wrong_declarations(tree: YamlTree, document: Document) -> Iterator[Problem]:
    for name, spec in (document.inputs or {}).items():
        path: PathIn = ("inputs", name)
        if wrong := check_name(name):
            yield tree.problem(path, wrong, at_key=True)
        if spec.default is None:
            continue
        if spec.required:
            yield tree.problem((*path, "required"), "an input with a default is not required: take one of them out")
        try:
            coerce(name, spec.type, spec.default)
        except InputError:
            yield tree.problem((*path, "default"), f"must be of type {spec.type}, not {_shown(spec.default)}")


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


# --- what pydantic found

_KINDS = {
    "string_type": "a string (put it in quotes if it looks like something else)",
    "int_type": "an integer",
    "int_from_float": "an integer",
    "float_type": "a number",
    "bool_type": "true or false",
    "list_type": "a list",
    "dict_type": "a mapping",
    "model_type": "a mapping",
    "model_attributes_type": "a mapping",
}
_MODELS: dict[str, type[BaseModel]] = {"budget": Budget, "generator": Part, "evaluator": Part}


def _problem(tree: YamlTree, details: _Fields) -> Problem:
    path = cast("PathIn", details["loc"])
    kind = cast("str", details["type"])
    if kind == "extra_forbidden":
        return tree.problem(path, _unknown_key(path), at_key=True)
    return tree.problem(path, _message(kind, details))


def _message(kind: str, details: _Fields) -> str:  # noqa: PLR0911 - a table
    given = _shown(details["input"])
    match kind:
        case "missing":
            return "is missing"
        case "greater_than_equal":
            return f"must be at least {details['ctx']['ge']}, not {given}"
        case "greater_than":
            return f"must be more than {details['ctx']['gt']:g}, not {given}"
        case "literal_error":
            return f"must be {details['ctx']['expected']}, not {given}"
        case "too_short":
            return "needs one node of type 'evaluator_loop'"
        case "value_error":
            return str(details["ctx"]["error"])
        case _ if kind in _KINDS:
            return f"must be {_KINDS[kind]}, not {given}"
        case _:
            return f"{details['msg']}, not {given}"


def _shown(value: object) -> str:
    if isinstance(value, dict | list):
        return "a mapping" if isinstance(value, dict) else "a list"
    if value is None or isinstance(value, bool):
        return {None: "nothing", True: "true", False: "false"}[value]
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}...'"  # noqa: PLR2004 - what fits in a line


def _unknown_key(path: PathIn) -> str:
    around = path[:-1]
    names = list(_model_at(around).model_fields)
    close = difflib.get_close_matches(str(path[-1]), names, n=1)
    hint = f"did you mean {close[0]!r}?" if close else f"known here: {', '.join(names)}"
    return f"unknown key {str(path[-1])!r}; {hint}"


def _model_at(path: PathIn) -> type[BaseModel]:
    if not path:
        return Document
    if path[0] == "inputs":
        return InputSpec
    return _MODELS.get(str(path[-1]), EvaluatorLoopNode)
