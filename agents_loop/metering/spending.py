"""What a run has spent, and whether it may spend more."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from typing import Any, Final, cast

from agents_loop.errors import BudgetExceededError, ConfigurationError, SessionStateError
from agents_loop.messages import JsonValue, UsageDetails
from agents_loop.metering.budget import LoopBudget
from agents_loop.metering.ledger import Role
from agents_loop.metering.prices import whole_output
from agents_loop.numeric import is_number

_CHARACTERS_PER_TOKEN: Final = 4
"""The usual rule of thumb for English."""


class LimitReachedError(BudgetExceededError):
    """A budget of a run is used up: the run ends with its answer so far.

    Args:
        message: Which limit, and what was used.
        spending: Whose limit it is; `None` in a copy that was pickled.
        is_deadline: Whether it is the time.
    """

    def __init__(self, message: str, spending: Spending | None = None, *, is_deadline: bool = False) -> None:
        super().__init__(message)
        self.spending = spending
        self.is_deadline = is_deadline

    def __reduce__(self) -> tuple[type[LimitReachedError], tuple[str]]:
        return type(self), (str(self),)


@dataclass(slots=True)
class Spent:
    """Amounts."""

    tokens: int = 0
    """Input and output."""
    cached_tokens: int = 0
    """The part of them that was read from a cache."""
    cost_usd: float = 0.0
    calls: int = 0
    elapsed_s: float = 0.0

    def minus(self, other: Spent) -> Spent:
        """What was spent since."""
        return Spent(*[getattr(self, field.name) - getattr(other, field.name) for field in fields(self)])


@dataclass(frozen=True, slots=True)
class Allowance:
    """A budget, and what was spent before it began to count."""

    budget: LoopBudget
    before: Spent

    @property
    def ends_at_s(self) -> float:
        """When its time is up, in seconds of the run's life; never without a deadline."""
        return math.inf if self.budget.deadline_s is None else self.before.elapsed_s + self.budget.deadline_s


class Spending:
    """What one run has spent, in the calls within it too, against its budgets.

    Args:
        budgets: Bound the run's whole life.
        resumed: Bound what is spent from here on, in a run that continues another.
        earlier: What `to_json` gave of the run that this one continues; `None` too if that had no budget.
        clock: Seconds from any fixed point.

    Raises:
        SessionStateError: `earlier` can't be read.
    """

    def __init__(
        self,
        budgets: Sequence[LoopBudget],
        resumed: Sequence[LoopBudget],
        earlier: Mapping[str, Any] | None,
        clock: Callable[[], float],
    ) -> None:
        self.spent, self._on_verdicts, self._verdicts = (Spent(), Spent(), 0) if earlier is None else _read(earlier)
        self._spent_by: dict[Role, tuple[Spent, ...]] = {
            "agent": (self.spent,),
            "evaluator": (self.spent, self._on_verdicts),
        }
        """What counts a call of each role."""
        self._clock = clock
        self._started_at = clock() - self.spent.elapsed_s
        self._allowances = [Allowance(budget, _NOTHING) for budget in budgets]
        self._allowances += [Allowance(budget, replace(self.spent)) for budget in resumed]
        self.counts_money = any(allowance.budget.max_cost_usd is not None for allowance in self._allowances)
        self._first_to_end = min(self._allowances, key=lambda allowance: allowance.ends_at_s)
        self._deadline = self._started_at + self._first_to_end.ends_at_s
        self._easy_tokens, self._easy_calls, self._easy_usd = _easy(self._allowances)
        self._on_estimate = next((a.budget.on_estimate for a in self._allowances if a.budget.on_estimate), None)
        self.keeps_back = True
        """Whether there will be a verdict on the answer that the agent is about to give."""

    @property
    def deadline_in_s(self) -> float | None:
        """Seconds to the nearest deadline; `None` without one."""
        return None if self._deadline == math.inf else self._deadline - self._clock()

    def tokens_left(self) -> list[tuple[int, int]]:
        """Of each budget that limits tokens: those that are left, and the limit."""
        left: list[tuple[int, int]] = []
        for budget, before in [(allowance.budget, allowance.before) for allowance in self._allowances]:
            if budget.max_tokens is not None:
                used = self.spent.tokens - before.tokens
                if not budget.counts_cached_input:
                    used -= self.spent.cached_tokens - before.cached_tokens
                left.append((max(0, budget.max_tokens - used), budget.max_tokens))
        return left

    def check(self, role: Role) -> None:
        """See whether a call may be made.

        Raises:
            LimitReachedError: It may not.
        """
        if self._deadline != math.inf and self._clock() >= self._deadline:
            raise self.time_is_up()
        spent = self.spent
        if spent.tokens < self._easy_tokens and spent.calls < self._easy_calls and spent.cost_usd < self._easy_usd:
            return
        mean = self._mean() if role == "agent" and self.keeps_back else _NOTHING
        for allowance in self._allowances:
            budget, before = allowance.budget, allowance.before
            used = spent if before is _NOTHING else spent.minus(before)
            self._check(budget, used, mean if budget.keeps_back_verdict else _NOTHING)

    def _check(self, budget: LoopBudget, used: Spent, kept: Spent) -> None:
        if budget.max_tokens is not None:
            tokens, more = used.tokens, kept.tokens
            if not budget.counts_cached_input:
                tokens, more = tokens - used.cached_tokens, more - kept.cached_tokens
            if tokens + more >= budget.max_tokens:
                said = f"{_number(tokens, 'token')} in {_number(used.calls, 'call')}"
                said = f"{budget.called('max_tokens')} is {budget.max_tokens:,}, and the run has used {said}"
                raise self._reached(said, tokens < budget.max_tokens, _number(more, "token"))
        if budget.max_model_calls is not None and used.calls + kept.calls >= budget.max_model_calls:
            said = f"{budget.called('max_model_calls')} is {budget.max_model_calls:,}, and the run made {used.calls:,}"
            raise self._reached(said, used.calls < budget.max_model_calls, _number(kept.calls, "call"))
        if budget.max_cost_usd is not None and used.cost_usd + kept.cost_usd >= budget.max_cost_usd:
            said = f"{budget.name} allows ${budget.max_cost_usd:,.12g}, and the run has spent ${used.cost_usd:.6f}"
            raise self._reached(said, used.cost_usd < budget.max_cost_usd, f"${kept.cost_usd:.6f}")

    def time_is_up(self) -> LimitReachedError:
        """What is raised at the nearest deadline."""
        budget = self._first_to_end.budget
        said = f"{budget.name} allows {budget.deadline_s:,.12g} s, and that time is up"
        return LimitReachedError(said, self, is_deadline=True)

    def begin(self, role: Role) -> None:
        """A call begins."""
        for spent in self._spent_by[role]:
            spent.calls += 1

    def take_back(self, role: Role) -> None:
        """What had begun was no call."""
        for spent in self._spent_by[role]:
            spent.calls -= 1

    def end(self, role: Role, tokens: tuple[int, int], cost_usd: float) -> None:
        """A call is over.

        Args:
            role: Who made it.
            tokens: Its tokens, and the part of them that came from a cache.
            cost_usd: What it cost.
        """
        used, cached = tokens
        for spent in self._spent_by[role]:
            spent.tokens += used
            if cached:
                spent.cached_tokens += cached
            if cost_usd:
                spent.cost_usd += cost_usd

    def verdict_is_over(self) -> None:
        """The evaluators have spoken: what that has cost says what the next time will need."""
        self._verdicts += 1

    @property
    def tells_estimates(self) -> bool:
        """Whether somebody still wants to hear that tokens are estimated."""
        return self._on_estimate is not None

    def estimated(self, model: str | None) -> None:
        """Tell, once, that a model reports no usage."""
        if self._on_estimate is not None:
            name = "a model" if model is None else repr(model)
            self._on_estimate(f"{name} reports no token usage: estimated as a token for every 4 characters")
            self._on_estimate = None

    def to_json(self) -> dict[str, JsonValue]:
        """What a run needs that continues this one."""
        self.spent.elapsed_s = self._clock() - self._started_at
        return {
            "spent": asdict(self.spent),
            "on_verdicts": asdict(self._on_verdicts),
            "verdicts": self._verdicts,
        }

    def _mean(self) -> Spent:
        if not self._verdicts:
            return _NOTHING
        total = self._on_verdicts
        return Spent(
            math.ceil(total.tokens / self._verdicts),
            total.cached_tokens // self._verdicts,
            total.cost_usd / self._verdicts,
            math.ceil(total.calls / self._verdicts),
        )

    def _reached(self, said: str, is_kept: bool, kept: str) -> LimitReachedError:  # noqa: FBT001 - a sentence's half
        more = f"; {kept} kept back for the verdict" if is_kept else ""
        return LimitReachedError(f"{said}{more}: the next call was not made", self)


def _read(stored: object) -> tuple[Spent, Spent, int]:
    """What a run had spent, and spent on how many verdicts, as `to_json` gave it."""
    try:
        written = cast("Mapping[str, Any]", stored)
        spent, on_verdicts, verdicts = Spent(**written["spent"]), Spent(**written["on_verdicts"]), written["verdicts"]
        amounts: list[object] = [*asdict(spent).values(), *asdict(on_verdicts).values(), verdicts]
        if not all(is_number(amount) and 0 <= amount <= sys.float_info.max for amount in amounts):
            raise ValueError(f"no amounts: {amounts}")  # noqa: TRY301 - one way out for all that is wrong
    except (KeyError, TypeError, ValueError) as error:
        raise SessionStateError(f"what the run had spent can't be read from the session's state: {error!r}") from error
    return spent, on_verdicts, int(verdicts)


def _number(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def _easy(allowances: Sequence[Allowance]) -> tuple[float, float, float]:
    """Below which tokens, calls and US dollars no budget is half used up, a call more counted in.

    All verdicts together have cost no more than what was spent, so there one more will not be too much, and nothing
    has to be worked out. Of what a resumed run may spend that can't be said: its verdicts were paid for before.
    """
    if any(allowance.before is not _NOTHING for allowance in allowances):
        return 0, 0, 0
    budgets = [allowance.budget for allowance in allowances]
    return (
        min([budget.max_tokens / 2 for budget in budgets if budget.max_tokens is not None], default=math.inf),
        min([(b.max_model_calls - 1) / 2 for b in budgets if b.max_model_calls is not None], default=math.inf),
        min([budget.max_cost_usd / 2 for budget in budgets if budget.max_cost_usd is not None], default=math.inf),
    )


_NOTHING: Final = Spent()


def tokens_of(usage: UsageDetails | None) -> tuple[int, int] | None:
    """A call's tokens, and the part of them that came from a cache; `None` where they were not reported."""
    if usage is None:
        return None
    asked, answered, cached = usage.input_token_count, usage.output_token_count, usage.cached_input_token_count or 0
    if asked is None or answered is None:
        if usage.total_token_count is None:
            return None
        total = max(usage.total_token_count, asked or 0, answered or 0)
        return total, min(cached, total)
    if usage.total_token_count is not None:
        answered = whole_output(usage, asked, answered)
    return asked + answered, cached and min(cached, asked)


def tokens_at_least(usage: UsageDetails | None) -> int | None:
    """A call's tokens as far as they were reported; `None` where none were. Some report no total: then it is too low.

    Unlike `tokens_of` it makes do with a part: of input or output alone.
    """
    if usage is None:
        return None
    parts = [count for count in (usage.input_token_count, usage.output_token_count) if count is not None]
    known = [sum(parts)] if parts else []
    if usage.total_token_count is not None:
        known.append(usage.total_token_count)
    return max(known, default=None)


def has_some(usage: UsageDetails) -> bool:
    """Whether input or output was reported, if not both."""
    return usage.input_token_count is not None or usage.output_token_count is not None


def estimated_usage(reported: UsageDetails | None, asked: int, answered: int) -> UsageDetails:
    """The usage of a call: input or output, where it was reported, else by the characters."""
    estimated = UsageDetails(math.ceil(asked / _CHARACTERS_PER_TOKEN), math.ceil(answered / _CHARACTERS_PER_TOKEN))
    if reported is None:
        return estimated
    if reported.input_token_count is not None:
        estimated.input_token_count = reported.input_token_count
    if reported.output_token_count is not None:
        estimated.output_token_count = reported.output_token_count
    estimated.cached_input_token_count = reported.cached_input_token_count
    return estimated


def unknown_price(model: str | None) -> ConfigurationError:
    """What is raised where a money budget can't be kept."""
    if model is None:
        return ConfigurationError(
            "a money budget needs the price of every model, and an agent or a client does not say which model it asks: "
            'give the client a model_id, or a price for all such calls: prices={"*": ModelPrice(...)}'
        )
    return ConfigurationError(
        f"a money budget needs the price of every model, and that of {model!r} is not known: give it as "
        f"prices={{{model!r}: ModelPrice(...)}} or, on the command line, as --price {model}=IN,OUT"
    )
