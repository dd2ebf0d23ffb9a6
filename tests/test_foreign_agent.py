"""What adapters of other frameworks share: a framework's conversation in a session, and one door to streaming."""

import asyncio
import gc
import json

import pytest
from fakes import drain, says

from agents_loop import (
    AgentResponse,
    AgentResponseUpdate,
    AgentSession,
    ChatMessage,
    DelegatingAIAgent,
    LoopAgent,
    SessionStateError,
)
from agents_loop.foreign_agent import ForeignAgent, _conversations, _readings, json_copy, with_ids
from agents_loop.testing import assert_loop_laws


class Notebook(ForeignAgent[list]):
    """A framework's agent: its conversation is a list of what was said."""

    framework = "notebook"

    async def run_core(self, messages, *, session, options):
        said = await self.conversation(session)
        said += [message.text for message in messages] + ["noted"]
        return with_ids(AgentResponse([ChatMessage("assistant", "noted")]))

    async def stream(self, messages, *, session, options, given):
        for piece in ("no", "ted"):
            yield AgentResponseUpdate("assistant", piece, message_id="m-1")
        response = await self.run_core(messages, session=session, options=options)
        response.messages = [ChatMessage("assistant", "noted")]
        given.append(response)

    def new_conversation(self):
        return []

    async def write_conversation(self, conversation):
        return json_copy({"said": conversation})

    async def read_conversation(self, state):
        return list(state["said"])


async def test_it_keeps_the_laws():
    """Law: what a loop needs of an agent."""
    await assert_loop_laws(Notebook())


async def test_a_session_holds_the_frameworks_conversation(invoke):
    """Design: another adapter of the same framework finds the conversation in the session."""
    session = AgentSession()
    await invoke(Notebook(), "One.", session=session)
    await invoke(Notebook(), "Two.", session=session)
    assert await Notebook().conversation(session) == ["One.", "noted", "Two.", "noted"]


async def test_it_is_written_with_the_session(invoke):
    """Design: a written session holds the conversation; the live session's state does not."""
    agent, session = Notebook(), AgentSession()
    await invoke(agent, "One.", session=session)
    written = await agent.serialize_session(session)
    assert written["state"] == {"notebook": {"said": ["One.", "noted"]}}
    assert session.state == {}
    read = await agent.deserialize_session(json.loads(json.dumps(written)))
    assert await agent.serialize_session(read) == written
    await invoke(agent, "Two.", session=read)
    assert await agent.conversation(read) == ["One.", "noted", "Two.", "noted"]
    assert read.state == {}


async def test_a_conversation_goes_with_its_session():
    """Law 20: nothing is kept of a session that is gone."""
    before = len(_conversations), len(_readings)
    session = AgentSession()
    await Notebook().run("One.", session=session)
    assert len(_conversations) == before[0] + 1
    gc.collect()
    assert not _readings[session], "a lock is kept that nobody uses"
    del session
    gc.collect()
    assert (len(_conversations), len(_readings)) == before


async def test_a_conversation_can_be_put_into_a_session():
    """Design: `keep` lets a session go on with a conversation that there is already."""
    agent, session = Notebook(), AgentSession()
    agent.keep(session, ["before"])
    agent.keep(None, ["nowhere"])
    await agent.run("One.", session=session)
    assert await agent.conversation(session) == ["before", "One.", "noted"]


class SlowNotebook(Notebook):
    """Its reads wait until they are let go, and fail if they are told to."""

    def __init__(self, *errors):
        self.errors = list(errors)
        self.reads = 0
        self.begun = asyncio.Event()
        self.go_on = asyncio.Event()

    async def read_conversation(self, state):
        self.reads += 1
        self.begun.set()
        await self.go_on.wait()
        if self.errors:
            raise self.errors.pop(0)
        return await super().read_conversation(state)


def stored_session():
    return AgentSession(state={"notebook": {"said": ["before"]}})


async def test_a_read_that_fails_loses_nothing():
    """Design: a conversation stays in the session until it has been read; a failed or cancelled read is tried again."""
    agent, session = SlowNotebook(ConnectionError("gone")), stored_session()
    cancelled = asyncio.ensure_future(agent.conversation(session))
    await agent.begun.wait()
    assert (await agent.serialize_session(session))["state"] == {"notebook": {"said": ["before"]}}
    cancelled.cancel()
    with pytest.raises(asyncio.CancelledError):
        await cancelled
    agent.go_on.set()
    with pytest.raises(ConnectionError):
        await agent.run("One.", session=session)
    assert session.state == {"notebook": {"said": ["before"]}}
    await agent.run("One.", session=session)
    assert await agent.conversation(session) == ["before", "One.", "noted"]
    assert session.state == {}


async def test_a_conversation_is_read_once():
    """Design: runs that first use a written session at the same time get the same conversation."""
    agent, session = SlowNotebook(ConnectionError("gone")), stored_session()
    reads = [asyncio.ensure_future(agent.conversation(session)) for _ in range(3)]
    await agent.begun.wait()
    agent.go_on.set()
    failed, first, second = await asyncio.gather(*reads, return_exceptions=True)
    assert isinstance(failed, ConnectionError)
    assert first == ["before"]
    assert first is second
    assert agent.reads == 2


async def test_a_conversation_that_is_put_there_during_a_read_stays():
    """Design: what `keep` puts into a session is not replaced by a read that had begun before."""
    agent, session = SlowNotebook(), stored_session()
    read = asyncio.ensure_future(agent.conversation(session))
    await agent.begun.wait()
    agent.keep(session, ["kept"])
    agent.go_on.set()
    assert await read == ["kept"]


async def test_the_final_response_has_the_ids_of_the_pieces():
    """Law 17: a message whose id the framework does not give has the one that its pieces had."""
    stream = Notebook().run_streaming("Go.")
    assert [update.text for update in await drain(stream)] == ["no", "ted"]
    assert [message.message_id for message in (await stream.final_response()).messages] == ["m-1"]


def test_ids_that_do_not_fit_are_not_used():
    """Law 17: ids of a stream with another number of messages are not given to the wrong ones; known ids stay."""
    response = with_ids(
        AgentResponse([ChatMessage("assistant", "a", message_id="own"), ChatMessage("tool", "b")]), ["x"]
    )
    assert response.messages[0].message_id == "own"
    assert response.messages[1].message_id not in (None, "x")


async def test_a_wrapper_streams_it():
    """Law 8: an agent that derives from `DelegatingAIAgent` and streams by itself finds the same pieces."""

    class Wrapper(DelegatingAIAgent):
        async def run_core_streaming(self, messages, *, session, options):
            async for update in self.inner_agent.run_core_streaming(messages, session=session, options=options):
                yield update

    loop = LoopAgent(Wrapper(Notebook()), says("More."))
    assert (await loop.run_streaming("Go.").final_response()).text == "noted\nMore.\nnoted"


async def test_a_state_that_is_no_conversation_is_an_error():
    """Design: what was not written by the adapter is an error that names it."""
    with pytest.raises(SessionStateError, match="'notebook' is no conversation"):
        await Notebook().run("Go.", session=AgentSession(state={"notebook": "text"}))


def test_a_conversation_that_is_no_json_is_an_error():
    """Design: a conversation that can't be written is an error, not a crash later."""
    with pytest.raises(SessionStateError, match="not a JSON value"):
        json_copy({"when": object()})
