"""The templates of a node: its prompts and its condition, with what they may mention."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping
from typing import Any

from agents_loop.files.conditions import Condition
from agents_loop.files.dagraph.outline import NodeOutline, Outline
from agents_loop.files.inputs import LOOP_VARIABLES, InputError, InputValue
from agents_loop.files.problems import LoopFileError, Problem
from agents_loop.files.prompted.generator import render_prompt
from agents_loop.files.prompts import PromptError, PromptTemplate
from agents_loop.files.yaml_tree import PathIn, YamlTree

_WHEN = "when"
_VARIABLES: dict[str, frozenset[str]] = {
    "generator": LOOP_VARIABLES - {"candidate"},
    "evaluator": frozenset({"iteration", "candidate"}),
    "": frozenset(),
    _WHEN: frozenset(),
}
_CALLED = {"generator": "generator's prompt", "evaluator": "evaluator's prompt", "": "prompt", _WHEN: "condition"}


class NodePrompts:
    """The templates of one node.

    Args:
        source: The file's name, for messages.
        tree: What the file says, and where.
        outline: The file's outline.
        node: The node's.
        upstream: The nodes whose outputs they may mention.
    """

    def __init__(
        self, source: str, tree: YamlTree, outline: Outline, node: NodeOutline, upstream: frozenset[str]
    ) -> None:
        self.upstream = upstream
        self.parts: dict[str, PromptTemplate] = {}
        """The prompts, by the key of the part that has it."""
        self.condition: Condition | None = None
        self.problems: list[Problem] = []
        self._source = source
        self._tree = tree
        self._inputs = outline.inputs
        self._node = node
        is_alone = len(outline.nodes) == 1
        self._others = frozenset[str]() if is_alone else outline.ids.keys() - upstream
        for part, text in node.prompts.items():
            self._read(part, text)
        if node.when is not None:
            self._read_condition(node.when)

    @property
    def mentioned(self) -> frozenset[str]:
        """All variables that they mention."""
        conditions = [] if self.condition is None else [self.condition.mentioned]
        return frozenset[str]().union(*[prompt.mentioned for prompt in self.parts.values()], *conditions)

    def require_values(self, values: Mapping[str, InputValue]) -> None:
        """See that each variable will have a value.

        Raises:
            InputError: One will not.
        """
        needed = {part: set(prompt.variables) for part, prompt in self.parts.items()}
        if self.condition is not None:
            needed[_WHEN] = set(self.condition.variables)
        for part, variables in needed.items():
            for variable in sorted(variables - values.keys() - self.upstream - _VARIABLES[part]):
                said = f"the input {variable!r} is missing: the {_CALLED[part]} uses it"
                raise InputError(f"{said}. Give it with -i {variable}=...")

    def first_prompt(self, values: Mapping[str, Any]) -> str:
        """What the node's model is sent first.

        Raises:
            PromptError: It can't be rendered.
        """
        if "generator" in self.parts:
            return render_prompt(self.parts["generator"], values)
        return self.parts[""].render(values)

    def try_condition(self, values: Mapping[str, Any]) -> bool:
        """Whether the node will run, as far as its condition needs no other node; without one it will.

        Raises:
            LoopFileError: It can't be worked out.
        """
        try:
            return self.condition is None or self.condition.is_true(values)
        except PromptError as error:
            raise LoopFileError(self._source, [self._problem(_WHEN, error.message, None)]) from error

    def try_first_prompt(self, values: Mapping[str, Any]) -> None:
        """See that it can be rendered, before anything is asked.

        Raises:
            LoopFileError: It can't.
        """
        try:
            self.first_prompt(values)
        except PromptError as error:
            part = next(iter(self.parts))
            raise LoopFileError(self._source, [self._problem(part, error.message, error.line)]) from error

    def _read(self, part: str, text: str) -> None:
        try:
            prompt = PromptTemplate(text, located=functools.partial(self._located, part))
        except PromptError as error:
            self.problems.append(self._problem(part, error.message, error.line))
            return
        self.parts[part] = prompt
        self._check(part, prompt.mentioned, prompt.variables)

    def _read_condition(self, when: str) -> None:
        try:
            self.condition = Condition(when, located=functools.partial(self._located, _WHEN, line=None))
        except PromptError as error:
            self.problems.append(self._problem(_WHEN, error.message, None))
            return
        self._check(_WHEN, self.condition.mentioned, dict.fromkeys(sorted(self.condition.variables)))

    def _check(self, part: str, mentioned: Iterable[str], required: Mapping[str, int | None]) -> None:
        for name in sorted(self._others.intersection(mentioned) - _VARIABLES[part]):
            if name == self._node.id:
                said = f"{name!r} is this very node: its own output is not there yet"
            else:
                said = f"{name!r} is a node that this one does not depend on: add it to `depends_on`"
            self.problems.append(self._problem(part, said, required.get(name)))
        known = _VARIABLES[part] | self.upstream | (self._inputs or frozenset())
        for variable, line in required.items():
            is_wrong = self._inputs is not None or variable in LOOP_VARIABLES
            if variable not in known and variable not in self._others and is_wrong:
                self.problems.append(self._problem(part, _undefined(part, variable, known), line))

    def _problem(self, part: str, message: str, line: int | None) -> Problem:
        keys = {"": ("prompt",), _WHEN: (_WHEN,)}.get(part, (part, "prompt"))
        path: PathIn = ("nodes", self._node.index, *keys)
        return self._tree.line_problem(path, message, line)

    def _located(self, part: str, message: str, line: int | None) -> str:
        return self._problem(part, message, line).text(self._source)


def _undefined(part: str, variable: str, known: frozenset[str]) -> str:
    if variable in LOOP_VARIABLES:
        has = f"it has: {', '.join(sorted(known))}" if known else "it has none"
        return f"{variable!r} is not a variable of the {_CALLED[part]}; {has}"
    return f"{variable!r} is neither a declared input nor a variable of the loop"
