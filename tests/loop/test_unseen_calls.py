"""The ledger where calls are not seen: what an agent's own calls used, beside those that its tools make."""

from __future__ import annotations

from typing import Any

import pytest
from fakes import RecordingAgent, ScriptedEvaluator

from agents_loop import (
    AgentResponse,
    AIAgent,
    CandidateAgent,
    ChatClientAgent,
    ChatMessage,
    ChatResponse,
    Ledger,
    LoopAgent,
    LoopAgentOptions,
    LoopBudget,
    LoopEvaluation,
    LoopResult,
    StopReason,
    UsageDetails,
)
from agents_loop.foreign_agent import ForeignAgent
from agents_loop.testing import ScriptedChatClient

OF_TOOL = UsageDetails(10, 5)


class WithTool(RecordingAgent):
    """Asks its model unseen, and a chat client of ours so many times within a tool."""

    def __init__(self, *, tool_calls: int = 1, **options: Any) -> None:
        super().__init__(**options)
        self._tool_calls = tool_calls
        self._client = ScriptedChatClient(lambda *_: ChatResponse("a fact", usage=OF_TOOL))

    async def run_core(self, messages: list[ChatMessage], **run: Any) -> AgentResponse:
        for _ in range(self._tool_calls):
            await self._client.get_response([ChatMessage("user", "?")])
        return await super().run_core(messages, **run)


class OfFramework(WithTool, ForeignAgent[None]):
    """An agent of a framework."""

    framework = "test"
    run_streaming = WithTool.run_streaming
    new_conversation = write_conversation = read_conversation = stream = None


async def result_of(agent: AIAgent, **options: Any) -> LoopResult:
    evaluator = ScriptedEvaluator([LoopEvaluation.continue_("more")] * 9)
    result = LoopResult.of(await LoopAgent(agent, evaluator, LoopAgentOptions(max_iterations=2, **options)).run("go"))
    assert result is not None
    return result


def used(ledger: Ledger, iteration: int = 1) -> list[UsageDetails | None]:
    return [entry.usage for entry in ledger if entry.iteration == iteration]


@pytest.mark.parametrize("own", [UsageDetails(900, 100), UsageDetails(3, 1)])
async def test_a_frameworks_own_calls_are_counted_beside_those_of_its_tools(own: UsageDetails):
    """U1: a tool that asks a chat client hides nothing of what the framework's agent reports itself."""
    result = await result_of(OfFramework(usage=own))
    assert used(result.ledger) == used(result.ledger, 2) == [OF_TOOL, own]
    assert result.iterations[0].usage == OF_TOOL + own


async def test_a_budget_ends_a_framework_whose_tools_ask_models():
    """U2: a call too many is in flight, and no more."""
    result = await result_of(OfFramework(usage=UsageDetails(900, 100)), budget=LoopBudget(max_tokens=500))
    assert (result.stop_reason, len(result.ledger)) == (StopReason.BUDGET_EXCEEDED, 2)


@pytest.mark.parametrize("kind", [WithTool, OfFramework])
@pytest.mark.parametrize("calls", [1, 3])
async def test_what_was_seen_is_not_counted_again(kind: type[WithTool], calls: int):
    """U1: an agent that passes its run on to one of ours reports the same numbers."""
    agent = kind(tool_calls=calls, usage=UsageDetails(10 * calls, 5 * calls))
    assert used((await result_of(agent)).ledger) == [OF_TOOL] * calls


@pytest.mark.parametrize(
    ("own", "is_kept"),
    [(UsageDetails(900, 100), True), (UsageDetails(None, None, 16), True), (UsageDetails(3, 1), False)],
)
async def test_an_agent_of_your_own_that_used_more_than_was_seen(own: UsageDetails, *, is_kept: bool):
    """U1: then its own calls were not; where it used less, what it reports may be a part of what was seen."""
    assert used((await result_of(WithTool(usage=own))).ledger) == [OF_TOOL, *[own] * is_kept]


async def test_each_candidate_of_a_framework_is_counted_once():
    """U1: their sum, which the candidates' response reports, is not counted again."""
    own = UsageDetails(900, 100)
    ledger = (await result_of(CandidateAgent(OfFramework(usage=own), 3, lambda _: 1.0))).ledger
    assert sorted(map(str, used(ledger))) == sorted(map(str, [OF_TOOL, own] * 3))


async def test_an_agent_of_ours_whose_tools_ask_models_is_counted_once():
    """U1: its response reports its own rounds, which were seen one by one, and not those of its tools."""
    helper = ChatClientAgent(ScriptedChatClient(lambda *_: ChatResponse("a fact", usage=OF_TOOL)))

    class Around(RecordingAgent):
        async def run_core(self, messages: list[ChatMessage], **run: Any) -> AgentResponse:
            await helper.run("?")
            return await helper.run(messages, **run)

    assert used((await result_of(Around())).ledger) == [OF_TOOL] * 2
