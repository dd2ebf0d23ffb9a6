"""The limits of who runs a file, as budgets."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from agents_loop.files.run_settings import RunSettings
from agents_loop.metering.budget import LoopBudget


@dataclass(frozen=True, slots=True, kw_only=True)
class GivenLimit(LoopBudget):
    """One limit, which messages call as whoever gave it did: `--max-tokens`."""

    def called(self, limit: str) -> str:
        """Its name: there is no other limit."""
        del limit
        return self.name


def spending_limits(settings: RunSettings, *, counts_cached_input: bool = True) -> Iterator[LoopBudget]:
    """Those on tokens and money."""
    if settings.max_tokens is not None:
        yield GivenLimit(
            max_tokens=settings.max_tokens,
            name=settings.called("max_tokens"),
            counts_cached_input=counts_cached_input,
            on_estimate=settings.on_notice,
        )
    if settings.max_cost_usd is not None:
        name = settings.called("max_cost_usd")
        yield GivenLimit(max_cost_usd=settings.max_cost_usd, name=name, on_estimate=settings.on_notice)


def time_limits(settings: RunSettings) -> Iterator[LoopBudget]:
    """That on time."""
    if settings.deadline_s is not None:
        yield GivenLimit(deadline_s=settings.deadline_s, name=settings.called("deadline_s"))
