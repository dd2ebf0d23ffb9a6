"""Files of one JSON object a line, each checked by a model: every problem is told, with its line."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final, TypeVar, cast

from pydantic import BaseModel, ValidationError

from agents_loop.call_json import each_key_once
from agents_loop.file_kinds import why_not_read
from agents_loop.files.problems import LoopFileError, Problem, path_text

_MOST_CHARACTERS: Final = 1_000_000
"""Of a line."""
_OF_INPUTS: Final = ("str", "int", "float", "bool")
"""What pydantic calls the forms of a value of `inputs`."""

_KINDS: Final[dict[type[object], str]] = {list: "a list", str: "a string", bool: "true or false", type(None): "null"}

T = TypeVar("T", bound=BaseModel)


def read_lines(path: str | Path, what: str, error: type[LoopFileError]) -> str:
    """The text of a file.

    Args:
        path: The file.
        what: What stands in it, in a word, for the error.
        error: What is raised.

    Raises:
        LoopFileError: It can't be read.
    """
    if why := why_not_read(Path(path)):
        raise error(str(path), [Problem(None, None, "", f"the {what}s can't be read: {why}")])
    try:
        return Path(path).read_text(encoding="utf-8-sig")
    except (OSError, ValueError) as raised:
        said = getattr(raised, "strerror", None) or "it is not UTF-8"
        raise error(str(path), [Problem(None, None, "", f"the {what}s can't be read: {said}")]) from raised


def parse_lines(
    text: str,
    source: str,
    model: type[T],
    *,
    what: str,
    error: type[LoopFileError],
    further: Callable[[T], Iterator[tuple[str, str]]],
) -> tuple[T, ...]:
    """The objects of a text. Blank lines are left out; each object has an `id` of its own.

    Args:
        text: What stands in the file.
        source: What messages call it.
        model: What a line must be; it has an `id`.
        what: What a line is, in a word.
        error: What is raised.
        further: What is wrong with an object that is written well: its place, and what to say.

    Raises:
        LoopFileError: There is a problem, or no object; the error holds every problem, with its line.
    """
    found: list[T] = []
    problems: list[Problem] = []
    lines: dict[str, int] = {}
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        try:
            fields = _fields(line)
        except _NoObjectError as wrong:
            problems.append(Problem(number, wrong.column, "", f"is no JSON object: {wrong}"))
            continue
        read = _read(fields, model)
        if isinstance(read, model):
            found.append(read)
        wrongs = further(read) if isinstance(read, model) else read
        problems += [Problem(number, 1, place, message) for place, message in wrongs]
        name = fields.get("id")
        if isinstance(name, str) and lines.setdefault(name, number) != number:
            problems.append(Problem(number, 1, "id", f"{name!r} is the id of line {lines[name]} too"))
    if problems and _is_one_value(text):
        problems = [Problem(1, 1, "", f"is one JSON value for all: write one JSON object a line, each a {what}")]
    if not found and not problems:
        problems.append(Problem(None, None, "", f"there is no {what} in it: write one JSON object a line"))
    if problems:
        raise error(source, problems)
    return tuple(found)


def _read(fields: dict[str, Any], model: type[T]) -> T | list[tuple[str, str]]:
    """What the fields make, or what is wrong with them."""
    try:
        return model.model_validate(fields)
    except ValidationError as error:
        return list(_problems(error, model))


class _NoObjectError(Exception):
    """A line is no JSON object."""

    def __init__(self, message: str, column: int = 1) -> None:
        super().__init__(message)
        self.column = column


def _fields(line: str) -> dict[str, Any]:
    """The object of a line.

    Raises:
        _NoObjectError: It is none.
    """
    if len(line) > _MOST_CHARACTERS:
        raise _NoObjectError(f"it has more than {_MOST_CHARACTERS:,} characters")
    try:
        read: object = json.loads(line, object_pairs_hook=each_key_once, parse_constant=_no_number)
    except json.JSONDecodeError as error:
        raise _NoObjectError(error.msg, error.colno) from error
    except RecursionError as error:
        raise _NoObjectError("it is nested too deeply") from error
    except ValueError as error:
        raise _NoObjectError(str(error)) from error
    if not isinstance(read, dict):
        raise _NoObjectError(f"it is {_KINDS.get(type(read), 'a number')}")
    return cast("dict[str, Any]", read)


def _is_one_value(text: str) -> bool:
    """Whether all lines together are one list, or one object, as other tools write them."""
    try:
        return "\n" in text.strip() and isinstance(json.loads(text), list | dict)
    except (ValueError, RecursionError):
        return False


def _problems(error: ValidationError, model: type[BaseModel]) -> Iterator[tuple[str, str]]:
    seen: set[tuple[str, str]] = set()
    for details in error.errors(include_url=False, include_input=False):
        location = [part for part in details["loc"] if part not in _OF_INPUTS]
        message = details["msg"].removeprefix("Value error, ")
        if details["type"] == "extra_forbidden":
            message = f"is unknown; known here: {', '.join(model.model_fields)}"
        elif details["type"] == "missing":
            message = "is missing"
        elif details["type"].endswith("_type") and location[:1] == ["inputs"] and len(location) > 1:
            message = "must be a string, a number, or true or false"
        found = (path_text(location), message)
        if found not in seen:
            seen.add(found)
            yield found


def _no_number(name: str) -> Any:
    raise ValueError(f"{name} is no number of JSON")
