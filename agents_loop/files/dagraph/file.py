"""A file in dagraph's format, and the `LoopAgent` that it describes."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping

from agents_loop.chat_client import ChatClient, ChatOptions
from agents_loop.files.dagraph.checking import check_document
from agents_loop.files.dagraph.schema import Document, EvaluatorLoopNode, Part
from agents_loop.files.inputs import LOOP_VARIABLES, InputError, InputValue, resolve_inputs
from agents_loop.files.loop_file import BuiltLoop, LoopFile
from agents_loop.files.named_client import NamedChatClient, named
from agents_loop.files.problems import LoopFileError, Problem
from agents_loop.files.prompted.evaluator import PromptedEvaluator
from agents_loop.files.prompted.generator import PromptedGenerator, render_prompt
from agents_loop.files.prompts import PromptError, PromptTemplate
from agents_loop.files.run_settings import Limits, RunSettings
from agents_loop.files.yaml_tree import PathIn, YamlTree
from agents_loop.loop.agent import LoopAgent
from agents_loop.loop.options import LoopAgentOptions
from agents_loop.messages import ChatMessage, ChatRole
from agents_loop.metering.budget import LoopBudget
from agents_loop.metering.prices import PriceList, Prices

_VARIABLES = {
    "generator": LOOP_VARIABLES - {"candidate"},
    "evaluator": frozenset({"iteration", "candidate"}),
}


class DagraphFile(LoopFile):
    """A file in dagraph's format.

    Args:
        source: The file's name, for messages.
        tree: What it says, and where.
        document: The same, checked.
    """

    def __init__(self, source: str, tree: YamlTree, document: Document) -> None:
        super().__init__(source)
        self.document = document
        self._tree = tree
        self._prompts: dict[str, PromptTemplate] = {}
        problems = [problem for name in _VARIABLES for problem in self._read_prompt(name)]
        if problems:
            raise LoopFileError(source, problems)

    @property
    def name(self) -> str:
        """What the file calls itself."""
        return self.document.name

    @property
    def node(self) -> EvaluatorLoopNode:
        """The loop."""
        return self.document.nodes[0]

    @property
    def models(self) -> list[str]:
        """The names of its models."""
        return list(dict.fromkeys([self.node.generator.model, self.node.evaluator.model]))

    @property
    def waves(self) -> list[list[str]]:
        """The nodes' ids, in the order in which they run."""
        return [[self.node.id]]

    def unused_inputs(self, given: Mapping[str, InputValue]) -> list[str]:
        """Those that no prompt mentions."""
        mentioned = frozenset[str]().union(*[prompt.mentioned for prompt in self._prompts.values()])
        return [name for name in given if name not in mentioned]

    def build(
        self,
        inputs: Mapping[str, InputValue],
        client_for: Callable[[str], ChatClient],
        settings: RunSettings | None = None,
    ) -> BuiltLoop:
        """The loop, with inputs and models."""
        settings = settings or RunSettings()
        values = resolve_inputs(self.document.inputs, inputs)
        self._require_values(values)
        message = ChatMessage(ChatRole.USER, self._first_prompt(values))
        clients = {name: named(client_for(name), name) for name in self.models}
        generator = PromptedGenerator(
            clients[self.node.generator.model],
            self._prompts["generator"],
            values,
            options=_options(self.node.generator),
            name=self.node.id,
        )
        evaluator = PromptedEvaluator(
            clients[self.node.evaluator.model],
            self._prompts["evaluator"],
            values,
            options=_options(self.node.evaluator),
        )
        cap = self.node.max_iterations if settings.max_iterations is None else settings.max_iterations
        options = LoopAgentOptions(
            max_iterations=cap,
            evaluate_final_iteration=True,
            budget=self._budgets(settings.limits, settings.on_notice),
            prices=_prices_of(clients, settings.prices),
            return_best=settings.return_best,
        )
        return BuiltLoop(LoopAgent(generator, evaluator, options), message)

    def _read_prompt(self, name: str) -> list[Problem]:
        part: Part = getattr(self.node, name)
        try:
            prompt = self._prompts[name] = PromptTemplate(part.prompt, located=functools.partial(self._located, name))
        except PromptError as error:
            return [self._prompt_problem(name, error.message, error.line)]
        known = _VARIABLES[name] | (self.document.inputs or {}).keys()
        return [
            self._prompt_problem(name, _undefined(name, variable, known), line)
            for variable, line in prompt.variables.items()
            if variable not in known and (self.document.inputs is not None or variable in LOOP_VARIABLES)
        ]

    def _require_values(self, values: Mapping[str, InputValue]) -> None:
        for name, prompt in self._prompts.items():
            for variable in prompt.variables:
                if variable not in values and variable not in _VARIABLES[name]:
                    said = f"the input {variable!r} is missing: the {name}'s prompt uses it"
                    raise InputError(f"{said}. Give it with -i {variable}=...")

    def _first_prompt(self, values: Mapping[str, InputValue]) -> str:
        try:
            return render_prompt(self._prompts["generator"], values)
        except PromptError as error:
            raise LoopFileError(self.source, [self._prompt_problem("generator", error.message, error.line)]) from error

    def _prompt_problem(self, name: str, message: str, line: int | None) -> Problem:
        path: PathIn = ("nodes", 0, name, "prompt")
        problem = self._tree.problem(path, message)
        first = self._tree.values[path].first_text_line
        if line is None or first is None:
            return problem
        return Problem(first + line - 1, 1, problem.place, message)

    def _located(self, name: str, message: str, line: int | None) -> str:
        return self._prompt_problem(name, message, line).text(self.source)

    def _budgets(self, instead: Limits, on_estimate: Callable[[str], None] | None) -> list[LoopBudget]:
        """The file's budgets, but for the limits that others stand in for, and those."""
        budgets = [("budget", self.document.budget), ("nodes[0].budget", self.node.budget)]
        limits = [(place, Limits(budget.max_tokens, budget.max_usd).without(instead)) for place, budget in budgets]
        return [
            LoopBudget(
                max_tokens=limit.max_tokens,
                max_cost_usd=limit.max_cost_usd,
                deadline_s=limit.deadline_s,
                counts_cached_input=False,
                name=place,
                on_estimate=on_estimate,
            )
            for place, limit in [*limits, ("budget", instead)]
            if limit != Limits()
        ]


def load_dagraph(source: str, tree: YamlTree) -> DagraphFile:
    """Check what a file says. No model is called.

    Raises:
        LoopFileError: It is not valid; the error holds every problem, with its place.
    """
    checked = check_document(tree)
    if not isinstance(checked, Document):
        raise LoopFileError(source, checked)
    return DagraphFile(source, tree, checked)


def _prices_of(clients: Mapping[str, NamedChatClient], given: Prices | None) -> Prices:
    """The prices, those by a name in the file also by that of the model that it stands for."""
    known, prices = PriceList(given), dict(given or {})
    for name, client in clients.items():
        price = known.given_for((name,))
        if price is not None and known.given_for((client.model_id,)) is None:
            prices.setdefault(client.model_id, price)
    return prices


def _options(part: Part) -> ChatOptions:
    return ChatOptions(max_output_tokens=part.max_output_tokens)


def _undefined(name: str, variable: str, known: frozenset[str] | set[str]) -> str:
    if variable in LOOP_VARIABLES:
        return f"{variable!r} is not a variable of the {name}'s prompt; it has: {', '.join(sorted(known))}"
    return f"{variable!r} is neither a declared input nor a variable of the loop"
