"""The facts of a run, in the order in which they happen. The stream, the trace and the result are made of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from agents_loop.agent import AgentResponse, AgentResponseUpdate
from agents_loop.loop.evaluation import LoopEvaluation
from agents_loop.loop.result import LoopResult
from agents_loop.messages import ChatMessage


@dataclass(slots=True)
class LoopStarted:
    """A run begins."""

    run_id: str
    messages: tuple[ChatMessage, ...]
    """The caller's."""
    max_iterations: int
    """The cap that is set. A person's answer to a question that was asked at the cap raises it by one."""


@dataclass(slots=True)
class IterationStarted:
    """The inner agent is about to be run."""

    number: int
    """Counted from 1."""
    input: tuple[ChatMessage, ...]
    """All that the agent is sent."""
    on_behalf_of: tuple[ChatMessage, ...]
    """The part of it that the loop sends in the caller's place."""


@dataclass(slots=True)
class AgentUpdated:
    """A piece of the inner agent's response; only in streaming runs."""

    number: int
    update: AgentResponseUpdate


@dataclass(slots=True)
class AgentResponded:
    """The inner agent's run is complete."""

    number: int
    response: AgentResponse


@dataclass(slots=True)
class EvaluatorDecided:
    """An evaluator has spoken; `evaluation.evaluator` names it."""

    number: int
    evaluation: LoopEvaluation


@dataclass(slots=True)
class StallNoticed:
    """The run no longer comes closer, and a step of the ladder of its `StallPolicy` follows."""

    number: int
    signal: str
    """The name of the signal that is true."""
    observation: str
    """What was noticed, in words."""
    step: str
    """The name of the step that follows."""


NodeStatus: TypeAlias = Literal["started", "retried", "done", "skipped", "resumed", "failed", "cancelled"]


@dataclass(slots=True)
class NodeChanged:
    """A node of a graph begins, is tried again, or is over; only in runs of files that are graphs."""

    node: str
    """Its id."""
    status: NodeStatus
    detail: str | None = None
    """More about it, for people."""


@dataclass(slots=True)
class NodeEvent:
    """Something has happened in a node of a graph, which is a run of its own."""

    node: str
    """Its id."""
    event: LoopEvent


@dataclass(slots=True)
class LoopStopped:
    """The run is over. If it failed, the exception follows."""

    result: LoopResult
    response: AgentResponse | None
    """What the caller gets; `None` when the run failed."""


LoopEvent: TypeAlias = (
    LoopStarted
    | IterationStarted
    | AgentUpdated
    | AgentResponded
    | EvaluatorDecided
    | StallNoticed
    | NodeChanged
    | NodeEvent
    | LoopStopped
)
