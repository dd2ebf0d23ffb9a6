"""The ledger: one entry for each model call, whoever makes it, counted once."""

from __future__ import annotations

import copy
import json
import pickle
from collections.abc import Sequence
from itertools import count
from typing import Any

import pytest
from fakes import RecordingAgent, ScriptedEvaluator

from agents_loop import (
    AIJudgeLoopEvaluator,
    AIJudgeLoopEvaluatorOptions,
    BackgroundAgentsProvider,
    ChatClient,
    ChatClientAgent,
    ChatMessage,
    ChatOptions,
    ChatResponse,
    DelegateLoopEvaluator,
    FallbackChatClient,
    FunctionCallContent,
    JudgeFailurePolicy,
    Ledger,
    LedgerEntry,
    LoopAgent,
    LoopAgentOptions,
    LoopContext,
    LoopEvaluation,
    LoopResult,
    ModelPrice,
    UsageDetails,
    tool,
)
from agents_loop.foreign_agent import ForeignAgent
from agents_loop.metering.prices import PriceList
from agents_loop.testing import ScriptedChatClient

DONE = '{"gapAnalysis": "", "answered": true}'
MORE = '{"gapAnalysis": "more", "answered": false}'
USED = UsageDetails(10, 5)


def says(text: str, usage: UsageDetails | None = USED, **more: Any) -> ChatResponse:
    return ChatResponse(text, usage=usage, **more)


def judge(*replies: Any, **options: Any) -> AIJudgeLoopEvaluator:
    return AIJudgeLoopEvaluator(ScriptedChatClient(replies, model_id="judge-1"), AIJudgeLoopEvaluatorOptions(**options))


async def ledger_of(loop: LoopAgent, *, streaming: bool = False) -> Ledger:
    response = await (loop.run_streaming("go").final_response() if streaming else loop.run("go"))
    result = LoopResult.of(response)
    assert result is not None
    return result.ledger


def rows(ledger: Ledger) -> list[tuple[Any, ...]]:
    return [(entry.role, entry.iteration, entry.model_id, entry.outcome) for entry in ledger]


@pytest.mark.parametrize("streaming", [False, True])
@pytest.mark.parametrize("mode", ["first", "all"])
async def test_each_call_of_agent_and_judge_is_an_entry(*, streaming: bool, mode: Any):
    """U1: in order, with role, iteration, model, tokens, seconds and outcome."""
    ticks = count()
    worker = ScriptedChatClient([says("a", model_id="answered-1"), says("b", UsageDetails(1, 2))], model_id="asked-1")
    options = LoopAgentOptions(clock=lambda: float(next(ticks)), evaluation_mode=mode)
    loop = LoopAgent(ChatClientAgent(worker), [judge(says(MORE), says(DONE)), ScriptedEvaluator()], options)

    ledger = await ledger_of(loop, streaming=streaming)

    assert rows(ledger) == [
        ("agent", 1, "answered-1", "ok"),
        ("evaluator", 1, "judge-1", "ok"),
        ("agent", 2, "asked-1", "ok"),
        ("evaluator", 2, "judge-1", "ok"),
    ]
    assert [entry.usage for entry in ledger] == [USED, USED, UsageDetails(1, 2), USED]
    assert {entry.duration_s for entry in ledger} == {1.0}
    assert {entry.cost_usd for entry in ledger} == {None}


async def test_each_round_of_tools_and_what_a_tool_asks_is_an_entry():
    """U1: several rounds are several calls; a call made within a tool is the agent's too, whatever it is made through."""
    inner = ScriptedChatClient([says("a fact", UsageDetails(3, 3))], model_id="inner")

    @tool
    async def look_up() -> str:
        """Ask another model."""
        return (await inner.get_response([ChatMessage("user", "?")])).text

    call = ChatResponse([ChatMessage("assistant", [FunctionCallContent("1", "look_up", {})])], usage=USED)
    agent = ChatClientAgent(ScriptedChatClient([call, says("done")], model_id="outer"), tools=[look_up])

    ledger = await ledger_of(LoopAgent(agent, ScriptedEvaluator()))

    assert rows(ledger) == [("agent", 1, name, "ok") for name in ("outer", "inner", "outer")]
    assert ledger.total.usage == UsageDetails(23, 13)


async def test_failed_attempts_and_replies_that_ended_early_are_entries_with_their_cause():
    """U1: what failed before a retry is there, and so is a refusal."""
    policy = JudgeFailurePolicy(retries=2, sleep=_no_sleep)
    evaluator = judge(ConnectionError("down"), TimeoutError("slow"), says(DONE), on_failure=policy)
    agent = ChatClientAgent(ScriptedChatClient([says("no", finish_reason="refusal")]))

    ledger = await ledger_of(LoopAgent(agent, evaluator))

    assert [entry.outcome for entry in ledger] == ["refusal", "network", "timeout", "ok"]
    assert [entry.usage for entry in ledger] == [USED, None, None, USED]
    assert ledger.by_role()["evaluator"].calls == 3


async def test_an_exception_that_ends_the_run_is_an_entry_too():
    """U1: the ledger can be read from the exception."""
    agent = ChatClientAgent(ScriptedChatClient([says("a"), ConnectionError("down")], model_id="m"))

    with pytest.raises(ConnectionError) as caught:
        await LoopAgent(agent, judge(says(MORE))).run("go")

    result = LoopResult.of(caught.value)
    assert result is not None
    assert rows(result.ledger) == [
        ("agent", 1, "m", "ok"),
        ("evaluator", 1, "judge-1", "ok"),
        ("agent", 2, "m", "network"),
    ]


class Wrapper(ChatClient):
    """Passes its calls on."""

    def __init__(self, inner: ChatClient) -> None:
        self.inner = inner

    async def get_response(self, messages: Sequence[ChatMessage], options: ChatOptions | None = None) -> ChatResponse:
        return await self.inner.get_response(messages, options)


@pytest.mark.parametrize("streaming", [False, True])
async def test_a_call_that_is_passed_on_is_one_entry(*, streaming: bool):
    """U1: a client around another is not counted again; each attempt of a fallback is an entry."""
    down = ScriptedChatClient([ConnectionError("down")], model_id="first")
    up = ScriptedChatClient([says("a")], model_id="second")
    agent = ChatClientAgent(Wrapper(FallbackChatClient(down, Wrapper(up))))

    ledger = await ledger_of(LoopAgent(agent, ScriptedEvaluator()), streaming=streaming)

    assert rows(ledger) == [("agent", 1, "first", "network"), ("agent", 1, "second", "ok")]
    assert ledger.total.usage == USED


@pytest.mark.parametrize("streaming", [False, True])
async def test_a_foreign_agents_run_is_one_entry(*, streaming: bool):
    """U1: of an agent whose calls are not seen, the response's usage is counted once for each run."""
    loop = LoopAgent(RecordingAgent(usage=USED), ScriptedEvaluator([LoopEvaluation.continue_("more")]))

    ledger = await ledger_of(loop, streaming=streaming)

    assert rows(ledger) == [("agent", 1, None, "ok"), ("agent", 2, None, "ok")]
    assert [entry.usage for entry in ledger] == [USED, USED]
    assert await ledger_of(LoopAgent(RecordingAgent(), ScriptedEvaluator())) == ()


class Framework(RecordingAgent, ForeignAgent[None]):
    """An agent of a framework."""

    framework = "test"
    run_streaming = RecordingAgent.run_streaming
    new_conversation = write_conversation = read_conversation = stream = None


async def test_a_frameworks_run_is_an_entry_also_without_usage_and_if_it_fails():
    """U1: that it asked a model is known, even if it does not say what that used."""
    assert rows(await ledger_of(LoopAgent(Framework(), ScriptedEvaluator()))) == [("agent", 1, None, "ok")]
    with pytest.raises(ConnectionError) as caught:
        await LoopAgent(Framework(ConnectionError("down")), ScriptedEvaluator()).run("go")
    result = LoopResult.of(caught.value)
    assert result is not None
    assert rows(result.ledger) == [("agent", 1, None, "network")]


async def test_a_loop_within_a_loop_is_in_both_ledgers():
    """U1: the outer ledger has the inner calls, under its own iterations, each once."""
    inner = LoopAgent(
        ChatClientAgent(ScriptedChatClient([says("a"), says("b"), says("c")])), judge(says(MORE), *[says(DONE)] * 2)
    )
    outer = LoopAgent(inner, judge(says(MORE), says(DONE)))

    response = await outer.run("go")

    result = LoopResult.of(response)
    assert result is not None
    assert [(entry.role, entry.iteration) for entry in result.ledger] == [
        *[("agent", 1), ("evaluator", 1), ("agent", 1), ("evaluator", 1), ("evaluator", 1)],
        *[("agent", 2), ("evaluator", 2), ("evaluator", 2)],
    ]
    within = LoopResult.of(result.iterations[0].response)
    assert within is not None
    assert [(entry.role, entry.iteration) for entry in within.ledger] == [
        *[("agent", 1), ("evaluator", 1), ("agent", 2), ("evaluator", 2)]
    ]
    assert result.usage == result.ledger.total.usage == UsageDetails(80, 40)
    assert result.iterations[0].usage == result.ledger.by_iteration()[1].usage


async def test_reported_usage_is_one_entry_unless_the_call_was_seen():
    """U1: an evaluator that reports what a call of ours used does no harm; of another SDK's it is the only source."""
    client = ScriptedChatClient([says("x"), says("y")])

    async def ours(context: LoopContext) -> bool:
        context.report_usage((await client.get_response([ChatMessage("user", "?")])).usage)
        return False

    async def theirs(context: LoopContext) -> bool:
        context.report_usage(UsageDetails(7))
        return False

    agent = RecordingAgent()
    assert [entry.usage for entry in await ledger_of(LoopAgent(agent, DelegateLoopEvaluator(ours)))] == [USED]
    ledger = await ledger_of(LoopAgent(agent, DelegateLoopEvaluator(theirs)))
    assert [(entry.role, entry.usage) for entry in ledger] == [("evaluator", UsageDetails(7))]


async def test_background_agents_calls_are_the_agents():
    """U1: what an agent started beside the run is its own, whenever it asks its model."""
    provider = BackgroundAgentsProvider({"scout": ChatClientAgent(ScriptedChatClient([says("found")], model_id="bg"))})
    start = FunctionCallContent("1", "background_start", {"agent": "scout", "input": "look", "description": "x"})
    worker = ScriptedChatClient([ChatResponse([ChatMessage("assistant", [start])]), "started"])

    async def wait(context: LoopContext) -> bool:
        await provider.wait(context.session, timeout_s=60)
        return False

    loop = LoopAgent(ChatClientAgent(worker, context_providers=[provider]), DelegateLoopEvaluator(wait))
    ledger = await ledger_of(loop)

    assert [entry.role for entry in ledger if entry.model_id == "bg"] == ["agent"]


def test_the_ledger_goes_through_json():
    """What is written is read back, entry for entry."""
    ledger = Ledger(
        [
            LedgerEntry("agent", 1, "m", UsageDetails(1, 2, additional_counts={"audio": 3}), 0.5, 1.25, "ok"),
            LedgerEntry("evaluator", 2, None, None, None, 0.0, "timeout"),
        ]
    )
    assert Ledger.from_json(json.loads(json.dumps(ledger.to_json()))) == ledger


async def test_a_result_with_a_ledger_can_be_copied_and_its_ledger_pickled():
    """A copy holds the entries, not the clients; the ledger is of the time when the run ended."""
    loop = LoopAgent(ChatClientAgent(ScriptedChatClient([says("a")])), ScriptedEvaluator())
    result = LoopResult.of(await loop.run("go"))
    assert result is not None
    assert copy.deepcopy(result).ledger == result.ledger
    assert pickle.loads(pickle.dumps(result.ledger)) == result.ledger  # noqa: S301 - our own
    assert json.loads(result.to_json())["ledger"] == result.ledger.to_json()


# --- costs


async def test_the_callers_prices_win_and_what_is_not_known_is_none():
    """An unknown model costs `None`, never 0; cached input has its own price."""
    price = ModelPrice(input_usd_per_million=10, output_usd_per_million=20, cached_input_usd_per_million=1)
    usage = UsageDetails(1000, 100, cached_input_token_count=500)
    replies = [
        says("a", usage, model_id="gpt-4o"),
        says("b", usage, model_id="of-nobody"),
        says("c", None, model_id="gpt-4o"),
    ]
    evaluator = ScriptedEvaluator([LoopEvaluation.continue_("more")] * 2)
    loop = LoopAgent(
        ChatClientAgent(ScriptedChatClient(replies)), evaluator, LoopAgentOptions(prices={"gpt-4*": price})
    )

    ledger = await ledger_of(loop)

    assert [entry.cost_usd for entry in ledger] == [pytest.approx(0.0075), None, None]
    assert ledger.total.cost_usd is None
    assert ledger.by_iteration()[1].cost_usd == pytest.approx(0.0075)
    assert ledger.by_model()["of-nobody"].cost_usd is None


async def test_known_models_have_the_price_of_the_list():
    """`genai-prices`: offline; a model is known by its name, its dated name, and with its provider."""
    pytest.importorskip("genai_prices")
    usage = UsageDetails(1_000_000, 1_000_000)
    names = ["gpt-4o", "gpt-4o-2024-08-06", "openai/gpt-4o", "of-nobody"]
    evaluator = ScriptedEvaluator([LoopEvaluation.continue_("more")] * 3)
    loop = LoopAgent(
        ChatClientAgent(ScriptedChatClient([says("a", usage, model_id=name) for name in names])), evaluator
    )

    ledger = await ledger_of(loop)

    known = [entry.cost_usd for entry in ledger][:3]
    assert len(set(known)) == 1
    assert known[0] is not None
    assert known[0] > 1
    assert ledger[3].cost_usd is None


@pytest.mark.parametrize("name", ["gpt-5-mini", "gemini-2.5-pro"])
def test_reasoning_that_the_total_alone_counts_has_the_price_of_output(name: str):
    """`genai-prices`: for a plain price, and for one that depends on how many tokens there are."""
    pytest.importorskip("genai_prices")
    cost_usd = PriceList().cost_of((name,))
    assert cost_usd is not None
    assert cost_usd(UsageDetails(20, 5, 1025)) == cost_usd(UsageDetails(20, 1005))


async def _no_sleep(_: float) -> None:
    """Nobody waits."""
