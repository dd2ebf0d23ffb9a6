"""Agents that work in the background while another goes on."""

from __future__ import annotations

import asyncio
import contextlib
import math
import weakref
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from functools import partial
from types import TracebackType
from typing import Annotated, Literal, Self, TypeAlias

from pydantic import Field

from agents_loop.adapting import AgentLike, as_agent
from agents_loop.agent import AgentSession, AIAgent
from agents_loop.context_providers.background_task import BackgroundTask, Ending, run_to_its_end
from agents_loop.context_providers.provider import ContextProvider, ProvidedContext, ProviderContext
from agents_loop.context_providers.stored_state import StoredState
from agents_loop.errors import ConfigurationError
from agents_loop.messages import JsonValue
from agents_loop.metering.meter import context_apart
from agents_loop.tools import FunctionTool, ToolContext

_Work: TypeAlias = "asyncio.Task[Ending]"
_Id = Annotated[int, Field(description="the task's id")]
_Ids = Annotated[list[int] | None, Field(description="the tasks' ids; without any: all that are running")]
_LONGEST_WAIT_S = 3600


@dataclass(slots=True)
class _Tasks:
    next_id: int = 1
    tasks: list[BackgroundTask] = field(default_factory=list[BackgroundTask])


_STATE = StoredState(_Tasks)


class BackgroundAgentsProvider(ContextProvider):
    """Lets an agent hand work to other agents, which do it in the background, and read their answers later.

    The model gets `background_start`, `background_list`, `background_wait`, `background_result` and
    `background_cancel`; callers and evaluators use the methods. What is known of the tasks stands in the session and is
    stored with it. What runs belongs to the session object: nothing runs for a session that was restored from storage,
    or for a copy, so that tasks which were running there are `lost`.

    Nothing outlives its owner: a task is cancelled when its session object is no longer in use, when the event loop
    ends, and when the provider is closed. Whoever makes a provider closes it: `async with provider: ...`, or
    `await provider.aclose()`.

    A background agent runs in a conversation of its own. What it raises makes the task `failed`, and nothing else. What
    it uses is not counted in the usage of the agent that started it.

    Args:
        agents: Who does the work, by name: agents, or whatever `as_agent` takes. Their descriptions are shown to the
            model.
        task_timeout_s: How long a task may take, in seconds, before it is cancelled and has `failed`; `None` for as
            long as it takes.

    Raises:
        TypeError: Something in `agents` is no agent.
        ConfigurationError: There is no agent, a name is blank, or the timeout is not a positive number.
    """

    def __init__(self, agents: Mapping[str, AgentLike], *, task_timeout_s: float | None = 600.0) -> None:
        if not isinstance(agents, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise TypeError(f"agents must be a mapping of names to agents, not {type(agents).__name__}")
        if not all(isinstance(name, str) for name in agents):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise TypeError(f"agents must have names that are str, not {list(agents)!r}")
        if not agents or any(not name.strip() for name in agents):
            raise ConfigurationError(f"agents must hold at least one, each with a name, not {list(agents)!r}")
        if task_timeout_s is not None and not 0 < task_timeout_s < math.inf:
            raise ConfigurationError(f"task_timeout_s must be a positive number or None, not {task_timeout_s!r}")
        self.agents: dict[str, AIAgent] = {name: as_agent(x, name=f"agents[{name!r}]") for name, x in agents.items()}
        self.task_timeout_s = task_timeout_s
        self._work: weakref.WeakKeyDictionary[AgentSession, dict[int, _Work]] = weakref.WeakKeyDictionary()
        self._all_work: set[_Work] = set()
        self._is_closed = False
        self._tools = (
            self._starter(),
            FunctionTool.of(self._list, name="background_list"),
            FunctionTool.of(self._wait, name="background_wait"),
            FunctionTool.of(self._result, name="background_result"),
            FunctionTool.of(self._cancel, name="background_cancel"),
        )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Cancel all that runs, of every session, and wait until it has ended. Nothing can be started afterwards."""
        self._is_closed = True
        await _cancelled(self._all_work)

    async def provide(self, context: ProviderContext) -> ProvidedContext:
        """The agents that there are, and the tools."""
        self.refresh(context.session)
        listed = "\n".join(
            [f"- {name}: {agent.description or 'no description'}" for name, agent in self.agents.items()]
        )
        instructions = (
            f"These agents can work for you in the background:\n\n{listed}\n\n"
            "Hand them work that does not depend on your own next step, with background_start. They know nothing of "
            "this conversation, so write all they need into the input. You may start several, and go on meanwhile. "
            "When you need their answers, call background_wait, then background_result for each. Do not say that you "
            "are done while a task is running: wait for it, or cancel it with background_cancel."
        )
        return ProvidedContext(instructions=instructions, tools=self._tools)

    def refresh(self, session: AgentSession) -> tuple[BackgroundTask, ...]:
        """Bring the statuses in the session's state up to date, and give all tasks, in the order they were started.

        Raises:
            SessionStateError: What the session holds are no background tasks. Every method may raise it.
        """
        state = _STATE.read(session, self.state_key)
        work = self._work.get(session, {})
        tasks = [_settled(task, work.get(task.id)) for task in state.tasks]
        if tasks != state.tasks:
            _STATE.write(session, self.state_key, _Tasks(state.next_id, tasks))
        return tuple(tasks)

    def get_running(self, session: AgentSession) -> tuple[BackgroundTask, ...]:
        """The tasks that are running, after a `refresh`."""
        return tuple([task for task in self.refresh(session) if task.status == "running"])

    def start(
        self,
        session: AgentSession,
        agent: str,
        input: str,  # noqa: A002 - it is what it is
        *,
        description: str,
    ) -> BackgroundTask:
        """Start an agent in the background. It needs a running event loop.

        Args:
            session: Whose task it is.
            agent: The agent's name.
            input: What the agent is told.
            description: What the task is about, in a few words.

        Raises:
            ConfigurationError: There is no such agent, or the provider is closed.
        """
        if self._is_closed:
            raise ConfigurationError("the provider is closed, so nothing can be started")
        if agent not in self.agents:
            raise ConfigurationError(f"there is no agent {agent!r}; there are: {', '.join(map(repr, self.agents))}")
        state = _STATE.read(session, self.state_key)
        running = run_to_its_end(agent, self.agents[agent], input, self.task_timeout_s)
        task = BackgroundTask(state.next_id, agent, description)
        self._keep(session, task.id, asyncio.get_running_loop().create_task(running, context=context_apart()))
        _STATE.write(session, self.state_key, _Tasks(task.id + 1, [*state.tasks, task]))
        return task

    async def wait(
        self,
        session: AgentSession,
        ids: Collection[int] | None = None,
        *,
        timeout_s: float,
        until: Literal["all", "any"] = "all",
    ) -> tuple[BackgroundTask, ...]:
        """Wait until tasks have ended, or for so long, and give them as they are then. Nothing is cancelled.

        Args:
            session: Whose tasks.
            ids: Which; `None` for those that are running.
            timeout_s: How long to wait at most, in seconds.
            until: Whether to wait for all of them, or for the first that ends.
        """
        before = self.refresh(session)
        wanted = {task.id for task in before if (task.status == "running" if ids is None else task.id in ids)}
        running = {task.id for task in before if task.id in wanted and task.status == "running"}
        work = [work for key, work in self._work.get(session, {}).items() if key in running and _is_here(work)]
        if work and (until == "all" or running == wanted):
            when = asyncio.ALL_COMPLETED if until == "all" else asyncio.FIRST_COMPLETED
            await asyncio.wait(work, timeout=timeout_s, return_when=when)
        return tuple([task for task in self.refresh(session) if task.id in wanted])

    async def cancel(self, session: AgentSession, ids: Collection[int]) -> tuple[BackgroundTask, ...]:
        """Cancel tasks, wait until they have ended, and give those that were running: they have `failed` now."""
        running = [task.id for task in self.get_running(session) if task.id in ids]
        state = _STATE.read(session, self.state_key)
        state.tasks = [task.failed("it was cancelled") if task.id in running else task for task in state.tasks]
        _STATE.write(session, self.state_key, state)
        work = self._work.get(session, {})
        await _cancelled({work[task_id] for task_id in running if task_id in work})
        return tuple([task for task in self.refresh(session) if task.id in running])

    def _keep(self, session: AgentSession, task_id: int, work: _Work) -> None:
        """Hold what runs for a session, as long as there is the session."""
        if session not in self._work:
            self._work[session] = {}
            weakref.finalize(session, _cancel_each, self._work[session]).atexit = False
        self._work[session][task_id] = work
        self._all_work.add(work)
        work.add_done_callback(partial(self._ended, weakref.ref(session), task_id))

    def _ended(self, session_ref: weakref.ref[AgentSession], task_id: int, work: _Work) -> None:
        """Write down how it ended at once, so that a session which is stored now has it."""
        self._all_work.discard(work)
        session = session_ref()
        if session is not None:
            self.refresh(session)
            if self._work[session].get(task_id) is work:
                del self._work[session][task_id]

    def _starter(self) -> FunctionTool:
        """The tool that starts a task; its schema lists the agents."""
        starter = FunctionTool.of(self._start, name="background_start")
        starter.parameters["properties"]["agent"]["enum"] = list(self.agents)
        return starter

    async def _start(
        self,
        agent: Annotated[str, Field(description="the agent's exact name")],
        description: Annotated[str, Field(description="what the task is about, in a few words")],
        input: Annotated[str, Field(description="all that the agent has to know")],  # noqa: A002 - it is what it is
        context: ToolContext,
    ) -> dict[str, JsonValue]:
        """Let an agent work on something in the background. Gives the id of the task, at once."""
        try:
            task = self.start(context.session, agent, input, description=description)
        except ConfigurationError as error:
            return {"error": str(error)}
        return _shown(task)

    async def _list(self, context: ToolContext) -> list[dict[str, JsonValue]]:
        """All background tasks and their statuses."""
        return [_shown(task) for task in self.refresh(context.session)]

    async def _wait(
        self,
        context: ToolContext,
        ids: _Ids = None,
        timeout_s: Annotated[float, Field(ge=0, le=_LONGEST_WAIT_S, description="how many seconds at most")] = 60,
        until: Annotated[Literal["all", "any"], Field(description="wait for all of them, or for one")] = "all",
    ) -> list[dict[str, JsonValue]]:
        """Wait until background tasks have ended, and give their statuses."""
        tasks = await self.wait(context.session, ids, timeout_s=timeout_s, until=until)
        return [_shown(task) for task in tasks] + _unknown(ids or (), self.refresh(context.session))

    async def _result(self, task_id: _Id, context: ToolContext) -> dict[str, JsonValue]:
        """The answer of a background task that has ended."""
        tasks = self.refresh(context.session)
        for task in tasks:
            if task.id == task_id:
                return _shown(task) | {"result": task.result, "error": task.error}
        return _unknown([task_id], tasks)[0]

    async def _cancel(self, ids: Annotated[list[int], Field(min_length=1)], context: ToolContext) -> list[JsonValue]:
        """Cancel background tasks whose answers are not needed any more."""
        cancelled = await self.cancel(context.session, ids)
        return [_shown(task) for task in cancelled] + _unknown(ids, self.refresh(context.session))


def _settled(task: BackgroundTask, work: _Work | None) -> BackgroundTask:
    """A task as it is now, given what runs for it."""
    if task.status != "running":
        return task
    if work is None or (not work.done() and work.get_loop().is_closed()):
        return task.lost()
    if not work.done():
        return task
    if work.cancelled():
        return task.lost()
    error = work.exception()
    return task.failed(repr(error)) if error is not None else work.result().of(task)


def _is_here(work: _Work) -> bool:
    return work.get_loop() is asyncio.get_running_loop()


async def _cancelled(work: Collection[_Work]) -> None:
    """Cancel, and wait for what runs in this event loop. Another loop's is told, and not waited for."""
    here = [each for each in work if _is_here(each) and each is not asyncio.current_task()]
    _cancel_each(dict(enumerate(work)))
    await asyncio.gather(*here, return_exceptions=True)


def _cancel_each(work: Mapping[int, _Work]) -> None:
    """Cancel from wherever this is called: a session may be collected in any thread."""
    for each in list(work.values()):
        with contextlib.suppress(RuntimeError):  # its event loop is closed, and nothing runs there any more
            each.get_loop().call_soon_threadsafe(each.cancel)


def _shown(task: BackgroundTask) -> dict[str, JsonValue]:
    """What a model reads of a task."""
    return {"id": task.id, "agent": task.agent, "description": task.description, "status": task.status}


def _unknown(ids: Collection[int], tasks: Collection[BackgroundTask]) -> list[dict[str, JsonValue]]:
    """What a model is told of ids that there are not."""
    known = {task.id for task in tasks}
    return [{"id": wanted, "error": "there is no such task"} for wanted in ids if wanted not in known]
