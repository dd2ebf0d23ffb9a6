"""What runs a graph: one loop of one iteration around it, whose events and result are the graph's."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Self

from agents_loop.agent import AgentRunOptions, AgentSession, Messages
from agents_loop.errors import AgentsLoopError
from agents_loop.files.atomic import clear_leftovers, write_all
from agents_loop.files.dagraph.graph_run import (
    GraphAgent,
    GraphEvaluator,
    GraphNode,
    GraphRun,
    NodeBudgetError,
    exhausted,
)
from agents_loop.files.dagraph.outputs import why_not_below
from agents_loop.files.inputs import InputValue
from agents_loop.files.run_folder import OpenRun, RunFolder, RunFolderError
from agents_loop.loop.agent import LoopAgent, LoopEvents
from agents_loop.loop.events import LoopEvent, LoopStarted, LoopStopped
from agents_loop.loop.options import LoopAgentOptions
from agents_loop.loop.result import LoopResult, StopReason, attach_result
from agents_loop.metering.budget import LoopBudget
from agents_loop.metering.spending import LimitReachedError

_COMPLETE = (StopReason.SATISFIED, StopReason.MAX_ITERATIONS)


class OutputsError(AgentsLoopError):
    """The run is over, and its outputs can't be written."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Graph:
    """A graph that is ready to run."""

    name: str
    digest: str
    """The hash of what the file says."""
    inputs: dict[str, InputValue]
    order: Sequence[str]
    """The nodes' ids, in the order of the file."""
    waves: Sequence[Sequence[GraphNode]]
    budgets: Sequence[LoopBudget]
    """What the whole run may spend, earlier attempts of a run that is resumed included."""
    options: LoopAgentOptions
    """Of the loop around it."""
    outputs: dict[Path, str]
    """The node whose output is written to a file; empty where nothing is to be written."""
    outputs_dir: Path | None
    """Below which folder they are."""
    folder: RunFolder | None
    is_one_loop: bool
    """Whether the file is one loop: then the result is that loop's."""


class GraphEvents:
    """The events of a run of a graph, as they happen, and its result once it is over.

    Args:
        graph: The graph.
        kept: Where what nodes have finished is kept, if anywhere.
        streaming: Whether nodes are to stream.
    """

    def __init__(self, graph: Graph, kept: OpenRun | None, *, streaming: bool) -> None:
        self.result: LoopResult | None = None
        """How the run went; `None` while it goes on."""
        self._graph = graph
        self._kept = kept
        self._queue: asyncio.Queue[LoopEvent | None] = asyncio.Queue()
        self._run = GraphRun(
            graph.waves,
            graph.inputs,
            graph.budgets,
            graph.options.prices or {},
            kept,
            self._queue.put_nowait,
            streaming=streaming,
        )
        self._agent = GraphAgent(self._run, graph.order, graph.name)
        self._task: asyncio.Task[None] | None = None
        self._is_over = False

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> LoopEvent:
        event = None if self._is_over else await self._queue.get()
        if event is not None:
            return event
        self._is_over = True
        if self._task is not None:
            task, self._task = self._task, None
            await task  # raises what ended the run
        raise StopAsyncIteration

    def start(self, messages: Messages, session: AgentSession | None, options: AgentRunOptions | None) -> None:
        """Begin the run: a task of its own, so that nodes can be heard while others run."""
        self._task = asyncio.create_task(self._drive(messages, session, options))

    async def aclose(self) -> None:
        """End the run, if it is not over."""
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            await asyncio.wait([task])
            if not task.cancelled():
                task.exception()  # it was ended by whoever left, and they have an exception of their own

    async def _drive(self, messages: Messages, session: AgentSession | None, options: AgentRunOptions | None) -> None:
        loop = LoopAgent(self._agent, GraphEvaluator(self._run), self._graph.options)
        events: LoopEvents | None = None
        try:
            async with loop.events(messages, session=session, options=options) as events:
                async for event in events:
                    match event:
                        case LoopStarted():
                            self._queue.put_nowait(event)
                        case LoopStopped(result=result):
                            self._end(result, event)
                        case _:
                            pass  # what happens in the nodes is told by them
        except (NodeBudgetError, LimitReachedError):
            if self.result is None:
                raise
        except BaseException as error:
            if self.result is not None:
                attach_result(error, self.result, 0)
            raise
        finally:
            if self.result is None and events is not None and events.result is not None:
                self.result = self._told(events.result)
            self._queue.put_nowait(None)

    def _end(self, result: LoopResult, event: LoopStopped) -> None:
        """The run is over: its result is told whole, and what it is to leave behind is written."""
        error: AgentsLoopError | None = None
        result = self.result = self._told(result)
        try:
            if result.stop_reason in _COMPLETE:
                self._write_outputs()
            if self._kept is not None:
                self._kept.end(result.stop_reason.value, self._run.spent)
        except (OutputsError, RunFolderError) as raised:
            if event.response is not None:  # else an exception follows, which matters more
                error = raised
                result.stop_reason, result.stop_detail = StopReason.FAILED, str(error)
        self._queue.put_nowait(LoopStopped(result, event.response))
        if error is not None:
            raise error

    def _write_outputs(self) -> None:
        outcomes, outputs, folder = self._run.outcomes, self._graph.outputs, self._graph.folder
        for path in outputs:  # a link may have been made since the run began
            if wrong := why_not_below(path, self._graph.outputs_dir or path.parent):
                raise OutputsError(f"the outputs can't be written ({path}): it {wrong}; none of them is")
        content = {path: outcomes[name].output.encode("utf-8", "replace") for path, name in outputs.items()}
        try:
            write_all(content, None if folder is None else folder.mark)
        except OSError as error:
            where = f" ({error.filename})" if error.filename else ""
            raise OutputsError(f"the outputs can't be written{where}: {error.strerror}; none of them is") from error

    def _told(self, result: LoopResult) -> LoopResult:
        """The result of the loop around the graph as the graph's."""
        outcomes = self._run.outcomes
        result.report["nodes"] = {name: outcomes[name].to_json() for name in self._graph.order}
        if result.stop_reason not in _COMPLETE:
            result.output = self._agent.output
        if result.stop_reason == StopReason.MAX_ITERATIONS:
            result.stop_detail = exhausted(outcomes)
        elif result.stop_reason == StopReason.FAILED:
            failed = [name for name in self._graph.order if outcomes[name].status == "failed"]
            if failed:
                result.stop_detail = f"node {failed[0]!r}: {result.stop_detail}"
        return self._lifted(result) if self._graph.is_one_loop else result

    def _lifted(self, result: LoopResult) -> LoopResult:
        """The result as that of the only loop of the file, with its own iterations."""
        outcome = self._run.outcomes[self._graph.order[0]]
        inner = outcome.result
        if inner is None:
            return result
        ended = result.stop_reason if outcome.stop_reason is None else StopReason(outcome.stop_reason)
        is_ended_alike = result.stop_reason in _COMPLETE or ended not in _COMPLETE
        return replace(
            inner,
            run_id=result.run_id,
            stop_reason=ended if is_ended_alike else result.stop_reason,
            stop_detail=outcome.stop_detail if is_ended_alike else result.stop_detail,
            usage=result.usage,
            duration_s=result.duration_s,
            calls=inner.calls if outcome.attempts == 1 else result.calls,
            report=result.report,
        )


class GraphLoop:
    """Runs a graph, each time anew.

    Args:
        graph: The graph.
    """

    def __init__(self, graph: Graph) -> None:
        self.graph = graph

    @asynccontextmanager
    async def events(
        self,
        messages: Messages = None,
        *,
        session: AgentSession | None = None,
        options: AgentRunOptions | None = None,
        streaming: bool = False,
    ) -> AsyncGenerator[GraphEvents, None]:
        """Run the graph and give its events as they happen; leaving the block early closes the run.

        Args:
            messages: Recorded, and not sent: the file says all that is asked.
            session: Recorded.
            options: Recorded.
            streaming: Whether nodes are streamed, so that there are `AgentUpdated` events.

        Raises:
            ConfigurationError: The run's folder can't be used.
        """
        graph = self.graph
        kept = None
        if graph.folder is not None:
            upstream = {node.id: node.prompts.upstream for wave in graph.waves for node in wave}
            kept = graph.folder.open(graph.digest, graph.inputs, upstream)
            clear_leftovers(graph.outputs, graph.folder.mark)
        events = GraphEvents(graph, kept, streaming=streaming)
        try:
            events.start(messages, session, options)
            yield events
        except BaseException as error:
            await events.aclose()
            if events.result is not None and LoopResult.of(error) is None:
                attach_result(error, events.result, 0)
            raise
        finally:
            await events.aclose()
            if kept is not None:
                kept.close()
