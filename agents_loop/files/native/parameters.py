"""What a class or a function takes, read from itself: names, types, defaults, and what they mean."""

from __future__ import annotations

import ast
import inspect
import itertools
import re
import textwrap
from collections.abc import Callable
from dataclasses import MISSING, fields, is_dataclass
from typing import Any, Final, NamedTuple, cast, get_type_hints

REQUIRED: Final = inspect.Parameter.empty
"""The default of what must be given."""

_ARGUMENTS = re.compile(r"^Args:\n(.*?)(?=^\w|\Z)", re.MULTILINE | re.DOTALL)
_ARGUMENT = re.compile(r"^    (\w+): (.*?)(?=^    \w|\Z)", re.MULTILINE | re.DOTALL)


class Parameter(NamedTuple):
    """One thing that is taken."""

    name: str
    annotation: Any
    default: Any
    """`REQUIRED` where there is none."""
    description: str | None


def parameters_of(make: Callable[..., Any]) -> list[Parameter]:
    """The parameters of a class, which may be a dataclass, or of a function, in order."""
    if is_dataclass(make):
        return _fields(cast("type", make))
    called = inspect.unwrap(make.__init__ if isinstance(make, type) else make)
    described = _arguments_described(inspect.getdoc(make) or "")
    return [
        Parameter(name, _resolved(called, name), given.default, described.get(name))
        for name, given in inspect.signature(make).parameters.items()
    ]


def _resolved(called: Callable[..., Any], name: str) -> Any:
    """A parameter's annotation; as it is written where it names what its module does not know."""
    annotation = called.__annotations__[name]
    alone = type("alone", (), {"__annotations__": {name: annotation}})
    try:
        return get_type_hints(alone, getattr(called, "__globals__", None))[name]
    except NameError:
        return annotation


def _fields(kind: type) -> list[Parameter]:
    hints, described = get_type_hints(kind), _fields_described(kind)
    found: list[Parameter] = []
    for field in fields(kind):
        default = field.default if field.default_factory is MISSING else field.default_factory()
        default = REQUIRED if default is MISSING else default
        found.append(Parameter(field.name, hints[field.name], default, described.get(field.name)))
    return found


def _fields_described(kind: type) -> dict[str, str]:
    """The strings under a dataclass's fields."""
    body = cast("ast.ClassDef", ast.parse(textwrap.dedent(inspect.getsource(kind))).body[0]).body
    described: dict[str, str] = {}
    for field, below in itertools.pairwise(body):
        match field, below:
            case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(text))):
                described[name] = _plain(text)
            case _:
                pass
    return described


def _arguments_described(docstring: str) -> dict[str, str]:
    section = _ARGUMENTS.search(docstring)
    return {name: _plain(text) for name, text in _ARGUMENT.findall(section[1])} if section else {}


def _plain(text: str) -> str:
    return " ".join(text.split())
