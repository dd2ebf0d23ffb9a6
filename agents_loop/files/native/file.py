"""A file of our own format, and the `LoopAgent` that it describes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

from pydantic import TypeAdapter, ValidationError

from agents_loop.agent import AIAgent
from agents_loop.chat_client import ChatClient
from agents_loop.files.checking import input_problems, model_problems
from agents_loop.files.counting import counted
from agents_loop.files.given_limits import spending_limits, time_limits
from agents_loop.files.inputs import InputValue, resolve_inputs
from agents_loop.files.loop_file import BuiltLoop, LoopFile
from agents_loop.files.named_client import NamedChatClient, named, prices_of
from agents_loop.files.native.building import Building
from agents_loop.files.native.document import AGENT, AGENT_PARTS, OPTIONS, NativeDocument, PromptedAgentSpec
from agents_loop.files.native.evaluators import EVALUATORS
from agents_loop.files.native.kinds import TEMPLATE, many
from agents_loop.files.native.materials import Checking, Given, import_problems
from agents_loop.files.native.prompted import GENERATOR_VARIABLES
from agents_loop.files.native.shared import BUDGETS
from agents_loop.files.native.stalls import STALL, AnotherModel
from agents_loop.files.problems import LoopFileError, Problem
from agents_loop.files.prompted.generator import render_prompt
from agents_loop.files.prompts import PromptError
from agents_loop.files.run_settings import Limits, RunSettings
from agents_loop.files.yaml_tree import PathIn, YamlTree
from agents_loop.loop.agent import LoopAgent
from agents_loop.loop.options import LoopAgentOptions
from agents_loop.loop.stalls.ladder import AnotherAgentStep
from agents_loop.loop.stalls.policy import StallPolicy
from agents_loop.messages import ChatMessage, ChatRole
from agents_loop.metering.budget import LoopBudget


class NativeFile(LoopFile):
    """A file of our own format.

    Args:
        source: The file's name, for messages.
        tree: What it says, and where.
        document: The same, checked.

    Raises:
        LoopFileError: Something can't be built of what it says.
    """

    def __init__(self, source: str, tree: YamlTree, document: NativeDocument) -> None:
        super().__init__(source)
        self.document = document
        self._tree = tree
        self._checked = Checking(source, tree, document.inputs)
        _Assembly(document, Building(self._checked)).loop(RunSettings(), {})

    @property
    def name(self) -> str:
        """What the file calls itself."""
        return self.document.name

    @property
    def models(self) -> list[str]:
        """The names of its models."""
        return list(self._checked.models)

    @property
    def imports(self) -> list[str]:
        """The Python objects that it names, each once."""
        return list(dict.fromkeys(self._checked.imports.values()))

    @property
    def waves(self) -> list[list[str]]:
        """One: the loop."""
        return [["loop"]]

    def describe(self) -> list[str]:
        """What `agents-loop validate` says of it."""
        spec = self.document.loop
        cap = spec.options.max_iterations or LoopAgent.DEFAULT_MAX_ITERATIONS
        lines = [
            f"✓ {self.name}: a loop of at most {counted(cap, 'iteration')}",
            f"  evaluators: {', '.join(each if isinstance(each, str) else each.type for each in spec.evaluators)}",
            f"  models: {', '.join(self.models) or 'none'}",
        ]
        if self.imports:
            lines.append(f"  needs --allow-imports: {', '.join(self.imports)}")
        return lines

    def unused_inputs(self, given: Mapping[str, InputValue]) -> list[str]:
        """Those that no template mentions."""
        mentioned = frozenset[str]().union(*[template.mentioned for template, _ in self._checked.templates.values()])
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
        if self._checked.imports and not settings.allow_imports:
            raise LoopFileError(self.source, import_problems(self._tree, self._checked.imports))
        clients: dict[str, NamedChatClient] = {}

        def client_of(name: str) -> ChatClient:
            return clients[name]

        materials = Given(self.source, self._tree, values, client_of, self._checked.templates)
        clients |= {name: named(client_for(name), name) for name in self.models}
        assembly = _Assembly(self.document, Building(materials))
        return BuiltLoop(assembly.loop(settings, clients), assembly.message())


class _Assembly:
    """Puts together a loop of what a document says."""

    def __init__(self, document: NativeDocument, building: Building) -> None:
        self._spec = document.loop
        self._building = building.at("loop")

    def loop(self, settings: RunSettings, clients: Mapping[str, NamedChatClient]) -> LoopAgent:
        """The loop."""
        spec = self._spec
        tasks: list[tuple[str, Callable[[Building], Any]]] = [
            ("agent", self._agent),
            ("evaluators", lambda here: many(EVALUATORS.kind).build(here, spec.evaluators)),
            ("options", lambda here: OPTIONS.build(here, spec.options)),
            ("budget", lambda here: [] if spec.budget is None else BUDGETS.build(here, spec.budget)),
            ("stall", self._stall),
            ("agent", self._request),
        ]
        agent, evaluators, given, budgets, stall, _ = self._building.each(tasks)
        options = _with_settings(given, budgets, stall, settings, clients)
        made = {"inner_agent": agent, "evaluators": evaluators, "options": options}
        return self._building.make(LoopAgent, made, {})

    def message(self) -> ChatMessage:
        """The request: what the agent is asked first."""
        here = self._building.at("agent")
        if not isinstance(self._spec.agent, PromptedAgentSpec):
            return ChatMessage(ChatRole.USER, self._request(here))
        at, materials = here.at("prompt"), here.materials
        template = materials.template(at.path, cast("Any", self._spec).agent.prompt, GENERATOR_VARIABLES)
        try:
            return ChatMessage(ChatRole.USER, render_prompt(template, materials.values))
        except PromptError as error:
            problem = materials.tree.line_problem(at.path, error.message, error.line)
            raise LoopFileError(materials.source, [problem]) from error

    def _request(self, here: Building) -> str:
        return _request_of(here, self._spec.agent)

    def _agent(self, here: Building, instead: Mapping[str, Any] | None = None) -> AIAgent:
        return AGENT_PARTS[type(self._spec.agent)].build(here, self._spec.agent, instead)

    def _stall(self, here: Building) -> StallPolicy | None:
        said = STALL.build(here, self._spec.stall)
        if said is None:
            return None
        if "ladder" in said:
            steps = enumerate(said["ladder"])
            said["ladder"] = here.at("ladder").each((index, self._step(step)) for index, step in steps)
        return here.make(StallPolicy, said, {"signals": "signals", "ladder": "ladder"})

    def _step(self, step: Any) -> Callable[[Building], Any]:
        def build(here: Building) -> Any:
            if not isinstance(step, AnotherModel):
                return step
            if "chat_client" not in {key.parameter.name for key in AGENT_PARTS[type(self._spec.agent)].keys.values()}:
                raise here.error("`another_model` needs an agent that names its model")
            return AnotherAgentStep(self._agent(self._building.at("agent"), {"chat_client": step.chat_client}))

        return build


def _agent_of(here: Building, agent: Any) -> AIAgent:
    return AGENT_PARTS[type(agent)].build(here, agent)


def _request_of(here: Building, agent: Any) -> str:
    return "" if isinstance(agent, PromptedAgentSpec) else TEMPLATE.build(here.at("request"), agent.request)


def load_native(source: str, tree: YamlTree) -> NativeFile:
    """Check what a file says. No model is called, and nothing is imported.

    Raises:
        LoopFileError: It is not valid; the error holds every problem, with its place.
    """
    try:
        document = NativeDocument.model_validate(tree.data)
    except ValidationError as error:
        problems = model_problems(tree, NativeDocument, error)
        raise LoopFileError(source, [*problems, *_further_problems(source, tree)]) from error
    problems = input_problems(tree, document.inputs)
    if problems:
        raise LoopFileError(source, problems)
    return NativeFile(source, tree, document)


def _further_problems(source: str, tree: YamlTree) -> Iterator[Problem]:
    """What can't be built of those parts of a file that are valid, where others are not."""
    loop, inputs = tree.data.get("loop"), tree.data.get("inputs")
    if not isinstance(loop, dict):
        return
    given = cast("dict[str, Any]", loop)
    evaluators = cast("list[Any]", given["evaluators"] if isinstance(given.get("evaluators"), list) else [])
    parts: list[tuple[PathIn, Any, Callable[[Building, Any], Any], Any]] = [
        (("evaluators", index), EVALUATORS.annotation, EVALUATORS.build, each) for index, each in enumerate(evaluators)
    ]
    for key, annotation, build in (
        ("agent", AGENT, _agent_of),
        ("agent", AGENT, _request_of),
        ("options", OPTIONS.model, OPTIONS.kind.build),
        ("budget", BUDGETS.annotation, BUDGETS.build),
        ("stall", STALL.annotation, STALL.build),
    ):
        parts += [((key,), annotation, build, given[key])] if key in given else []
    checking = Checking(source, tree, cast("dict[str, Any]", inputs) if isinstance(inputs, dict) else None)
    for path, annotation, build, value in parts:
        try:
            build(Building(checking, ("loop", *path)), TypeAdapter[Any](annotation).validate_python(value))
        except ValidationError:
            continue
        except LoopFileError as error:
            yield from error.problems


def _with_settings(
    options: LoopAgentOptions,
    budgets: LoopBudget | Sequence[LoopBudget],
    stall: StallPolicy | None,
    settings: RunSettings,
    clients: Mapping[str, NamedChatClient],
) -> LoopAgentOptions:
    listed = [budgets] if isinstance(budgets, LoopBudget) else list(budgets)
    cap = settings.max_iterations
    return replace(
        options,
        max_iterations=options.max_iterations if cap is None else cap,
        return_best=options.return_best or settings.return_best,
        budget=_limited(listed, settings) or None,
        prices=prices_of(clients, {**(options.prices or {}), **(settings.prices or {})}) or None,
        stall=stall,
    )


def _limited(budgets: Sequence[LoopBudget], settings: RunSettings) -> list[LoopBudget]:
    """The file's budgets, but for the limits that others stand in for, and those."""
    instead = settings.limits
    limited: list[LoopBudget] = []
    for budget in budgets:
        left = Limits(budget.max_tokens, budget.max_cost_usd, budget.deadline_s).without(instead)
        if left == Limits() and budget.max_model_calls is None:
            continue
        limited.append(
            replace(
                budget,
                max_tokens=left.max_tokens,
                max_cost_usd=left.max_cost_usd,
                deadline_s=left.deadline_s,
                on_estimate=settings.on_notice,
            )
        )
    return [*limited, *spending_limits(settings), *time_limits(settings)]
