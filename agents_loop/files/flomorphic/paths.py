"""JSONPath: where scopes, templates and `_get` look. python-jsonpath reads them; this file alone knows it.

A path may come from a script or a file that nobody has read, so what could take very long is not taken: functions,
several descents, unions and absolute paths within a filter. What is left takes a time in proportion to the document.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final, TypeAlias, cast

from agents_loop.errors import AgentsLoopError, MissingExtraError
from agents_loop.messages import JsonValue

Parts: TypeAlias = tuple[str | int, ...]

MOST_CHARS: Final = 500
_QUOTED: Final = re.compile(r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*\"""")


class PathError(AgentsLoopError):
    """A text is no path, or one that could take very long."""


@dataclass(frozen=True, slots=True)
class JsonPath:
    """A path that has been read."""

    text: str
    is_single: bool
    """Whether it leads to one place at most."""
    compiled: Any

    @property
    def parts(self) -> Parts:
        """The keys of a path that leads to one place."""
        return tuple(_key_of(segment) for segment in self.compiled.segments)

    def find(self, document: JsonValue) -> Iterator[tuple[Parts, JsonValue]]:
        """Each place that it leads to, with the value that stands there.

        Raises:
            PathError: The document is nested too deep for it.
        """
        from jsonpath.exceptions import JSONPathError  # noqa: PLC0415 - an extra

        try:
            for match in self.compiled.finditer(document):
                yield cast("Parts", tuple(match.parts)), match.obj
        except (JSONPathError, RecursionError) as error:
            raise PathError(f"{self.text[:80]!r} can't be followed: {_first_line(error)}") from error

    def value(self, document: JsonValue) -> tuple[JsonValue] | None:
        """The value, in a tuple; of a path that may lead to several places a list of them. `None` if there is none."""
        found = [value for _, value in self.find(document)]
        if not found:
            return None
        return (found[0] if self.is_single else found,)


@lru_cache(maxsize=512)
def read_path(text: str) -> JsonPath:
    """Read a path.

    Raises:
        PathError: It is none, or one that could take very long.
        MissingExtraError: The library is not installed.
    """
    environment = _environment()
    if len(text) > MOST_CHARS:
        raise PathError(f"a path of more than {MOST_CHARS} characters is not taken")
    if why := _slow(_QUOTED.sub("''", text)):
        raise PathError(f"{text[:80]!r}: {why} can't be used in a path here")
    from jsonpath.exceptions import JSONPathError  # noqa: PLC0415 - an extra

    try:
        compiled = environment.compile(text)
    except (JSONPathError, RecursionError) as error:
        raise PathError(f"{text[:80]!r} is no path: {_first_line(error)}") from error
    return JsonPath(text, bool(compiled.singular_query()), compiled)


@lru_cache(maxsize=1)
def _environment() -> Any:
    try:
        from jsonpath import JSONPathEnvironment  # noqa: PLC0415 - an extra
    except ImportError as error:
        raise MissingExtraError("agents_loop.files.flomorphic", "flomorphic") from error
    environment = JSONPathEnvironment(strict=True)
    environment.function_extensions.clear()
    return environment


def _slow(text: str) -> str | None:
    """What in a path, its texts in quotes taken out, could take very long."""
    if text.count("..") > 1:
        return "more than one `..`"
    if "," in text:
        return "`,`"
    if "$" in text[1:]:
        return "a path within a path that begins with `$`"
    if "(" in text:
        return "`(`"
    return None


def _first_line(error: Exception) -> str:
    """What it says; the library's own text of it can't always be made."""
    said = str(error.args[0]) if error.args else ""
    return said.partition("\n")[0] or type(error).__name__


def _key_of(segment: Any) -> str | int:
    selector = segment.selectors[0]
    return cast("str | int", selector.name if hasattr(selector, "name") else selector.index)
