"""A file in dagraph's format, and what it describes: one loop, or a graph of them."""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import ClassVar

from agents_loop.chat_client import ChatClient
from agents_loop.files.dagraph.building import NodeBuilder, models_of
from agents_loop.files.dagraph.checking import check_document
from agents_loop.files.dagraph.graph import upstream_of, waves_of
from agents_loop.files.dagraph.graph_loop import Graph, GraphLoop
from agents_loop.files.dagraph.graph_run import GraphNode
from agents_loop.files.dagraph.node_prompts import NodePrompts
from agents_loop.files.dagraph.outline import outline_of
from agents_loop.files.dagraph.outputs import output_paths
from agents_loop.files.dagraph.schema import AgentNode, Document, EvaluatorLoopNode
from agents_loop.files.inputs import InputError, InputValue, resolve_inputs
from agents_loop.files.loop_file import BuiltLoop, LoopFile
from agents_loop.files.named_client import named
from agents_loop.files.problems import LoopFileError
from agents_loop.files.run_settings import RunSettings
from agents_loop.files.yaml_tree import YamlTree
from agents_loop.loop.agent import LoopAgent
from agents_loop.loop.options import LoopAgentOptions
from agents_loop.messages import ChatMessage


class DagraphFile(LoopFile):
    """A file in dagraph's format.

    Args:
        source: The file's name, for messages.
        data: What it says.
        document: The same, checked.
        prompts: The templates of its nodes, in their order.
    """

    can_resume: ClassVar[bool] = True

    def __init__(self, source: str, data: object, document: Document, prompts: Sequence[NodePrompts]) -> None:
        super().__init__(source)
        self.document = document
        self._data = data
        self._prompts = {node.id: each for node, each in zip(document.nodes, prompts, strict=True)}

    @property
    def name(self) -> str:
        """What the file calls itself."""
        return self.document.name

    @property
    def node(self) -> AgentNode | EvaluatorLoopNode:
        """The first node."""
        return self.document.nodes[0]

    @property
    def models(self) -> list[str]:
        """The names of its models."""
        return models_of(self.document)

    @property
    def waves(self) -> list[list[str]]:
        """The nodes' ids, in the order in which they run."""
        return waves_of(self.document.nodes)

    def unused_inputs(self, given: Mapping[str, InputValue]) -> list[str]:
        """Those that no prompt and no condition mentions."""
        mentioned = frozenset[str]().union(*[prompts.mentioned for prompts in self._prompts.values()])
        return [name for name in given if name not in mentioned]

    def build(
        self,
        inputs: Mapping[str, InputValue],
        client_for: Callable[[str], ChatClient],
        settings: RunSettings | None = None,
    ) -> BuiltLoop:
        """The loop, with inputs and models."""
        settings = _told_once(settings or RunSettings())
        values = self._values(inputs)
        clients = {name: named(client_for(name), name) for name in self.models}
        builder = NodeBuilder(self.document, clients, settings)
        is_one_loop = isinstance(self.node, EvaluatorLoopNode) and len(self.document.nodes) == 1
        if is_one_loop and self._is_plain(settings):
            return BuiltLoop(*self._one_loop(builder, values))
        return BuiltLoop(GraphLoop(self._graph(builder, values, is_one_loop=is_one_loop)), None)

    def _values(self, given: Mapping[str, InputValue]) -> dict[str, InputValue]:
        """The inputs' values, with which every first prompt that needs no other node can be rendered."""
        values = resolve_inputs(self.document.inputs, given)
        for node in self.document.nodes:
            if node.id in values and len(self.document.nodes) > 1:
                raise InputError(f"{node.id!r} is a node of the file, and no input")
        for prompts in self._prompts.values():
            prompts.require_values(values)
        for prompts in self._prompts.values():
            if not prompts.upstream and prompts.try_condition(values):
                prompts.try_first_prompt(values)
        return values

    def _is_plain(self, settings: RunSettings) -> bool:
        """Whether there is nothing to do but to run the only loop."""
        node = self.node
        leaves_something = settings.run_folder is not None or (settings.outputs_dir and self.document.outputs)
        return node.when is None and node.retry.max_attempts == 1 and not leaves_something

    def _one_loop(self, builder: NodeBuilder, values: dict[str, InputValue]) -> tuple[LoopAgent, ChatMessage]:
        budgets = [*builder.run_budgets(), *builder.run_deadline(), *builder.node_budgets(0)]
        return builder.loop(self.node, self._prompts[self.node.id], values, budgets)

    def _graph(self, builder: NodeBuilder, values: dict[str, InputValue], *, is_one_loop: bool) -> Graph:
        nodes = {node.id: self._graph_node(builder, index) for index, node in enumerate(self.document.nodes)}
        settings = builder.settings
        outputs = self._output_paths(settings)
        return Graph(
            name=self.name,
            digest=hashlib.sha256(json.dumps(self._data, sort_keys=True).encode()).hexdigest(),
            inputs=values,
            order=list(nodes),
            waves=[[nodes[name] for name in wave] for wave in self.waves],
            budgets=builder.run_budgets(),
            options=LoopAgentOptions(
                max_iterations=1,
                evaluate_final_iteration=True,
                budget=builder.run_deadline(),
                prices=builder.prices,
            ),
            outputs=outputs,
            outputs_dir=settings.outputs_dir,
            folder=settings.run_folder,
            is_one_loop=is_one_loop,
        )

    def _graph_node(self, builder: NodeBuilder, index: int) -> GraphNode:
        node = self.document.nodes[index]
        budgets = builder.node_budgets(index)
        return GraphNode(
            id=node.id,
            type=node.type,
            prompts=self._prompts[node.id],
            retry=node.retry,
            budgets=budgets,
            models=builder.models_of(node),
            loop=functools.partial(builder.loop, node, self._prompts[node.id], budgets=budgets),
        )

    def _output_paths(self, settings: RunSettings) -> dict[Path, str]:
        base, folder = settings.outputs_dir, settings.run_folder
        if base is None:
            return {}
        return output_paths(self.document.outputs, base, source=Path(self.source), run_folder=folder)


def _told_once(settings: RunSettings) -> RunSettings:
    """The settings, with each notice told once: budgets of the run, of a node and of its loop count the same calls."""
    tell, told = settings.on_notice, set[str]()
    if tell is None:
        return settings

    def on_notice(text: str) -> None:
        if text not in told:
            told.add(text)
            tell(text)

    return dataclasses.replace(settings, on_notice=on_notice)


def load_dagraph(source: str, tree: YamlTree) -> DagraphFile:
    """Check what a file says. No model is called.

    Raises:
        LoopFileError: It is not valid; the error holds every problem, with its place.
    """
    document, problems = check_document(tree)
    outline = outline_of(tree.data)
    prompts = [
        NodePrompts(source, tree, outline, node, upstream)
        for node, upstream in zip(outline.nodes, upstream_of(outline), strict=True)
    ]
    problems += [problem for each in prompts for problem in each.problems]
    if problems or document is None:
        raise LoopFileError(source, problems)
    return DagraphFile(source, tree.data, document, prompts)
