"""A loop, or any agent of ours, as an agent of Microsoft Agent Framework."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from functools import cache
from typing import Any, Literal, TypeAlias
from weakref import WeakKeyDictionary

from agents_loop.agent import AgentResponse, AgentSession, AIAgent
from agents_loop.agent_response import with_fields
from agents_loop.integrations.agent_framework.contents import from_framework, to_framework, to_usage
from agents_loop.integrations.agent_framework.sdk import load_agent_framework
from agents_loop.loop.result import LoopResult
from agents_loop.messages import ChatRole

Iterations: TypeAlias = Literal["last", "all"]
_STATE_KEY = "agents_loop"
"""Under which a session of the framework holds ours: as a str, for of a dict with a `type` it would make an object."""
_WHAT = "as_agent_framework_agent"


def as_agent_framework_agent(
    agent: AIAgent, *, name: str | None = None, description: str | None = None, iterations: Iterations = "last"
) -> Any:
    """An agent of ours as one of Microsoft Agent Framework, for its workflows and orchestrations.

    Args:
        agent: A `LoopAgent`, or any other agent.
        name: What the framework calls it; the agent's name when there is none.
        description: What it is for; the agent's own when there is none.
        iterations: Of a loop, what the framework is given: the last iteration's answer alone, which is what the next
            agent of a workflow should read; or all of them, with the feedback between.

    Returns:
        An `agent_framework.BaseAgent`. Its sessions hold ours, so a workflow's checkpoints do too. A loop that waits
        for an approval asks the framework's caller for it, and goes on when the response comes.

    Raises:
        MissingExtraError: The framework is not installed.
    """
    if not isinstance(agent, AIAgent):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise TypeError(f"agent must be an AIAgent, not {type(agent).__name__}")
    if iterations not in ("last", "all"):
        raise ValueError(f"iterations must be 'last' or 'all', not {iterations!r}")
    shown = name or agent.name
    adapter = _Adapter(agent, shown, iterations)
    return _outward_agent()(adapter, id=agent.id, name=shown, description=description or agent.description)


class _Adapter:
    """Runs the agent for the framework: its messages and sessions, in and out."""

    def __init__(self, agent: AIAgent, name: str | None, iterations: Iterations) -> None:
        self.agent = agent
        self._name = name
        self._iterations = iterations
        self._sessions: WeakKeyDictionary[Any, AgentSession] = WeakKeyDictionary()

    async def run(self, messages: Sequence[Any], session: Any) -> Any:
        """One run, as a response of the framework."""
        ours = await self._session(session)
        response = await self.agent.run(from_framework(messages), session=ours)
        if ours is not None:
            session.state[_STATE_KEY] = json.dumps(await self.agent.serialize_session(ours))
        return self._to_response(self._shown(response))

    async def _session(self, theirs: Any) -> AgentSession | None:
        if theirs is None:
            return None
        if theirs not in self._sessions:
            state = theirs.state.get(_STATE_KEY)
            read, make = self.agent.deserialize_session, self.agent.create_session
            self._sessions[theirs] = await (make() if state is None else read(json.loads(state)))
        return self._sessions[theirs]

    def _shown(self, response: AgentResponse) -> AgentResponse:
        result = LoopResult.of(response)
        if result is None or self._iterations == "all" or not result.iterations:
            return response
        return with_fields(response, result.iterations[-1].response.messages, response.usage)

    def _to_response(self, response: AgentResponse) -> Any:
        messages = to_framework(response.messages)
        for message in messages:
            if message.role == ChatRole.ASSISTANT and self._name is not None:
                message.author_name = self._name  # a workflow knows its participants by name
        return load_agent_framework(_WHAT).AgentResponse(
            messages=messages,
            response_id=response.response_id,
            agent_id=self.agent.id,
            usage_details=to_usage(response.usage),
            finish_reason=response.finish_reason,
            raw_representation=response,
        )


@cache
def _outward_agent() -> Any:
    """The class, made when the framework is first needed: its base is the framework's."""
    framework = load_agent_framework(_WHAT)
    base: Any = framework.BaseAgent
    normalize_messages: Any = framework.normalize_messages

    class AgentsLoopAgent(base):
        """An agent of agents_loop. Its stream brings whole messages, once it is known which iteration is the last."""

        def __init__(self, adapter: _Adapter, **identity: Any) -> None:
            super().__init__(**identity)  # pyright: ignore[reportUnknownMemberType]
            self._adapter = adapter

        def run(self, messages: Any = None, *, stream: bool = False, session: Any = None, **_: Any) -> Any:
            """Run the agent: an awaitable response, or a stream."""
            listed = normalize_messages(messages)
            run = self._adapter.run
            return _stream(framework, lambda: run(listed, session)) if stream else run(listed, session)

    return AgentsLoopAgent


def _stream(framework: Any, run: Callable[[], Awaitable[Any]]) -> Any:
    whole: list[Any] = []

    async def updates() -> AsyncIterator[Any]:
        whole.append(await run())
        for update in whole[0].to_updates():
            yield update

    def final(_: object) -> Any:
        return whole[0]

    return framework.ResponseStream(updates(), finalizer=final)
