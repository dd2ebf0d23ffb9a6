"""The nodes of a file as a graph: who comes before whom, and what is wrong with that."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from graphlib import CycleError, TopologicalSorter
from pathlib import PurePosixPath, PureWindowsPath

from agents_loop.files.checking import unknown
from agents_loop.files.dagraph.outline import Outline
from agents_loop.files.dagraph.schema import AgentNode, EvaluatorLoopNode
from agents_loop.files.inputs import LOOP_VARIABLES
from agents_loop.files.problems import Problem
from agents_loop.files.yaml_tree import YamlTree

Nodes = Sequence[AgentNode | EvaluatorLoopNode]


def waves_of(nodes: Nodes) -> list[list[str]]:
    """The nodes' ids in the order in which they run: a wave has those whose dependencies are over by then."""
    sorter = TopologicalSorter({node.id: node.depends_on for node in nodes})
    sorter.prepare()
    place = {node.id: number for number, node in enumerate(nodes)}
    waves: list[list[str]] = []
    while sorter.is_active():
        wave = sorted(sorter.get_ready(), key=place.__getitem__)
        sorter.done(*wave)
        waves.append(wave)
    return waves


def upstream_of(outline: Outline) -> list[frozenset[str]]:
    """Of each node all that come before it, directly or not, as far as the file has them."""
    direct: dict[str, list[str]] = {}
    for node in outline.nodes:
        if node.id is not None:
            direct.setdefault(node.id, list(node.depends_on.values()))
    upstream: list[frozenset[str]] = []
    for node in outline.nodes:
        seen: set[str] = set()
        left = list(node.depends_on.values())
        while left:
            name = left.pop()
            if name in direct and name not in seen:
                seen.add(name)
                left += direct[name]
        upstream.append(frozenset(seen - {node.id}))
    return upstream


def graph_problems(tree: YamlTree, outline: Outline) -> list[Problem]:
    """What is wrong with the graph: ids, dependencies, and what is to be written where."""
    ids = outline.ids
    return [
        *_wrong_ids(tree, outline, ids),
        *_wrong_dependencies(tree, outline, ids),
        *_wrong_outputs(tree, outline.outputs, ids),
        *_cycles(tree, outline, ids),
    ]


def _wrong_ids(tree: YamlTree, outline: Outline, ids: Mapping[str, int]) -> Iterator[Problem]:
    """An id is a variable in the prompts downstream; it must not be another one too."""
    for node in outline.nodes:
        path = ("nodes", node.index, "id")
        if node.id is None or len(outline.nodes) == 1:
            continue
        if ids[node.id] != node.index:
            line = tree.values["nodes", ids[node.id], "id"].line
            yield tree.problem(path, f"the id {node.id!r} is given twice; first in line {line}")
        elif node.id in (outline.inputs or ()):
            yield tree.problem(path, f"{node.id!r} is an input too: call the node something else")
        elif node.id in LOOP_VARIABLES:
            yield tree.problem(path, f"{node.id!r} is a variable of the loop itself: call the node something else")


def _wrong_dependencies(tree: YamlTree, outline: Outline, ids: Mapping[str, int]) -> Iterator[Problem]:
    for node in outline.nodes:
        for number, name in node.depends_on.items():
            path = ("nodes", node.index, "depends_on", number)
            if name == node.id:
                yield tree.problem(path, "a node can't depend on itself")
            elif name not in ids:
                others = [other for other in ids if other != node.id]
                said = unknown(name, others, what="node") if others else f"unknown node {name!r}; there is no other"
                yield tree.problem(path, said)


def _wrong_outputs(tree: YamlTree, outputs: Mapping[str, str], ids: Mapping[str, int]) -> Iterator[Problem]:
    seen: dict[PurePosixPath, str] = {}
    for path, name in outputs.items():
        at = ("outputs", path)
        if wrong := _wrong_path(path):
            yield tree.problem(at, wrong, at_key=True)
        elif (first := seen.setdefault(PurePosixPath(path), path)) != path:
            yield tree.problem(at, f"is the same file as {first!r}", at_key=True)
        if name not in ids:
            yield tree.problem(at, unknown(name, ids, what="node"))


def _wrong_path(path: str) -> str | None:
    """What is wrong with the path of an output, as any system reads it; it must stay below the current directory."""
    posix, windows = PurePosixPath(path), PureWindowsPath(path)
    if posix.is_absolute() or windows.drive or windows.root:
        return "an output's path must be relative: it is written below the current directory"
    if ".." in posix.parts or ".." in windows.parts:
        return "an output's path must not hold `..`: it is written below the current directory"
    if not posix.parts or path.endswith(("/", "\\")) or "\0" in path:
        return "is no path of a file"
    return None


def _cycles(tree: YamlTree, outline: Outline, ids: Mapping[str, int]) -> Iterator[Problem]:
    """Each cycle once, as long as others are left when its nodes are taken out."""
    left = {
        node.id: [name for name in node.depends_on.values() if name in ids and name != node.id]
        for node in outline.nodes
        if node.id is not None and ids[node.id] == node.index
    }
    while True:
        try:
            TopologicalSorter(left).prepare()
        except CycleError as error:
            around: list[str] = error.args[1]
            first = min(around, key=ids.__getitem__)
            turned = around[:-1][around.index(first) :] + around[:-1][: around.index(first)]
            said = " → ".join([*turned, first])
            yield tree.problem(("nodes", ids[first], "depends_on"), f"a cycle, in which no node can be first: {said}")
            left = {
                name: [other for other in others if other not in around]
                for name, others in left.items()
                if name not in around
            }
        else:
            return
