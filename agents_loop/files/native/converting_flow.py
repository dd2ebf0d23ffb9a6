"""From a FloMorphic flow to a loop of our own: a worker, and a judge whose functions send it back."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple, TypeAlias, cast

from agents_loop.errors import ConfigurationError
from agents_loop.files.flomorphic.file import FloMorphicFile
from agents_loop.files.flomorphic.graph import FlowFunction, FlowGraph, FlowNode
from agents_loop.files.flomorphic.templates import paths_in
from agents_loop.files.inputs import LOOP_VARIABLES
from agents_loop.files.native.writing import as_template

_Fields: TypeAlias = dict[str, Any]
_NOT_IN_A_NAME: Final = re.compile(r"\W+", re.ASCII)


class ConvertedFlow(NamedTuple):
    """What a file of our own says of a flow."""

    said: _Fields
    left_out: list[str]


def convert_flow(loop_file: FloMorphicFile) -> ConvertedFlow:
    """The loop that a flow is.

    Raises:
        ConfigurationError: It is not one loop of a worker and a judge.
    """
    graph = loop_file.graph
    worker, judge = _parts(loop_file)
    again = [function for function in judge.functions if graph.leads_back(judge.ref, [function.name])]
    enough = [function for function in judge.functions if function not in again]
    if len(again) != 1 or len(enough) != 1:
        raise _no_loop(loop_file, f"{judge.ref!r} needs a function back to {worker.ref!r}, and one that ends")
    inputs: dict[str, str] = {}
    agent: _Fields = {"model": worker.settings_id, "name": worker.ref}
    if system := _text(worker, ["system"]):
        agent["instructions"] = _templated(system, inputs)
    agent["request"] = _templated(_text(worker, ["user"]), inputs)
    if not agent["request"].strip():
        raise _no_loop(loop_file, f"{worker.ref!r} is asked nothing")
    said: _Fields = {"name": graph.title}
    if inputs:
        said["inputs"] = {name: {"description": f"what the flow has at {path}"} for path, name in inputs.items()}
    evaluator = _evaluator(judge, again[0], enough[0])
    said["loop"] = {
        "agent": agent,
        "evaluators": [evaluator],
        "options": {"evaluate_final_iteration": True},
        "stall": "off",
    }
    return ConvertedFlow(said, list(_left_out(graph, worker, judge, inputs)))


def _parts(loop_file: FloMorphicFile) -> tuple[FlowNode, FlowNode]:
    """The worker and the judge."""
    models = [node for node in loop_file.graph.nodes.values() if node.kind == "llm"]
    judges = [node for node in models if node.is_judge]
    workers = [node for node in models if not node.is_judge]
    if len(judges) != 1 or len(workers) != 1:
        said = f"it has {len(workers)} `llm` nodes without functions, and {len(judges)} with"
        raise _no_loop(loop_file, f"{said}: one of each makes a loop")
    return workers[0], judges[0]


def _evaluator(judge: FlowNode, again: FlowFunction, enough: FlowFunction) -> _Fields:
    said: _Fields = {"type": "function_call", "model": judge.settings_id}
    instructions = _text(judge, ["system"])
    if instructions and not paths_in(instructions):
        said["instructions"] = instructions
    said["judge_sees"] = "conversation"
    said["continue_function"] = _function(again, "question")
    said["answered_function"] = _function(enough, "summary")
    return said


def _function(function: FlowFunction, usual: str) -> _Fields:
    given = function.parameters.get("properties")
    properties = cast("dict[str, Any]", given) if isinstance(given, dict) else {}
    required = function.parameters.get("required")
    argument = next(iter(properties), usual)
    described = cast("dict[str, Any]", properties.get(argument) or {}).get("description")
    said: _Fields = {"name": function.name, "description": function.description.strip() or function.name}
    said["argument"] = argument
    if isinstance(described, str) and described.strip():
        said["argument_description"] = described
    return said | {"is_required": isinstance(required, list) and argument in required}


def _text(node: FlowNode, roles: Sequence[str]) -> str:
    return "\n\n".join([message.content for message in node.messages if message.role in roles])


def _templated(text: str, inputs: dict[str, str]) -> str:
    """The text with an input in place of each path, and nothing else that is a template."""
    paths = list(dict.fromkeys(paths_in(text)))
    for path in paths:
        inputs.setdefault(path, _input_name(path, inputs.values()))
    pattern = "|".join(re.escape(path) for path in sorted(paths, key=len, reverse=True))
    if not paths:
        return as_template(text)
    pieces = re.split(r"\{\{\s*(" + pattern + r")\s*\}\}", text)
    filled = [f"{{{{ {inputs[piece]} }}}}" if place % 2 else as_template(piece) for place, piece in enumerate(pieces)]
    return "".join(filled)


def _input_name(path: str, taken: Any) -> str:
    name = _NOT_IN_A_NAME.sub("_", path).strip("_") or "context"
    name = f"input_{name}" if name[0].isdigit() or name in LOOP_VARIABLES else name
    number = 1
    unique = name
    while unique in taken:
        number += 1
        unique = f"{name}_{number}"
    return unique


def _left_out(graph: FlowGraph, worker: FlowNode, judge: FlowNode, inputs: dict[str, str]) -> Iterator[str]:
    for path, name in inputs.items():
        yield f"{worker.ref}: the value of {{{{{path}}}}}: it is the input {name!r} now"
    if made := paths_in(_text(judge, ["system"])):
        why = f"for they hold {{{{{made[0]}}}}}, which the flow makes"
        yield f"{judge.ref}: its instructions, {why}; the usual ones stand in"
    yield f"{judge.ref}: its own user message; it is shown the request and the conversation instead"
    if scripts := [node.ref for node in graph.nodes.values() if node.kind == "js"]:
        yield f"scripts ({', '.join(scripts)}): what the judge asks for reaches the agent without them"
    for node in (worker, judge):
        others = [message.role for message in node.messages if message.role not in ("system", "user")]
        if others:
            yield f"{node.ref}: messages of the role {others[0]!r}"


def _no_loop(loop_file: FloMorphicFile, why: str) -> ConfigurationError:
    return ConfigurationError(f"{loop_file.source}: the flow is not one loop of a worker and a judge: {why}")
