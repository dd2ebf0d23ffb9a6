"""A FloMorphic export, and the flow that it describes."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Final, cast

from agents_loop.call_json import KeyTwiceError
from agents_loop.chat_client import ChatClient
from agents_loop.files.flomorphic.flow import Flow
from agents_loop.files.flomorphic.graph import FlowGraph
from agents_loop.files.flomorphic.importing import import_flow
from agents_loop.files.flomorphic.js import JsLimits
from agents_loop.files.flomorphic.json_tree import parse_json
from agents_loop.files.flomorphic.options import DEFAULT_DEADLINE_S, DEFAULT_MAX_NODE_VISITS, FlowOptions
from agents_loop.files.given_limits import spending_limits, time_limits
from agents_loop.files.inputs import InputError, InputValue
from agents_loop.files.loop_file import BuiltLoop, LoopFile
from agents_loop.files.named_client import named
from agents_loop.files.problems import LoopFileError
from agents_loop.files.run_settings import RunSettings
from agents_loop.files.yaml_tree import parse_yaml
from agents_loop.judging.strict_json import strict_json
from agents_loop.loop.options import LoopAgentOptions
from agents_loop.messages import JsonValue
from agents_loop.metering.budget import LoopBudget

_PATHS: Final = re.compile(r"\{\{[^{}]{1,1000}\}\}")
"""The paths of a text; the words around them read no input."""
_YAML_KEY: Final = re.compile(r"^(?:nodes|loop)[ \t]*:", re.MULTILINE)


class FloMorphicFile(LoopFile):
    """A FloMorphic export.

    Args:
        source: The file's name, for messages.
        graph: What it says, checked.
    """

    def __init__(self, source: str, graph: FlowGraph) -> None:
        super().__init__(source)
        self.graph = graph
        self.js_limits = JsLimits()
        """What one run of a script may use; to be replaced before `build` where that is not right."""
        self.max_node_visits = DEFAULT_MAX_NODE_VISITS
        """How many nodes are visited at most."""

    @property
    def name(self) -> str:
        """The flow's title."""
        return self.graph.title

    @property
    def models(self) -> list[str]:
        """The settings profiles of its `llm` nodes: `default` for a node that names none."""
        return list(dict.fromkeys([node.settings_id for node in self.graph.nodes.values() if node.kind == "llm"]))

    @property
    def waves(self) -> list[list[str]]:
        """The nodes by how far they are from the start."""
        return self.graph.waves

    def describe(self) -> list[str]:
        """What `agents-loop validate` says: the nodes, the models, where loops close, and the warnings."""
        graph = self.graph
        lines = [f"✓ {self.name}: {len(graph.nodes)} nodes, {len(graph.edges)} edges"]
        if self.models:
            lines.append(f"  models: {', '.join(self.models)}")
        lines += [f"  loop: {edge.source} -> {edge.target}" for edge in graph.edges if edge in graph.back_edges]
        return [*lines, *[f"  warning: {warning}" for warning in graph.warnings]]

    def unused_inputs(self, given: Mapping[str, InputValue]) -> list[str]:
        """Those whose names stand nowhere in the flow's scripts, scopes, keys, and the paths of its texts."""
        texts = [
            text
            for node in self.graph.nodes.values()
            for text in (
                node.code,
                node.scope.text,
                node.key or "",
                *[path for message in node.messages for path in _PATHS.findall(message.content)],
            )
        ]
        return [name for name in given if not any(re.search(rf"\b{re.escape(name)}\b", text) for text in texts)]

    def build(
        self,
        inputs: Mapping[str, InputValue],
        client_for: Callable[[str], ChatClient],
        settings: RunSettings | None = None,
    ) -> BuiltLoop:
        """The flow, with models.

        The inputs are what the context begins with; a text that is JSON of an object or a list is that.
        """
        settings = settings or RunSettings()
        clients = {name: named(client_for(name), name) for name in self.models}
        if settings.on_notice is not None:
            for warning in self.graph.warnings:
                settings.on_notice(warning)
        options = FlowOptions(
            loop=LoopAgentOptions(
                max_iterations=settings.max_iterations,
                budget=_budgets(settings),
                prices=settings.prices,
                return_best=settings.return_best,
            ),
            max_node_visits=self.max_node_visits,
            js=self.js_limits,
        )
        context = {name: _read(name, value) for name, value in inputs.items()}
        return BuiltLoop(Flow(self.graph, clients, options, context), None)


def load_flomorphic(source: str, text: str) -> FloMorphicFile:
    """Check an export. No model is called.

    Raises:
        LoopFileError: It is not valid; the error holds every problem, with its place.
    """
    return FloMorphicFile(source, import_flow(parse_json(text, source), source))


def _budgets(settings: RunSettings) -> list[LoopBudget]:
    default = LoopBudget(deadline_s=DEFAULT_DEADLINE_S, name="a flow's default deadline")
    return [*spending_limits(settings), *(list(time_limits(settings)) or [default])]


def _read(name: str, value: InputValue) -> JsonValue:
    if not isinstance(value, str) or not value.lstrip().startswith(("{", "[")):
        return value
    try:
        return strict_json(value)
    except KeyTwiceError as error:
        raise InputError(f"the input {name!r} is JSON, and {error}") from error
    except ValueError:
        return value


def is_flomorphic(text: str) -> bool:
    """Whether a text is an export, or means to be one: JSON with a `flomorphic` header, or nodes of some `kind`."""
    if '"kind"' not in text and '"flomorphic"' not in text:
        return False
    if _is_yaml_of_ours(text):
        return False
    try:
        data = parse_json(text, "").data
    except LoopFileError:
        return text.lstrip().startswith(("{", "["))  # it is to be told what is wrong with its JSON
    if "flomorphic" in data:
        return True
    nodes: Any = cast("Any", data if isinstance(data, list) else data.get("nodes"))
    return isinstance(nodes, list) and any(isinstance(n, dict) and "kind" in n for n in cast("list[Any]", nodes))


def _is_yaml_of_ours(text: str) -> bool:
    """Whether it is a loop file in YAML: its prompts may speak of exports, and hold one."""
    if not _YAML_KEY.search(text):
        return False
    try:
        return bool({"nodes", "loop"} & parse_yaml(text, "").data.keys())
    except LoopFileError:
        return False
