"""Which session each iteration of a run uses."""

from __future__ import annotations

from copy import deepcopy
from inspect import isawaitable

from agents_loop.agent import AgentSession, AIAgent
from agents_loop.loop.options import LoopAgentOptions
from agents_loop.messages import JsonValue


class RunSessions:
    """The sessions of one run.

    Without a session of the caller's, one is made before the first iteration. With fresh context the session is
    replaced before every re-invocation: one that the loop made is made anew; the caller's is written down once, before
    the first iteration, and each re-invocation gets a clone of that. The first iteration runs on the caller's own.
    A run that continues another has its session and its snapshot.
    """

    def __init__(self, agent: AIAgent, options: LoopAgentOptions, session: AgentSession | None) -> None:
        self._agent = agent
        self._replaces = options.fresh_context_per_iteration or (
            options.stall is not None and options.stall.clones_sessions
        )
        self._callback = options.session_created_callback
        self._is_the_callers = session is not None
        self._is_resumed = False
        self.snapshot: JsonValue = None
        """With fresh context: the caller's session before the first iteration."""
        self.current = session
        """The session in use; `None` before the first."""

    def resume(self, snapshot: JsonValue) -> None:
        """Go on with the sessions of the run that this one continues."""
        self._is_resumed = True
        self._is_the_callers = snapshot is not None
        self.snapshot = snapshot

    def use(self, agent: AIAgent) -> None:
        """Make sessions of another agent from now on; the caller's is not one of its."""
        self._agent = agent
        self._is_the_callers = False

    async def first(self) -> AgentSession:
        """The session of the first iteration."""
        if self.current is None:
            return await self._announced(await self._agent.create_session())
        if self._replaces and not self._is_resumed:
            self.snapshot = await self._agent.serialize_session(self.current)
        return self.current

    async def replacement(self) -> AgentSession:
        """The session of the next re-invocation, where it is not the one in use."""
        if self._is_the_callers:
            return await self._announced(await self._agent.deserialize_session(deepcopy(self.snapshot)))
        return await self._announced(await self._agent.create_session())

    async def _announced(self, session: AgentSession) -> AgentSession:
        if self._callback is not None:
            heard = self._callback(session)
            if isawaitable(heard):
                await heard
        self.current = session
        return session
