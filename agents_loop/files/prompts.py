"""Prompts as Jinja2 templates: sandboxed, strict, without access to other files, and bounded.

What a model wrote is only ever a value in a template, never a template itself. The limits are there for mistakes: who
writes the file can still make a template that takes long.
"""

from __future__ import annotations

import functools
import re
import traceback
from collections.abc import Callable, Iterator, Mapping
from typing import Any, cast

from agents_loop.errors import AgentsLoopError, MissingExtraError

try:
    from jinja2 import StrictUndefined, TemplateError, TemplateSyntaxError, nodes
    from jinja2.exceptions import SecurityError
    from jinja2.meta import find_undeclared_variables
    from jinja2.runtime import Context
    from jinja2.sandbox import ImmutableSandboxedEnvironment
except ImportError as error:
    raise MissingExtraError("agents_loop.files", "cli") from error

MAX_CHARACTERS = 10_000_000
"""How long a rendered prompt may be."""
_MAX_NUMBER = 1_000_000
"""The biggest int that a template may hand to a function or a filter."""
_MAX_BITS = 4_096
_WIDE_FORMAT = re.compile(r"\d{6,}|\*")
_OPTIONAL_FILTERS = frozenset({"default", "d"})
_OPTIONAL_TESTS = frozenset({"defined", "undefined"})


class PromptError(AgentsLoopError):
    """A prompt can't be read as a template, or can't be rendered.

    Args:
        message: What is wrong, in one line.
        line: The line of the template, counted from 1, where it is known.
        located: The message with its place in a file, for a prompt that stands in one.
    """

    def __init__(self, message: str, line: int | None = None, located: str | None = None) -> None:
        self.message = message
        self.line = line
        super().__init__(located or message)

    def __reduce__(self) -> tuple[type[PromptError], tuple[str, int | None, str]]:
        return type(self), (self.message, self.line, str(self))


class PromptTemplate:
    """A prompt in which variables are filled in.

    Args:
        source: The template.
        located: Puts the place in a file before a message about a line of the template.

    Raises:
        PromptError: It is no valid template, or wants another file.
    """

    def __init__(self, source: str, *, located: Callable[[str, int | None], str] | None = None) -> None:
        self._located = located
        try:
            tree = _ENVIRONMENT.parse(source)
            _require_no_files(tree)
            self._template = _ENVIRONMENT.from_string(source)
        except TemplateSyntaxError as error:
            raise self._error(f"not a valid template: {error.message}", error.lineno) from error
        except (SyntaxError, RecursionError, MemoryError) as error:  # of Python, to which it is compiled
            raise self._error("not a valid template: it is nested too deep", None) from error
        self.variables: Mapping[str, int] = _required_variables(tree)
        """What must be given, and the line where each is used first. What is only asked for with `default` or
        `is defined` is not among them."""
        self.mentioned: frozenset[str] = frozenset(find_undeclared_variables(tree))

    def render(self, values: Mapping[str, Any]) -> str:
        """The prompt.

        Raises:
            PromptError: A value is missing, the template does what is not allowed, or it becomes too long.
        """
        try:
            return "".join(_bounded(self._template.generate(values)))
        except MemoryError as error:
            raise self._error("the prompt becomes too long for the memory", None) from error
        except Exception as error:  # a template runs the methods of values, which may raise anything
            said = str(error) if isinstance(error, TemplateError) else f"{type(error).__name__}: {error}"
            raise self._error(f"can't be rendered: {said}", _line_of(error)) from error

    def _error(self, message: str, line: int | None) -> PromptError:
        said = " ".join(message.split())
        return PromptError(said, line, self._located and self._located(said, line))


def _bounded(pieces: Iterator[str]) -> Iterator[str]:
    length = 0
    for piece in pieces:
        length += len(piece)
        if length > MAX_CHARACTERS:
            raise SecurityError(f"the prompt becomes longer than {MAX_CHARACTERS} characters")
        yield piece


class _Sandbox(ImmutableSandboxedEnvironment):
    """Without loader, and with limits on what may be built up by one operation."""

    intercepted_binops = frozenset({"*", "**", "+", "%"})

    def call_binop(self, context: Context, operator: str, left: Any, right: Any) -> Any:
        """The operator, unless its result would be too big."""
        if _is_too_big(operator, left, right):
            raise SecurityError(f"the result of {operator!r} is too big")
        return super().call_binop(context, operator, left, right)

    def call(__self, __context: Context, __obj: Any, *args: Any, **kwargs: Any) -> Any:  # noqa: N805, PYI063 - as in Jinja2, so that no keyword of a call collides
        """The call, unless one of its numbers is too big."""
        _check_arguments(args, kwargs)
        owner = getattr(getattr(__obj, "__wrapped__", __obj), "__self__", None)
        if isinstance(owner, str):
            _check_text_method(getattr(__obj, "__name__", ""), owner, args)
        return super().call(__context, __obj, *args, **kwargs)


def _is_too_big(operator: str, left: Any, right: Any) -> bool:
    match operator:
        case "+":
            return _size(left) + _size(right) > MAX_CHARACTERS
        case "%":
            return isinstance(left, str) and _WIDE_FORMAT.search(left) is not None
        case "**":
            return isinstance(left, int) and isinstance(right, int) and left.bit_length() * right > _MAX_BITS
        case _:
            if isinstance(left, int) and isinstance(right, int):
                return left.bit_length() + right.bit_length() > _MAX_BITS
            times = left if isinstance(left, int) else right
            return isinstance(times, int) and max(_size(left), _size(right), 1) * times > MAX_CHARACTERS


def _size(value: Any) -> int:
    return len(cast("str", value)) if isinstance(value, str | list | tuple) else 0


def _check_arguments(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
    for value in (*args, *kwargs.values()):
        if isinstance(value, int) and value > _MAX_NUMBER:
            raise SecurityError(f"the number {value if value.bit_length() < 64 else 'given'} is too big here")  # noqa: PLR2004 - a machine word


def _check_text_method(name: str, text: str, args: tuple[Any, ...]) -> None:
    if name.startswith("format") and _WIDE_FORMAT.search(text):
        raise SecurityError("a format's width is too big")
    if name == "replace" and len(args) > 1 and (len(text) + 1) * len(str(args[1])) > MAX_CHARACTERS:
        raise SecurityError("the result of 'replace' is too big")
    if name == "join" and args and isinstance(args[0], list | tuple):
        items = cast("list[Any]", args[0])
        if len(text) * len(items) + sum(_size(item) for item in items) > MAX_CHARACTERS:
            raise SecurityError("the result of 'join' is too big")


def _limited(filter_: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(filter_)
    def limited(*args: Any, **kwargs: Any) -> Any:
        _check_arguments(args, kwargs)
        return filter_(*args, **kwargs)

    return limited


def _format_filter(value: object, *args: Any, **kwargs: Any) -> str:
    """`format` with the limit on widths that `%` has."""
    text = str(value)
    if _WIDE_FORMAT.search(text):
        raise SecurityError("a format's width is too big")
    return text % (kwargs or args)


def _make_environment() -> _Sandbox:
    environment = _Sandbox(undefined=StrictUndefined, keep_trailing_newline=True, autoescape=False)
    del environment.globals["lipsum"]
    environment.filters = {name: _limited(filter_) for name, filter_ in environment.filters.items()}
    environment.filters["format"] = _format_filter
    return environment


def _require_no_files(tree: nodes.Template) -> None:
    for node in tree.find_all((nodes.Include, nodes.Import, nodes.FromImport, nodes.Extends)):
        kind = type(node).__name__.removeprefix("From").lower()
        raise TemplateSyntaxError(f"{kind!r} can't be used: a prompt can't read other files", node.lineno)


def _required_variables(tree: nodes.Template) -> dict[str, int]:
    missing = find_undeclared_variables(tree) - _ENVIRONMENT.globals.keys()
    optional: set[str] = set()
    for node in tree.find_all((nodes.Filter, nodes.Test)):
        is_optional = node.name in (_OPTIONAL_FILTERS if isinstance(node, nodes.Filter) else _OPTIONAL_TESTS)
        if is_optional and isinstance(node.node, nodes.Name):
            optional.add(node.node.name)
    lines: dict[str, int] = {}
    for name in tree.find_all(nodes.Name):
        if name.name in missing - optional:
            lines.setdefault(name.name, name.lineno)
    return lines


def _line_of(error: BaseException) -> int | None:
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == "<template>"]
    return lines[-1] if lines else None


_ENVIRONMENT = _make_environment()
