"""One run of a flow: tokens walk along its edges, several at once where edges fan out."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from typing import Final, TypeVar

from agents_loop.agent import AgentResponse, AgentResponseUpdate
from agents_loop.chat_client import ChatClient
from agents_loop.errors import BudgetExceededError
from agents_loop.files.flomorphic.context import FlowContext
from agents_loop.files.flomorphic.errors import FlowNodeError
from agents_loop.files.flomorphic.graph import EXCEPTION_PORT, FlowEdge, FlowGraph, FlowNode
from agents_loop.files.flomorphic.metering import FlowMeter
from agents_loop.files.flomorphic.options import FlowOptions
from agents_loop.files.flomorphic.records import FlowRecords
from agents_loop.files.flomorphic.relay import Relay
from agents_loop.files.flomorphic.routing import Choice
from agents_loop.files.flomorphic.visits import Visiting
from agents_loop.loop.evaluation import LoopEvaluation
from agents_loop.loop.events import (
    AgentResponded,
    AgentUpdated,
    EvaluatorDecided,
    IterationStarted,
    LoopEvent,
    LoopStarted,
    LoopStopped,
    NodeChanged,
)
from agents_loop.loop.result import RUN_ORDERS, LoopResult, StopReason, attach_result, inner_result
from agents_loop.loop.transcript import transcript_response
from agents_loop.messages import ChatMessage, JsonValue
from agents_loop.metering.ledger import Role

MOST_LOGGED: Final = 1_000
"""Lines that are kept of what scripts log."""
MOST_LOGGED_CHARS: Final = 2_000
"""Characters that are kept of a line."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Token:
    """Where a branch of the run is."""

    ref: str
    iteration: int = 0
    """The latest iteration on its way."""
    missing: str | None = None
    """Why the latest node that was to decide did not, if it did not."""


class _EndOfRunError(Exception):
    """The run ends here, for all branches."""

    def __init__(self, reason: StopReason, detail: str) -> None:
        super().__init__(detail)
        self.reason = reason
        self.detail = detail


class FlowRun:
    """One run: its state, and its events.

    Args:
        graph: The flow.
        clients: The models, by their names in the flow.
        options: How it is run.
        root: What the context begins with.
        messages: The caller's; they are recorded, no node reads them.
        streaming: Whether answers are streamed.
    """

    def __init__(
        self,
        graph: FlowGraph,
        clients: Mapping[str, ChatClient],
        options: FlowOptions,
        root: dict[str, JsonValue],
        messages: Sequence[ChatMessage],
        *,
        streaming: bool,
    ) -> None:
        self._graph = graph
        self._options = options
        self._messages = tuple(messages)
        self._context = FlowContext(root)
        self._visiting = Visiting(graph, self._context, clients, options.js, streaming)
        self._streaming = streaming
        self._order = next(RUN_ORDERS)
        self.meter = FlowMeter(options.loop, clients.values(), self._messages)
        self._started_at = options.loop.clock()
        self._relay = Relay()
        self.tell = self._relay.tell
        self._missing: list[str] = []
        self._decisions = 0
        self.records = FlowRecords(options, self.meter.run)
        self.visits: list[str] = []
        self.logs: list[JsonValue] = []
        self.run_id = options.loop.new_id()
        self.result: LoopResult | None = None

    async def events(self) -> AsyncGenerator[LoopEvent, None]:
        """Run, and yield each fact as it happens: no node goes on before its fact has been taken."""
        try:
            yield LoopStarted(self.run_id, self._messages, self._options.max_iterations)
            self.meter.guard()
            self.spawn(Token(self._graph.start))
            async with aclosing(self._relay.events()) as events:
                async for event in events:
                    yield event
            if self._missing:
                yield self._stopped(StopReason.EVALUATOR_FAILED, self._missing[0])
            else:
                yield self._stopped(StopReason.SATISFIED, None)
        except _EndOfRunError as ended:
            await self._relay.stop()
            yield self._stopped(ended.reason, ended.detail)
        except BaseException as error:
            await self._relay.stop()
            if self.result is None:
                limit = self.meter.run.limit_behind(error)
                if limit is not None:
                    reason = StopReason.DEADLINE if limit.is_deadline else StopReason.BUDGET_EXCEEDED
                    yield self._stopped(reason, str(limit))
                    return
                self.result = self._result(*self._failure(error))
                self.result.unfinished = inner_result(error, self._order)
                attach_result(error, self.result, self._order)
                if isinstance(error, Exception):
                    yield LoopStopped(self.result, None)
            raise

    def end(self, error: BaseException) -> None:
        """Let the result be read from the exception with which a caller left the run."""
        if self.result is not None and LoopResult.of(error) is None:
            attach_result(error, self.result, self._order)

    def spawn(self, token: Token) -> None:
        """Let a branch begin."""
        self._relay.start(_Branch(self, token).walk())

    async def visit(self, node: FlowNode, branch: _Branch) -> Choice | None:
        """Visit a node.

        Raises:
            _EndOfRunError: There have been too many visits.
        """
        cap = self._options.max_node_visits
        if len(self.visits) >= cap:
            raise _EndOfRunError(StopReason.MAX_ITERATIONS, f"{cap} node visits, which is the most for a run")
        self.visits.append(node.ref)
        await self.tell(NodeChanged(node.ref, "started"))
        try:
            choice = await self._visiting.visit(node, branch)
        except FlowNodeError as error:
            await self.tell(NodeChanged(node.ref, "failed", error.detail))
            raise
        await self.tell(NodeChanged(node.ref, "done"))
        return choice

    def begin_iteration(self) -> int:
        """The number of the iteration that begins.

        Raises:
            _EndOfRunError: The cap is reached.
        """
        cap = self._options.max_iterations
        if self.records.begun >= cap:
            raise _EndOfRunError(StopReason.MAX_ITERATIONS, f"{cap} of {cap} iterations")
        return self.records.begin()

    def begin_decision(self) -> None:
        """A node is asked to decide: on a scope of many a visit asks often.

        Raises:
            _EndOfRunError: That has been asked often enough.
        """
        cap = self._options.max_node_visits
        if self._decisions >= cap:
            raise _EndOfRunError(StopReason.MAX_ITERATIONS, f"{cap} decisions, which is the most for a run")
        self._decisions += 1

    def clock(self) -> float:
        """Seconds from any fixed point."""
        return self._options.loop.clock()

    def next_edges(self, node: FlowNode, choice: Choice | None) -> list[FlowEdge]:
        """The edges that fire.

        Raises:
            _EndOfRunError: Nothing was chosen, and no edge is drawn for that.
        """
        if choice is None:
            return self._graph.edges_from(node.ref)
        edges = self._graph.edges_from(node.ref, choice.ports)
        if choice.code is not None and not edges:
            said = f"the node {node.ref!r} chose no port ({choice.code}): {choice.detail}"
            raise _EndOfRunError(StopReason.EVALUATOR_FAILED, f"{said}; it has no edge from {EXCEPTION_PORT!r}")
        return edges

    def node(self, ref: str) -> FlowNode:
        """A node of the flow."""
        return self._graph.nodes[ref]

    def branch_ended(self, token: Token) -> None:
        """A branch has come to its end."""
        if token.missing is not None:
            self._missing.append(token.missing)

    def _failure(self, error: BaseException) -> tuple[StopReason, str | None]:
        if isinstance(error, asyncio.CancelledError | GeneratorExit | KeyboardInterrupt):
            return StopReason.CANCELLED, None
        if isinstance(error, BudgetExceededError):
            return StopReason.BUDGET_EXCEEDED, str(error)
        is_judges = self.meter.failed_in == "evaluator" and not isinstance(error, FlowNodeError)
        reason = StopReason.EVALUATOR_FAILED if is_judges else StopReason.FAILED
        return reason, f"{type(error).__name__}: {error}"

    def _stopped(self, reason: StopReason, detail: str | None) -> LoopStopped:
        result = self.result = self._result(reason, detail)
        response = transcript_response(self.records.listed, result, self._options.loop, streaming=self._streaming)
        return LoopStopped(result, response)

    def _result(self, reason: StopReason, detail: str | None) -> LoopResult:
        report: dict[str, JsonValue] = {"context": self._context.root, "visits": self.visits}
        if self.logs:
            report["log"] = self.logs
        return self.records.result(self.run_id, reason, detail, self._started_at, report)


class _Branch:
    """One token on its way, and what its visits tell the run."""

    def __init__(self, run: FlowRun, token: Token) -> None:
        self._run = run
        self._token = token
        self._began_at = 0.0
        self._sent: tuple[ChatMessage, ...] = ()
        self._on_behalf_of: tuple[ChatMessage, ...] = ()
        self._is_own_iteration = False

    async def walk(self) -> None:
        """Visit node after node; where several edges fire, the further ones get branches of their own."""
        while True:
            node = self._run.node(self._token.ref)
            choice = await self._run.visit(node, self)
            if choice is not None:
                self._token = replace(self._token, missing=choice.missing_at(node))
            edges = self._run.next_edges(node, choice)
            if not edges:
                self._run.branch_ended(self._token)
                return
            for edge in edges[1:]:
                self._run.spawn(replace(self._token, ref=edge.target))
            self._token = replace(self._token, ref=edges[0].target)

    async def begins_iteration(self, sent: Sequence[ChatMessage], on_behalf_of: Sequence[ChatMessage]) -> None:
        number = self._run.begin_iteration()
        self._token = replace(self._token, iteration=number)
        self._sent, self._on_behalf_of = tuple(sent), tuple(on_behalf_of)
        self._began_at = self._run.clock()
        await self._run.tell(IterationStarted(number, self._sent, self._on_behalf_of))

    async def updated(self, update: AgentResponseUpdate) -> None:
        await self._run.tell(AgentUpdated(self._token.iteration, update))

    async def answered(self, response: AgentResponse, *, is_answer: bool = True) -> None:
        number, seconds = self._token.iteration, self._run.clock() - self._began_at
        self._run.records.answered(number, self._sent, self._on_behalf_of, response, seconds, is_answer=is_answer)
        await self._run.tell(AgentResponded(number, response))

    async def begins_deciding(self, sent: Sequence[ChatMessage]) -> None:
        """A node that decides before any has answered is an iteration of its own."""
        self._run.begin_decision()
        self._began_at = self._run.clock()
        self._is_own_iteration = self._token.iteration == 0
        if self._is_own_iteration:
            await self.begins_iteration(sent, ())

    async def decided(self, reply: AgentResponse, evaluation: LoopEvaluation) -> None:
        number, seconds = self._token.iteration, self._run.clock() - self._began_at
        if self._is_own_iteration:
            await self.answered(reply, is_answer=False)
        self._run.records.decided(number, evaluation, 0.0 if self._is_own_iteration else seconds)
        await self._run.tell(EvaluatorDecided(number, evaluation))

    def logged(self, ref: str, lines: Sequence[str]) -> None:
        kept = lines[: MOST_LOGGED - len(self._run.logs)]
        self._run.logs += [{"node": ref, "text": line[:MOST_LOGGED_CHARS]} for line in kept]

    async def ask(self, call: Callable[[], Awaitable[T]], role: Role) -> T:
        return await self._run.meter.ask(call, role, self._token.iteration)

    async def in_time(self, waited_for: Awaitable[T]) -> T:
        return await self._run.meter.run.in_time(waited_for)
