"""A flow that is ready to run."""

from __future__ import annotations

import copy
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing, asynccontextmanager

from agents_loop.agent import AgentRunOptions, AgentSession, Messages
from agents_loop.chat_client import ChatClient
from agents_loop.errors import ConfigurationError
from agents_loop.files.flomorphic.graph import FlowGraph
from agents_loop.files.flomorphic.options import FlowOptions
from agents_loop.files.flomorphic.run import FlowRun
from agents_loop.loop.agent import LoopEvents
from agents_loop.messages import JsonValue, as_messages


class Flow:
    """Runs a flow. It holds no state of a run, so one instance serves any number of runs at once.

    A visit of an `llm` node without functions is an iteration, one of a node with functions an evaluation in it.
    `result.report["context"]` is the context at the end.

    Args:
        graph: The flow.
        clients: The models, by their names in the flow.
        options: How it is run.
        context: What the context begins with.
    """

    def __init__(
        self,
        graph: FlowGraph,
        clients: Mapping[str, ChatClient],
        options: FlowOptions | None = None,
        context: Mapping[str, JsonValue] | None = None,
    ) -> None:
        self.graph = graph
        self._clients = dict(clients)
        self._options = options or FlowOptions()
        self._root = dict(context or {})

    @asynccontextmanager
    async def events(
        self,
        messages: Messages = None,
        *,
        session: AgentSession | None = None,
        options: AgentRunOptions | None = None,
        streaming: bool = False,
    ) -> AsyncGenerator[LoopEvents, None]:
        """Run the flow, and give its events as they happen. Leaving the block early closes the run.

        Args:
            messages: Recorded; what nodes read stands in the context.
            session: None: a flow keeps its conversations in its context.
            options: None: what is asked of a model stands in the flow.
            streaming: Whether answers are streamed, so that there are `AgentUpdated` events.

        Raises:
            ConfigurationError: A session or run options are given.
        """
        if session is not None or options is not None:
            raise ConfigurationError("a flow takes no session and no run options: all it goes by is its context")
        root = copy.deepcopy(self._root)
        run = FlowRun(self.graph, self._clients, self._options, root, as_messages(messages), streaming=streaming)
        try:
            async with aclosing(run.events()) as events:
                yield LoopEvents(run, events)
        except BaseException as error:
            run.end(error)
            raise
