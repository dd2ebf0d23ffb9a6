"""JSON with the place of everything in it, also where it stands in a fence or between prose."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from json.decoder import scanstring  # pyright: ignore[reportUnknownVariableType, reportAttributeAccessIssue]
from typing import Any, Final, NoReturn, cast

from agents_loop.files.problems import LoopFileError, Problem, path_text
from agents_loop.files.yaml_tree import PathIn, Place, YamlTree

MAX_VALUES: Final = 50_000
MAX_DEPTH: Final = 60
_MOST_STARTS: Final = 50
"""In how many places a text is tried as JSON."""
_SPACE: Final = re.compile(r"[ \t\r\n]*")
_NUMBER: Final = re.compile(r"-?(?:0|[1-9]\d{0,300})(?:\.\d{1,300})?(?:[eE][-+]?\d{1,3})?")
_FENCE: Final = re.compile(r"^[ \t]*```[ \t]*(?:json)?[ \t]*$", re.MULTILINE | re.IGNORECASE)
_WORDS: Final[dict[str, Any]] = {"true": True, "false": False, "null": None}


class JsonPlaceError(ValueError):
    """A text is no JSON.

    Args:
        position: Where.
        message: What is wrong there.
    """

    def __init__(self, position: int, message: str) -> None:
        super().__init__(message)
        self.position = position


def parse_json(text: str, source: str) -> YamlTree:
    """Read JSON into plain values: the text itself, or what stands in its fence, or the first that its prose holds.

    Where prose holds several, the first that has `nodes` or is a list of them is read, so that `{}` may be spoken of.

    Raises:
        LoopFileError: There is none, or it holds a key twice, or too much.
    """
    failed: JsonPlaceError | None = None
    other: YamlTree | None = None
    for start in _starts(text):
        reading = _Reading(text, source)
        try:
            tree = reading.read(start)
        except JsonPlaceError as error:
            if failed is None or error.position > failed.position:
                failed = error
            continue
        if _means_a_flow(tree.data):
            return tree
        if other is None and (isinstance(tree.data, dict) or _holds_objects(tree.data)):
            other = tree
    if other is not None:
        return other
    if failed is None:
        raise LoopFileError(source, [Problem(None, None, "", "there is no JSON object in the file")])
    line, column = _line_and_column(text, failed.position)
    raise LoopFileError(source, [Problem(line, column, "", f"not valid JSON: {failed}")])


def _starts(text: str) -> Iterator[int]:
    """Where JSON may begin: at the start, else after a fence, else at a bracket."""
    first = cast("re.Match[str]", _SPACE.match(text)).end()
    if text[first : first + 1] in ("{", "["):
        yield first
        return
    fence = _FENCE.search(text)
    if fence is not None:
        yield cast("re.Match[str]", _SPACE.match(text, fence.end())).end()
    brackets = re.finditer(r"[{\[]", text)
    for _, bracket in zip(range(_MOST_STARTS), brackets, strict=False):
        yield bracket.start()


def _holds_objects(data: Any) -> bool:
    return isinstance(data, list) and any(isinstance(item, dict) for item in cast("list[Any]", data))


def _means_a_flow(data: Any) -> bool:
    if isinstance(data, dict):
        return "nodes" in data or "flomorphic" in data
    listed = cast("list[Any]", data) if isinstance(data, list) else []
    return any(isinstance(item, dict) and "kind" in item for item in listed)


def _line_and_column(text: str, position: int) -> tuple[int, int]:
    return text.count("\n", 0, position) + 1, position - text.rfind("\n", 0, position)


class _Reading:
    """One pass over a text."""

    def __init__(self, text: str, source: str) -> None:
        self._text = text
        self._source = source
        self._tree = YamlTree()
        self._problems: list[Problem] = []
        self._count = 0
        self._seen, self._line, self._line_start = 0, 1, 0

    def read(self, start: int) -> YamlTree:
        self._tree.data, _ = self._value(start, ())
        if self._problems:
            raise LoopFileError(self._source, self._problems)
        return self._tree

    def _value(self, at: int, path: PathIn) -> tuple[Any, int]:
        self._count += 1
        place = self._tree.values[path] = self._place(at)
        if self._count > MAX_VALUES:
            self._give_up(place, path, f"the file has more than {MAX_VALUES} values")
        if len(path) > MAX_DEPTH:
            self._give_up(place, path[:4], f"nested more than {MAX_DEPTH} deep")
        first = self._text[at : at + 1]
        if first == "{":
            return self._object(at, path)
        if first == "[":
            return self._list(at, path)
        if first == '"':
            return self._string(at)
        for word, value in _WORDS.items():
            if self._text.startswith(word, at):
                return value, at + len(word)
        number = _NUMBER.match(self._text, at)
        if number is None:
            raise JsonPlaceError(at, "a value is expected here" if first else "the text ends where a value is expected")
        return json.loads(number[0]), number.end()

    def _object(self, at: int, path: PathIn) -> tuple[dict[str, Any], int]:
        found: dict[str, Any] = {}
        at = self._skip(at + 1)
        if self._text[at : at + 1] == "}":
            return found, at + 1
        while True:
            if self._text[at : at + 1] != '"':
                raise JsonPlaceError(at, "a key in double quotes is expected here")
            place = self._place(at)
            key, at = self._string(at)
            inner = (*path, key)
            if key in found:
                said = f"the key is given twice; first in line {self._tree.keys[inner].line}"
                self._problems.append(Problem(place.line, place.column, path_text(inner), said))
            self._tree.keys.setdefault(inner, place)
            at = self._skip(at)
            if self._text[at : at + 1] != ":":
                raise JsonPlaceError(at, "a colon is expected here")
            found[key], at = self._value(self._skip(at + 1), inner)
            at, is_over = self._next(at, "}")
            if is_over:
                return found, at

    def _list(self, at: int, path: PathIn) -> tuple[list[Any], int]:
        items: list[Any] = []
        at = self._skip(at + 1)
        if self._text[at : at + 1] == "]":
            return items, at + 1
        while True:
            item, at = self._value(at, (*path, len(items)))
            items.append(item)
            at, is_over = self._next(at, "]")
            if is_over:
                return items, at

    def _next(self, at: int, end: str) -> tuple[int, bool]:
        at = self._skip(at)
        mark = self._text[at : at + 1]
        if mark == end:
            return at + 1, True
        if mark != ",":
            raise JsonPlaceError(at, f"a comma or {end!r} is expected here")
        return self._skip(at + 1), False

    def _string(self, at: int) -> tuple[str, int]:
        try:
            return cast("tuple[str, int]", scanstring(self._text, at + 1, True))  # noqa: FBT003 - no control characters
        except json.JSONDecodeError as error:
            raise JsonPlaceError(error.pos, error.msg) from error

    def _skip(self, at: int) -> int:
        return cast("re.Match[str]", _SPACE.match(self._text, at)).end()

    def _place(self, at: int) -> Place:
        """The line and the column; positions come in order, so each line is counted once."""
        lines = self._text.count("\n", self._seen, at)
        if lines:
            self._line += lines
            self._line_start = self._text.rfind("\n", 0, at) + 1
        self._seen = at
        return Place(self._line, at - self._line_start + 1)

    def _give_up(self, place: Place, path: PathIn, message: str) -> NoReturn:
        raise LoopFileError(self._source, [Problem(place.line, place.column, path_text(path), message)])
