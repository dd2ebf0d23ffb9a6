"""The ledger where calls are not seen: what an agent's own calls used, beside those that its tools make."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest
from fakes import RecordingAgent, ScriptedEvaluator

from agents_loop import (
    AgentResponse,
    AIAgent,
    BackgroundAgentsProvider,
    CandidateAgent,
    ChatClientAgent,
    ChatMessage,
    ChatResponse,
    ConfigurationError,
    DelegateLoopEvaluator,
    FunctionCallContent,
    Ledger,
    LoopAgent,
    LoopAgentOptions,
    LoopBudget,
    LoopContext,
    LoopEvaluation,
    LoopEvaluator,
    LoopResult,
    ModelPrice,
    StopReason,
    UsageDetails,
    tool,
)
from agents_loop.agent_response import updates_of
from agents_loop.foreign_agent import ForeignAgent
from agents_loop.messages import sum_usage
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
    new_conversation = write_conversation = read_conversation = None

    async def stream(
        self, messages: list[ChatMessage], *, given: list[AgentResponse], **run: Any
    ) -> AsyncIterator[Any]:
        given.append(await self.run_core(messages, **run))
        for update in updates_of(given[0]):
            yield update


async def result_of(
    agent: AIAgent, evaluator: LoopEvaluator | None = None, *, streaming: bool = False, **options: Any
) -> LoopResult:
    asked = evaluator or ScriptedEvaluator([LoopEvaluation.continue_("more")] * 9)
    loop = LoopAgent(agent, asked, LoopAgentOptions(max_iterations=2, **options))
    response = await (loop.run_streaming("go").final_response() if streaming else loop.run("go"))
    result = LoopResult.of(response)
    assert result is not None
    return result


def model(*replies: ChatResponse) -> ScriptedChatClient:
    """Gives the replies, and then says "done" for nothing."""
    said = iter(replies)
    return ScriptedChatClient(lambda *_: next(said, ChatResponse("done", usage=UsageDetails(0, 0))))


def used(ledger: Ledger, iteration: int = 1) -> list[UsageDetails | None]:
    return [entry.usage for entry in ledger if entry.iteration == iteration]


@pytest.mark.parametrize("streaming", [False, True])
@pytest.mark.parametrize("own", [UsageDetails(900, 100), UsageDetails(3, 1)])
async def test_a_frameworks_own_calls_are_counted_beside_those_of_its_tools(own: UsageDetails, *, streaming: bool):
    """U1: a tool that asks a chat client hides nothing of what the framework's agent reports itself."""
    result = await result_of(OfFramework(usage=own), streaming=streaming)
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


OWN = UsageDetails(900, 100)


def look_up() -> str:
    """Look it up."""
    return "a fact"


def calling(helper: AIAgent) -> ChatClientAgent:
    """An agent of ours with a tool that runs another agent, which it calls first."""

    @tool(name="look_up")
    async def ask() -> str:
        """Ask another agent."""
        return (await helper.run("?")).text

    asks = ChatResponse([ChatMessage("assistant", [FunctionCallContent("1", "look_up", {})])], usage=OF_TOOL)
    return ChatClientAgent(model(asks), tools=[ask])


class Orchestration(OfFramework):
    """An agent of a framework that passes its run on to an agent of ours, and reports what that reports."""

    def __init__(self, member: AIAgent) -> None:
        super().__init__(tool_calls=0)
        self._member = member

    async def run_core(self, messages: list[ChatMessage], **_: Any) -> AgentResponse:
        response = await self._member.run(messages)
        total = sum_usage([response.usage]) or UsageDetails()
        total.total_token_count = (total.input_token_count or 0) + (total.output_token_count or 0)
        return AgentResponse("done", usage=total)


@pytest.mark.parametrize("streaming", [False, True])
async def test_what_was_passed_on_to_a_loop_is_not_counted_again(*, streaming: bool):
    """U1: a loop reports what its agent used; its judge's calls are seen as well, and its agent may be a framework's."""

    async def ask(_: LoopContext) -> bool:
        await model(ChatResponse("more", usage=OF_TOOL)).get_response([ChatMessage("user", "?")])
        return True

    for agent in (OfFramework(tool_calls=0, usage=OWN), ChatClientAgent(model(*[ChatResponse("a", usage=OWN)] * 2))):
        loop = LoopAgent(agent, DelegateLoopEvaluator(ask), LoopAgentOptions(max_iterations=2))
        ledger = (await result_of(Orchestration(loop), ScriptedEvaluator(), streaming=streaming)).ledger
        assert [(entry.role, entry.usage) for entry in ledger] == [
            *[("agent", OWN), ("evaluator", OF_TOOL), ("agent", OWN)]
        ]


async def test_rounds_that_report_a_part_are_counted_once():
    """U1: a round that reports its output alone and one that reports all are what the response sums up."""
    asks = ChatResponse(
        [ChatMessage("assistant", [FunctionCallContent("1", "look_up", {})])], usage=UsageDetails(None, 90)
    )
    agent = ChatClientAgent(model(asks, ChatResponse("a draft", usage=OWN)), tools=[tool(look_up)])
    assert used((await result_of(agent)).ledger) == [UsageDetails(None, 90), OWN]


async def test_a_framework_within_a_tool_is_a_call_of_the_agent():
    """U1, U2: an agent of a framework is counted whoever runs it, and a budget ends the run."""
    result = await result_of(calling(OfFramework(tool_calls=0, usage=OWN)), budget=LoopBudget(max_tokens=500))
    assert (result.stop_reason, used(result.ledger)) == (StopReason.BUDGET_EXCEEDED, [OF_TOOL, OWN])


async def test_a_framework_within_an_evaluator_is_a_call_of_the_evaluator():
    """U1, U2: also where the evaluator reports what it used, which is the same call."""
    helper = OfFramework(tool_calls=0, usage=OWN)

    async def ask(context: LoopContext) -> bool:
        context.report_usage((await helper.run("?")).usage or UsageDetails())
        return True

    result = await result_of(ChatClientAgent(model()), DelegateLoopEvaluator(ask), budget=LoopBudget(max_tokens=500))
    assert result.stop_reason is StopReason.BUDGET_EXCEEDED
    assert [(entry.role, entry.usage) for entry in result.ledger][1:] == [("evaluator", OWN)]


async def test_a_framework_in_the_background_is_a_call_of_the_agent():
    """U1: a background agent of a framework is counted as one of ours is."""
    provider = BackgroundAgentsProvider({"scout": OfFramework(tool_calls=0, usage=OWN)})
    start = FunctionCallContent("1", "background_start", {"agent": "scout", "input": "look", "description": "x"})
    asks = ChatResponse([ChatMessage("assistant", [start])], usage=OF_TOOL)

    async def wait(context: LoopContext) -> bool:
        await provider.wait(context.session, timeout_s=60)
        return False

    agent = ChatClientAgent(model(asks), context_providers=[provider])
    ledger = (await result_of(agent, DelegateLoopEvaluator(wait))).ledger
    assert [entry.role for entry in ledger if entry.usage == OWN] == ["agent"]


async def test_frameworks_at_once_are_never_more_calls_than_allowed():
    """U2: their runs are counted when they begin."""
    agent = CandidateAgent(OfFramework(tool_calls=0, usage=OWN), 3, lambda _: 1.0)
    result = await result_of(agent, budget=LoopBudget(max_model_calls=2))
    assert (result.stop_reason, used(result.ledger)) == (StopReason.BUDGET_EXCEEDED, [OWN, OWN])


async def test_a_run_that_was_passed_on_is_no_call_of_its_own():
    """U2: what began is taken back, so that two runs of one call each are two calls."""
    agent = OfFramework(usage=OF_TOOL)
    result = await result_of(agent, budget=LoopBudget(max_model_calls=3, keeps_back_verdict=False))
    assert (result.stop_reason, len(result.ledger)) == (StopReason.MAX_ITERATIONS, 2)


async def test_a_framework_within_a_tool_needs_a_price_before_it_is_run():
    """U2: its model is never named, so that `prices` must have one for all such calls."""
    helper = OfFramework(tool_calls=0, usage=OWN)
    price = ModelPrice(input_usd_per_million=1, output_usd_per_million=1)
    agent = calling(helper)
    loop = LoopAgent(
        agent, ScriptedEvaluator(), LoopAgentOptions(budget=LoopBudget(max_cost_usd=1), prices={"m": price})
    )
    with pytest.raises(ConfigurationError, match="prices="):
        await loop.run("go")
    assert helper.calls == []


async def test_outside_of_a_run_nothing_is_metered():
    """U1: an agent of a framework that no loop runs is run as it is."""
    agent = OfFramework(tool_calls=0, usage=OWN)
    assert (await agent.run("go")).text == (await agent.run_streaming("go").final_response()).text.replace("2", "1")
