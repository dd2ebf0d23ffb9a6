from __future__ import annotations

import asyncio
import math
from typing import Any

import pytest
from fakes import RecordingAgent, Way, leaving_nothing

from agents_loop import (
    AgentResponse,
    AgentSession,
    BackgroundAgentsProvider,
    BackgroundTaskCompletionLoopEvaluator,
    BackgroundTaskCompletionLoopEvaluatorOptions,
    ChatClientAgent,
    ChatMessage,
    FunctionCallContent,
    LoopAgent,
    LoopAgentOptions,
    LoopContext,
    LoopEvaluation,
    LoopResult,
    ServiceNotFoundError,
    StopReason,
)
from agents_loop.testing import ScriptedChatClient


async def judged(provider: BackgroundAgentsProvider, session: AgentSession, **options: Any) -> LoopEvaluation:
    agent = ChatClientAgent(ScriptedChatClient([]), context_providers=[provider])
    context = LoopContext(agent, session, "do it", AgentResponse("an answer"))
    given = BackgroundTaskCompletionLoopEvaluatorOptions(**{"wait_timeout_s": 0, **options})
    return await BackgroundTaskCompletionLoopEvaluator(given).evaluate(context)


def test_the_placeholders():
    """Background: the placeholders are the ancestor's, and the default template has both."""
    evaluator = BackgroundTaskCompletionLoopEvaluator
    assert evaluator.INCOMPLETE_TASKS_PLACEHOLDER == "{incomplete_tasks}"
    assert evaluator.INCOMPLETE_TASK_COUNT_PLACEHOLDER == "{incomplete_task_count}"
    assert "{incomplete_tasks}" in evaluator.DEFAULT_FEEDBACK_MESSAGE_TEMPLATE
    assert "{incomplete_task_count}" in evaluator.DEFAULT_FEEDBACK_MESSAGE_TEMPLATE


@pytest.mark.parametrize("wait_timeout_s", [-1, math.inf, math.nan])
def test_a_wait_has_an_end(wait_timeout_s: float):
    """Errors: a wait that is negative, or has no end, is wrong use."""
    with pytest.raises(ValueError, match="wait_timeout_s"):
        BackgroundTaskCompletionLoopEvaluatorOptions(wait_timeout_s=wait_timeout_s)


async def test_running_tasks_are_fed_back():
    """Background: a line for each running task, `- #<id> (<agent name>): <description>`; replaced in a single pass."""
    session, hangs = AgentSession(), RecordingAgent(hang_at=1)
    async with BackgroundAgentsProvider({"quick": RecordingAgent(), "slow one": hangs}) as provider:
        provider.start(session, "quick", "go", description="first")
        provider.start(session, "slow one", "go", description="{incomplete_task_count} things")
        await hangs.reached.wait()
        word = await judged(provider, session, feedback_message_template="{incomplete_task_count}:\n{incomplete_tasks}")
        assert (word.decision, word.feedback) == ("continue", "1:\n- #2 (slow one): {incomplete_task_count} things")


async def test_statuses_are_refreshed_first():
    """Background: completed, failed and lost tasks don't count, whatever the state said before."""
    stored = {"id": 1, "agent": "a", "description": "d", "status": "running"}
    session = AgentSession(state={"BackgroundAgentsProvider": {"next_id": 2, "tasks": [stored]}})
    async with BackgroundAgentsProvider(
        {"good": RecordingAgent(), "bad": RecordingAgent(ValueError("no"))}
    ) as provider:
        provider.start(session, "good", "go", description="d")
        provider.start(session, "bad", "go", description="d")
        await provider.wait(session, timeout_s=60)
        assert await judged(provider, session, wait_timeout_s=1000) == LoopEvaluation.stop()
        assert [task.status for task in provider.refresh(session)] == ["lost", "completed", "failed"]


async def test_no_tasks():
    """Background: where nothing was started there is no more to ask for, and nothing is written."""
    session = AgentSession()
    assert await judged(BackgroundAgentsProvider({"a": RecordingAgent()}), session) == LoopEvaluation.stop()
    assert session.state == {}


async def test_a_provider_is_missing():
    """Errors: an evaluator whose provider the agent does not offer names itself and the provider."""
    context = LoopContext(RecordingAgent(), AgentSession(), "do it", AgentResponse("an answer"))
    with pytest.raises(
        ServiceNotFoundError, match=r"^BackgroundTaskCompletionLoopEvaluator .*BackgroundAgentsProvider"
    ):
        await BackgroundTaskCompletionLoopEvaluator().evaluate(context)


async def test_it_waits_rather_than_spins():
    """Background: the evaluator waits for what is running; then the agent is to hear of it, for it can't have known."""
    session, slow = AgentSession(), RecordingAgent(hang_at=1)
    async with leaving_nothing(), BackgroundAgentsProvider({"slow": slow}) as provider:
        provider.start(session, "slow", "go", description="d")
        judging = asyncio.ensure_future(judged(provider, session, wait_timeout_s=1000))
        await slow.reached.wait()
        assert not judging.done()
        slow.release.set()
        word = await judging
        assert word.decision == "continue"
        assert "- #1 (slow): d" in word.feedback
        assert (await judged(provider, session)).decision == "stop"


async def test_cancelling_the_wait_leaves_the_tasks(agent: RecordingAgent):
    """Law 19: cancelling a run that waits ends the wait; the tasks are their owner's."""
    session, slow = AgentSession(), RecordingAgent(hang_at=1)
    async with leaving_nothing(), BackgroundAgentsProvider({"slow": slow}) as provider:
        provider.start(session, "slow", "go", description="d")
        judging = asyncio.ensure_future(judged(provider, session, wait_timeout_s=1000))
        await slow.reached.wait()
        judging.cancel()
        with pytest.raises(asyncio.CancelledError):
            await judging
        assert [task.status for task in provider.refresh(session)] == ["running"]


def calls(name: str, **arguments: Any) -> ChatMessage:
    return ChatMessage("assistant", [FunctionCallContent(f"call-{name}", name, arguments)])


def loop_over(provider: BackgroundAgentsProvider, client: ScriptedChatClient, **options: Any) -> LoopAgent:
    wait = BackgroundTaskCompletionLoopEvaluatorOptions(wait_timeout_s=options.pop("wait_timeout_s", 60))
    agent = ChatClientAgent(client, context_providers=[provider])
    return LoopAgent(agent, BackgroundTaskCompletionLoopEvaluator(wait), LoopAgentOptions(**options))


START = calls("background_start", agent="helper", description="look it up", input="Look it up.")


async def test_a_loop_until_the_tasks_are_done(invoke: Way):
    """Background: an agent that answers too early is run again once the tasks have ended, and takes their results."""
    client = ScriptedChatClient([START, "It is on its way.", calls("background_result", task_id=1), "It is 42."])
    async with leaving_nothing(), BackgroundAgentsProvider({"helper": RecordingAgent("42")}) as provider:
        result = LoopResult.of(await invoke(loop_over(provider, client)))
    assert (result.stop_reason, result.output, len(result.iterations)) == (StopReason.SATISFIED, "It is 42.", 2)
    assert client.calls[3].messages[-1].contents[0].result["result"] == "42"


async def test_a_task_that_hangs(invoke: Way):
    """E10: a task that hangs has a deadline of its own, after which it has failed; the loop ends."""
    client = ScriptedChatClient([START, "It is on its way.", "It never came."])
    provider = BackgroundAgentsProvider({"helper": RecordingAgent(hang_at=1)}, task_timeout_s=0.01)
    async with leaving_nothing(), provider:
        result = LoopResult.of(await invoke(loop_over(provider, client)))
        assert (result.stop_reason, result.output) == (StopReason.SATISFIED, "It never came.")
        (task,) = provider.refresh(result.session)
        assert (task.status, task.error) == ("failed", "no answer within 0.01 seconds")


async def test_a_task_that_hangs_for_ever(invoke: Way):
    """E10: also without a deadline the wait has an end, and the loop its cap."""
    client = ScriptedChatClient([START, "Wait.", "Wait.", "Wait."])
    provider = BackgroundAgentsProvider({"helper": RecordingAgent(hang_at=1)}, task_timeout_s=None)
    async with leaving_nothing(), provider:
        loop = loop_over(provider, client, max_iterations=3, wait_timeout_s=0.001)
        assert LoopResult.of(await invoke(loop)).stop_reason == StopReason.MAX_ITERATIONS
