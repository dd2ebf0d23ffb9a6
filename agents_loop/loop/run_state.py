"""What one run of a loop knows of itself: the facts that its parts share, and nothing that they do."""

from __future__ import annotations

import logging
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, TypeAlias

from agents_loop.agent import AgentResponse, AgentRunOptions, AgentSession, AIAgent
from agents_loop.loop.asking import Outcome
from agents_loop.loop.bad_response import BadResponse
from agents_loop.loop.context import LoopContext
from agents_loop.loop.evaluator import LoopEvaluator
from agents_loop.loop.judgment import Judgment
from agents_loop.loop.metered_run import MeteredRun
from agents_loop.loop.options import LoopAgentOptions
from agents_loop.loop.questions import Question
from agents_loop.loop.result import RUN_ORDERS, IterationRecord, LoopResult, StopReason
from agents_loop.loop.resuming import StoppedRun
from agents_loop.loop.sessions import RunSessions
from agents_loop.loop.stalls.watch import Stall, StallWatch
from agents_loop.messages import ChatMessage, JsonValue

Ending: TypeAlias = tuple[StopReason, str | None]
"""Why a run ends, and more about it for people."""


class RunState:
    """The state of one run.

    Args:
        inner_agent: The agent that is run again and again.
        evaluators: Who judges it, in order.
        options: How the loop runs.
        max_iterations: The cap that holds.
        logger: Told when the cap ends the run.
        messages: The caller's.
        session: The caller's, if any.
        run_options: Handed to every inner run.
        streaming: Whether the inner agent is streamed: the engine's one switch.
        tells: Whether anybody hears of more events than the pieces of a stream, stalls and the end.
    """

    __slots__ = (
        "agent",
        "bad",
        "began_at",
        "best_before",
        "clock",
        "context",
        "earlier",
        "ending",
        "evaluators",
        "feedback",
        "has_phase",
        "judgment",
        "logger",
        "max_iterations",
        "memory",
        "messages",
        "metered",
        "next_input",
        "number",
        "options",
        "order",
        "outcome",
        "question",
        "records",
        "result",
        "resumed_at",
        "run_agent",
        "run_id",
        "run_options",
        "seconds",
        "sessions",
        "stall",
        "stalls",
        "started_at",
        "stopped_run",
        "streaming",
        "tells",
        "waiting",
    )

    def __init__(
        self,
        inner_agent: AIAgent,
        evaluators: Sequence[LoopEvaluator],
        options: LoopAgentOptions,
        max_iterations: int,
        logger: logging.Logger,
        *,
        messages: list[ChatMessage],
        session: AgentSession | None,
        run_options: AgentRunOptions | None,
        streaming: bool,
        tells: bool = True,
    ) -> None:
        self.agent: AIAgent = inner_agent
        self.run_agent = run_of(inner_agent)
        self.evaluators = evaluators
        self.options = options
        self.max_iterations = max_iterations
        self.logger = logger
        self.messages = tuple(messages)
        self.run_options = run_options
        self.streaming = streaming
        self.tells = tells
        self.clock = options.clock
        self.sessions = RunSessions(inner_agent, options, session)
        self.metered = MeteredRun(options)
        self.has_phase = False
        """Whether the code that reads the events is within the run already."""
        all_at_once = options.evaluation_mode == "all" and len(evaluators) > 1
        self.judgment = Judgment(evaluators, self.metered, all_at_once=all_at_once, tells=tells)
        self.stalls = None if options.stall is None else StallWatch(options.stall)

        # what has been, and what was said of it
        self.records: list[IterationRecord] = []
        self.feedback: list[str | None] = []
        self.memory: dict[str, JsonValue] = {}
        self.context: LoopContext | None = None

        # where it is
        self.number = 0
        self.next_input: tuple[tuple[ChatMessage, ...], tuple[ChatMessage, ...]] = self.messages, ()
        """What the agent is sent in the iteration, and the part of it that the loop sends in the caller's place."""
        self.began_at = self.seconds = 0.0
        """When the iteration began, and how long the agent took."""
        self.outcome = Outcome()
        self.bad: BadResponse | None = None
        self.stall: Stall | None = None
        self.ending: Ending | None = None

        # the run that this one continues
        self.waiting: tuple[AgentSession, JsonValue] | None = None
        """What waited in the session, to be put back where this run fails before its first answer."""
        self.question: Question | None = None
        self.stopped_run: StoppedRun | None = None
        self.earlier: AgentResponse | None = None
        """The answer at hand from before."""
        self.best_before: IterationRecord | None = None
        self.resumed_at = 0

        self.order = next(RUN_ORDERS)
        self.run_id = options.new_id()
        self.started_at = options.clock()
        self.result: LoopResult | None = None

    @property
    def is_judged(self) -> bool:
        """Whether the iteration's answer is judged."""
        return self.number < self.max_iterations or self.options.evaluate_final_iteration

    def use(self, agent: AIAgent) -> None:
        """Run another agent from now on."""
        self.agent = agent
        self.run_agent = run_of(agent)
        self.sessions.use(agent)


def run_of(agent: AIAgent) -> Callable[..., Coroutine[Any, Any, AgentResponse]]:
    """How an agent is run with a list of messages: the step in between is left out unless it is the agent's own."""
    own: Any = agent.run
    return agent.run_core if getattr(own, "__func__", None) is AIAgent.run else own
