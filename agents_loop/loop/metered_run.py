"""What the engine tells the meter of its run, and asks of it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Sequence
from typing import TypeVar

from agents_loop.agent import AgentResponse, AgentResponseStream, AgentResponseUpdate, AIAgent
from agents_loop.foreign_agent import ForeignAgent
from agents_loop.loop.context import LoopContext
from agents_loop.loop.evaluator import LoopEvaluator
from agents_loop.loop.options import LoopAgentOptions
from agents_loop.loop.result import LoopResult, MeteredCalls
from agents_loop.messages import ChatMessage, JsonValue, UsageDetails, sum_usage
from agents_loop.metering.budget import LoopBudget
from agents_loop.metering.meter import PHASE, Phase, RunMeter, check, keep_whole
from agents_loop.metering.spending import LimitReachedError, tokens_at_least, unknown_price
from agents_loop.metering.unseen import length

T = TypeVar("T")


class MeteredRun:
    """The meter of one run, iteration by iteration.

    Args:
        options: How the loop runs.
    """

    __slots__ = (
        "_judged_from",
        "_position",
        "evaluators_report",
        "is_timed",
        "meter",
        "phase",
        "timer",
    )

    def __init__(self, options: LoopAgentOptions) -> None:
        self.meter = RunMeter(options.clock, options.prices)
        self.phase = Phase(self.meter, "agent")
        self.timer: asyncio.Timeout | None = None
        """What bounds the whole run, where a coroutine of ours runs it."""
        self.is_timed = False
        """Whether each wait must be bounded by itself, because there is a deadline and no timer."""
        self._position = 0
        self._judged_from = 0
        self.evaluators_report = False
        """Whether evaluators make calls that are not seen, but reported afterwards."""

    @property
    def calls(self) -> MeteredCalls:
        """The calls so far."""
        return MeteredCalls(self.meter)

    @property
    def usage(self) -> UsageDetails | None:
        """What they have used."""
        return self.meter.used_since(0)

    @property
    def spent(self) -> JsonValue:
        """What a run needs of it that continues this one; `None` without a budget."""
        return None if self.meter.spending is None else self.meter.spending.to_json()

    def guard(
        self,
        options: LoopAgentOptions,
        agent: AIAgent,
        evaluators: Sequence[LoopEvaluator],
        earlier: JsonValue,
        *,
        is_resumed: bool,
    ) -> None:
        """Bound the run, if there is a budget.

        Raises:
            ConfigurationError: There is a money budget, and it is known already that a price is not.
        """
        budgets, resumed = budgets_of(options.budget), budgets_of(options.resume_budget) if is_resumed else ()
        if not budgets and not resumed:
            return
        self.meter.guard(budgets, resumed, earlier)
        spending = self.meter.spending
        assert spending is not None  # noqa: S101 - it was just made
        left_s = spending.deadline_in_s
        self.is_timed = left_s is not None and self.timer is None
        if left_s is not None and self.timer is not None:
            self.timer.reschedule(asyncio.get_running_loop().time() + max(0.0, left_s))
        if spending.counts_money:
            self._require_prices(agent, evaluators)

    def _require_prices(self, agent: AIAgent, evaluators: Sequence[LoopEvaluator]) -> None:
        """See that what is known to be asked has a price, before anything is spent; other calls are seen to each."""
        if agent.get_service(ForeignAgent) is not None and self.meter.prices.cost_of((None,)) is None:
            raise unknown_price(None)
        for evaluator in evaluators:
            for client, chat_options in evaluator.model_calls():
                self.meter.require_price(client, chat_options)

    def begin_agent(self, session: object) -> None:
        """The agent is about to be run in this session."""
        phase = self.phase
        phase.role, phase.session = "agent", session
        phase.has_calls = phase.has_usage = False
        self._position = len(self.meter.calls)

    def check_agent(self, *, is_judged: bool) -> None:
        """See whether the agent may be run.

        Args:
            is_judged: Whether there will be a verdict on its answer.

        Raises:
            LimitReachedError: A budget is used up.
        """
        self.phase.role = "agent"
        if self.meter.spending is not None:
            self.meter.spending.keeps_back = is_judged
        check(self.phase)

    async def in_phase(self, work: Awaitable[T]) -> T:
        """What is waited for, its calls metered: where the code that reads the run's events is not within the run."""
        token = PHASE.set(self.phase)
        try:
            return await work
        finally:
            PHASE.reset(token)

    async def pieces(self, stream: AgentResponseStream) -> AsyncGenerator[AgentResponseUpdate, None]:
        """A streamed agent's pieces. What the agent does for one is metered, what the run's caller does is not."""
        while True:
            token = PHASE.set(self.phase)
            try:
                update = await (self.meter.in_time(anext(stream)) if self.is_timed else anext(stream))
            except StopAsyncIteration:
                return
            finally:
                PHASE.reset(token)
            yield update

    async def in_time(self, waited_for: Awaitable[T]) -> T:
        """What is waited for outside of a call, unless the run's deadline comes first."""
        return await (self.meter.in_time(waited_for) if self.is_timed else waited_for)

    def has_seen(self, response: AgentResponse) -> bool:
        """Whether it is plain that all calls behind an answer were seen, as most often."""
        phase, usage = self.phase, response.usage
        if response.loop_result is not None:
            return phase.has_usage
        if usage is None:
            return phase.has_calls
        last = self.meter.calls[-1][5] if phase.has_usage else None
        return (
            last is not None
            and usage.output_token_count is not None
            and last.output_token_count == usage.output_token_count
            and last.input_token_count == usage.input_token_count
        )

    def agent_ran(self, sent: Sequence[ChatMessage], response: AgentResponse, seconds: float) -> None:
        """The agent has answered: its run is one call, where its own calls were not seen."""
        keep_agent_run(self.phase, self._position, sent, response, seconds)

    def judge(self) -> None:
        """The evaluators are about to be asked.

        Raises:
            LimitReachedError: There is no time left for it.
        """
        phase, meter = self.phase, self.meter
        phase.role, phase.has_usage = "evaluator", False
        self._judged_from = len(meter.calls)
        if meter.has_deadline:
            self._check_time()

    def _check_time(self) -> None:
        """See whether there is time left to judge: an answer may have come of a loop within that the deadline ended.

        Raises:
            LimitReachedError: There is none, for this run or one around it.
        """
        around: Phase | None = self.phase
        while around is not None:
            spending = around.meter.spending
            left_s = None if spending is None else spending.deadline_in_s
            if spending is not None and left_s is not None and left_s <= 0:
                raise spending.time_is_up()
            around = around.meter.parent

    def check_evaluators(self) -> None:
        """See whether evaluators whose calls are not seen may be asked.

        Raises:
            LimitReachedError: A budget is used up.
        """
        if self.evaluators_report and self.meter.is_guarded:
            check(self.phase)

    def judged(self, context: LoopContext) -> bool:
        """The evaluators have spoken; gives whether they used something. What they report is kept, if it is new."""
        reported = context.take_reported_usages()
        if reported and keep_reported(self.phase, self._judged_from, reported):
            self.evaluators_report = True
        if self.meter.spending is not None:
            self.meter.spending.verdict_is_over()
        return self.phase.has_usage

    def limit_behind(self, error: BaseException) -> LimitReachedError | None:
        """What an exception says of a budget that is used up, or of the timer; `None` if it says neither.

        A cancellation from outside is one also if it comes at the deadline.
        """
        is_timer = isinstance(error, asyncio.CancelledError) and self.timer is not None and self.timer.expired()
        if is_timer and self.meter.spending is not None:
            task = asyncio.current_task()
            return self.meter.spending.time_is_up() if task is not None and task.cancelling() == 1 else None
        return self.meter.limit_behind(error)

    def iteration_usage(self) -> UsageDetails | None:
        """What the calls since the iteration began have used."""
        return self.meter.used_since(self._position)


def keep_agent_run(
    phase: Phase, position: int, sent: Sequence[ChatMessage], response: AgentResponse, seconds: float
) -> None:
    """Keep a run of an agent as one call, if it reports more than was seen.

    Args:
        phase: The part of the run that it was.
        position: How many calls the run had made before.
        sent: What the agent was sent.
        response: What it gave.
        seconds: How long it took.
    """
    inner = LoopResult.of(response) if response.loop_result is not None else None
    usage = response.usage if inner is None else inner.usage
    if usage is None or (phase.has_usage and (inner is not None or _has_seen(phase, position, usage))):
        return
    keep_whole(phase, usage, seconds, lambda: (length(sent), length(response.messages)))


def _has_seen(phase: Phase, position: int, usage: UsageDetails) -> bool:
    """Whether what a run used is what was seen, or a part of it: an agent may make some calls unseen, and some not."""
    seen = [call[5] for call in phase.meter.calls[position:]]
    return (tokens_at_least(usage) or 0) <= sum([tokens_at_least(each) or 0 for each in seen])


def keep_reported(phase: Phase, position: int, reported: Sequence[UsageDetails]) -> bool:
    """Keep what evaluators report of calls that were not seen; gives whether there were any.

    Of a call that was seen the same numbers are there, and of several their sum.

    Args:
        phase: The part of the run in which they were asked.
        position: How many calls the run had made before.
        reported: What they say.
    """
    seen = [call[5] for call in phase.meter.calls[position:] if call[0] == "evaluator" and call[5] is not None]
    total = sum_usage(seen) if len(seen) > 1 else None
    is_new = False
    for usage in reported:
        if usage in seen:
            seen.remove(usage)
        elif usage != total:
            is_new = True
            keep_whole(phase, usage, 0.0, None)
    return is_new


def budgets_of(budget: LoopBudget | Sequence[LoopBudget] | None) -> Sequence[LoopBudget]:
    """The budgets of an option that takes none, one or several."""
    if budget is None:
        return ()
    return (budget,) if isinstance(budget, LoopBudget) else budget
