"""YAML with the place of everything in it. Keys given twice are an error, and so is a file that blows up."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn, TypeAlias, cast

from agents_loop.errors import MissingExtraError
from agents_loop.file_kinds import why_not_read
from agents_loop.files.problems import LoopFileError, Problem, path_text

try:
    import yaml
except ImportError as error:
    raise MissingExtraError("agents_loop.files", "cli") from error

PathIn: TypeAlias = tuple[str | int, ...]

MAX_BYTES = 512 << 10
MAX_VALUES = 5_000
"""Values in a file once its aliases are followed: what keeps a few lines of nested aliases from filling the memory."""
MAX_DEPTH = 32
_CORE_TAGS = frozenset(f"tag:yaml.org,2002:{name}" for name in ("null", "bool", "int", "float"))
_COLLECTION_TAGS = frozenset({"tag:yaml.org,2002:map", "tag:yaml.org,2002:seq"})
_TEXT_TAGS = frozenset(f"tag:yaml.org,2002:{name}" for name in ("str", "timestamp", "value"))


@dataclass(frozen=True, slots=True)
class Place:
    """Where something stands."""

    line: int
    """Counted from 1, as the column."""
    column: int
    first_text_line: int | None = None
    """For a text in which line N of the value is line N of the file: the file's line of its first line."""


@dataclass(slots=True)
class YamlTree:
    """What a file says, and where."""

    data: Any = None
    values: dict[PathIn, Place] = field(default_factory=dict[PathIn, Place])
    keys: dict[PathIn, Place] = field(default_factory=dict[PathIn, Place])

    def problem(self, path: PathIn, message: str, *, at_key: bool = False) -> Problem:
        """A problem at a path, or at the nearest thing around it that is in the file."""
        place = self.keys.get(path) if at_key else self.values.get(path)
        around = path
        while place is None and around:
            around = around[:-1]
            place = self.values.get(around)
        return Problem(place and place.line, place and place.column, path_text(path), message)

    def line_problem(self, path: PathIn, message: str, line: int | None) -> Problem:
        """A problem in a line of a text, such as a template, counted from 1; at the text where that is not known."""
        problem = self.problem(path, message)
        first = self.values[path].first_text_line if path in self.values else None
        return problem if line is None or first is None else Problem(first + line - 1, 1, problem.place, message)


def read_text(path: Path, source: str) -> str:
    """The text of a file.

    Raises:
        LoopFileError: It can't be read, is too big, or is not UTF-8.
    """
    if why := why_not_read(path):
        raise LoopFileError(source, [_whole(f"the file can't be read: {why}")])
    try:
        with path.open("rb") as file:
            content = file.read(MAX_BYTES + 1)
    except (OSError, ValueError) as error:
        said = getattr(error, "strerror", None) or str(error)
        raise LoopFileError(source, [_whole(f"the file can't be read: {said}")]) from error
    if len(content) > MAX_BYTES:
        raise LoopFileError(source, [_whole(f"the file is bigger than {MAX_BYTES >> 10} KiB")])
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        message = f"the file is not UTF-8 (byte 0x{content[error.start]:02x}): save it as UTF-8"
        raise LoopFileError(source, [Problem(line, 1, "", message)]) from error


def parse_yaml(text: str, source: str) -> YamlTree:
    """Read YAML into plain values.

    Raises:
        LoopFileError: It is not YAML, or holds a key twice, a tag of its own, or too much.
    """
    try:
        root = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        said = " ".join(part for part in (error.context, error.problem) if part)
        at = (mark.line + 1, mark.column + 1) if mark else (None, None)
        raise LoopFileError(source, [Problem(*at, "", f"not valid YAML: {said}")]) from error
    except (yaml.YAMLError, RecursionError) as error:
        said = "it is nested too deep" if isinstance(error, RecursionError) else str(error).splitlines()[0]
        raise LoopFileError(source, [_whole(f"not valid YAML: {said}")]) from error
    if not isinstance(root, yaml.MappingNode):
        raise LoopFileError(source, [_whole("the file must be a mapping with `name` and `nodes`")])
    return _Reading(source).read(root)


class _Reading:
    """One pass over the nodes that PyYAML composed."""

    def __init__(self, source: str) -> None:
        self._source = source
        self._tree = YamlTree()
        self._problems: list[Problem] = []
        self._count = 0
        self._scalars = yaml.SafeLoader("")

    def read(self, root: yaml.Node) -> YamlTree:
        self._tree.data = self._value(root, ())
        if self._problems:
            raise LoopFileError(self._source, self._problems)
        return self._tree

    def _value(self, node: yaml.Node, path: PathIn) -> Any:
        self._count += 1
        self._tree.values[path] = _place(node)
        if self._count > MAX_VALUES:
            self._give_up(node, path, f"the file has more than {MAX_VALUES} values, aliases followed")
        if len(path) > MAX_DEPTH:
            self._give_up(node, path[:4], f"nested more than {MAX_DEPTH} deep")
        if isinstance(node, yaml.CollectionNode) and node.tag not in _COLLECTION_TAGS:
            self._add(node, path, f"the tag {node.tag!r} can't be used here")
        if isinstance(node, yaml.MappingNode):
            return self._mapping(node, path)
        if isinstance(node, yaml.SequenceNode):
            items = cast("list[yaml.Node]", node.value)
            return [self._value(item, (*path, index)) for index, item in enumerate(items)]
        return self._scalar(node, path)

    def _mapping(self, node: yaml.MappingNode, path: PathIn) -> dict[str, Any]:
        mapping: dict[str, Any] = {}
        for key_node, value_node in cast("list[tuple[yaml.Node, yaml.Node]]", node.value):
            if not isinstance(key_node, yaml.ScalarNode) or key_node.tag.endswith(":merge"):
                said = "merge keys (`<<`)" if isinstance(key_node, yaml.ScalarNode) else "a key that is not a text"
                self._add(key_node, path, f"{said} can't be used here")
                continue
            key = cast("str", key_node.value)
            inner = (*path, key)
            if key in mapping:
                self._add(key_node, inner, f"the key is given twice; first in line {self._tree.keys[inner].line}")
                continue
            self._tree.keys[inner] = _place(key_node)
            mapping[key] = self._value(value_node, inner)
        return mapping

    def _scalar(self, node: yaml.Node, path: PathIn) -> Any:
        text = cast("str", node.value)
        if node.tag in _TEXT_TAGS:
            return text
        if node.tag not in _CORE_TAGS:
            self._add(node, path, f"the tag {node.tag!r} can't be used here")
            return text
        try:
            value = self._scalars.construct_object(node)  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
        except (ValueError, LookupError, yaml.YAMLError):
            self._add(node, path, f"{text[:40]!r} can't be read: put it in quotes if it is a text")
            return text
        if isinstance(value, float) and not math.isfinite(value):
            self._add(node, path, f"{text!r} is not a finite number")
        return cast("Any", value)

    def _add(self, node: yaml.Node, path: PathIn, message: str) -> None:
        place = _place(node)
        self._problems.append(Problem(place.line, place.column, path_text(path), message))

    def _give_up(self, node: yaml.Node, path: PathIn, message: str) -> NoReturn:
        self._add(node, path, message)
        raise LoopFileError(self._source, self._problems[-1:])


def _place(node: yaml.Node) -> Place:
    mark = node.start_mark
    style = getattr(node, "style", None)
    is_multiline = style != "|" and node.end_mark.line > mark.line
    first = None if style == ">" or is_multiline else mark.line + (2 if style == "|" else 1)
    return Place(mark.line + 1, mark.column + 1, first)


def _whole(message: str) -> Problem:
    return Problem(None, None, "", message)
