"""Budgets over loops drawn at random: several, within each other, at once, over resumes, with usage reported in part."""

from __future__ import annotations

import asyncio
import math
import random
from collections.abc import AsyncIterator, Callable, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from agents_loop import (
    AgentResponse,
    AIAgent,
    AIJudgeLoopEvaluator,
    AIJudgeLoopEvaluatorOptions,
    CandidateAgent,
    ChatClient,
    ChatClientAgent,
    ChatMessage,
    ChatOptions,
    ChatResponse,
    ChatResponseUpdate,
    FallbackChatClient,
    JudgeFailurePolicy,
    LoopAgent,
    LoopAgentOptions,
    LoopBudget,
    LoopResult,
    ModelPrice,
    PanelLoopEvaluator,
    PanelLoopEvaluatorOptions,
    StopReason,
    UsageContent,
    UsageDetails,
)

LIMITS = (StopReason.BUDGET_EXCEEDED, StopReason.DEADLINE)
PRICES = {"*": ModelPrice(input_usd_per_million=10, output_usd_per_million=30, cached_input_usd_per_million=1)}
RUNS: ContextVar[tuple[int, ...]] = ContextVar("runs", default=())
"""The runs that the current code belongs to, the outermost first."""


@dataclass
class Made:
    """A call, as the provider saw it."""

    runs: tuple[int, ...]
    asked: int
    usage: UsageDetails | None = None
    tokens: int = 0
    cached: int = 0
    cost_usd: float = 0.0
    is_over: bool = False

    def end(self, usage: UsageDetails | None, answered: int, *, estimates: bool = True) -> None:
        """What it has used, by the rules of the docs."""
        self.is_over, self.usage = True, usage
        reported = usage or UsageDetails()
        sent, received, total = reported.input_token_count, reported.output_token_count, reported.total_token_count
        if total is not None and (sent is None or received is None):
            sent = min(sent or 0, total)
            received = total - sent
        elif not estimates and sent is None and received is None:
            return
        sent = math.ceil(self.asked / 4) if sent is None else sent
        received = math.ceil(answered / 4) if received is None else received
        received = max(received, (total or 0) - sent)
        self.tokens = sent + received
        self.cached = min(reported.cached_input_token_count or 0, self.tokens if total and not sent else sent)
        divided = replace(reported, input_token_count=sent, output_token_count=received, total_token_count=None)
        if reported.input_token_count is None or reported.output_token_count is None:
            divided.cached_input_token_count = None if total is not None else divided.cached_input_token_count
        self.cost_usd = PRICES["*"].cost_usd(divided) or 0.0


@dataclass
class World:
    """All calls, the time, and which budgets bound which run from which call on."""

    draw: random.Random
    calls: list[Made] = field(default_factory=list[Made])
    budgets: dict[int, list[tuple[LoopBudget, int]]] = field(default_factory=dict[int, list[tuple[LoopBudget, int]]])
    now: float = 0.0

    def begin(self, messages: Sequence[ChatMessage]) -> Made:
        """A call begins: see that no budget of a run that it belongs to is used up."""
        for run in RUNS.get():
            for budget, since in self.budgets[run]:
                mine = [made for made in self.calls[since:] if run in made.runs]
                tokens = sum(made.tokens - (0 if budget.counts_cached_input else made.cached) for made in mine)
                assert budget.max_tokens is None or tokens < budget.max_tokens
                assert budget.max_model_calls is None or len(mine) < budget.max_model_calls
                assert budget.max_cost_usd is None or sum(made.cost_usd for made in mine) < budget.max_cost_usd + 1e-12
        made = Made(RUNS.get(), sum(len(message.text) for message in messages))
        self.calls.append(made)
        return made

    def usage(self) -> UsageDetails | None:
        asked, answered = self.draw.randrange(300), self.draw.randrange(150)
        return self.draw.choice(
            [
                UsageDetails(asked, answered, cached_input_token_count=self.draw.choice([None, asked // 2, asked * 3])),
                UsageDetails(asked, answered, asked + answered + self.draw.randrange(200)),
                UsageDetails(asked),
                UsageDetails(None, answered),
                UsageDetails(None, None, asked + answered),
                UsageDetails(asked, None, asked + answered),
                UsageDetails(-5, answered),
                UsageDetails(10**400, answered, 10**400),
                None,
            ]
        )

    def budget(self) -> LoopBudget:
        draw, limits = self.draw, dict[str, Any]()
        while not limits:
            drawn = {
                "max_tokens": draw.randrange(1, 4000),
                "max_cost_usd": draw.uniform(0.0005, 0.05),
                "max_model_calls": draw.randrange(1, 20),
                "deadline_s": draw.uniform(0.1, 10),
            }
            limits = {name: value for name, value in drawn.items() if draw.random() < 0.35}
        return LoopBudget(**limits, counts_cached_input=draw.random() < 0.6, keeps_back_verdict=draw.random() < 0.7)


class Model(ChatClient):
    """A model that fails, breaks off, and reports what it used as it likes."""

    def __init__(self, world: World, say: Callable[[], str], fails: float, name: str = "model") -> None:
        self.model_id = name
        self._world, self._say, self._fails = world, say, fails

    async def get_response(self, messages: Sequence[ChatMessage], options: ChatOptions | None = None) -> ChatResponse:
        made, world = self._world.begin(messages), self._world
        try:
            for _ in range(world.draw.randrange(3)):
                await asyncio.sleep(0)
            world.now += world.draw.random()
            self._maybe_fail()
        except BaseException:
            made.is_over = True
            raise
        said, usage = self._say(), world.usage()
        made.end(usage, len(said))
        return ChatResponse(said, usage=usage)

    async def get_streaming_response(
        self, messages: Sequence[ChatMessage], options: ChatOptions | None = None
    ) -> AsyncIterator[ChatResponseUpdate]:
        made, world, given, told = self._world.begin(messages), self._world, 0, None
        said, usage, is_early = self._say(), world.usage(), world.draw.random() < 0.5
        try:
            await asyncio.sleep(0)
            world.now += world.draw.random()
            self._maybe_fail()
            for piece in (said[:3], said[3:]):
                if usage is not None and is_early and told is None:
                    told = usage
                    yield ChatResponseUpdate(contents=[UsageContent(usage)])
                given += len(piece)
                yield ChatResponseUpdate("assistant", piece)
                self._maybe_fail()
            if usage is not None and told is None:
                told = usage
                yield ChatResponseUpdate(contents=[UsageContent(usage)])
        except BaseException:
            made.end(told, given, estimates=given > 0)
            raise
        made.end(told, given)

    def _maybe_fail(self) -> None:
        if self._world.draw.random() < self._fails:
            raise self._world.draw.choice([ConnectionError("down"), TimeoutError("slow")])


class Within(AIAgent):
    """Runs a loop, each time as a run with budgets of its own."""

    def __init__(self, world: World, loop: LoopAgent, budgets: Sequence[LoopBudget]) -> None:
        self._world, self._loop, self._budgets = world, loop, budgets

    async def run_core(self, messages: list[ChatMessage], **run: Any) -> AgentResponse:
        number = len(self._world.budgets)
        self._world.budgets[number] = [(budget, 0) for budget in self._budgets]
        token = RUNS.set((*RUNS.get(), number))
        try:
            response = await self._loop.run(messages, **run)
        finally:
            RUNS.reset(token)
        assert_ledger(LoopResult.of(response), [made for made in self._world.calls if number in made.runs])
        return response


class Drawn:
    """A loop of which everything is drawn."""

    def __init__(self, seed: int) -> None:
        self.draw = random.Random(seed)
        self.world = World(self.draw)
        self.budgets = [self.world.budget() for _ in range(self.draw.randrange(1, 3))]
        self.resumed = [self.world.budget() for _ in range(self.draw.randrange(2))]
        agent = self._agent(self.draw.choices([0, 1, 2], [0.5, 0.3, 0.2])[0])
        self.loop = LoopAgent(agent, self._judges(), self._options(self.budgets, self.resumed))

    def _options(self, budgets: Sequence[LoopBudget], resumed: Sequence[LoopBudget] = ()) -> LoopAgentOptions:
        return LoopAgentOptions(
            max_iterations=self.draw.randrange(1, 10),
            budget=budgets or None,
            resume_budget=resumed or None,
            prices=PRICES,
            clock=lambda: self.world.now,
            evaluation_mode=self.draw.choice(["first", "all"]),
            evaluate_final_iteration=self.draw.random() < 0.5,
            fresh_context_per_iteration=self.draw.random() < 0.2,
            on_bad_response=self.draw.choice(["evaluate", "retry"]),
        )

    def _agent(self, depth: int) -> AIAgent:
        draw, fails = self.draw, self.draw.choice([0, 0, 0.1])
        model: ChatClient = Model(self.world, lambda: draw.choice(["a draft", "another", "x" * 100]), fails)
        if draw.random() < 0.3:
            model = FallbackChatClient(model, Model(self.world, lambda: "of another", 0.1, "other"))
        agent: AIAgent = ChatClientAgent(model)
        if depth:
            budgets = [self.world.budget() for _ in range(draw.randrange(3))]
            loop = LoopAgent(self._agent(depth - 1), self._judges(), self._options(budgets))
            agent = Within(self.world, loop, budgets)
        if draw.random() < 0.25:
            agent = CandidateAgent(agent, draw.randrange(2, 4), draw.choice([lambda _: None, self._judge()]))
        return agent

    def _judges(self) -> list[Any]:
        panel = PanelLoopEvaluatorOptions(on_failure="abstain")
        judges = [self._judge() for _ in range(self.draw.randrange(1, 3))]
        return judges if self.draw.random() < 0.7 else [PanelLoopEvaluator([*judges, self._judge()], panel)]

    def _judge(self) -> AIJudgeLoopEvaluator:
        words = ['{"gapAnalysis": "more", "answered": false}', '{"gapAnalysis": "", "answered": true}', "hm"]
        policy = JudgeFailurePolicy(error=("retry", "continue"), unreadable="continue", sleep=_no_sleep)
        model = Model(self.world, lambda: self.draw.choices(words, [0.8, 0.1, 0.1])[0], self.draw.choice([0, 0.1]))
        return AIJudgeLoopEvaluator(model, AIJudgeLoopEvaluatorOptions(on_failure=policy))

    async def live(self) -> list[StopReason]:
        """Run, and go on twice where a budget was used up, perhaps with larger ones."""
        session, reasons, resumed_at = await self.loop.create_session(), list[StopReason](), len(self.world.calls)
        RUNS.set((0,))
        self.world.budgets[0] = [(budget, 0) for budget in self.budgets]
        for message in ("go", None, None):
            result = await self._run(message, session)
            assert_ledger(result, self.world.calls[resumed_at:])
            reasons.append(result.stop_reason)
            if result.stop_reason not in LIMITS or "agents_loop" not in session.state:
                break
            resumed_at = len(self.world.calls)
            if self.draw.random() < 0.5:
                self._enlarge()
            since = [(budget, resumed_at) for budget in self.resumed]
            self.world.budgets[0] = [*[(budget, 0) for budget in self.budgets], *since]
        return reasons

    async def _run(self, message: str | None, session: Any) -> LoopResult:
        try:
            if self.draw.random() < 0.4:
                response = await self.loop.run_streaming(message, session=session).final_response()
            else:
                response = await self.loop.run(message, session=session)
        except (ConnectionError, TimeoutError) as error:
            response = error
        result = LoopResult.of(response)
        assert result is not None
        return result

    def _enlarge(self) -> None:
        names = ("max_tokens", "max_cost_usd", "max_model_calls", "deadline_s")
        self.budgets = [
            replace(budget, **{name: limit and limit * 2 for name in names if (limit := getattr(budget, name))})
            for budget in self.budgets
        ]
        options = replace(self.loop.options, budget=self.budgets)
        self.loop = LoopAgent(self.loop.inner_agent, self.loop.evaluators, options)


async def _no_sleep(_: float) -> None:
    await asyncio.sleep(0)


def assert_ledger(result: LoopResult | None, calls: Sequence[Made]) -> None:
    assert result is not None
    assert sorted(str(entry.usage) for entry in result.ledger) == sorted(str(made.usage) for made in calls)


@pytest.mark.parametrize("part", range(5))
async def test_no_call_begins_where_a_budget_is_used_up(part: int):
    """U1, U2, U3: of the life and of each resume, of all loops around; and each ledger has the calls, to the token."""
    reasons: set[StopReason] = set()
    for seed in range(part * 100, part * 100 + 100):
        reasons |= set(await Drawn(seed).live())
        assert len(asyncio.all_tasks()) == 1
    assert {StopReason.SATISFIED, StopReason.MAX_ITERATIONS, *LIMITS} <= reasons
