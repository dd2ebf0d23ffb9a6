from __future__ import annotations

import asyncio
import copy
import gc
import logging
import math
import threading
from typing import Any

import pytest
from fakes import RecordingAgent, Way, leaving_nothing

from agents_loop import (
    AgentResponse,
    AgentSession,
    AIAgent,
    BackgroundAgentsProvider,
    BackgroundTask,
    ChatClientAgent,
    ChatMessage,
    FunctionCallContent,
    SessionStateError,
    ToolApprovalRequestContent,
)
from agents_loop.context_providers.background_task import LOST
from agents_loop.testing import ScriptedChatClient

LONG_S = 1000
"""Longer than any test may take: a wait that lasts so long has not noticed an end."""


def statuses(provider: BackgroundAgentsProvider, session: AgentSession) -> list[str]:
    return [task.status for task in provider.refresh(session)]


def start(provider: BackgroundAgentsProvider, session: AgentSession, name: str = "helper") -> BackgroundTask:
    return provider.start(session, name, f"input for {name}", description=f"task of {name}")


@pytest.mark.parametrize(
    ("agents", "timeout", "error", "message"),
    [
        ({}, 1, ValueError, "agents"),
        ({" ": RecordingAgent}, 1, ValueError, "name"),
        ({"a": None}, 1, TypeError, r"agents\['a'\]"),
        ([RecordingAgent], 1, TypeError, "agents must be a mapping of names to agents, not list"),
        ({1: RecordingAgent}, 1, TypeError, "names that are str"),
        ({"a": lambda messages: "x"}, 0, ValueError, "task_timeout_s"),
        ({"a": lambda messages: "x"}, -1, ValueError, "task_timeout_s"),
        ({"a": lambda messages: "x"}, math.nan, ValueError, "task_timeout_s"),
        ({"a": lambda messages: "x"}, math.inf, ValueError, "task_timeout_s"),
    ],
)
def test_wrong_use(agents: Any, timeout: float, error: type[Exception], message: str):
    """Errors: wrong use is found before anything runs, and named."""
    with pytest.raises(error, match=message):
        BackgroundAgentsProvider(agents, task_timeout_s=timeout)


async def test_a_task_from_start_to_result():
    """Background: an agent gets its input in a conversation of its own; its answer is kept in the session's state."""
    session, agent = AgentSession(), RecordingAgent("42", hang_at=1)
    async with leaving_nothing(), BackgroundAgentsProvider({"helper": agent}) as provider:
        assert start(provider, session) == BackgroundTask(1, "helper", "task of helper")
        await agent.reached.wait()
        assert (agent.inputs, agent.sessions[0] is session) == ([["input for helper"]], False)
        assert statuses(provider, session) == ["running"]
        agent.release.set()
        done = await provider.wait(session, timeout_s=LONG_S)
        assert done == (BackgroundTask(1, "helper", "task of helper", "completed", "42"),)
        assert provider.get_running(session) == ()
        assert session.state["BackgroundAgentsProvider"]["tasks"][0]["result"] == "42"


async def test_any_agent():
    """Background: whatever `as_agent` takes does the work."""

    async def answer(messages: Any) -> str:
        return "of a function"

    async with BackgroundAgentsProvider({"helper": answer}) as provider:
        start(provider, session := AgentSession())
        (task,) = await provider.wait(session, timeout_s=LONG_S)
        assert task.result == "of a function"


async def test_the_result_is_the_last_word():
    """Background: the result is the text of the agent's last message that has any; without any it is empty."""
    whole = [ChatMessage("assistant", "draft"), ChatMessage("assistant", "final"), ChatMessage("tool", "noise")]
    async with BackgroundAgentsProvider({"a": Replying(whole), "b": Replying([])}) as provider:
        session = AgentSession()
        start(provider, session, "a")
        start(provider, session, "b")
        assert [task.result for task in await provider.wait(session, timeout_s=LONG_S)] == ["final", ""]


class Replying(RecordingAgent):
    """Gives a whole response."""

    def __init__(self, messages: list[ChatMessage]) -> None:
        super().__init__(AgentResponse(messages))


async def test_an_agent_that_fails(caplog: pytest.LogCaptureFixture):
    """Background: what an agent raises is kept as text and logged; nothing else is hit."""
    agents = {"bad": RecordingAgent(ValueError("no such city")), "good": RecordingAgent("fine")}
    with caplog.at_level(logging.WARNING, "agents_loop"):
        async with leaving_nothing(), BackgroundAgentsProvider(agents) as provider:
            session = AgentSession()
            start(provider, session, "bad")
            start(provider, session, "good")
            bad, good = await provider.wait(session, timeout_s=LONG_S)
    assert (bad.status, bad.error, bad.result) == ("failed", "ValueError: no such city", None)
    assert good.status == "completed"
    assert "Background agent bad failed" in caplog.text


async def test_an_agent_that_asks_for_approval():
    """Background: nobody is there to approve, so the task has failed, and says what it wanted."""
    request = ToolApprovalRequestContent("r", FunctionCallContent("c", "delete_all", {}))
    async with BackgroundAgentsProvider({"helper": Replying([ChatMessage("assistant", [request])])}) as provider:
        start(provider, session := AgentSession())
        (task,) = await provider.wait(session, timeout_s=LONG_S)
        assert task.status == "failed"
        assert "'delete_all'" in task.error


async def test_a_task_has_a_deadline():
    """E10: a task that hangs is cancelled at its deadline, and has failed."""
    agent = RecordingAgent(hang_at=1)
    async with leaving_nothing(), BackgroundAgentsProvider({"helper": agent}, task_timeout_s=0.001) as provider:
        start(provider, session := AgentSession())
        (task,) = await provider.wait(session, timeout_s=LONG_S)
        assert (task.status, task.error) == ("failed", "no answer within 0.001 seconds")
        assert agent.closed == [1]


async def test_a_timeout_of_the_agents_own():
    """Background: a TimeoutError that the agent raises is its own failure, not the deadline."""
    async with BackgroundAgentsProvider({"helper": RecordingAgent(TimeoutError("upstream"))}) as provider:
        start(provider, session := AgentSession())
        assert (await provider.wait(session, timeout_s=LONG_S))[0].error == "TimeoutError: upstream"


async def test_a_wait_has_a_deadline():
    """Background: a wait ends at its deadline, and cancels nothing."""
    async with leaving_nothing(), BackgroundAgentsProvider({"helper": RecordingAgent(hang_at=1)}) as provider:
        start(provider, session := AgentSession())
        for timeout_s in (0, 0.001):
            assert [task.status for task in await provider.wait(session, timeout_s=timeout_s)] == ["running"]


async def test_waiting_for_some():
    """Background: a wait is for the tasks that are named, or those that run; for all of them, or for the first."""
    quick, slow = RecordingAgent("quick"), RecordingAgent(hang_at=1)
    async with leaving_nothing(), BackgroundAgentsProvider({"quick": quick, "slow": slow}) as provider:
        session = AgentSession()
        start(provider, session, "slow")
        start(provider, session, "quick")
        tasks = await provider.wait(session, timeout_s=LONG_S, until="any")
        assert [(task.id, task.status) for task in tasks] == [(1, "running"), (2, "completed")]
        tasks = await provider.wait(session, [1, 2], timeout_s=LONG_S, until="any")
        assert [task.status for task in tasks] == ["running", "completed"]
        assert [task.id for task in await provider.wait(session, [2, 9], timeout_s=LONG_S)] == [2]
        assert [task.id for task in await provider.wait(session, timeout_s=0)] == [1]
        assert await provider.wait(AgentSession(), timeout_s=LONG_S) == ()


async def test_cancelling():
    """Background: a cancelled task has ended when `cancel` returns, and has failed; the others go on."""
    agents = {"a": RecordingAgent(hang_at=1), "b": RecordingAgent(hang_at=1)}
    async with leaving_nothing(), BackgroundAgentsProvider(agents) as provider:
        session = AgentSession()
        start(provider, session, "a")
        start(provider, session, "b")
        await agents["a"].reached.wait()
        (cancelled,) = await provider.cancel(session, [1, 7])
        assert (cancelled.id, cancelled.status, cancelled.error) == (1, "failed", "it was cancelled")
        assert (agents["a"].closed, agents["b"].closed) == ([1], [])
        assert statuses(provider, session) == ["failed", "running"]
        assert await provider.cancel(session, [1]) == ()


# Who owns what runs


async def test_closing_the_provider():
    """Background: closing ends all that runs, of every session, and waits for it; what was running is lost."""
    agent = RecordingAgent(answer=lambda call, number: "x", hang_at=2)
    sessions = [AgentSession(), AgentSession()]
    async with leaving_nothing():
        async with BackgroundAgentsProvider({"helper": agent}) as provider:
            for session in sessions:
                start(provider, session)
            await agent.reached.wait()
        assert sorted(agent.closed) == [1, 2]
        assert [statuses(provider, session) for session in sessions] == [["completed"], ["lost"]]
        assert provider.refresh(sessions[1])[0].error == LOST
        await provider.aclose()
        with pytest.raises(ValueError, match="closed"):
            start(provider, sessions[0])


async def test_a_session_that_nobody_uses():
    """Background: what runs for a session ends when the session object is no longer in use."""
    agent = RecordingAgent(hang_at=1)
    provider = BackgroundAgentsProvider({"helper": agent})
    before = asyncio.all_tasks()
    start(provider, session := AgentSession())
    (work,) = asyncio.all_tasks() - before
    await agent.reached.wait()
    del session
    gc.collect()
    with pytest.raises(asyncio.CancelledError):
        await work
    assert agent.closed == [1]


async def test_a_session_that_is_dropped_in_another_thread():
    """Background: a session may be collected in any thread; its tasks are cancelled in their event loop."""
    agent = RecordingAgent(hang_at=1)
    provider = BackgroundAgentsProvider({"helper": agent})
    before = asyncio.all_tasks()
    sessions = [AgentSession()]
    start(provider, sessions[0])
    (work,) = asyncio.all_tasks() - before
    await agent.reached.wait()
    thread = threading.Thread(target=sessions.clear)
    thread.start()
    thread.join()
    gc.collect()
    with pytest.raises(asyncio.CancelledError):
        await work


def test_an_event_loop_that_ends():
    """Background: a task does not outlive its event loop; from the next one it is lost."""
    session, provider = AgentSession(), BackgroundAgentsProvider({"helper": RecordingAgent(hang_at=1)})

    async def begin() -> None:
        start(provider, session)

    asyncio.run(begin())
    assert statuses(provider, session) == ["lost"]
    asyncio.run(provider.aclose())


async def test_a_restored_session_and_a_copy():
    """Background: nothing runs for a session that was restored or copied: what ran is lost there, what ended is kept."""
    agents: dict[str, AIAgent] = {"quick": RecordingAgent("42"), "slow": (slow := RecordingAgent(hang_at=1))}
    async with leaving_nothing(), BackgroundAgentsProvider(agents) as provider:
        session = AgentSession()
        start(provider, session, "quick")
        start(provider, session, "slow")
        await slow.reached.wait()
        restored = await slow.deserialize_session(await slow.serialize_session(session))
        for other in (restored, copy.deepcopy(session)):
            assert statuses(provider, other) == ["completed", "lost"]
            assert provider.refresh(other)[0].result == "42"
            assert start(provider, other, "quick").id == 3
        assert statuses(provider, session) == ["completed", "running"]


async def test_an_ending_is_written_down_at_once():
    """Background: the state has a result as soon as there is one, so that a session which is stored then has it too."""
    async with BackgroundAgentsProvider({"helper": (agent := RecordingAgent("42", hang_at=1))}) as provider:
        before = asyncio.all_tasks()
        start(provider, session := AgentSession())
        (work,) = asyncio.all_tasks() - before
        agent.release.set()
        await work
        stored = await agent.deserialize_session(await agent.serialize_session(session))
    assert statuses(BackgroundAgentsProvider({"helper": agent}), stored) == ["completed"]


async def test_a_state_that_was_cleared():
    """Background: a caller who empties the state loses the tasks, and a new one with an old id is not mixed up."""
    agents = {"slow": (slow := RecordingAgent(hang_at=1)), "quick": RecordingAgent("new")}
    async with leaving_nothing(), BackgroundAgentsProvider(agents) as provider:
        session = AgentSession()
        start(provider, session, "slow")
        await slow.reached.wait()
        session.state.clear()
        assert provider.refresh(session) == ()
        assert start(provider, session, "quick").id == 1
        slow.release.set()
        assert [task.result for task in await provider.wait(session, timeout_s=LONG_S)] == ["new"]


def test_a_state_that_is_something_else():
    """Providers: what can't be read is an error that names the place."""
    session = AgentSession(state={"BackgroundAgentsProvider": {"tasks": [{"id": 1, "status": "odd"}]}})
    with pytest.raises(SessionStateError, match="BackgroundAgentsProvider"):
        BackgroundAgentsProvider({"helper": RecordingAgent()}).refresh(session)


def test_looking_changes_nothing():
    """Providers: a session that nobody wrote to stays as it is."""
    session = AgentSession()
    assert BackgroundAgentsProvider({"helper": RecordingAgent()}).refresh(session) == ()
    assert session.state == {}


# What a model sees


def calls(name: str, **arguments: Any) -> ChatMessage:
    return ChatMessage("assistant", [FunctionCallContent("c", name, arguments)])


async def results_of(provider: BackgroundAgentsProvider, *asked: ChatMessage, session: AgentSession) -> list[Any]:
    """What the model is told, call by call."""
    client = ScriptedChatClient([*asked, "Done."])
    await ChatClientAgent(client, context_providers=[provider]).run("Go.", session=session)
    return [call.messages[-1].contents[0].result for call in client.calls[1:]]


async def test_what_the_tools_say():
    """Background: a model starts, lists, waits, reads and cancels; a text of an answer comes when it is asked for."""
    agents = {"quick": RecordingAgent("42"), "slow": RecordingAgent(hang_at=1)}
    shown = {"id": 1, "agent": "quick", "description": "sum", "status": "running"}
    second = {"id": 2, "agent": "slow", "description": "all", "status": "running"}
    async with leaving_nothing(), BackgroundAgentsProvider(agents) as provider:
        results = await results_of(
            provider,
            calls("background_start", agent="quick", description="sum", input="6 * 7"),
            calls("background_start", agent="slow", description="all", input="everything"),
            calls("background_wait", ids=[1, 5]),
            calls("background_list"),
            calls("background_result", task_id=1),
            calls("background_cancel", ids=[2, 1]),
            calls("background_result", task_id=2),
            calls("background_result", task_id=5),
            calls("background_wait"),
            session=AgentSession(),
        )
    done, missing = shown | {"status": "completed"}, {"id": 5, "error": "there is no such task"}
    failed = second | {"status": "failed"}
    assert results == [
        shown,
        second,
        [done, missing],
        [done, second],
        done | {"result": "42", "error": None},
        [failed],
        failed | {"result": None, "error": "it was cancelled"},
        missing,
        [],
    ]
    assert agents["quick"].inputs == [["6 * 7"]]


async def test_an_agent_that_there_is_not():
    """Background: the model is told which there are; nothing is started."""
    async with BackgroundAgentsProvider({"a": RecordingAgent(), "b": RecordingAgent()}) as provider:
        session = AgentSession()
        ask = calls("background_start", agent="c", description="d", input="i")
        (result,) = await results_of(provider, ask, session=session)
        assert result == {"error": "there is no agent 'c'; there are: 'a', 'b'"}
        assert provider.refresh(session) == ()


async def test_what_the_model_is_told(invoke: Way):
    """Background: the agents are listed with their descriptions, and a session that was restored is brought up to date."""
    stored = {"id": 1, "agent": "a", "description": "d", "status": "running"}
    session = AgentSession(state={"BackgroundAgentsProvider": {"next_id": 2, "tasks": [stored]}})
    described = RecordingAgent()
    described.description = "knows the weather"
    client = ScriptedChatClient(["Hello."])
    async with BackgroundAgentsProvider({"sky": described, "sea": RecordingAgent()}) as provider:
        await invoke(ChatClientAgent(client, context_providers=[provider]), "Go.", session=session)
        assert "- sky: knows the weather\n- sea: no description" in client.calls[0].messages[0].text
        (starter,) = [tool for tool in client.calls[0].options.tools if tool.name == "background_start"]
        assert starter.parameters["properties"]["agent"]["enum"] == ["sky", "sea"]
        assert session.state["BackgroundAgentsProvider"]["tasks"][0]["status"] == "lost"
