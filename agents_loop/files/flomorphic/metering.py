"""The meter of a flow's run: each call is in the ledger of its iteration, whatever runs beside it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import TypeVar

from agents_loop.chat_client import ChatClient
from agents_loop.loop.metered_run import budgets_of
from agents_loop.loop.options import LoopAgentOptions
from agents_loop.messages import ChatMessage
from agents_loop.metering.ledger import Role
from agents_loop.metering.meter import PHASE, Phase, RunMeter, check

T = TypeVar("T")


class FlowMeter:
    """Meters one run.

    Args:
        options: Its budgets, prices and clock.
        clients: Its models.
        request: What its caller said.
    """

    def __init__(
        self, options: LoopAgentOptions, clients: Iterable[ChatClient], request: Sequence[ChatMessage]
    ) -> None:
        self._options = options
        self._clients = list(clients)
        self._request = request
        self.run = RunMeter(options.clock, options.prices)
        self.failed_in: Role = "agent"
        """In what kind of call the run failed, if one did."""

    def guard(self) -> None:
        """Bound the run, if there is a budget.

        Raises:
            ConfigurationError: There is a money budget, and what a model costs is not known.
        """
        budgets = budgets_of(self._options.budget)
        if not budgets:
            return
        self.run.guard(budgets, (), None)
        if self.run.spending is not None and self.run.spending.counts_money:
            for client in self._clients:
                self.run.require_price(client)

    async def ask(self, call: Callable[[], Awaitable[T]], role: Role, iteration: int) -> T:
        """What a call of a model gives.

        Raises:
            LimitReachedError: A budget is used up, or the deadline came.
        """
        phase = Phase(self.run, role)
        phase.iteration, phase.request = iteration, self._request
        token = PHASE.set(phase)
        try:
            if self.run.is_guarded:
                check(phase)
            return await self.run.in_time(call())
        except Exception:
            self.failed_in = role
            raise
        finally:
            PHASE.reset(token)
            if role == "evaluator" and self.run.spending is not None:
                self.run.spending.verdict_is_over()
