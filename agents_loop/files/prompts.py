"""Prompts as Jinja2 templates: sandboxed, strict, without access to other files, and bounded.

What a model wrote is only ever a value in a template, never a template itself.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from agents_loop.errors import AgentsLoopError, MissingExtraError

try:
    from jinja2 import TemplateError, TemplateSyntaxError, nodes
    from jinja2.exceptions import SecurityError
    from jinja2.meta import find_undeclared_variables
except ImportError as error:
    raise MissingExtraError("agents_loop.files", "cli") from error

from agents_loop.files.projected_values import projected_prompt
from agents_loop.files.sandbox import MAX_CHARACTERS, make_environment
from agents_loop.files.sandbox_limits import limited_work

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
        self.source = source
        self.variables: Mapping[str, int] = required_variables(tree)
        """What must be given, and the line where each is used first. What is only asked for with `default` or
        `is defined` is not among them."""
        self.mentioned: frozenset[str] = frozenset(find_undeclared_variables(tree))

    def render(self, values: Mapping[str, Any]) -> str:
        """The prompt.

        Raises:
            PromptError: A value is missing, the template does what is not allowed, or it becomes too long.
        """
        try:
            with limited_work():
                return "".join(_bounded(self._template.generate(values)))
        except MemoryError as error:
            raise self._error("the prompt becomes too long for the memory", None) from error
        except Exception as error:  # a template runs the methods of values, which may raise anything
            said = str(error) if isinstance(error, TemplateError) else f"{type(error).__name__}: {error}"
            raised = self._error(f"can't be rendered: {said}", _line_of(error))
            if not isinstance(error, SecurityError):
                stands_for_it = projected_prompt(self.source, self.mentioned, values, str(raised))
                if stands_for_it is not None:
                    return stands_for_it
            raise raised from error

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


def _require_no_files(tree: nodes.Template) -> None:
    for node in tree.find_all((nodes.Include, nodes.Import, nodes.FromImport, nodes.Extends)):
        kind = type(node).__name__.removeprefix("From").lower()
        raise TemplateSyntaxError(f"{kind!r} can't be used: a prompt can't read other files", node.lineno)


def required_variables(tree: nodes.Template) -> dict[str, int]:
    """What a template can't do without, and the line where each is used first."""
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


_ENVIRONMENT = make_environment()
