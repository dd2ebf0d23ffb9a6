"""What pydantic finds wrong with a file's values, told with places in the file. All formats share it."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Iterator, Mapping
from types import UnionType
from typing import Annotated, Any, Union, cast, get_args, get_origin

from pydantic import BaseModel, Tag, ValidationError

from agents_loop.files.fields import InputSpec
from agents_loop.files.inputs import InputError, check_name, coerce
from agents_loop.files.problems import Problem
from agents_loop.files.yaml_tree import PathIn, YamlTree

_TAGS = re.compile(r"<(\w+)>")
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


def model_problems(
    tree: YamlTree, model: type[BaseModel], error: ValidationError, *, messages: Mapping[str, str] | None = None
) -> list[Problem]:
    """The problems that pydantic found, each at its place; of several at one place the first.

    Args:
        tree: What the file says, and where.
        model: What it was checked against. Where a value may have several forms, the tags of these (`pydantic.Tag`)
            stand in angle brackets, so that they are told from keys: `<chat>`.
        error: What pydantic raised.
        messages: What is said instead, by pydantic's type of the error.
    """
    found: dict[PathIn, Problem] = {}
    for details in error.errors():
        kind, ways = details["type"], details["loc"]
        path = _path(tree.data, ways, is_missing=kind == "missing")
        if kind == "extra_forbidden":
            problem = tree.problem(path, unknown(str(path[-1]), _keys_at(model, ways[:-1])), at_key=True)
        elif kind == "union_tag_invalid":
            problem = _wrong_type(tree, path, details["input"], details.get("ctx", {}))
        else:
            said = (messages or {}).get(kind) or _message(kind, cast("dict[str, Any]", details))
            problem = tree.problem(path, said)
        found.setdefault(path, problem)
    return list(found.values())


def input_problems(tree: YamlTree, inputs: Mapping[str, InputSpec] | None) -> list[Problem]:
    """What is wrong with the inputs that a file declares."""
    return list(_wrong_declarations(tree, inputs or {}))


def _wrong_declarations(tree: YamlTree, inputs: Mapping[str, InputSpec]) -> Iterator[Problem]:
    for name, spec in inputs.items():
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
            yield tree.problem((*path, "default"), f"must be of type {spec.type}, not {shown(spec.default)}")


def unknown(name: str, known: Iterable[str], *, what: str = "key") -> str:
    """That a name is not known, and which one may be meant."""
    names = list(known)
    close = difflib.get_close_matches(name, names, n=1)
    hint = f"did you mean {close[0]!r}?" if close else f"known here: {', '.join(names)}"
    return f"unknown {what} {name!r}; {hint}"


def shown(value: object) -> str:
    """A value of a file, in short."""
    if isinstance(value, dict | list):
        return "a mapping" if isinstance(value, dict) else "a list"
    if value is None or isinstance(value, bool):
        return {None: "nothing", True: "true", False: "false"}[value]
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}...'"  # noqa: PLR2004 - what fits in a line


def _message(kind: str, details: dict[str, Any]) -> str:  # noqa: PLR0911 - a table
    given = shown(details["input"])
    match kind:
        case "missing":
            return "is missing"
        case "greater_than_equal":
            return f"must be at least {_limit(details['ctx']['ge'])}, not {given}"
        case "less_than_equal":
            return f"must be at most {_limit(details['ctx']['le'])}, not {given}"
        case "greater_than":
            return f"must be more than {details['ctx']['gt']:g}, not {given}"
        case "literal_error":
            return f"must be {details['ctx']['expected']}, not {given}"
        case "too_short":
            return "must not be empty"
        case "value_error":
            return str(details["ctx"]["error"])
        case _ if kind in _KINDS:
            return f"must be {_KINDS[kind]}, not {given}"
        case _:
            return f"{details['msg']}, not {given}"


def _limit(limit: float) -> str:
    """A limit, without the decimals that say nothing."""
    return f"{limit:g}" if isinstance(limit, float) else str(limit)


def _wrong_type(tree: YamlTree, path: PathIn, given: object, context: Mapping[str, Any]) -> Problem:
    """That a mapping is of no type that is known: the types stand as tags in the error's context."""
    known = [name for name in _TAGS.findall(context["expected_tags"]) if name != "alone"]
    said = _TAGS.fullmatch(context["tag"])
    if said is not None:
        at = (*path, "type") if isinstance(given, dict) else path
        return tree.problem(at, unknown(said[1], known, what="type"))
    is_mapping = isinstance(given, dict)
    what = "a mapping without it" if is_mapping else shown(given)
    return tree.problem(path, f"must be a mapping with a `type`, one of {', '.join(known)}, not {what}")


def _path(data: object, ways: Iterable[int | str], *, is_missing: bool) -> PathIn:
    """The path in the file: without what pydantic adds of its own, such as the form of a value that it tried."""
    path: list[int | str] = []
    here = data
    parts = list(ways)
    for number, part in enumerate(parts, start=1):
        if _is_tag(part):
            continue
        if isinstance(here, dict) and part in here:
            here = cast("dict[int | str, object]", here)[part]
        elif isinstance(here, list) and isinstance(part, int) and part < len(cast("list[object]", here)):
            here = cast("list[object]", here)[part]
        elif not (is_missing and number == len(parts)):
            continue
        path.append(part)
    return tuple(path)


def _keys_at(model: type[BaseModel], ways: Iterable[int | str]) -> list[str]:
    """The keys of the mapping to which ways lead."""
    here: Any = model
    for part in ways:
        here = next((inside for form in _forms(here) for inside in _inside(form, part)), None)
    models = [form for _, form in _forms(here) if _is_model(form)]
    return [str(field.alias or name) for name, field in models[0].model_fields.items()] if models else []


def _forms(annotation: Any, tag: str | None = None) -> Iterator[tuple[str | None, Any]]:
    """What a value may be, each with its tag."""
    annotation = getattr(annotation, "__value__", annotation)
    if get_origin(annotation) is Annotated:
        inner, *notes = get_args(annotation)
        tags = [note.tag for note in notes if isinstance(note, Tag)]
        yield from _forms(inner, tags[0] if tags else tag)
    elif get_origin(annotation) in (Union, UnionType):
        for each in get_args(annotation):
            yield from _forms(each, tag)
    else:
        yield tag, annotation


def _inside(form: tuple[str | None, Any], part: int | str) -> Iterator[Any]:
    tag, annotation = form
    if _is_tag(part):
        if part == tag:
            yield annotation
    elif _is_model(annotation):
        fields = {field.alias or name: field.annotation for name, field in annotation.model_fields.items()}
        if part in fields:
            yield fields[part]
    elif get_origin(annotation) in (list, dict):
        yield get_args(annotation)[-1]


def _is_model(annotation: Any) -> bool:
    return isinstance(annotation, type) and issubclass(annotation, BaseModel)


def _is_tag(part: int | str) -> bool:
    return isinstance(part, str) and part.startswith("<")
