"""From a file of another format to one of our own, with what it can't carry."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple, TypeAlias

from agents_loop.errors import ConfigurationError
from agents_loop.files.dagraph.file import DagraphFile
from agents_loop.files.dagraph.schema import Budget, EvaluatorLoopNode, Part
from agents_loop.files.flomorphic.file import FloMorphicFile
from agents_loop.files.loop_file import LoopFile
from agents_loop.files.native.converting_flow import convert_flow
from agents_loop.files.native.yaml_text import yaml_text

_Fields: TypeAlias = dict[str, Any]


class ConvertedFile(NamedTuple):
    """A file of our own format."""

    text: str
    left_out: tuple[str, ...]
    """What the other file says and this one can't, a line each."""


def convert_loop_file(loop_file: LoopFile) -> ConvertedFile:
    """A file of our own format in place of another one.

    Of a dagraph file with one `evaluator_loop` it makes the same calls with the same prompts. Of a FloMorphic flow that
    is a worker, a judge with two functions and an edge back, it is an agent with a `function_call` evaluator: what
    scripts did is left out.

    Args:
        loop_file: The other file.

    Raises:
        ConfigurationError: It is no loop, or more than one.
    """
    if isinstance(loop_file, DagraphFile):
        return _of_dagraph(loop_file)
    if isinstance(loop_file, FloMorphicFile):
        said, left_out = convert_flow(loop_file)
        return ConvertedFile(yaml_text(said), tuple(left_out))
    raise ConfigurationError(f"{loop_file.source} is of our own format already")


def _of_dagraph(loop_file: DagraphFile) -> ConvertedFile:
    document = loop_file.document
    if len(document.nodes) > 1 or not isinstance(loop_file.node, EvaluatorLoopNode):
        raise ConfigurationError(f"{loop_file.source}: a file of our own is one loop: keep one evaluator_loop node")
    node = loop_file.node
    said: _Fields = {"name": document.name}
    if document.description is not None:
        said["description"] = document.description
    if document.inputs is not None:
        said["inputs"] = {name: spec.model_dump(exclude_unset=True) for name, spec in document.inputs.items()}
    loop: _Fields = {
        "agent": {**_part(node.generator), "name": node.id},
        "evaluators": [{"type": "prompted", **_part(node.evaluator)}],
        "options": {"max_iterations": node.max_iterations, "evaluate_final_iteration": True},
    }
    budgets = [
        _budget(name, budget)
        for name, budget in (("budget", document.budget), (f"{node.id}.budget", node.budget))
        if budget != Budget()
    ]
    if budgets:
        loop["budget"] = budgets[0] if len(budgets) == 1 else budgets
    loop["stall"] = "off"  # such a loop runs its max_iterations
    return ConvertedFile(yaml_text(said | {"loop": loop}), tuple(_left_out(loop_file, node)))


def _part(part: Part) -> _Fields:
    models = part.all_models
    said: _Fields = {"model": models[0] if len(models) == 1 else models, "prompt": part.prompt}
    return said if part.max_output_tokens is None else said | {"max_output_tokens": part.max_output_tokens}


def _budget(name: str, budget: Budget) -> _Fields:
    limits = {"max_tokens": budget.max_tokens, "max_cost_usd": budget.max_usd}
    given = {key: limit for key, limit in limits.items() if limit is not None}
    return {**given, "counts_cached_input": False} | ({} if name == "budget" else {"name": name})


def _left_out(loop_file: DagraphFile, node: EvaluatorLoopNode) -> Iterator[str]:
    for path in loop_file.document.outputs:
        yield f"outputs.{path}: nothing is written to files; the answer goes to standard output"
    if node.when is not None:
        yield f"when: {node.when!r}: the loop always runs"
    if node.retry.max_attempts > 1:
        yield "retry: a loop that fails is not run again"
    for key, part in node.parts.items():
        if part.timeout_seconds is not None:
            yield f"{key}.timeout_seconds: a call has no limit of its own; `budget.deadline_s` is one for the run"
