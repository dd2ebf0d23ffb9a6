"""Candidates, drawn at random: the best is kept, and every call is in the ledger, to the token."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import AsyncIterator, Sequence
from typing import Any

import pytest
from fakes import RecordingAgent, leaving_nothing
from hypothesis import given, settings
from hypothesis import strategies as st

from agents_loop import (
    AgentSession,
    CandidateAgent,
    ChatClient,
    ChatClientAgent,
    ChatMessage,
    ChatOptions,
    ChatResponse,
    ChatResponseUpdate,
    DelegateLoopEvaluator,
    JudgeFailurePolicy,
    LoopAgent,
    LoopAgentOptions,
    LoopBudget,
    LoopContext,
    LoopEvaluation,
    LoopEvaluator,
    LoopResult,
    PairwiseJudge,
    PairwiseJudgeOptions,
    UsageContent,
    UsageDetails,
    run_candidates,
)

SCORES = st.lists(st.one_of(st.none(), st.floats(0, 1)), min_size=2, max_size=9)


def best_of(scores: Sequence[float | None]) -> int:
    """The first of the highest, where none is lower than any."""
    rounded = [-1.0 if score is None else round(score, 9) for score in scores]
    return rounded.index(max(rounded))


class ByNumber(LoopEvaluator):
    """Rates `reply n` with the nth score."""

    def __init__(self, scores: Sequence[float | None]) -> None:
        self.scores = scores

    async def evaluate(self, context: LoopContext) -> LoopEvaluation:
        return LoopEvaluation.stop(score=self.scores[int(context.last_response.text.split()[-1]) - 1])


@settings(max_examples=150)
@given(SCORES)
def test_the_best_is_kept(scores: list[float | None]):
    """Candidates: over random scores the best is kept by an evaluator and by whole runs, and of equals the first."""

    async def check() -> None:
        session = AgentSession()
        agent = CandidateAgent(RecordingAgent(), len(scores), ByNumber(scores))
        response = await agent.run("Go.", session=session)
        assert response.text == f"reply {best_of(scores) + 1}"
        assert [message.text for message in session.messages] == [response.text]
        runs = await run_candidates(LoopAgent(RecordingAgent(), ByNumber(scores)), len(scores), "Go.")
        assert runs.best.output == response.text

    asyncio.run(check())


class Provider(ChatClient):
    """A model that counts what it has used, fails at random, and answers after a random wait."""

    def __init__(self, chance: random.Random, failing: float) -> None:
        self.model_id = "m"
        self._chance = chance
        self._failing = failing
        self.used: list[int] = []
        self.calls = 0
        self.in_flight = self.most_in_flight = 0

    async def get_response(self, messages: Sequence[ChatMessage], options: ChatOptions | None = None) -> ChatResponse:
        self.calls += 1
        self.in_flight += 1
        self.most_in_flight = max(self.most_in_flight, self.in_flight)
        try:
            for _ in range(self._chance.randrange(4)):
                await asyncio.sleep(0)
            if self._chance.random() < self._failing:
                raise ConnectionError("down")
            tokens = self._chance.randint(2, 60)
            self.used.append(tokens)
            return ChatResponse(self.text(messages), usage=UsageDetails(tokens - 1, 1))
        finally:
            self.in_flight -= 1

    async def get_streaming_response(
        self, messages: Sequence[ChatMessage], options: ChatOptions | None = None
    ) -> AsyncIterator[ChatResponseUpdate]:
        response = await self.get_response(messages, options)
        yield ChatResponseUpdate("assistant", response.text)
        yield ChatResponseUpdate(contents=UsageContent(response.usage))

    def text(self, messages: Sequence[ChatMessage]) -> str:
        if "second answer" in messages[-1].text:
            return json.dumps({"better": self._chance.choice(["first", "second", "neither"])})
        return f"draft {self.calls}"


async def no_sleep(seconds: float) -> None:
    """Tries again at once."""


def tokens_in(ledger: Any) -> int:
    usages = [entry.usage for entry in ledger if entry.usage is not None]
    return sum(usage.input_token_count + usage.output_token_count for usage in usages)


@pytest.mark.parametrize("seed", range(60))
async def test_every_call_is_in_the_ledger_and_the_budget_holds(seed: int):
    """U1, U2: loops of candidates, candidates of loops and whole runs, with failures and budgets: to the token."""
    chance = random.Random(seed)
    provider = Provider(chance, chance.choice([0.0, 0.2, 0.5]))
    limit = chance.choice([None, 40, 200, 600])
    options = LoopAgentOptions(
        max_iterations=3, budget=None if limit is None else LoopBudget(max_tokens=limit), return_best=True
    )
    judge = PairwiseJudge(provider, PairwiseJudgeOptions(on_failure=JudgeFailurePolicy(sleep=no_sleep)))
    chooser = chance.choice([judge, lambda context: len(context.last_response.text)])
    inner: Any = ChatClientAgent(provider)
    if chance.random() < 0.3:
        inner = LoopAgent(inner, DelegateLoopEvaluator(lambda context: context.iteration < 2))
    if chance.random() < 0.7:
        inner = CandidateAgent(inner, chance.randint(1, 4), chooser)
    loop = LoopAgent(inner, DelegateLoopEvaluator(lambda context: "More."), options)
    ledger: Any = None
    async with leaving_nothing():
        try:
            if chance.random() < 0.4:
                ledger = (await run_candidates(loop, chance.randint(2, 4), "Go.", chooser=chooser)).ledger
            elif chance.random() < 0.5:
                ledger = LoopResult.of(await loop.run("Go.")).ledger
            else:
                ledger = LoopResult.of(await loop.run_streaming("Go.").final_response()).ledger
        except ConnectionError as error:
            if not getattr(error, "__notes__", None):
                ledger = LoopResult.of(error).ledger
    if ledger is not None:
        assert len(ledger) == provider.calls
        assert tokens_in(ledger) == sum(provider.used)
    if limit is not None:
        assert sum(provider.used) <= limit + 60 * provider.most_in_flight
