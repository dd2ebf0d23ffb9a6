"""From objects to what a file says of them."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

from agents_loop.chat_client import ChatClient
from agents_loop.errors import ConfigurationError
from agents_loop.files.inputs import InputValue
from agents_loop.files.problems import path_text
from agents_loop.files.yaml_tree import PathIn

NameOf = Callable[[ChatClient], str | None]

_OPENING = re.compile(r"\{[{%#]|\r")
"""What a template does not take as it is: its own marks, and a carriage return, which it turns into a line break."""


class CannotWriteError(ConfigurationError):
    """Something of a loop can't stand in a file. The message says where in the file it would stand, and why."""


class Writing:
    """A place in the file that is written.

    Args:
        name_of: Gives the model's name of a client.
        inputs: The inputs of the prompts, gathered while writing.
        path: The place.
    """

    def __init__(self, name_of: NameOf, inputs: dict[str, InputValue], path: PathIn = ()) -> None:
        self._name_of = name_of
        self.inputs = inputs
        self.path = path

    def at(self, *keys: str | int) -> Writing:
        """A place within this one."""
        return Writing(self._name_of, self.inputs, (*self.path, *keys))

    def error(self, why: str) -> CannotWriteError:
        """That what would stand here can't."""
        return CannotWriteError(f"{path_text(self.path)}: {why}")

    def model_name(self, client: ChatClient) -> str:
        """What the file calls a model.

        Raises:
            CannotWriteError: Nobody says.
        """
        name = self._name_of(client)
        if name is None:
            raise self.error(f"{type(client).__name__} has no name: say what the file calls it, with `models`")
        return name

    def reference(self, target: object, *, named_as: object = None) -> str:
        """The reference that an import finds the object by.

        Args:
            target: The object.
            named_as: What knows the module and the name, where the object does not: the function of a tool.

        Raises:
            CannotWriteError: None does: it is a lambda, say, or made within a function.
        """
        known = target if named_as is None else named_as
        module, name = getattr(known, "__module__", None), getattr(known, "__qualname__", None)
        if isinstance(module, str) and isinstance(name, str) and module != "__main__":
            found: Any = import_module(module)
            for part in name.split("."):
                found = getattr(found, part, None)
            if found is target:
                return f"{module}:{name}"
        raise self.error(f"{target!r} can't be imported by a name: define it at the top level of a module")

    def take_inputs(self, inputs: Mapping[str, InputValue]) -> None:
        """Make the inputs of a prompt the file's.

        Raises:
            CannotWriteError: Another prompt has another value for one of them.
        """
        for name, value in inputs.items():
            if self.inputs.setdefault(name, value) != value:
                raise self.error(f"the input {name!r} has several values: {self.inputs[name]!r} and {value!r}")


def is_template(text: str) -> bool:
    """Whether a text of a file is more than it looks like: a template."""
    return any(mark in text for mark in ("{{", "{%", "{#"))


def as_template(text: str) -> str:
    """The text of a file that is this text when it is rendered."""
    if not is_template(text):
        return text
    return _OPENING.sub(lambda found: f"{{{{ {found[0]!r} }}}}", text)
