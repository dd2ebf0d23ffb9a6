"""`assert_loop_laws` holds for a proper agent, and names the law that a faulty one breaks."""

import asyncio
import contextlib

import pytest
from fakes import RecordingAgent

from agents_loop import (
    AgentResponse,
    AgentResponseStream,
    AgentResponseUpdate,
    AgentSession,
    AIAgent,
    ChatMessage,
    UsageContent,
    UsageDetails,
)
from agents_loop.testing import assert_loop_laws


class Proper(AIAgent):
    """Answers how many messages it knows, and keeps them."""

    async def run_core(self, messages, *, session, options):
        known = [] if session is None else session.messages
        response = AgentResponse([ChatMessage("assistant", "Noted.")], usage=UsageDetails(len(known), 1))
        known += messages + response.messages
        return response


class OneSession(Proper):
    """each session is a new one"""

    def __init__(self):
        self.session = AgentSession()

    async def create_session(self):
        return self.session


class NoJson(Proper):
    """a session is written as a JSON value"""

    async def serialize_session(self, session):
        return {"messages": session}


class SameObject(Proper):
    """a session is read back as a new object"""

    def __init__(self):
        self.known = {}

    async def serialize_session(self, session):
        self.known[session.session_id] = session
        return await super().serialize_session(session)

    async def deserialize_session(self, state):
        return self.known[state["session_id"]]


class ForgetfulReader(Proper):
    """a session that was read back is written as before"""

    async def deserialize_session(self, state):
        return AgentSession(session_id=state["session_id"])


class SharedHistory(Proper):
    """a clone"""

    async def deserialize_session(self, state):
        session = await super().deserialize_session(state)
        session.messages = self.last.messages
        return session

    async def serialize_session(self, session):
        self.last = session
        return await super().serialize_session(session)


class DropsEqualTurns(Proper):
    """equal turns and replies are all kept"""

    async def run_core(self, messages, *, session, options):
        response = AgentResponse([ChatMessage("assistant", "Noted.")])
        if session is not None:
            session.messages += [message for message in messages + response.messages if message not in session.messages]
        return response


class SilentWithoutInput(Proper):
    """no new message is an input like any other"""

    async def run_core(self, messages, *, session, options):
        return await super().run_core(messages, session=session, options=options) if messages else AgentResponse([])


class SameIds(Proper):
    """no two messages have one id"""

    async def run_core(self, messages, *, session, options):
        return AgentResponse([ChatMessage("assistant", word, message_id="1") for word in ("a", "b")])


class Streaming(Proper):
    """A base: streams two pieces and a usage."""

    words = ("Not", "ed.")
    times = 1

    def run_streaming(self, messages=None, *, session=None, options=None):
        final = AgentResponse([ChatMessage("assistant", "Noted.")], usage=UsageDetails(1, 1))
        return AgentResponseStream(self.pieces(), lambda: final)

    async def pieces(self):
        for word in self.words:
            yield AgentResponseUpdate("assistant", word, message_id="m")
        for _ in range(self.times):
            yield AgentResponseUpdate(contents=UsageContent(UsageDetails(1, 1)))


class OtherPieces(Streaming):
    """a stream's pieces are its final response"""

    words = ("Some", "thing else.")


class UsageTwice(Streaming):
    """usage is the same in the pieces, counted once"""

    times = 2


class OtherShape(Streaming):
    """streaming has the shape of run"""

    async def run_core(self, messages, *, session, options):
        return AgentResponse([ChatMessage("assistant", "Noted."), ChatMessage("tool", "x")])


class NoUsageInRun(Streaming):
    """streaming reports usage if run does"""

    async def run_core(self, messages, *, session, options):
        return AgentResponse([ChatMessage("assistant", "Noted.")])


class LeavesATask(Streaming):
    """a stream that is closed early leaves no task behind"""

    async def pieces(self):
        self.task = asyncio.ensure_future(asyncio.Event().wait())
        async for piece in super().pieces():
            yield piece
        self.task.cancel()


class LeavesAStream(Streaming):
    """a stream that is closed early leaves no stream open"""

    async def pieces(self):
        self.inner = super().pieces()
        async for piece in self.inner:
            yield piece


class SwallowsCancellation(Proper):
    """a cancellation is not swallowed"""

    async def run_core(self, messages, *, session, options):
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.sleep(0)
            await asyncio.sleep(0)
        return await super().run_core(messages, session=session, options=options)


FAULTY = [
    OneSession,
    NoJson,
    SameObject,
    ForgetfulReader,
    SharedHistory,
    DropsEqualTurns,
    SilentWithoutInput,
    SameIds,
    OtherPieces,
    UsageTwice,
    OtherShape,
    NoUsageInRun,
    LeavesATask,
    LeavesAStream,
    SwallowsCancellation,
]


@pytest.mark.parametrize("agent", [Proper, Streaming, RecordingAgent], ids=lambda kind: kind.__name__)
async def test_a_proper_agent_keeps_them(agent):
    """Laws: they hold for agents that are as they should be."""
    await assert_loop_laws(agent())


@pytest.mark.parametrize("faulty", FAULTY, ids=lambda kind: kind.__name__)
async def test_a_fault_is_named(faulty):
    """Laws: each fault is found, and the message says which law it breaks."""
    agent = faulty()
    with pytest.raises(AssertionError) as raised:
        await assert_loop_laws(agent)
    assert faulty.__doc__ in str(raised.value)
    if isinstance(agent, LeavesATask):
        agent.task.cancel()
        await asyncio.gather(agent.task, return_exceptions=True)
    if isinstance(agent, LeavesAStream):
        await agent.inner.aclose()


async def test_what_is_no_agent_is_an_error():
    """Laws: what `as_agent` does not take is no agent."""
    with pytest.raises(TypeError, match="must be an agent"):
        await assert_loop_laws("text")
