"""A flow: its nodes, the edges between them, and which of these lead back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final, Literal, TypeAlias

from agents_loop.files.flomorphic.paths import JsonPath
from agents_loop.messages import JsonValue

NodeKind: TypeAlias = Literal["startNode", "js", "llm"]
EXCEPTION_PORT: Final = "_exception"
"""The port that fires where a node with functions gave no verdict."""
DEFAULT_SETTINGS: Final = "default"
"""The model's name of a node without a `settingsId`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FlowFunction:
    """A function that a model may call: a port of its node."""

    name: str
    description: str = ""
    parameters: Mapping[str, JsonValue]
    handle: str | None = None
    """Its id in the export."""
    title: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class SeedMessage:
    """A message that begins a conversation; its content is a template."""

    role: str
    content: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FlowNode:
    """One node."""

    ref: str
    kind: NodeKind
    title: str
    key: str | None = None
    """Under what its output lands in the scope; `None`: it is merged into it."""
    scope: JsonPath
    code: str = ""
    """Of a `js` node."""
    settings_id: str = DEFAULT_SETTINGS
    """Of an `llm` node, as what follows: the name of its model."""
    messages: Sequence[SeedMessage] = ()
    clears_history: bool = False
    functions: Sequence[FlowFunction] = ()

    @property
    def is_judge(self) -> bool:
        """Whether its model decides where the run goes on."""
        return bool(self.functions)

    def port_of(self, written: str) -> str | None:
        """The port that an edge means: by a function's id, else by its name, else by its title."""
        for function in self.functions:
            if function.handle and function.handle == written:
                return function.name
        names = {function.name for function in self.functions} | {EXCEPTION_PORT}
        if written in names:
            return written
        asked = written.casefold()
        return next((f.name for f in self.functions if f.title.casefold() == asked or f.name.casefold() == asked), None)


@dataclass(frozen=True, slots=True)
class FlowEdge:
    """From a node, or from one of its ports, to a node."""

    source: str
    target: str
    port: str | None = None


@dataclass(frozen=True)
class FlowGraph:
    """A flow that has been checked."""

    title: str
    nodes: Mapping[str, FlowNode]
    edges: Sequence[FlowEdge]
    start: str
    warnings: Sequence[str] = field(default=())

    def edges_from(self, ref: str, ports: Sequence[str] | None = None) -> list[FlowEdge]:
        """The edges that leave a node; with ports those of them alone."""
        return [edge for edge in self._by_source.get(ref, ()) if ports is None or edge.port in ports]

    @cached_property
    def _by_source(self) -> dict[str, list[FlowEdge]]:
        found: dict[str, list[FlowEdge]] = {}
        for edge in self.edges:
            found.setdefault(edge.source, []).append(edge)
        return found

    @cached_property
    def back_edges(self) -> frozenset[FlowEdge]:
        """The edges that lead back to a node from which they can be reached: where a loop closes."""
        back: set[FlowEdge] = set()
        done: set[str] = set()
        for first in [self.start, *self.nodes]:
            if first in done:
                continue
            path = {first}
            waiting = [(first, iter(self.edges_from(first)))]
            while waiting:
                ref, edges = waiting[-1]
                edge = next(edges, None)
                if edge is None:
                    waiting.pop()
                    path.discard(ref)
                    done.add(ref)
                elif edge.target in path:
                    back.add(edge)
                elif edge.target not in done:
                    path.add(edge.target)
                    waiting.append((edge.target, iter(self.edges_from(edge.target))))
        return frozenset(back)

    def leads_back(self, ref: str, ports: Sequence[str]) -> bool:
        """Whether what leaves a node by these ports closes a loop before another node decides."""
        edges, seen = self.edges_from(ref, ports), {ref}
        while edges:
            edge = edges.pop()
            if edge in self.back_edges:
                return True
            if edge.target not in seen and not self.nodes[edge.target].is_judge:
                seen.add(edge.target)
                edges += self.edges_from(edge.target)
        return False

    @property
    def waves(self) -> list[list[str]]:
        """The nodes by the number of edges on the shortest way to them; those that nothing leads to are left out."""
        waves, seen = [[self.start]], {self.start}
        while waves[-1]:
            reached = dict.fromkeys([edge.target for ref in waves[-1] for edge in self.edges_from(ref)])
            waves.append([ref for ref in reached if ref not in seen])
            seen.update(reached)
        return waves[:-1]
