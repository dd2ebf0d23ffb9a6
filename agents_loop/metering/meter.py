"""The meter of a run: its calls as they end, and its budgets. A run within a run reports to the outer one too."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextvars import Context, ContextVar, copy_context
from typing import Any, Final, TypeAlias, TypeVar

from agents_loop.failures import FailureCause, cause_of, cause_of_finish, usage_of_error
from agents_loop.messages import ChatMessage, UsageDetails, sum_usage
from agents_loop.metering.budget import LoopBudget
from agents_loop.metering.ledger import CANCELLED, OK, Ledger, LedgerEntry, Role
from agents_loop.metering.prices import PriceList, Prices, require_list
from agents_loop.metering.spending import (
    LimitReachedError,
    Spending,
    estimated_usage,
    has_some,
    tokens_of,
    unknown_price,
)
from agents_loop.time_limits import is_cut_by_its_caller

T = TypeVar("T")

Call: TypeAlias = "tuple[Role, int, str | None, Any, Any, UsageDetails | None, float, str | None]"
"""What is kept of a call: role, iteration, the model that its reply names, the client, the options, usage, seconds, and
the reply's finish reason or the failure's cause. An entry is made of it when the ledger is asked for, so that a run
whose ledger nobody reads does not pay for it."""
Characters: TypeAlias = Callable[[], tuple[int, int]]
"""Gives the characters that were sent and received: what tokens are estimated by."""


class Phase:
    """Where a run is: whose calls are those that are made now.

    Args:
        meter: The run's.
        role: Who makes the calls.
    """

    __slots__ = ("has_calls", "has_usage", "iteration", "meter", "request", "role", "session")

    def __init__(self, meter: RunMeter, role: Role) -> None:
        self.meter = meter
        self.role: Role = role
        """The engine moves it on, and the iteration."""
        self.iteration = 0
        self.has_calls = False
        """Whether a call was kept; the engine takes it back when it moves on."""
        self.has_usage = False
        """Whether one of them reported what it used."""
        self.session: object = None
        """The session in use: by it an agent knows whether it is the one that this run runs, and not one within it."""
        self.request: Sequence[ChatMessage] = ()
        """What the run's caller has asked for."""

    def apart(self) -> Phase:
        """The phase as it is now, for what goes on beside the run."""
        phase = Phase(self.meter, self.role)
        phase.iteration = self.iteration
        phase.session, phase.request = self.session, self.request
        return phase


PHASE: Final[ContextVar[Phase | None]] = ContextVar("agents_loop_phase", default=None)
"""Of the run that the current code belongs to, if it belongs to one."""


def budgets_left() -> tuple[list[tuple[int, int]], float | None]:
    """What the budgets of the current run, and of those around it, leave: for whoever plans what comes next.

    Gives, of each budget that limits tokens, those that are left and the limit; and the seconds to the nearest
    deadline, `None` without one.
    """
    tokens: list[tuple[int, int]] = []
    deadlines: list[float] = []
    phase = PHASE.get()
    while phase is not None:
        spending, phase = phase.meter.spending, phase.meter.parent
        if spending is not None:
            tokens += spending.tokens_left()
            deadlines += [] if (left_s := spending.deadline_in_s) is None else [left_s]
    return tokens, min(deadlines, default=None)


def context_apart() -> Context:
    """The context for a task that goes on beside the run which starts it: its calls stay that part's of the run."""
    context, phase = copy_context(), PHASE.get()
    if phase is not None:
        context.run(PHASE.set, phase.apart())
    return context


class RunMeter:
    """Meters one run.

    Args:
        clock: Seconds from any fixed point.
        prices: The caller's.
    """

    __slots__ = ("calls", "clock", "has_deadline", "is_guarded", "parent", "prices", "spending")

    def __init__(self, clock: Callable[[], float], prices: Prices | None = None) -> None:
        self.clock = clock
        self.prices = PriceList(prices)
        self.calls: list[Call] = []
        self.parent = PHASE.get()
        """The part of the run around this one."""
        self.spending: Spending | None = None
        self.is_guarded = self.parent is not None and self.parent.meter.is_guarded
        """Whether a call may not be allowed: this run has a budget, or one around it."""
        self.has_deadline = self.parent is not None and self.parent.meter.has_deadline
        """Whether this run, or one around it, has one."""

    def guard(
        self, budgets: Sequence[LoopBudget], resumed: Sequence[LoopBudget], earlier: Mapping[str, Any] | None
    ) -> None:
        """Bound the run.

        Args:
            budgets: For its whole life.
            resumed: For what a resumed run spends from here on.
            earlier: What the run had spent that this one continues.

        Raises:
            MissingExtraError: There is a money budget, no prices were given, and the list is not installed.
        """
        self.spending = Spending(budgets, resumed, earlier, self.clock)
        self.is_guarded = True
        self.has_deadline = self.has_deadline or self.spending.deadline_in_s is not None
        if self.spending.counts_money and not self.prices.given:
            require_list()

    def require_price(self, client: Any, options: Any = None) -> None:
        """See that what a client's model costs is known; without a client: that of a model that is never named.

        Raises:
            ConfigurationError: It is not. A client that does not say its model is let pass where the caller gave
                prices: its reply will name it.
        """
        model = _model_asked(client, options)
        is_named_later = client is not None and model is None and self.prices.given
        if not is_named_later and self.prices.cost_of((model,)) is None:
            raise unknown_price(model)

    def ledger(self, length: int) -> Ledger:
        """The first calls, as entries."""
        return Ledger([self._entry(call) for call in self.calls[:length]])

    def used_since(self, position: int) -> UsageDetails | None:
        """The sum of what the calls reported from a position on."""
        usages = [call[5] for call in self.calls[position:] if call[5] is not None]
        return sum_usage(usages) if usages else None

    def limit_behind(self, error: BaseException) -> LimitReachedError | None:
        """What an exception says of a budget of this run, or of one around it, that is used up; else `None`.

        A framework may have wrapped it: what an exception was raised from is searched too.
        """
        seen: set[int] = set()
        current: BaseException | None = error
        while current is not None and id(current) not in seen and isinstance(current, Exception):
            seen.add(id(current))
            if isinstance(current, LimitReachedError) and self._is_bound_by(current.spending):
                return current
            current = current.__cause__ or current.__context__
        return None

    def _is_bound_by(self, spending: Spending | None) -> bool:
        meter: RunMeter | None = self
        while meter is not None and spending is not None:
            if meter.spending is spending:
                return True
            meter = None if meter.parent is None else meter.parent.meter
        return False

    async def in_time(self, waited_for: Awaitable[T]) -> T:
        """What is waited for, unless the run's deadline comes first: then it is cancelled.

        Raises:
            LimitReachedError: The deadline came.
        """
        left_s = None if self.spending is None else self.spending.deadline_in_s
        if self.spending is None or left_s is None:
            return await waited_for
        limit = asyncio.timeout(max(0.0, left_s))
        try:
            async with limit:
                return await waited_for
        except TimeoutError as error:
            if not limit.expired():
                raise
            raise self.spending.time_is_up() from error

    def _entry(self, call: Call) -> LedgerEntry:
        role, iteration, answered, client, options, usage, duration_s, outcome = call
        names = (answered, _model_asked(client, options))
        cost = None if usage is None else self.prices.cost_of(names)
        if not isinstance(outcome, FailureCause) and outcome != CANCELLED:
            outcome = cause_of_finish(outcome) or OK
        return LedgerEntry(
            role,
            iteration,
            names[0] or names[1],
            usage,
            None if cost is None or usage is None else cost(usage),
            duration_s,
            str(outcome),
        )


def check(phase: Phase) -> None:
    """See whether a run, and those around it, may go on with a part of it.

    Raises:
        LimitReachedError: It may not.
    """
    meter = phase.meter
    if meter.spending is not None:
        meter.spending.check(phase.role)
    if meter.parent is not None:
        check(meter.parent)


def begin(phase: Phase, client: Any, options: Any, *, is_passed_on: bool) -> None:
    """A call is about to be made.

    Args:
        phase: In which part of a run.
        client: Who is called.
        options: The call's.
        is_passed_on: Whether it is a call that was counted already, passed on from one client to another.

    Raises:
        LimitReachedError: A budget of the run, or of one around it, is used up: the call must not be made.
        ConfigurationError: There is a money budget, and the model's price is not known.
    """
    if not is_passed_on:
        check(phase)
    around: Phase | None = phase
    while around is not None:
        meter = around.meter
        if (spending := meter.spending) is not None:
            if spending.counts_money:
                meter.require_price(client, options)
            if not is_passed_on:
                spending.begin(around.role)
        around = meter.parent


def keep(phase: Phase, call: Call, characters: Characters | None = None) -> None:
    """Keep a call that is over, for its run and those around it, and count it against their budgets.

    Args:
        phase: In which part of a run it was made.
        call: The call.
        characters: For tokens that have to be estimated; `None`: what is not reported was not used.

    Raises:
        ConfigurationError: There is a money budget, and the model that answered has no price.
    """
    meter = phase.meter
    meter.calls.append(call)
    phase.has_calls = True
    if call[5] is not None:
        phase.has_usage = True
    unpriced = None if meter.spending is None else _charge(phase, meter.spending, call, characters)
    if (around := meter.parent) is not None:
        role: Role = "evaluator" if around.role == "evaluator" else call[0]
        keep(around, (role, around.iteration, *call[2:]), characters)
    if unpriced is not None:
        raise unpriced


def keep_failed(
    phase: Phase,
    client: Any,
    options: Any,
    error: BaseException,
    used: UsageDetails | None,
    seconds: float,
    characters: Characters | None = None,
) -> bool:
    """Keep a call that raised, and say so; one that a budget did not allow was none."""
    if isinstance(error, LimitReachedError):
        return False
    given_up = FailureCause.TIMEOUT if is_cut_by_its_caller() else CANCELLED
    outcome = cause_of(error) if isinstance(error, Exception) else given_up
    usage = usage_of_error(error) if used is None else used
    keep(phase, (phase.role, phase.iteration, None, client, options, usage, seconds, outcome), characters)
    return True


def take_back(phase: Phase) -> None:
    """What had begun was no call."""
    for spending, role in _spendings(phase):
        spending.take_back(role)


def keep_whole(
    phase: Phase, usage: UsageDetails | None, seconds: float, characters: Characters | None, model: str | None = None
) -> None:
    """Keep a run of an agent, or a verdict, whose calls were not seen one by one, as one call."""
    for spending, role in _spendings(phase):
        spending.begin(role)
    keep(phase, (phase.role, phase.iteration, model, None, None, usage, seconds, None), characters)


def _spendings(phase: Phase) -> Iterator[tuple[Spending, Role]]:
    """What counts the calls of a part of a run: for that run and those around it, and whose call it is to each."""
    around: Phase | None = phase
    while around is not None:
        if around.meter.spending is not None:
            yield around.meter.spending, around.role
        around = around.meter.parent


def _charge(phase: Phase, spending: Spending, call: Call, characters: Characters | None) -> Exception | None:
    """Count a call against a run's budgets; gives what is wrong if its price is not known."""
    usage = call[5]
    tokens = tokens_of(usage)
    if tokens is not None and not spending.counts_money:
        spending.end(phase.role, tokens, 0.0)
        return None
    answered, client, options = call[2:5]
    if tokens is None and (characters is not None or (usage is not None and has_some(usage))):
        usage = estimated_usage(usage, *((0, 0) if characters is None else characters()))
        tokens = tokens_of(usage)
        if characters is not None and spending.tells_estimates:
            spending.estimated(answered or _model_asked(client, options))
    if tokens is None or usage is None:
        return None
    if not spending.counts_money:
        spending.end(phase.role, tokens, 0.0)
        return None
    names = (answered, _model_asked(client, options))
    cost_of = phase.meter.prices.cost_of(names)
    cost_usd = None if cost_of is None else cost_of(_divided(usage, tokens[0]))
    spending.end(phase.role, tokens, cost_usd or 0.0)
    return unknown_price(names[0] or names[1]) if cost_usd is None else None


def _divided(usage: UsageDetails, tokens: int) -> UsageDetails:
    """The usage itself or, where only the sum was reported, what it can be at most: output, but for known input."""
    if usage.input_token_count is not None and usage.output_token_count is not None:
        return usage
    asked = min(usage.input_token_count or 0, tokens)
    return UsageDetails(asked, tokens - asked)


def _model_asked(client: Any, options: Any) -> str | None:
    """The model that a call is for, as far as its options or its client say."""
    model: object = getattr(options, "model_id", None) or getattr(client, "model_id", None)
    return model if isinstance(model, str) else None
