"""The agent and the evaluator that are a prompt each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from agents_loop.agent import AIAgent
from agents_loop.chat_client import ChatClient, ChatOptions
from agents_loop.files.fields import Text
from agents_loop.files.inputs import LOOP_VARIABLES
from agents_loop.files.native.building import Building
from agents_loop.files.native.kinds import MODEL, Kind
from agents_loop.files.native.parts import Part
from agents_loop.files.native.shared import CHAT_OPTION_KINDS, OWN_CHAT_OPTION_LEFT_OUT
from agents_loop.files.native.writing import Writing
from agents_loop.files.prompted.evaluator import PromptedEvaluator
from agents_loop.files.prompted.generator import PromptedGenerator
from agents_loop.files.prompts import PromptTemplate

GENERATOR_VARIABLES = LOOP_VARIABLES - {"candidate"}
EVALUATOR_VARIABLES = frozenset({"iteration", "candidate"})


@dataclass(frozen=True, slots=True)
class BoundPrompt:
    """A prompt with its inputs' values."""

    template: PromptTemplate
    values: Mapping[str, Any]


def prompt_kind(variables: frozenset[str]) -> Kind:
    """A prompt that is rendered in each iteration, with the inputs and these variables of the loop."""

    def build(building: Building, source: str) -> BoundPrompt:
        materials = building.materials
        return BoundPrompt(materials.template(building.path, source, variables), materials.values)

    def write(writing: Writing, prompt: BoundPrompt) -> str:
        writing.take_inputs({name: prompt.values[name] for name in prompt.template.mentioned & prompt.values.keys()})
        return prompt.template.source

    return Kind(Text, build, write)


def prompted_agent(
    chat_client: ChatClient, prompt: BoundPrompt, *, options: ChatOptions | None = None, name: str | None = None
) -> AIAgent:
    """An agent whose model sees one prompt, rendered anew in each iteration, and nothing else.

    Args:
        chat_client: The model.
        prompt: A template with the inputs, `iteration`, `previous_output` and `evaluator_feedback`.
        options: Asked of every call.
        name: The agent's name.
    """
    return PromptedGenerator(chat_client, prompt.template, prompt.values, options=options, name=name, part="agent")


def prompted_evaluator(
    chat_client: ChatClient, prompt: BoundPrompt, *, options: ChatOptions | None = None
) -> PromptedEvaluator:
    """Asks a model whether it approves, by one prompt: its reply is `{"approved": ..., "feedback": ...}`.

    Args:
        chat_client: The model.
        prompt: A template with the inputs, `candidate` and `iteration`.
        options: Asked of every call.
    """
    return PromptedEvaluator(chat_client, prompt.template, prompt.values, options=options)


def _read(target: PromptedGenerator | PromptedEvaluator) -> Mapping[str, Any]:
    name = {"name": target.name} if isinstance(target, PromptedGenerator) else {}
    prompt = BoundPrompt(target.prompt, target.inputs)
    return {"chat_client": target.chat_client, "prompt": prompt, "options": target.options, **name}


PROMPTED_AGENT = Part(
    prompted_agent,
    options=ChatOptions,
    names={"chat_client": "model"},
    kinds={"chat_client": MODEL, "prompt": prompt_kind(GENERATOR_VARIABLES), **CHAT_OPTION_KINDS},
    left_out=OWN_CHAT_OPTION_LEFT_OUT,
    is_made=lambda target: type(target) is PromptedGenerator,
    read=_read,
)
PROMPTED_EVALUATOR = Part(
    prompted_evaluator,
    "prompted",
    options=ChatOptions,
    names={"chat_client": "model"},
    kinds={"chat_client": MODEL, "prompt": prompt_kind(EVALUATOR_VARIABLES), **CHAT_OPTION_KINDS},
    left_out=OWN_CHAT_OPTION_LEFT_OUT,
    is_made=lambda target: type(target) is PromptedEvaluator,
    read=_read,
)
