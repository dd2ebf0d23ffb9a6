"""What a loop needs of any inner agent, as assertions: for whoever writes an adapter."""

from __future__ import annotations

import asyncio
import gc
import json
import sys
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from typing import Any
from weakref import WeakSet

from agents_loop.adapting import AgentLike, as_agent
from agents_loop.agent import AgentResponse, AgentSession, AIAgent
from agents_loop.evaluators.delegate import DelegateLoopEvaluator
from agents_loop.loop.agent import LoopAgent
from agents_loop.loop.options import LoopAgentOptions
from agents_loop.loop.result import LoopResult, StopReason
from agents_loop.messages import ChatMessage

_TURNS = 50
"""How many turns of the event loop may pass until everything is closed."""


async def assert_loop_laws(agent: AgentLike, message: str = "Say hello.") -> None:
    """Check that an agent keeps what a loop relies on. It is run about twenty times, so give it a scripted model.

    Checked are: no two messages have one id; sessions are apart, and a written one is a copy that reads back; equal
    turns and replies are all kept; no new message is an input like any other; a stream's pieces are its final response,
    with the same usage, and have the shape of `run`; closing a stream early or cancelling a run leaves nothing behind,
    and the session is usable; runs at once don't mix; and a loop around the agent keeps one session, or clones it.

    Not checked is what only the adapter's own tests can know: what the model is sent, errors, images, approvals.

    Args:
        agent: The agent, or what `as_agent` takes. Its model must answer anything, always with the same shape.
        message: What it is asked.

    Raises:
        AssertionError: A law does not hold; the message says which.
    """
    checked = as_agent(agent)
    await _check_sessions(checked, message)
    await _check_history(checked, message)
    await _check_streaming(checked, message)
    await _check_leaving(checked, message)
    await _check_concurrency(checked, message)
    for options in (LoopAgentOptions(), LoopAgentOptions(fresh_context_per_iteration=True)):
        for streaming in (False, True):
            await _check_looping(checked, message, options, streaming=streaming)


def _law(law: str, holds: object, *seen: object) -> None:
    if not holds:
        raise AssertionError(": ".join([law, *[repr(value) for value in seen]]))


async def _check_sessions(agent: AIAgent, message: str) -> None:
    first, second = await agent.create_session(), await agent.create_session()
    _law("each session is a new one", first is not second and first.session_id != second.session_id)
    await agent.run(message, session=first)
    written = await _written(agent, first)
    clone = await agent.deserialize_session(json.loads(written))
    _law("a session is read back as a new object", clone is not first)
    _law("a session that was read back is written as before", await _written(agent, clone) == written)
    await agent.run(message, session=first)
    _law("a clone does not hear of later runs", await _written(agent, clone) == written)
    before = await _written(agent, first)
    await agent.run(message, session=clone)
    _law("a clone's runs don't reach the original", await _written(agent, first) == before)
    await agent.restore_session(first, json.loads(await _written(agent, clone)))
    _law("a session can be made what another is", await _written(agent, first) == await _written(agent, clone))


async def _check_history(agent: AIAgent, message: str) -> None:
    """A history that is kept on this side grows with each turn, also by one that was there before."""
    session = await agent.create_session()
    written: list[str] = []
    first_text = ""
    turns: list[str | list[ChatMessage]] = [message, message, []]
    for turn in turns:
        response = await agent.run(turn, session=session)
        _law("a run gives an AgentResponse", isinstance(response, AgentResponse), response)  # pyright: ignore[reportUnnecessaryIsInstance]
        _law("no new message is an input like any other: there is an answer", response.messages or turn)
        ids = [given.message_id for given in response.messages]
        _law("no two messages have one id", len(set(ids) - {None}) == len(ids) - ids.count(None), ids)
        written.append(await _written(agent, session))
        first_text = first_text or json.dumps(response.text)[1:-1]
    if first_text and first_text in written[0]:
        sizes = [len(text) for text in written]
        _law("equal turns and replies are all kept", sizes[0] < sizes[1] < sizes[2], sizes)


async def _check_streaming(agent: AIAgent, message: str) -> None:
    whole = await agent.run(message, session=await agent.create_session())
    stream = agent.run_streaming(message, session=await agent.create_session())
    updates = [update async for update in stream]
    final, merged = await stream.final_response(), AgentResponse.from_updates(updates)
    _law("a stream's pieces are its final response", _said(merged) == _said(final), _said(merged), _said(final))
    _law("usage is the same in the pieces, counted once", merged.usage == final.usage, merged.usage, final.usage)
    _law("streaming has the shape of run", _shape(final) == _shape(whole), _shape(final), _shape(whole))
    _law("streaming reports usage if run does", (final.usage is None) == (whole.usage is None), final, whole)


async def _check_leaving(agent: AIAgent, message: str) -> None:
    session = await agent.create_session()
    async with _leaving_nothing("a stream that is not iterated"):
        await agent.run_streaming(message, session=session).aclose()
    async with _leaving_nothing("a stream that is closed early"):
        stream = agent.run_streaming(message, session=session)
        await anext(stream)
        await stream.aclose()
    async with _leaving_nothing("a run that is cancelled"):
        task = asyncio.ensure_future(agent.run(message, session=session))
        await asyncio.sleep(0)
        is_cancelled = task.cancel()
        ended = await asyncio.gather(task, return_exceptions=True)
        _law("a cancellation is not swallowed", task.cancelled() or not is_cancelled, ended)
    response = await agent.run(message, session=session)
    _law("a session is usable after a run that was left", response.messages)


async def _check_concurrency(agent: AIAgent, message: str) -> None:
    sessions = [await agent.create_session() for _ in range(3)]
    responses = await asyncio.gather(*[agent.run(message, session=session) for session in sessions])
    shapes = [_shape(response) for response in responses]
    _law("runs at once don't mix", all(shape == shapes[0] for shape in shapes), shapes)
    sizes = {len(json.loads(await _written(agent, session)).get("messages", [])) for session in sessions}
    _law("each of several runs has its own session", len(sizes) == 1, sizes)


async def _check_looping(agent: AIAgent, message: str, options: LoopAgentOptions, *, streaming: bool) -> None:
    sessions: list[AgentSession] = []

    def goes_on(context: Any) -> bool | str:
        sessions.append(context.session)
        return "Once more." if context.iteration == 1 else False

    loop = LoopAgent(agent, DelegateLoopEvaluator(goes_on), options)
    session = await agent.create_session()
    if streaming:
        response = await loop.run_streaming(message, session=session).final_response()
    else:
        response = await loop.run(message, session=session)
    result = LoopResult.of(response)
    _law("a loop ends as its evaluator says", result and result.stop_reason is StopReason.SATISFIED, result)
    replaced = options.fresh_context_per_iteration
    _law("a loop keeps its session, or clones it for fresh context", (sessions[0] is sessions[1]) != replaced)
    _law("a loop begins with the caller's session", sessions[0] is session)


async def _written(agent: AIAgent, session: AgentSession) -> str:
    try:
        return json.dumps(await agent.serialize_session(session), sort_keys=True, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise AssertionError(f"a session is written as a JSON value: {error}") from error


def _said(response: AgentResponse) -> list[tuple[str, Sequence[object]]]:
    return [(str(message.role), message.contents) for message in response.messages]


def _shape(response: AgentResponse) -> list[tuple[str, list[str]]]:
    return [
        (str(message.role), [type(content).__name__ for content in message.contents]) for message in response.messages
    ]


@asynccontextmanager
async def _leaving_nothing(what: str) -> AsyncGenerator[None, None]:
    """Fails if a task or an open async generator is left at the end of the block."""
    hooks = sys.get_asyncgen_hooks()
    started: WeakSet[AsyncGenerator[Any, Any]] = WeakSet()

    def begun(generator: AsyncGenerator[Any, Any]) -> None:
        started.add(generator)
        if hooks.firstiter is not None:
            hooks.firstiter(generator)

    before = asyncio.all_tasks()
    sys.set_asyncgen_hooks(firstiter=begun, finalizer=hooks.finalizer)
    try:
        yield
    finally:
        sys.set_asyncgen_hooks(*hooks)
    for turn in range(_TURNS):  # what an SDK left to the collector is closed by it
        if turn % 10 == 0:
            gc.collect()
        if asyncio.all_tasks() <= before and not _open(started):
            break
        await asyncio.sleep(0)
    _law(f"{what} leaves no task behind", asyncio.all_tasks() <= before, asyncio.all_tasks() - before)
    _law(f"{what} leaves no stream open", not _open(started), _open(started))


def _open(started: WeakSet[AsyncGenerator[Any, Any]]) -> list[str]:
    """The streams that are open, by what they are: to hold one would keep it open."""
    return [repr(generator) for generator in started if getattr(generator, "ag_frame", None) is not None]
