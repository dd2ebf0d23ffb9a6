"""Laws 19 and 20: runs that are cancelled, closed, or go on side by side."""

from __future__ import annotations

import asyncio
import contextlib
import random

import pytest
from fakes import HangingEvaluator, RecordingAgent, Way, drain, leaving_nothing, says, texts

from agents_loop import (
    AgentResponse,
    AgentSession,
    AIAgent,
    AIJudgeLoopEvaluator,
    ChatClientAgent,
    CompletionMarkerLoopEvaluator,
    DelegateLoopEvaluator,
    LoopAgent,
    LoopAgentOptions,
    LoopContext,
    LoopEvaluation,
    LoopResult,
    StopReason,
)
from agents_loop.testing import ScriptedChatClient


class Interleaved(AIAgent):
    """Answers with its input after giving way a random number of times; the input says how often it is to be run."""

    def __init__(self) -> None:
        self.running, self.most_at_once = 0, 0

    async def run_core(self, messages, *, session: AgentSession, options) -> AgentResponse:
        self.running += 1
        self.most_at_once = max(self.most_at_once, self.running)
        for _ in range(random.Random(session.session_id).randrange(1, 9)):
            await asyncio.sleep(0)
        self.running -= 1
        said = session.state.setdefault("said", [])
        said += [message.text for message in messages]
        return AgentResponse(" | ".join(said))


@pytest.mark.parametrize("mode", ["first", "all"])
@pytest.mark.parametrize("fresh", [False, True])
async def test_fifty_runs_at_once(invoke: Way, mode: str, fresh: bool):
    """Law 20: one instance serves any number of concurrent runs: each is as if it were alone."""

    async def until_enough(context: LoopContext) -> LoopEvaluation:
        wanted = int(context.initial_messages[0].text.split()[1])
        context.additional_properties["asked"] = context.additional_properties.get("asked", 0) + 1
        await asyncio.sleep(0)
        assert context.additional_properties["asked"] == context.iteration == len(context.feedback) + 1
        if context.iteration >= wanted:
            return LoopEvaluation.stop()
        return LoopEvaluation.continue_(f"{context.initial_messages[0].text}: more {context.iteration}")

    agent = Interleaved()
    options = LoopAgentOptions(evaluation_mode=mode, fresh_context_per_iteration=fresh)
    loop = LoopAgent(agent, [DelegateLoopEvaluator(until_enough), DelegateLoopEvaluator(lambda context: None)], options)
    requests = [f"{number}: {number % 5 + 1} times" for number in range(50)]
    async with leaving_nothing():
        together = await asyncio.gather(*[invoke(loop, request) for request in requests])
    assert agent.most_at_once > 10
    for request, response in zip(requests, together, strict=True):
        assert len(LoopResult.of(response).iterations) == int(request.split()[1])
        assert all(request in message.text for message in response.messages)
        assert texts(response.messages) == texts((await invoke(loop, request)).messages)


async def test_fifty_runs_of_the_real_evaluators(invoke: Way):
    """Law 20: ... with a chat client agent, a judge and a marker."""

    def answer(messages, options):
        return f"{messages[-1].text} DONE" if len(messages) > 2 else messages[-1].text

    judge = ScriptedChatClient(lambda messages, options: '{"gapAnalysis": "", "answered": true}')
    evaluators = [CompletionMarkerLoopEvaluator("DONE"), AIJudgeLoopEvaluator(judge)]
    loop = LoopAgent(ChatClientAgent(ScriptedChatClient(answer)), evaluators)
    responses = await asyncio.gather(*[invoke(loop, f"request {number}") for number in range(50)])
    for number, response in enumerate(responses):
        assert [message.role for message in response.messages] == ["assistant", "user", "assistant"]
        assert response.messages[0].text == f"request {number}"
    assert len(judge.calls) == 50


# Cancelling


async def cancelled(task: asyncio.Task[object]) -> asyncio.CancelledError:
    task.cancel("enough")
    with pytest.raises(asyncio.CancelledError) as raised:
        await task
    assert task.cancelled()
    return raised.value


@pytest.mark.parametrize("fresh", [False, True])
async def test_cancelling_the_agent(invoke: Way, fresh: bool):
    """Law 19: cancelling a run stops the agent at once; nothing is judged and nothing is left (F5)."""
    agent, evaluator = RecordingAgent(hang_at=2), says("more", "more")
    loop = LoopAgent(agent, evaluator, LoopAgentOptions(fresh_context_per_iteration=fresh))
    async with asyncio.timeout(60), leaving_nothing():
        task = asyncio.create_task(invoke(loop))
        await agent.reached.wait()
        result = LoopResult.of(await cancelled(task))
        del task
    assert (result.stop_reason, result.output) == (StopReason.CANCELLED, "reply 1")
    assert agent.closed == [1, 2]
    assert evaluator.asked_at == [1]


@pytest.mark.parametrize("mode", ["first", "all"])
async def test_cancelling_the_evaluators(agent: RecordingAgent, invoke: Way, mode: str):
    """Law 19: cancelling while the evaluators are asked cancels and awaits them."""
    hanging = [HangingEvaluator(), HangingEvaluator()] if mode == "all" else [HangingEvaluator()]
    loop = LoopAgent(agent, hanging, LoopAgentOptions(evaluation_mode=mode))
    async with asyncio.timeout(60), leaving_nothing():
        task = asyncio.create_task(invoke(loop))
        for evaluator in hanging:
            await evaluator.asked.wait()
        result = LoopResult.of(await cancelled(task))
        del task
    assert result.stop_reason is StopReason.CANCELLED
    assert {type(evaluator.ended_by) for evaluator in hanging} == {asyncio.CancelledError}
    assert len(agent.calls) == 1


async def test_an_evaluator_that_ignores_the_cancellation_in_all(agent: RecordingAgent, invoke: Way):
    """Law 19: "all": an evaluator that turns the cancellation into an answer doesn't swallow the caller's."""
    hanging = HangingEvaluator()

    async def stubborn(context: LoopContext) -> bool:
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.Event().wait()
        return False

    loop = LoopAgent(agent, [hanging, DelegateLoopEvaluator(stubborn)], LoopAgentOptions(evaluation_mode="all"))
    async with asyncio.timeout(60), leaving_nothing():
        task = asyncio.create_task(invoke(loop))
        await hanging.asked.wait()
        await asyncio.sleep(0)
        await cancelled(task)
        del task
    assert len(agent.calls) == 1


async def test_cancelling_between_two_pieces(agent: RecordingAgent):
    """Law 19: cancelling who reads a stream closes the loop and the agent."""
    reading = asyncio.Event()

    async def read() -> None:
        async with LoopAgent(agent, says("more")).run_streaming("go") as stream:
            async for _ in stream:
                reading.set()
                await asyncio.Event().wait()

    async with asyncio.timeout(60), leaving_nothing():
        task = asyncio.create_task(read())
        await reading.wait()
        await cancelled(task)
        del task
    assert agent.closed == [1]


@pytest.mark.parametrize("pieces", [1, 2, 3, 4, 5])
async def test_closing_after_any_piece(agent: RecordingAgent, pieces: int):
    """Law 19: closing a stream after any piece closes what is open and leaves nothing."""
    async with leaving_nothing():
        stream = LoopAgent(agent, says("more")).run_streaming("go")
        for _ in range(pieces):
            await anext(stream)
        await stream.aclose()
        await stream.aclose()
    assert agent.closed == list(range(1, len(agent.calls) + 1))
    assert LoopResult.of(stream).stop_reason is StopReason.CANCELLED


async def test_closing_a_loop_in_a_loop(agent: RecordingAgent):
    """Law 19: closing the outer stream closes the inner loop's and the agent's."""
    async with leaving_nothing():
        stream = LoopAgent(LoopAgent(agent, says("more")), says()).run_streaming("go")
        for _ in range(3):
            await anext(stream)
        await stream.aclose()
    assert agent.closed == [1, 2]


async def test_an_agent_that_cleans_up_slowly():
    """Law 19: the agent's stream has finished cleaning up when `aclose` returns."""
    steps: list[str] = []

    class Slow(RecordingAgent):
        async def run_core_streaming(self, messages, *, session, options):
            try:
                async for piece in super().run_core_streaming(messages, session=session, options=options):
                    yield piece
            finally:
                await asyncio.sleep(0)
                steps.append("cleaned up")

    stream = LoopAgent(Slow(), says()).run_streaming("go")
    await anext(stream)
    await stream.aclose()
    assert steps == ["cleaned up"]


async def test_a_failure_leaves_nothing(invoke: Way):
    """Law 19: a failure leaves nothing open either."""
    agent = RecordingAgent("draft", OSError("down"))
    async with leaving_nothing():
        with pytest.raises(OSError, match="down"):
            await invoke(LoopAgent(agent, says("more")))
    assert agent.closed == [1, 2]


async def test_a_whole_stream_leaves_nothing(agent: RecordingAgent):
    """Law 19: nor does a run that comes to its end."""
    async with leaving_nothing():
        await drain(LoopAgent(agent, says("more")).run_streaming("go"))
    assert agent.closed == [1, 2]
