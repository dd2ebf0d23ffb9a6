"""From an export to a `FlowGraph`: everything that is wrong with it is found at once."""

from __future__ import annotations

from typing import Any, Final, cast

from agents_loop.files.flomorphic.graph import EXCEPTION_PORT, FlowEdge, FlowGraph, FlowNode
from agents_loop.files.flomorphic.nodes import NodeReader
from agents_loop.files.flomorphic.reports import Reports
from agents_loop.files.problems import LoopFileError
from agents_loop.files.yaml_tree import PathIn, YamlTree

KNOWN_VERSION: Final = 1
MOST_NODES: Final = 1_000
"""Twice what is visited at most, by default. Each script is read by an engine of its own."""
UNTITLED: Final = "Untitled flow"
_KINDS: Final = ("startNode", "js", "llm")


def import_flow(tree: YamlTree, source: str) -> FlowGraph:
    """Check an export, and give the flow.

    Raises:
        LoopFileError: It is not valid; the error holds every problem, with its place.
    """
    reports = Reports(tree, source)
    graph = _Import(tree, reports).graph()
    if reports.problems or graph is None:
        raise LoopFileError(source, reports.problems)
    return graph


class _Import:
    """One pass over an export."""

    def __init__(self, tree: YamlTree, reports: Reports) -> None:
        self._tree = tree
        self._reports = reports
        self._nodes: dict[str, FlowNode] = {}
        self._dropped: set[str] = set()
        self._edges_read: set[FlowEdge] = set()
        self._at: PathIn = ("nodes",)

    def graph(self) -> FlowGraph | None:
        data = self._data()
        title = self._header(data)
        nodes = data.get("nodes")
        if not isinstance(nodes, list):
            self._reports.error(("nodes",), "the file needs a list `nodes`")
            return None
        if len(cast("list[Any]", nodes)) > MOST_NODES:
            self._reports.error(self._at, f"there are more than {MOST_NODES:,} nodes")
            return None
        for index, given in enumerate(cast("list[Any]", nodes)):
            self._node(index, given)
        start = self._start()
        edges = self._edges(data.get("edges"))
        if start is None:
            return None
        graph = FlowGraph(title, self._nodes, edges, start, self._reports.warnings)
        self._warn_of_inbound(graph)
        reached = {ref for wave in graph.waves for ref in wave}
        for ref in [ref for ref in self._nodes if ref not in reached]:
            self._reports.warn(self._at, f"no edge leads to {ref!r}: it never runs")
        return graph

    def _data(self) -> dict[str, Any]:
        """The export; a bare list is that of its nodes."""
        data: Any = self._tree.data
        if not isinstance(data, list):
            return cast("dict[str, Any]", data)
        self._at = ()
        return {"nodes": cast("list[Any]", data)}

    def _header(self, data: dict[str, Any]) -> str:
        title = data.get("title")
        if title is not None and not isinstance(title, str):
            self._reports.warn(("title",), f"it must be a text, not {title!r:.40}, so it is not taken")
        header = data.get("flomorphic")
        if isinstance(header, dict):
            version = cast("dict[str, Any]", header).get("version")
            if isinstance(version, int | float) and version > KNOWN_VERSION:
                self._reports.warn(
                    ("flomorphic", "version"), f"{version} is newer than what is known ({KNOWN_VERSION})"
                )
        return title if isinstance(title, str) and title.strip() else UNTITLED

    def _node(self, index: int, given: Any) -> None:
        path: PathIn = (*self._at, index)
        if not isinstance(given, dict):
            self._reports.error(path, f"a node must be an object, not {given!r:.40}")
            return
        node = cast("dict[str, Any]", given)
        ref = node.get("ref")
        if ref is None or ref == "":
            ref = f"node{index + 1}"
        if not isinstance(ref, str):
            self._reports.error((*path, "ref"), f"must be a text, not {ref!r:.40}")
            return
        if ref in self._nodes or ref in self._dropped:
            self._reports.error((*path, "ref"), f"{ref!r} is the ref of another node too: the first one counts")
            return
        kind = node.get("kind")
        if kind not in _KINDS:
            self._dropped.add(ref)
            said = "is missing" if kind is None else f"{kind!r:.40} is not supported"
            self._reports.error((*path, "kind"), f"{said}; there are: {', '.join(_KINDS)}")
            return
        read = NodeReader(self._reports, path, ref, kind).read(node)
        if read is None:
            self._dropped.add(ref)
        else:
            self._nodes[ref] = read

    def _start(self) -> str | None:
        starts = [node.ref for node in self._nodes.values() if node.kind == "startNode"]
        if not starts:
            self._reports.error(self._at, "a start node is required: a node of the kind 'startNode'")
            return None
        if len(starts) > 1:
            self._reports.warn(self._at, f"there are {len(starts)} start nodes; the run begins at {starts[0]!r}")
        return starts[0]

    def _edges(self, given: Any) -> list[FlowEdge]:
        if given is None:
            return []
        if not isinstance(given, list):
            self._reports.error(("edges",), "must be a list")
            return []
        listed = cast("list[Any]", given)
        return [edge for index, each in enumerate(listed) if (edge := self._edge(("edges", index), each)) is not None]

    def _edge(self, path: PathIn, given: Any) -> FlowEdge | None:
        if not isinstance(given, dict):
            self._reports.error(path, f"an edge must be an object, not {given!r:.40}")
            return None
        edge = cast("dict[str, Any]", given)
        for end in ("from", "to"):
            ref = edge.get(end)
            if not isinstance(ref, str) or ref not in self._nodes:
                if not isinstance(ref, str) or ref not in self._dropped:  # else its node has been reported
                    self._reports.error((*path, end), f"there is no node {ref!r:.60}")
                return None
        source = self._nodes[edge["from"]]
        port = edge.get("port") or None
        if source.functions:
            port = self._port((*path, "port"), source, port)
            if port is None:
                return None
        elif port is not None:
            self._reports.warn((*path, "port"), f"the node {source.ref!r} has no ports: it is ignored")
            port = None
        read = FlowEdge(source.ref, edge["to"], port)
        if read in self._edges_read:
            self._reports.warn(path, f"the same edge is given before: {read.target!r} runs once for each")
        self._edges_read.add(read)
        return read

    def _port(self, path: PathIn, source: FlowNode, written: Any) -> str | None:
        ports = ", ".join([function.name for function in source.functions] + [EXCEPTION_PORT])
        if written is None:
            self._reports.error(path[:-1], f"`port` is missing: the node {source.ref!r} has the ports {ports}")
            return None
        port = source.port_of(written) if isinstance(written, str) else None
        if port is None:
            self._reports.error(path, f"the node {source.ref!r} has no port {written!r:.60}; it has {ports}")
        return port

    def _warn_of_inbound(self, graph: FlowGraph) -> None:
        """Edges that meet don't wait for each other, so a node may run once for each."""
        sources: dict[str, list[str]] = {}
        for edge in graph.edges:
            if edge not in graph.back_edges:
                sources.setdefault(edge.target, []).append(edge.source)
        for ref, forward in sources.items():
            if len(set(forward)) > 1:
                self._reports.warn(self._at, f"{len(forward)} edges lead to {ref!r}: it runs once for each that fires")
