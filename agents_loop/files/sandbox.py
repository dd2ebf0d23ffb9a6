"""Where templates run: without other files, without what is private in Python, and with limits on what they build up.

The limits are there for mistakes: who writes a file can still make a template that takes long.
"""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Callable, Mapping
from typing import Any, cast

from agents_loop.errors import MissingExtraError

try:
    from jinja2 import Environment, StrictUndefined
    from jinja2.exceptions import SecurityError, TemplateRuntimeError
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
    environment = _Sandbox(undefined=StrictUndefined, keep_trailing_newline=True, autoescape=False)
    del environment.globals["lipsum"]
    environment.filters = {name: _limited(filter_) for name, filter_ in environment.filters.items()}
    environment.filters["format"] = _format_filter
    environment.filters["fromjson"] = _fromjson_filter
    return environment
