"""A thousand loops of which everything is drawn at random: agents, judges, failures, stalls, budgets, loops within loops."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest

from agents_loop import (
    AIAgent,
    AIJudgeLoopEvaluator,
    AIJudgeLoopEvaluatorOptions,
    AlternatingAnswersSignal,
    AnotherAgentStep,
    AskPersonStep,
    ChatClient,
    ChatClientAgent,
    ChatMessage,
    ChatOptions,
    ChatResponse,
    ChatResponseUpdate,
    CompletionMarkerLoopEvaluator,
    DelegateLoopEvaluator,
    EmptyAnswersSignal,
    FallbackChatClient,
    FreshContextStep,
    FunctionCallContent,
    JudgeFailurePolicy,
    LoopAgent,
    LoopAgentOptions,
    LoopBudget,
    LoopEvaluator,
    LoopResult,
    ModelPrice,
    NudgeStep,
    PanelLoopEvaluator,
    PanelLoopEvaluatorOptions,
    SameAnswerSignal,
    SameFeedbackSignal,
    SameToolCallsSignal,
    StallPolicy,
    StopReason,
    StopStep,
    TextContent,
    UsageContent,
    UsageDetails,
    tool,
)

PRICES = {"*": ModelPrice(input_usd_per_million=10, output_usd_per_million=30, cached_input_usd_per_million=1)}
LIMIT_REASONS = (StopReason.BUDGET_EXCEEDED, StopReason.DEADLINE)


@dataclass
class Provider:
    """The models' side: what it was asked for, and what it has answered; at most so many calls were in flight."""

    usages: list[UsageDetails] = field(default_factory=list)
    failures: int = 0
    cancelled: int = 0
    in_flight: int = 0
    most_in_flight: int = 0
    largest: int = 0
    now: float = 0.0

    @property
    def tokens(self) -> int:
        return sum(tokens(usage) for usage in self.usages)

    @property
    def cost_usd(self) -> float:
        return sum(PRICES["*"].cost_usd(usage) or 0.0 for usage in self.usages)

    @property
    def calls(self) -> int:
        return len(self.usages) + self.failures + self.cancelled


def tokens(usage: UsageDetails) -> int:
    return (usage.input_token_count or 0) + (usage.output_token_count or 0)


class Model(ChatClient):
    """A model whose replies, failures and sizes are drawn."""

    def __init__(self, provider: Provider, draw: random.Random, say: Callable[[], Any], fails: float) -> None:
        self.model_id = f"model-{draw.randrange(3)}"
        self._provider = provider
        self._draw = draw
        self._say = say
        self._fails = fails

    async def get_response(self, messages: Sequence[ChatMessage], options: ChatOptions | None = None) -> ChatResponse:
        return await self._answer(options)

    async def _answer(self, options: ChatOptions | None) -> ChatResponse:
        provider, draw = self._provider, self._draw
        provider.in_flight += 1
        provider.most_in_flight = max(provider.most_in_flight, provider.in_flight)
        try:
            for _ in range(draw.randrange(3)):
                await asyncio.sleep(0)
            provider.now += draw.random()
            if draw.random() < self._fails:
                provider.failures += 1
                raise draw.choice([ConnectionError("down"), TimeoutError("slow"), ValueError("no such model")])
            asked = draw.randrange(1, 400)
            usage = UsageDetails(
                asked, draw.randrange(1, 200), cached_input_token_count=draw.choice([None, asked // 2])
            )
            provider.usages.append(usage)
            provider.largest = max(provider.largest, tokens(usage))
            reason = draw.choices(["stop", "length", "refusal"], [0.94, 0.03, 0.03])[0]
            said = self._say()
            contents = [said] if options is None or not options.tools else [said, *maybe_call(draw)]
            return ChatResponse([ChatMessage("assistant", contents)], usage=usage, finish_reason=reason)
        except asyncio.CancelledError:
            provider.cancelled += 1
            raise
        finally:
            provider.in_flight -= 1

    async def get_streaming_response(
        self, messages: Sequence[ChatMessage], options: ChatOptions | None = None
    ) -> AsyncIterator[ChatResponseUpdate]:
        response = await self._answer(options)
        for message in response.messages:
            yield ChatResponseUpdate("assistant", message.contents)
        yield ChatResponseUpdate(contents=[UsageContent(response.usage)], finish_reason=response.finish_reason)


def maybe_call(draw: random.Random) -> list[FunctionCallContent]:
    """Calls of a tool, several at once, in four of ten replies."""
    count = draw.choices([0, 1, 3], [0.6, 0.25, 0.15])[0]
    return [FunctionCallContent(f"call-{draw.random()}", "look_up", {"topic": "x"}) for _ in range(count)]


class Drawn:
    """One loop, and what is known of it."""

    def __init__(self, seed: int) -> None:
        self.draw = random.Random(seed)
        self.provider = Provider()
        self.budget = self._budget()
        self.streaming = self.draw.random() < 0.3
        agent = self._agent(depth=self.draw.choices([0, 1], [0.8, 0.2])[0])
        self.loop = LoopAgent(agent, self._evaluators(), self._options(self.budget))

    async def run(self) -> tuple[LoopResult, BaseException | None]:
        try:
            if self.streaming:
                response = await self.loop.run_streaming("go").final_response()
            else:
                response = await self.loop.run("go")
        except Exception as error:  # noqa: BLE001 - whatever it raised, it has a result
            result = LoopResult.of(error)
            assert result is not None
            return result, error
        result = LoopResult.of(response)
        assert result is not None
        return result, None

    def _budget(self) -> LoopBudget | None:
        draw = self.draw
        if draw.random() < 0.2:
            return None
        limits: dict[str, Any] = {}
        while not limits:
            if draw.random() < 0.5:
                limits["max_tokens"] = draw.randrange(1, 6000)
            if draw.random() < 0.3:
                limits["max_cost_usd"] = draw.uniform(0.0005, 0.05)
            if draw.random() < 0.3:
                limits["max_model_calls"] = draw.randrange(1, 20)
            if draw.random() < 0.2:
                limits["deadline_s"] = draw.uniform(0.1, 10)
        return LoopBudget(**limits, keeps_back_verdict=draw.random() < 0.8)

    def _options(self, budget: LoopBudget | None) -> LoopAgentOptions:
        draw = self.draw
        return LoopAgentOptions(
            max_iterations=draw.randrange(1, 12),
            budget=budget,
            prices=PRICES,
            clock=lambda: self.provider.now,
            evaluation_mode=draw.choice(["first", "all"]),
            evaluate_final_iteration=draw.random() < 0.5,
            fresh_context_per_iteration=draw.random() < 0.2,
            on_bad_response=draw.choice(["evaluate", "retry", "stop"]),
            return_best=draw.random() < 0.3,
            stall=self._stall(),
        )

    def _stall(self) -> StallPolicy | None:
        """None, the default, or any signals and steps, their thresholds low so that they are often true."""
        draw = self.draw
        kind = draw.choices(["none", "default", "drawn"], [0.4, 0.2, 0.4])[0]
        if kind != "drawn":
            return StallPolicy() if kind == "default" else None
        signals = [
            SameAnswerSignal(draw.randrange(2, 4)),
            AlternatingAnswersSignal(4),
            EmptyAnswersSignal(draw.randrange(2, 4)),
            SameFeedbackSignal(draw.randrange(2, 6)),
            SameToolCallsSignal(2),
        ]
        other = ChatClientAgent(self._model(lambda: TextContent(draw.choice(["of another", "DONE"])), 0.1))
        steps = [NudgeStep(), FreshContextStep(), AnotherAgentStep(other)]
        ladder = [draw.choice(steps) for _ in range(draw.randrange(3))]
        last = draw.choices([StopStep(), AskPersonStep()], [0.7, 0.3])[0]
        return StallPolicy(signals=draw.sample(signals, draw.randrange(1, 6)), ladder=[*ladder, last])

    def _model(self, say: Callable[[], Any], fails: float) -> ChatClient:
        model = Model(self.provider, self.draw, say, fails)
        if self.draw.random() < 0.2:
            return FallbackChatClient(model, Model(self.provider, self.draw, say, fails))
        return model

    def _agent(self, depth: int) -> AIAgent:
        draw = self.draw
        drafts = self._model(
            lambda: TextContent(draw.choice(["a draft", "another", "DONE", ""])), draw.choice([0, 0, 0.1])
        )
        if draw.random() < 0.4:
            helper = ChatClientAgent(self._model(lambda: TextContent("a fact"), 0.1))

            @tool
            async def look_up(topic: str) -> str:
                """Ask another model."""
                return (await helper.run(topic)).text

            agent: AIAgent = ChatClientAgent(drafts, tools=[look_up], max_tool_rounds=3)
        else:
            agent = ChatClientAgent(drafts)
        if depth:
            return LoopAgent(agent, self._evaluators(), self._options(None))
        return agent

    def _evaluators(self) -> list[LoopEvaluator]:
        return [self._evaluator() for _ in range(self.draw.randrange(1, 3))]

    def _evaluator(self) -> LoopEvaluator:
        draw = self.draw
        kind = draw.choices(["judge", "panel", "marker", "client"], [0.5, 0.2, 0.15, 0.15])[0]
        if kind == "panel":
            return PanelLoopEvaluator(
                [self._judge() for _ in range(3)], PanelLoopEvaluatorOptions(on_failure="abstain")
            )
        if kind == "marker":
            return CompletionMarkerLoopEvaluator("DONE")
        if kind == "client":
            client = self._model(lambda: TextContent("fine"), 0.0)

            async def ask(context: Any) -> bool:
                context.report_usage((await client.get_response([ChatMessage("user", "?")])).usage)
                return draw.random() < 0.8

            return DelegateLoopEvaluator(ask)
        return self._judge()

    def _judge(self) -> AIJudgeLoopEvaluator:
        draw = self.draw
        words = ['{"gapAnalysis": "more", "answered": false}', '{"gapAnalysis": "", "answered": true}', "hm"]

        def say() -> TextContent:
            return TextContent(draw.choices(words, [0.75, 0.15, 0.1])[0])

        policy = JudgeFailurePolicy(
            error=draw.choice([("retry", "raise"), ("retry", "continue"), "stop"]),
            unreadable=draw.choice([("retry", "continue"), "continue"]),
            sleep=_no_sleep,
        )
        return AIJudgeLoopEvaluator(
            self._model(say, draw.choice([0, 0.1])), AIJudgeLoopEvaluatorOptions(on_failure=policy)
        )


async def _no_sleep(_: float) -> None:
    await asyncio.sleep(0)


@pytest.mark.parametrize("hundred", range(10))
async def test_every_run_ends_with_a_reason_within_its_budget_and_its_ledger_is_the_providers(hundred: int):
    """U1, U2: a stop reason; no budget exceeded by more than the calls in flight; the ledger to the token."""
    reasons: set[StopReason] = set()
    stalled: set[str | None] = set()
    for seed in range(hundred * 100, hundred * 100 + 100):
        drawn = Drawn(seed)
        result, error = await drawn.run()
        reasons.add(result.stop_reason)
        stalled |= {record.stall for record in result.iterations}
        assert_explained(result, error, seed)
        assert_ledger_is_the_providers(result, drawn.provider, seed)
        if drawn.budget is not None:
            assert_within(drawn.budget, drawn.provider, seed)
    assert {StopReason.SATISFIED, StopReason.MAX_ITERATIONS, StopReason.BUDGET_EXCEEDED} <= reasons
    assert len(stalled) > 2  # several signals were true, and in some iterations none was


def assert_explained(result: LoopResult, error: BaseException | None, seed: int) -> None:
    assert isinstance(result.stop_reason, StopReason), seed
    if result.stop_reason in LIMIT_REASONS:
        assert error is None, seed
        assert result.stop_detail, seed
        assert bool(result.output) <= bool(result.iterations), seed
    if result.stop_reason is StopReason.STALLED:
        assert result.iterations[-1].stall, seed
        assert str(result.stop_detail).startswith(f"{result.iterations[-1].stall}: "), seed
    if result.stop_reason is StopReason.PENDING_INPUT:
        assert error is None, seed
        assert result.stop_detail, seed


def assert_ledger_is_the_providers(result: LoopResult, provider: Provider, seed: int) -> None:
    used = [entry.usage for entry in result.ledger if entry.usage is not None]
    assert sorted(map(str, used)) == sorted(map(str, provider.usages)), seed
    assert len(result.ledger) == provider.calls, seed
    assert sum(map(tokens, used)) == provider.tokens, seed
    assert result.ledger.total.cost_usd == pytest.approx(provider.cost_usd), seed
    assert sum(entry.outcome == "cancelled" for entry in result.ledger) == provider.cancelled, seed
    assert sum(part.calls for part in result.ledger.by_role().values()) == provider.calls, seed
    assert sum(part.calls for part in result.ledger.by_iteration().values()) == provider.calls, seed


def assert_within(budget: LoopBudget, provider: Provider, seed: int) -> None:
    over = max(1, provider.most_in_flight)
    if budget.max_tokens is not None:
        assert provider.tokens < budget.max_tokens + over * provider.largest, seed
    if budget.max_cost_usd is not None:
        largest = max([PRICES["*"].cost_usd(usage) or 0.0 for usage in provider.usages], default=0.0)
        assert provider.cost_usd < budget.max_cost_usd + over * largest, seed
    if budget.max_model_calls is not None:
        assert provider.calls <= budget.max_model_calls, seed
