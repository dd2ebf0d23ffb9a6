"""When a loop of a file counts as stuck, and what follows. Without a word, the defaults of `StallPolicy` hold."""

from __future__ import annotations

from typing import Any, Final, Literal

from agents_loop.chat_client import ChatClient
from agents_loop.files.native.building import Building
from agents_loop.files.native.kinds import MODEL, TEMPLATE, Form, Kind, forms, is_not, is_of, many, optional
from agents_loop.files.native.parts import Part, Table
from agents_loop.files.native.writing import Writing
from agents_loop.loop.stalls.answers import (
    AlternatingAnswersSignal,
    EmptyAnswersSignal,
    NearSameAnswerSignal,
    SameAnswerSignal,
    SameToolCallsSignal,
)
from agents_loop.loop.stalls.ladder import AnotherAgentStep, AskPersonStep, FreshContextStep, NudgeStep, StopStep
from agents_loop.loop.stalls.policy import StallPolicy
from agents_loop.loop.stalls.verdicts import (
    FallingScoreSignal,
    FlatScoreSignal,
    SameFailingCriteriaSignal,
    SameFeedbackSignal,
)

_SIGNALS = (
    EmptyAnswersSignal,
    SameAnswerSignal,
    AlternatingAnswersSignal,
    SameToolCallsSignal,
    NearSameAnswerSignal,
    SameFailingCriteriaSignal,
    FallingScoreSignal,
    FlatScoreSignal,
    SameFeedbackSignal,
)
_MEASURE: Final = {"measure": "it is a function: the likeness of words is measured as by default"}

SIGNALS = Table(
    "StallSignal",
    [Part(signal, signal.name, left_out=_MEASURE if signal is NearSameAnswerSignal else {}) for signal in _SIGNALS],
)


class AnotherModel:
    """That the same agent goes on with another model.

    Args:
        chat_client: The model.
    """

    def __init__(self, chat_client: ChatClient) -> None:
        self.chat_client = chat_client


STEPS = Table(
    "StallStep",
    (
        Part(NudgeStep, NudgeStep.name),
        Part(FreshContextStep, FreshContextStep.name),
        Part(
            AnotherModel,
            "another_model",
            names={"chat_client": "model"},
            kinds={"chat_client": MODEL},
            is_made=is_of(AnotherAgentStep),
            read=lambda step: {"chat_client": getattr(step.as_agent, "chat_client", None)},
        ),
        Part(AskPersonStep, AskPersonStep.name, kinds={"question": optional(TEMPLATE)}),
        Part(StopStep, StopStep.name),
    ),
)
"""An `AnotherModel` becomes an `AnotherAgentStep` where the agent is known."""


def stall_policy(signals: Any = None, ladder: Any = None) -> dict[str, Any]:
    """When the run counts as stuck, and what follows.

    Args:
        signals: What is looked for, in this order.
        ladder: What follows, step by step; the last one again at its end: `stop` or `ask_person`.
    """
    given = {"signals": signals, "ladder": ladder}
    return {name: value for name, value in given.items() if value is not None}


POLICY = Part(stall_policy, kinds={"signals": many(SIGNALS.kind), "ladder": many(STEPS.kind)})


def _switched(building: Building, value: Any) -> dict[str, Any] | None:
    del building
    return {} if value in (True, "on") else None


def _written_policy(writing: Writing, policy: StallPolicy) -> Any:
    default = StallPolicy()
    said = {
        name: many(table.kind).write(writing.at(name), getattr(policy, name))
        for name, table in (("signals", SIGNALS), ("ladder", STEPS))
    }
    usual = {
        name: many(table.kind).write(writing.at(name), getattr(default, name))
        for name, table in (("signals", SIGNALS), ("ladder", STEPS))
    }
    return {name: value for name, value in said.items() if value != usual[name]} or "on"


def _written_switch(writing: Writing, value: None) -> str:
    del writing, value
    return "off"


_is_switch = is_of(bool, str)
STALL = forms(
    Form("switch", _is_switch, is_of(type(None)), Kind(bool | Literal["on", "off"], _switched, _written_switch)),
    Form("policy", is_not(_is_switch), is_of(StallPolicy), Kind(POLICY.model, POLICY.build, _written_policy)),
)
"""From a file the arguments of a `StallPolicy`, or `None` where stalls are not looked for."""
