"""Where templates run: without other files, without what is private in Python, and with limits on what they build up.

What a template may take is bounded: see `sandbox_limits`.
"""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, cast

from agents_loop.errors import MissingExtraError

try:
    from jinja2 import Environment, StrictUndefined, nodes, pass_context
    from jinja2.compiler import CodeGenerator, Frame
    from jinja2.exceptions import SecurityError, TemplateRuntimeError
    from jinja2.runtime import Context
    from jinja2.sandbox import ImmutableSandboxedEnvironment
except ImportError as error:
    raise MissingExtraError("agents_loop.files", "cli") from error

from agents_loop.files.sandbox_limits import (
    MAX_CHARACTERS,
    charge,
    concatenated,
    counted_steps,
    finished,
    formatted_size,
    grown,
    joined_size,
    replaced_size,
    require_size,
    weight,
)

__all__ = ["MAX_CHARACTERS", "make_environment"]

_MAX_NUMBER = 1_000_000
"""The biggest int that a template may hand to a function or a filter."""
_MAX_BITS = 4_096
_WIDE_FORMAT = re.compile(r"\d{6,}|\*")
_STEPS = "counted steps"
"""The filter around what a loop goes over; no template can name it."""


class _Code(CodeGenerator):
    """What templates are compiled to, with `~` as a call that has a limit."""

    def visit_Concat(self, node: nodes.Concat, frame: Frame) -> None:  # noqa: N802 - Jinja2's name
        """The call."""
        self.write("environment.concatenated((")
        for part in node.nodes:
            self.visit(part, frame)
            self.write(", ")
        self.write("))")


class _Sandbox(ImmutableSandboxedEnvironment):
    """Without loader, and with limits on what may be built up by one operation, and on all of them."""

    intercepted_binops = frozenset({"*", "**", "+", "%"})
    code_generator_class = _Code
    concatenated = staticmethod(concatenated)

    def _parse(self, source: str, name: str | None, filename: str | None) -> nodes.Template:
        tree = super()._parse(source, name, filename)
        for loop in list(tree.find_all(nodes.For)):
            loop.iter = nodes.Filter(loop.iter, _STEPS, [], [], None, None, lineno=loop.lineno, environment=self)
        return tree

    def call_binop(self, context: Context, operator: str, left: Any, right: Any) -> Any:
        """The operator, unless its result would be too big."""
        if _is_too_big(operator, left, right):
            raise SecurityError(f"the result of {operator!r} is too big")
        result = super().call_binop(context, operator, left, right)
        charge(left, right, result)
        return result

    def call(__self, __context: Context, __obj: Any, *args: Any, **kwargs: Any) -> Any:  # noqa: N805, PYI063 - as in Jinja2, so that no keyword of a call collides
        """The call, unless one of its numbers, or its result, is too big."""
        _check_arguments(args, kwargs)
        owner = getattr(getattr(__obj, "__wrapped__", __obj), "__self__", None)
        if isinstance(owner, str):
            name = getattr(__obj, "__name__", "")
            args = tuple(list(value) if name == "join" else value for value in args)
            _check_text_method(name, owner, args, kwargs)
            charge(owner)
        result = super().call(__context, __obj, *args, **kwargs)
        charge(result)
        return result


def _is_too_big(operator: str, left: Any, right: Any) -> bool:
    match operator:
        case "+":
            return _size(left) + _size(right) > MAX_CHARACTERS
        case "%":
            return isinstance(left, str) and _is_wide(left, [right], {})
        case "**":
            return isinstance(left, int) and isinstance(right, int) and left.bit_length() * right > _MAX_BITS
        case _:
            if isinstance(left, int) and isinstance(right, int):
                return left.bit_length() + right.bit_length() > _MAX_BITS
            times = left if isinstance(left, int) else right
            return isinstance(times, int) and max(_size(left), _size(right), 1) * times > MAX_CHARACTERS


def _is_wide(text: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> bool:
    return _WIDE_FORMAT.search(text) is not None or formatted_size(text, args, kwargs) > MAX_CHARACTERS


def _size(value: Any) -> int:
    return len(cast("str", value)) if isinstance(value, str | list | tuple) else 0


def _check_arguments(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
    for value in (*args, *kwargs.values()):
        if isinstance(value, int) and value > _MAX_NUMBER:
            raise SecurityError(f"the number {value if value.bit_length() < 64 else 'given'} is too big here")  # noqa: PLR2004 - a machine word


def _check_text_method(name: str, text: str, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
    if name.startswith("format") and _is_wide(text, args, kwargs):
        raise SecurityError("what a format fills in is too big")
    size = 0
    if name == "replace" and len(args) > 1:
        size = replaced_size(text, str(args[0]), str(args[1]))
    elif name == "join" and args:
        size = joined_size(text, args[0])
    elif name == "expandtabs":
        size = len(text) + text.count("\t") * max([8, *[value for value in args if isinstance(value, int)]])
    elif name == "translate":
        size = len(text) * weight(args[0] if args else "")
    require_size(size, repr(name))


def _limited(name: str, filter_: Callable[..., Any], *, bounds_numbers: bool = True) -> Callable[..., Any]:
    has_more = 1 if hasattr(filter_, "jinja_pass_arg") else 0

    @functools.wraps(filter_)
    def limited(*args: Any, **kwargs: Any) -> Any:
        if bounds_numbers:
            _check_arguments(args, kwargs)
        given = args[has_more:]
        if given:
            value: Any = list(given[0]) if name == "join" else given[0]
            others = given[1:]
            size = charge(value, others, kwargs)
            require_size(max(size, grown(name, value, others, kwargs)), repr(name))
            args = (*args[:has_more], value, *others)
        result = filter_(*args, **kwargs)
        charge(result)
        return result

    return limited


@pass_context
def _steps_filter(context: Context, items: Iterable[Any]) -> Iterator[Any]:
    del context  # asked for so that it is never worked out beforehand
    return counted_steps(items)


def _format_filter(value: object, *args: Any, **kwargs: Any) -> str:
    """`format` with the limits that `%` has."""
    text = str(value)
    if _is_wide(text, args, kwargs):
        raise SecurityError("what a format fills in is too big")
    return text % (kwargs or args)


def _fromjson_filter(text: object) -> Any:
    """The value of a JSON text, such as the output of a node."""
    if not isinstance(text, str):
        raise TemplateRuntimeError(f"'fromjson' needs a text, not {type(text).__name__}")
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        said = "it is nested too deep" if isinstance(error, RecursionError) else str(error)
        raise TemplateRuntimeError(f"'fromjson': {text[:40]!r} is not JSON: {said}") from error


def make_environment() -> Environment:
    """The environment that all prompts share."""
    environment = _Sandbox(
        undefined=StrictUndefined, keep_trailing_newline=True, autoescape=False, finalize=finished, optimized=False
    )
    del environment.globals["lipsum"]
    filters = {**environment.filters, "format": _format_filter, "fromjson": _fromjson_filter}
    environment.filters = {
        name: _limited(name, filter_, bounds_numbers=name != "format") for name, filter_ in filters.items()
    }
    environment.filters[_STEPS] = _steps_filter
    environment.tests = {name: _limited(name, test, bounds_numbers=False) for name, test in environment.tests.items()}
    return environment
