"""What a file's objects are built of: nothing yet, where the file is checked; and all of it, where it is to run."""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from agents_loop.chat_client import ChatClient, ChatOptions, ChatResponse
from agents_loop.errors import ConfigurationError
from agents_loop.files.checking import unknown
from agents_loop.files.inputs import LOOP_VARIABLES, InputError, InputValue
from agents_loop.files.native.building import Materials
from agents_loop.files.native.importing import import_object
from agents_loop.files.native.writing import is_template
from agents_loop.files.problems import LoopFileError, Problem
from agents_loop.files.prompts import PromptError, PromptTemplate
from agents_loop.files.yaml_tree import PathIn, YamlTree
from agents_loop.messages import ChatMessage


class _NoClient(ChatClient):
    """Stands in for a model, where a file is only checked."""

    async def get_response(self, messages: Sequence[ChatMessage], options: ChatOptions | None = None) -> ChatResponse:
        del messages, options
        raise AssertionError("a file that is only checked asks no model")


class Checking(Materials):
    """Nothing is there yet. What the file will need is gathered.

    Args:
        source: The file's name, for messages.
        tree: What the file says, and where.
        inputs: The names of the inputs that it declares; `None`: any may be given.
    """

    def __init__(self, source: str, tree: YamlTree, inputs: Collection[str] | None) -> None:
        super().__init__(source, tree)
        self._inputs = inputs
        self.models: list[str] = []
        self.imports: dict[PathIn, str] = {}
        self.templates: dict[PathIn, tuple[PromptTemplate, frozenset[str]]] = {}
        """Each with what it may use besides the inputs."""

    @property
    def values(self) -> Mapping[str, InputValue]:
        """None yet."""
        return {}

    def client(self, name: str) -> ChatClient:
        """Nobody; the name is kept."""
        if name not in self.models:
            self.models.append(name)
        return _NoClient()

    def imported(self, path: PathIn, reference: str, stand_in: object) -> Any:
        """What stands in for it; the reference is kept."""
        self.imports[path] = reference
        return stand_in

    def template(self, path: PathIn, source: str, variables: frozenset[str]) -> PromptTemplate:
        """The template, whose variables are checked.

        Raises:
            LoopFileError: It is not valid, or uses what there is not.
        """
        located = functools.partial(_located, self.source, self.tree, path)
        try:
            template = PromptTemplate(source, located=located)
        except PromptError as error:
            raise LoopFileError(self.source, [self.tree.line_problem(path, error.message, error.line)]) from error
        problems = [
            self.tree.line_problem(path, said, line)
            for variable, line in template.variables.items()
            if (said := self._wrong(variable, variables)) is not None
        ]
        if problems:
            raise LoopFileError(self.source, problems)
        self.templates[path] = (template, variables)
        return template

    def rendered(self, path: PathIn, source: str) -> str:
        """The text as it stands in the file: there are no values yet."""
        if is_template(source):
            self.template(path, source, frozenset())
        return source

    def _wrong(self, variable: str, variables: frozenset[str]) -> str | None:
        if variable in variables:
            return None
        if variable in LOOP_VARIABLES:
            has = f"it has: {', '.join(sorted(variables))}" if variables else "it is rendered once, before the run"
            return f"{variable!r} is no variable of this template; {has}"
        if self._inputs is None or variable in self._inputs:
            return None
        return unknown(variable, [*self._inputs, *variables], what="variable")


class Given(Materials):
    """All is there: the inputs' values and the models; and Python's objects, where they are allowed.

    Args:
        source: The file's name, for messages.
        tree: What the file says, and where.
        values: The inputs' values.
        client_for: Gives the client of a model's name.
        templates: The templates of the file, by their place.
    """

    def __init__(
        self,
        source: str,
        tree: YamlTree,
        values: Mapping[str, InputValue],
        client_for: Callable[[str], ChatClient],
        templates: Mapping[PathIn, tuple[PromptTemplate, frozenset[str]]],
    ) -> None:
        super().__init__(source, tree)
        self._values = values
        self._client_for = client_for
        self._templates = templates
        for template, variables in templates.values():
            for variable in template.variables:
                if variable not in values and variable not in variables:
                    said = f"the input {variable!r} is missing: a template of the file uses it"
                    raise InputError(f"{said}. Give it with -i {variable}=...")

    @property
    def values(self) -> Mapping[str, InputValue]:
        """The inputs' values."""
        return self._values

    def client(self, name: str) -> ChatClient:
        """The client of a model's name."""
        return self._client_for(name)

    def imported(self, path: PathIn, reference: str, stand_in: object) -> Any:
        """The object.

        Raises:
            LoopFileError: It can't be imported.
        """
        del stand_in
        try:
            return import_object(reference, Path(self.source).parent)
        except ConfigurationError as error:
            raise LoopFileError(self.source, [self.tree.problem(path, str(error))]) from error

    def template(self, path: PathIn, source: str, variables: frozenset[str]) -> PromptTemplate:
        """The template."""
        del source, variables
        return self._templates[path][0]

    def rendered(self, path: PathIn, source: str) -> str:
        """The text with the inputs' values.

        Raises:
            LoopFileError: It can't be rendered.
        """
        if not is_template(source):
            return source
        try:
            return self._templates[path][0].render(self._values)
        except PromptError as error:
            raise LoopFileError(self.source, [self.tree.line_problem(path, error.message, error.line)]) from error


def _located(source: str, tree: YamlTree, path: PathIn, message: str, line: int | None) -> str:
    return tree.line_problem(path, message, line).text(source)


def import_problems(tree: YamlTree, imports: Mapping[PathIn, str]) -> list[Problem]:
    """That Python objects are named, and may not be."""
    allow = "--allow-imports, or RunSettings(allow_imports=True), lets the file run its module"
    return [tree.problem(path, f"{reference!r} is a Python object: {allow}") for path, reference in imports.items()]
