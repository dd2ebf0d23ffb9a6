"""One run of a graph: wave by wave, the nodes of a wave at once."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from agents_loop.agent import AgentResponse, AgentRunOptions, AgentSession, AIAgent
from agents_loop.chat_client import ChatClient, ChatOptions
from agents_loop.errors import BudgetExceededError, ConfigurationError, SessionStateError
from agents_loop.files.current_node import NODE
from agents_loop.files.dagraph.error_names import is_named
from agents_loop.files.dagraph.node_prompts import NodePrompts
from agents_loop.files.dagraph.outcome import NodeOutcome, OutcomeStatus
from agents_loop.files.dagraph.schema import Retry
from agents_loop.files.inputs import InputValue
from agents_loop.files.run_folder import OpenRun
from agents_loop.loop.agent import LoopAgent, LoopEvents
from agents_loop.loop.context import LoopContext
from agents_loop.loop.evaluation import LoopEvaluation
from agents_loop.loop.evaluator import LoopEvaluator
from agents_loop.loop.events import EvaluatorDecided, LoopEvent, LoopStarted, LoopStopped, NodeChanged, NodeEvent
from agents_loop.loop.result import LoopResult, StopReason
from agents_loop.messages import ChatMessage, ChatRole, JsonValue
from agents_loop.metering.budget import LoopBudget
from agents_loop.metering.meter import PHASE, Phase, RunMeter, check
from agents_loop.metering.prices import Prices
from agents_loop.metering.spending import Spending

_GIVES_OUTPUT = (StopReason.SATISFIED, StopReason.MAX_ITERATIONS)


class NodeBudgetError(BudgetExceededError):
    """The budget of a node is used up."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphNode:
    """A node that is ready to run."""

    id: str
    type: str
    prompts: NodePrompts
    retry: Retry
    budgets: Sequence[LoopBudget]
    models: Sequence[tuple[ChatClient, ChatOptions]]
    """Who may be asked."""
    loop: Callable[[Mapping[str, InputValue]], tuple[LoopAgent, ChatMessage]]
    """From the values of its variables: its loop, and its first prompt."""


class GraphRun:
    """The state of one run.

    Args:
        waves: The nodes, in the order in which they run.
        inputs: The values of the inputs.
        budgets: What the run may spend.
        prices: What models cost.
        kept: Where what nodes have finished is kept, if anywhere.
        emit: Hears what happens in the nodes.
        streaming: Whether they are to stream.
        pause: Waits for seconds.
    """

    def __init__(
        self,
        waves: Sequence[Sequence[GraphNode]],
        inputs: Mapping[str, InputValue],
        budgets: Sequence[LoopBudget],
        prices: Prices,
        kept: OpenRun | None,
        emit: Callable[[LoopEvent], None],
        *,
        streaming: bool,
        pause: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self.waves = waves
        self.outcomes = {node.id: NodeOutcome(node.type) for wave in waves for node in wave}
        self._inputs = inputs
        self._budgets = budgets
        self._prices = prices
        self._kept = kept
        self._emit = emit
        self._streaming = streaming
        self._pause = pause
        self._meters: dict[str, RunMeter] = {}
        self._spending: Spending | None = None

    @property
    def spent(self) -> dict[str, JsonValue] | None:
        """What the run has spent by now, attempts before a resume included; `None` without a budget."""
        return None if self._spending is None else self._spending.to_json()

    async def to_the_end(self) -> None:
        """Run each wave, as long as none of its nodes fails.

        Raises:
            Exception: What a node's model or evaluator raised.
            BudgetExceededError: A budget, of the run or of a node, is used up.
            ConfigurationError: There is a money budget, and the price of a model is not known; or what earlier attempts
                have spent can't be read.
        """
        meter = self._meter()
        token = PHASE.set(Phase(meter, "agent"))
        try:
            for node in self._nodes:
                self._meters[node.id] = _metered(node.budgets, None, self._prices, node.models)
            for wave in self.waves:
                await self._wave(wave)
        finally:
            PHASE.reset(token)

    @property
    def _nodes(self) -> list[GraphNode]:
        return [node for wave in self.waves for node in wave]

    def _meter(self) -> RunMeter:
        """What counts all calls; what attempts before a resume have spent counts too."""
        earlier = None if self._kept is None else self._kept.spent
        models = [call for node in self._nodes for call in node.models]
        try:
            meter = _metered(self._budgets, earlier, self._prices, models)
        except SessionStateError as error:
            raise ConfigurationError(f"the run can't be resumed: {error}; begin another with a new --run-id") from error
        self._spending = meter.spending
        return meter

    async def _wave(self, wave: Sequence[GraphNode]) -> None:
        """Nodes at once. Where one fails the others come to their end, but where a budget is used up."""
        order = {asyncio.create_task(self._node(node)): number for number, node in enumerate(wave)}
        errors: list[BaseException] = []
        waited_for = set(order)
        try:
            while waited_for and not any(isinstance(error, BudgetExceededError) for error in errors):
                over, waited_for = await asyncio.wait(waited_for, return_when=asyncio.FIRST_COMPLETED)
                errors += [error for task in sorted(over, key=order.__getitem__) if (error := _error_of(task))]
        finally:
            for task in waited_for:
                task.cancel()
            await asyncio.gather(*waited_for, return_exceptions=True)
        if errors:
            raise _worst(errors)

    async def _node(self, node: GraphNode) -> None:
        outcome = self.outcomes[node.id]
        if self._kept is not None and node.id in self._kept.nodes:
            earlier = self._kept.nodes[node.id]
            outcome.output = self._kept.outputs[node.id]
            outcome.stop_reason, outcome.stop_detail = earlier.stop_reason, earlier.stop_detail
            self._change(node, "skipped" if earlier.status == "skipped" else "resumed", "finished by an earlier run")
            return
        PHASE.set(Phase(self._meters[node.id], "agent"))
        NODE.set(node.id)
        try:
            values = {**self._inputs, **{name: self.outcomes[name].output for name in node.prompts.upstream}}
            condition = node.prompts.condition
            if condition is not None and not condition.is_true(values):
                status, detail = "skipped", f"`when` is not true: {condition.source}"
            else:
                self._change(node, "running", None)
                status, detail = "done", await self._attempts(node, outcome, values)
            if self._kept is not None:
                self._kept.keep(node.id, outcome, self.spent, is_skipped=status == "skipped")
        except BaseException as error:
            outcome.usage = self._meters[node.id].used_since(0)
            is_failure = isinstance(error, Exception)
            outcome.stop_detail = outcome.stop_detail or (f"{type(error).__name__}: {error}" if is_failure else None)
            self._change(node, "failed" if is_failure else "cancelled", outcome.stop_detail)
            raise
        outcome.usage = self._meters[node.id].used_since(0)
        self._change(node, status, detail)

    async def _attempts(self, node: GraphNode, outcome: NodeOutcome, values: Mapping[str, InputValue]) -> str | None:
        """Run a node's loop, again as often as its `retry` allows; gives more about its end."""
        while True:
            outcome.attempts += 1
            try:
                return await self._attempt(node, outcome, values)
            except Exception as error:
                if outcome.attempts >= node.retry.max_attempts or not _is_retried(node.retry, error):
                    raise
                said = f"attempt {outcome.attempts} of {node.retry.max_attempts}: {type(error).__name__}: {error}"
            self._emit(NodeChanged(node.id, "retried", said))
            if node.retry.backoff_seconds:
                await self._pause(node.retry.backoff_seconds)

    async def _attempt(self, node: GraphNode, outcome: NodeOutcome, values: Mapping[str, InputValue]) -> str | None:
        outcome.stop_reason, outcome.stop_detail = None, None
        loop, message = node.loop(values)
        events: LoopEvents | None = None
        try:
            async with loop.events(message, streaming=self._streaming) as events:
                async for event in events:
                    if _is_told(node, event):
                        self._emit(NodeEvent(node.id, event))
        finally:
            if events is not None and events.result is not None:
                _take(outcome, events.result)
        result = None if events is None else events.result
        assert result is not None  # noqa: S101 - a run that ends has one
        if result.stop_reason in _GIVES_OUTPUT:
            return result.stop_detail
        around = self._meters[node.id].parent
        if around is not None:
            check(around)  # where the limit is the whole run's, that is what ends it
        raise NodeBudgetError(f"node {node.id!r}: {result.stop_detail}")

    def _change(self, node: GraphNode, status: OutcomeStatus, detail: str | None) -> None:
        self.outcomes[node.id].status = status
        if status != "waiting":
            self._emit(NodeChanged(node.id, "started" if status == "running" else status, detail))


class GraphAgent(AIAgent):
    """A graph as an agent: its one run is the graph's, and its answer the output of the graph.

    Args:
        run: The run of the graph.
        order: The nodes' ids, in the order of the file.
        name: The graph's name.
    """

    def __init__(self, run: GraphRun, order: Sequence[str], name: str) -> None:
        self.graph_run = run
        self.order = order
        self.name = name

    @property
    def output(self) -> str:
        """That of the last node on which no other depends, skipped ones aside; what it had, if it is not over."""
        run = self.graph_run
        ran = [node for wave in run.waves for node in wave if run.outcomes[node.id].status != "skipped"]
        used = frozenset[str]().union(*[node.prompts.upstream for node in ran])
        last = [name for name in self.order if name not in used and run.outcomes[name].status != "skipped"]
        return run.outcomes[last[-1]].output if last else ""

    async def run_core(
        self, messages: list[ChatMessage], *, session: AgentSession | None, options: AgentRunOptions | None
    ) -> AgentResponse:
        """Run the graph.

        Raises:
            Exception: What a node's model or evaluator raised.
        """
        del messages, session, options  # the file says all that is asked
        await self.graph_run.to_the_end()
        return AgentResponse([ChatMessage(ChatRole.ASSISTANT, self.output)], agent_id=self.id)


class GraphEvaluator(LoopEvaluator):
    """Asks for no more where no loop of the graph ended at its cap.

    Args:
        run: The run of the graph.
    """

    def __init__(self, run: GraphRun) -> None:
        self._run = run

    async def evaluate(self, context: LoopContext) -> LoopEvaluation:
        """Look at how the loops ended."""
        del context
        said = exhausted(self._run.outcomes)
        return LoopEvaluation.continue_(note=said) if said else LoopEvaluation.stop()


def _metered(
    budgets: Sequence[LoopBudget],
    earlier: Mapping[str, Any] | None,
    prices: Prices,
    models: Sequence[tuple[ChatClient, ChatOptions]],
) -> RunMeter:
    """What counts calls against budgets; money needs the prices before anything is spent."""
    meter = RunMeter(time.monotonic, prices)
    if budgets:
        meter.guard(budgets, (), earlier)
        if meter.spending is not None and meter.spending.counts_money:
            for client, options in models:
                meter.require_price(client, options)
    return meter


def exhausted(outcomes: Mapping[str, NodeOutcome]) -> str | None:
    """Which loops ended at their cap; `None` if none did."""
    said = [f"node {name!r}: {outcome.stop_detail}" for name, outcome in outcomes.items() if outcome.is_exhausted]
    return "; ".join(said) or None


def _take(outcome: NodeOutcome, result: LoopResult) -> None:
    if result.iterations or outcome.result is None:  # drafts of the attempt before are not lost to one that has none
        outcome.result, outcome.output = result, result.output
    if outcome.type == "evaluator_loop":
        outcome.stop_reason, outcome.stop_detail = result.stop_reason.value, result.stop_detail


def _is_told(node: GraphNode, event: LoopEvent) -> bool:
    """Of an agent the answer is told: it is no loop that begins, is judged, and ends."""
    return node.type != "agent" or not isinstance(event, LoopStarted | EvaluatorDecided | LoopStopped)


def _is_retried(retry: Retry, error: Exception) -> bool:
    return not isinstance(error, BudgetExceededError) and is_named(error, retry.retry_on)


def _error_of(task: asyncio.Task[None]) -> BaseException | None:
    return asyncio.CancelledError() if task.cancelled() else task.exception()


def _worst(errors: Sequence[BaseException]) -> BaseException:
    """The error that ends the run, with the others in its notes: a budget's, or the first one."""
    worst = next((error for error in errors if isinstance(error, BudgetExceededError)), errors[0])
    for other in errors:
        if other is not worst:
            worst.add_note(f"Another node failed too: {type(other).__name__}: {other}")
    return worst
