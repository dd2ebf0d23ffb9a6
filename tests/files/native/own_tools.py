"""Python objects that a loop file may name."""

from __future__ import annotations

from pydantic import BaseModel

from agents_loop import (
    ContextProvider,
    IterationSignals,
    LoopEvaluation,
    LoopEvaluator,
    ProvidedContext,
    UnmetRequirement,
    tool,
)


def add(first: int, second: int) -> int:
    """Add two numbers."""
    return first + second


@tool(approval_required=True)
def publish(text: str) -> str:
    """Publish a text."""
    return text


def approves(call) -> bool:
    return call.name == "publish"


class Ruled(ContextProvider):
    """Adds a rule."""

    async def provide(self, context):
        return ProvidedContext(instructions="Be brief.")


def shortened(gap: str) -> str:
    return gap[:20]


def sources(context):
    return [("m#1", "A manual.")]


def cited(context):
    return ["m#1"]


def is_plain(text: str):
    return "#" not in text or "it has a hash"


def signals(context) -> IterationSignals:
    done = "done" in context.last_response.text
    return IterationSignals(unmet_requirements=() if done else (UnmetRequirement("say that it is done"),))


class Line(BaseModel):
    item: str


class Verdict(BaseModel):
    answered: bool


def is_done(context):
    return None if "done" in context.last_response.text else "Say that it is done."


class Done(LoopEvaluator):
    async def evaluate(self, context):
        return LoopEvaluation.stop() if "done" in context.last_response.text else LoopEvaluation.continue_("done?")


NOT_AN_EVALUATOR = 7


async def agent(text: str) -> str:
    return "done by an agent of my own"
