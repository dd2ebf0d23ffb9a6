"""From a `LoopAgent` to a file that describes it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, TypeAlias, cast

from agents_loop.agent import AIAgent
from agents_loop.chat_client import ChatClient
from agents_loop.errors import ConfigurationError
from agents_loop.files.inputs import InputValue
from agents_loop.files.named_client import NamedChatClient
from agents_loop.files.native.agents import CHAT_AGENT
from agents_loop.files.native.document import OPTIONS
from agents_loop.files.native.evaluators import EVALUATORS
from agents_loop.files.native.kinds import many
from agents_loop.files.native.parts import Part
from agents_loop.files.native.prompted import PROMPTED_AGENT
from agents_loop.files.native.shared import BUDGETS
from agents_loop.files.native.stalls import STALL
from agents_loop.files.native.writing import Writing, as_template
from agents_loop.files.native.yaml_text import yaml_text
from agents_loop.files.prompted.generator import PromptedGenerator
from agents_loop.loop.agent import LoopAgent
from agents_loop.loop.stalls.ladder import AnotherAgentStep
from agents_loop.loop.stalls.policy import StallPolicy
from agents_loop.metering.budget import LoopBudget

_Fields: TypeAlias = dict[str, Any]
_TYPES: Mapping[type, str] = {bool: "boolean", int: "integer", float: "number", str: "string"}


def dump_loop_file(
    loop: LoopAgent,
    *,
    name: str,
    request: str | None = None,
    description: str | None = None,
    models: Mapping[str, ChatClient] | None = None,
) -> str:
    """A loop as the text of a file: `load_loop_file` makes one of it that does the same.

    Models stand in it by name, and Python objects by `module:name`; neither clients nor code are written.

    Args:
        loop: A `LoopAgent` over a `ChatClientAgent`, or one that was built of a file.
        name: What the file calls the loop.
        request: What the agent is asked. A file may hold templates; this is a plain text.
        description: For people.
        models: What the file calls clients that have no `model_id`, or are to be called otherwise.

    Raises:
        CannotWriteError: Something of the loop can't stand in a file: the message names it.
        ConfigurationError: There is no request, and the agent needs one; or it holds its own.
    """
    if not isinstance(loop, LoopAgent):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise TypeError(f"loop must be a LoopAgent, not {type(loop).__name__}")
    inputs: dict[str, InputValue] = {}
    given = dict(models or {})
    writing = Writing(lambda client: _name_of(client, given), inputs)
    said = _loop(loop, request, writing.at("loop"))
    document: _Fields = {"name": name}
    if description is not None:
        document["description"] = description
    if inputs:
        document["inputs"] = {
            key: {"type": _TYPES[type(value)], "required": False, "default": value} for key, value in inputs.items()
        }
    return yaml_text(document | {"loop": said})


def _loop(loop: LoopAgent, request: str | None, writing: Writing) -> _Fields:
    options = loop.options
    said: _Fields = {
        "agent": _asked(loop.inner_agent, request, writing.at("agent")),
        "evaluators": many(EVALUATORS.kind).write(writing.at("evaluators"), loop.evaluators),
    }
    if own := OPTIONS.write(writing.at("options"), replace(options, budget=None, stall=None)):
        said["options"] = own
    if options.budget is not None:
        several = [options.budget] if isinstance(options.budget, LoopBudget) else list(options.budget)
        said["budget"] = BUDGETS.write(writing.at("budget"), several[0] if len(several) == 1 else several)
    stall = _stall(loop, writing.at("stall"))
    return said if stall == "on" else said | {"stall": stall}


def _asked(agent: AIAgent, request: str | None, writing: Writing) -> _Fields:
    said = _agent(agent, writing)
    if isinstance(agent, PromptedGenerator):
        if request is not None:
            raise ConfigurationError("request must be left out: the agent's prompt is what it is asked")
        return said
    if request is None or not request.strip():
        raise ConfigurationError("request must be given: it is what the agent is asked")
    return said | {"request": as_template(request)}


def _agent(agent: AIAgent, writing: Writing) -> _Fields:
    return _part_of(agent, writing).write(writing, agent)


def _part_of(agent: AIAgent, writing: Writing) -> Part:
    if type(agent) is PromptedGenerator:
        return PROMPTED_AGENT
    if type(agent) is CHAT_AGENT.make:
        return CHAT_AGENT
    raise writing.error(f"{type(agent).__name__} can't stand in a file, as a ChatClientAgent can")


def _stall(loop: LoopAgent, writing: Writing) -> Any:
    policy: StallPolicy | None = loop.options.stall
    for index, step in enumerate(policy.ladder if policy is not None else ()):
        if isinstance(step, AnotherAgentStep):
            _require_same(loop.inner_agent, step.as_agent, writing.at("ladder", index))
    return STALL.write(writing, policy)


def _require_same(agent: AIAgent, other: AIAgent, writing: Writing) -> None:
    """That another agent is the loop's own with another model: no more can stand in a file."""
    one, another = _agent(agent, writing), _agent(other, writing)
    if {**one, "model": None} != {**another, "model": None}:
        raise writing.error("another agent can't stand in a file, only the loop's own with another model")


def _name_of(client: ChatClient, models: Mapping[str, ChatClient]) -> str | None:
    named = [name for name, each in models.items() if each is client]
    if named:
        return named[0]
    if isinstance(client, NamedChatClient):
        return client.name
    said = cast("Any", getattr(client, "model_id", None))
    return said if isinstance(said, str) and said.strip() else None
