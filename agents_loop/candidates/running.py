"""Running candidates, each in a session of its own."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import aclosing

from agents_loop.agent import AgentRunOptions, AgentSession, AIAgent
from agents_loop.candidates.candidate import Candidate
from agents_loop.candidates.phases import context_of, join, part_of_run
from agents_loop.errors import BudgetExceededError
from agents_loop.gathering import gathered
from agents_loop.loop.metered_run import keep_agent_run
from agents_loop.loop.resuming import question_waits
from agents_loop.messages import ChatMessage, FunctionResultContent, ToolApprovalResponseContent
from agents_loop.metering.meter import PHASE


def goes_on(messages: Sequence[ChatMessage], session: AgentSession | None) -> bool:
    """Whether a run goes on with one that waits for a person: what was allowed once is done once."""
    if session is not None and question_waits(session):
        return True
    answers = ToolApprovalResponseContent | FunctionResultContent
    return any(isinstance(content, answers) for message in messages for content in message.contents)


async def clones_of(agent: AIAgent, session: AgentSession | None, n: int) -> list[AgentSession]:
    """So many sessions that are as this one is; new ones, if there is none."""
    if session is None:
        return [await agent.create_session() for _ in range(n)]
    return [await agent.deserialize_session(await agent.serialize_session(session)) for _ in range(n)]


async def run_candidates_of(
    agent: AIAgent,
    messages: Sequence[ChatMessage],
    sessions: Sequence[AgentSession],
    options: AgentRunOptions | None,
    request: Sequence[ChatMessage],
    *,
    streaming: bool,
) -> list[Candidate]:
    """Run an agent in several sessions at once. One that raises is a candidate that has failed.

    Raises:
        Exception: All have failed. It is what the first raised, as it was raised, with the others as notes; where a
            budget did not allow the call of one, that, since it is how the run around it ends.
    """
    candidates = [Candidate(number, session) for number, session in enumerate(sessions, 1)]
    phases = [part_of_run("agent", session, request) for session in sessions]
    runs = [
        asyncio.create_task(
            _run(agent, list(messages), candidate, options, streaming=streaming), context=context_of(phase)
        )
        for candidate, phase in zip(candidates, phases, strict=True)
    ]
    try:
        await gathered(runs)
    finally:
        join(phases)
    _require_one(candidates)
    return candidates


async def _run(
    agent: AIAgent,
    messages: list[ChatMessage],
    candidate: Candidate,
    options: AgentRunOptions | None,
    *,
    streaming: bool,
) -> None:
    phase = PHASE.get()
    started, position = (0.0, 0) if phase is None else (phase.meter.clock(), len(phase.meter.calls))
    try:
        if streaming:
            async with aclosing(agent.run_streaming(messages, session=candidate.session, options=options)) as stream:
                async for update in stream:
                    candidate.updates.append(update)
                response = await stream.final_response()
        else:
            response = await agent.run(messages, session=candidate.session, options=options)
    except BaseException as error:
        if not _is_its_own(error):
            raise
        candidate.error = error
        return
    if phase is not None:
        keep_agent_run(phase, position, messages, response, phase.meter.clock() - started)
    candidate.response = response


def _is_its_own(error: BaseException) -> bool:
    """Whether a candidate failed by itself, rather than being cancelled with all the others."""
    if isinstance(error, asyncio.CancelledError):
        task = asyncio.current_task()
        return task is not None and not task.cancelling()
    return isinstance(error, Exception)


def _require_one(candidates: Sequence[Candidate]) -> None:
    errors = [(candidate.number, candidate.error) for candidate in candidates if candidate.error is not None]
    if len(errors) < len(candidates):
        return
    number, first = next((pair for pair in errors if isinstance(pair[1], BudgetExceededError)), errors[0])
    for other, error in errors:
        if other != number and error is not first:
            first.add_note(f"candidate {other} of {len(candidates)} failed too: {type(error).__name__}: {error}")
    raise first
