"""What a run may spend, against a slow and obvious model of it: each budget adds up, from its own beginning, all calls."""

from __future__ import annotations

import json
import math
import random
from dataclasses import dataclass
from typing import Any

import pytest

from agents_loop import LoopBudget
from agents_loop.metering.spending import LimitReachedError, Spending


@dataclass
class Made:
    """A call that is over."""

    role: Any
    tokens: int
    cached: int
    cost_usd: float


class Life:
    """A run and its resumes, drawn; what is known of it is a list of calls."""

    def __init__(self, seed: int) -> None:
        self.draw = random.Random(seed)
        self.budgets = [self._budget(f"life-{number}") for number in range(self.draw.randrange(1, 4))]
        self.resumed = [self._budget(f"resumed-{number}") for number in range(self.draw.randrange(3))]
        self.calls: list[Made] = []
        self.verdicts = 0
        self.now = self.draw.uniform(0, 100)
        self.lived_s = 0.0

    def _budget(self, name: str) -> LoopBudget:
        draw, limits = self.draw, dict[str, Any]()
        while not limits:
            drawn = {
                "max_tokens": draw.randrange(1, 600),
                "max_model_calls": draw.randrange(1, 12),
                "max_cost_usd": draw.uniform(0.01, 6),
                "deadline_s": draw.uniform(0.5, 30),
            }
            limits = {limit: value for limit, value in drawn.items() if draw.random() < 0.4}
        flags = {flag: draw.random() < 0.6 for flag in ("counts_cached_input", "keeps_back_verdict")}
        return LoopBudget(**limits, **flags, name=name)

    def run(self) -> int:
        """Live through several resumes; gives how often a call was not allowed."""
        earlier, refused = None, 0
        for resumed in [[], *[self.resumed] * self.draw.randrange(3)]:
            spending = Spending(self.budgets, resumed, earlier, lambda: self.now)
            begins = {id(budget): (len(self.calls), self.lived_s) for budget in resumed}
            refused += sum(self._step(spending, resumed, begins) for _ in range(self.draw.randrange(1, 40)))
            earlier = json.loads(json.dumps(spending.to_json()))
        return refused

    def _step(self, spending: Spending, resumed: list[LoopBudget], begins: dict[int, tuple[int, float]]) -> bool:
        draw = self.draw
        passed_s = draw.choice([0, 0, draw.random()])
        self.now, self.lived_s = self.now + passed_s, self.lived_s + passed_s
        kind, role = draw.random(), draw.choice(["agent", "evaluator"])
        if kind < 0.1:
            spending.verdict_is_over()
            self.verdicts += 1
            return False
        if kind < 0.2:
            spending.keeps_back = draw.random() < 0.7
            return False
        keeps_back = role == "agent" and spending.keeps_back
        used_up = [
            budget.name
            for budget in [*self.budgets, *resumed]
            if self._is_used_up(budget, *begins.get(id(budget), (0, 0.0)), keeps_back=keeps_back)
        ]
        if used_up:
            with pytest.raises(LimitReachedError) as caught:
                spending.check(role)
            assert any(name in str(caught.value) for name in used_up)
        else:
            spending.check(role)
        spending.begin(role)  # it may have been in flight
        made = Made(role, tokens := draw.randrange(60), draw.choice([0, draw.randrange(tokens + 1)]), 0.0)
        made.cost_usd = draw.choice([0.0, draw.random()]) if spending.counts_money else 0.0
        spending.end(role, (made.tokens, made.cached), made.cost_usd)
        self.calls.append(made)
        return bool(used_up)

    def _is_used_up(self, budget: LoopBudget, began: int, began_s: float, *, keeps_back: bool) -> bool:
        mine, judging = self.calls[began:], [made for made in self.calls if made.role == "evaluator"]
        share = self.verdicts if keeps_back and budget.keeps_back_verdict else 0
        tokens, calls, cost_usd = sum(made.tokens for made in mine), len(mine), sum(made.cost_usd for made in mine)
        if not budget.counts_cached_input:
            tokens -= sum(made.cached for made in mine)
        if share:
            tokens += math.ceil(sum(made.tokens for made in judging) / share)
            if not budget.counts_cached_input:
                tokens -= sum(made.cached for made in judging) // share
            calls += math.ceil(len(judging) / share)
            cost_usd += sum(made.cost_usd for made in judging) / share
        return (
            (budget.max_tokens is not None and tokens >= budget.max_tokens)
            or (budget.max_model_calls is not None and calls >= budget.max_model_calls)
            or (budget.max_cost_usd is not None and cost_usd >= budget.max_cost_usd - 1e-9)
            or (budget.deadline_s is not None and self.lived_s - began_s >= budget.deadline_s - 1e-9)
        )


@pytest.mark.parametrize("hundred", range(10))
def test_a_call_is_allowed_exactly_as_long_as_every_budget_allows_it(hundred: int):
    """U2, U3: of the life and of each resume, with what a verdict will need, cached input apart, money and time."""
    assert sum(Life(seed).run() for seed in range(hundred * 100, hundred * 100 + 100)) > 100
