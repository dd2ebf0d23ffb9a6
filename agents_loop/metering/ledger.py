"""The ledger: one entry for each model call of a run."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias, TypeVar

from agents_loop.message_json import usage_to_json
from agents_loop.messages import JsonValue, UsageDetails, sum_usage

Role: TypeAlias = Literal["agent", "evaluator"]
OK: Final = "ok"
CANCELLED: Final = "cancelled"
"""The outcome of a call that was given up: the run was cancelled, its time was up, or its stream was closed early."""

Key = TypeVar("Key", bound=Hashable)


@dataclass(slots=True)
class LedgerEntry:
    """One model call: who made it, what it used, how it went. Not to be changed."""

    role: Role
    """Who made it: the agent (its tools and its own helpers included), or an evaluator."""
    iteration: int
    """During which iteration, counted from 1."""
    model_id: str | None
    """The model that answered or, where it did not say so, that was asked; `None` if neither is known."""
    usage: UsageDetails | None
    """What the provider reported; `None`: nothing."""
    cost_usd: float | None
    """What it cost; `None` where the model's price or the usage is not known. Never 0 for want of knowing."""
    duration_s: float
    outcome: str
    """`"ok"`; the `FailureCause` of a call that failed or of a reply that ended early; or `"cancelled"`."""

    def to_json(self) -> dict[str, JsonValue]:
        """The entry as a JSON value."""
        return {
            "role": self.role,
            "iteration": self.iteration,
            "model_id": self.model_id,
            "usage": None if self.usage is None else usage_to_json(self.usage),
            "cost_usd": self.cost_usd,
            "duration_s": self.duration_s,
            "outcome": self.outcome,
        }

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> LedgerEntry:
        """What `to_json` gave.

        Raises:
            KeyError: A field is missing.
        """
        usage = stored["usage"]
        return cls(
            role=stored["role"],
            iteration=stored["iteration"],
            model_id=stored["model_id"],
            usage=None if usage is None else UsageDetails(**usage),
            cost_usd=stored["cost_usd"],
            duration_s=stored["duration_s"],
            outcome=stored["outcome"],
        )


@dataclass(frozen=True, slots=True)
class LedgerSum:
    """What several calls amount to."""

    calls: int
    """How many there were, failed ones included."""
    usage: UsageDetails | None
    """The sum of what was reported; `None`: nothing was."""
    cost_usd: float | None
    """The sum; `None` as soon as one call's cost is not known. A failed call that reported nothing costs nothing."""
    duration_s: float
    """The sum. Calls at the same time are not told apart, so it may be more than the run took."""


class Ledger(tuple[LedgerEntry, ...]):
    """The calls of a run, in the order in which they ended, with their sums."""

    __slots__ = ()

    @property
    def total(self) -> LedgerSum:
        """The sum of all."""
        return _sum(self)

    def by_role(self) -> dict[str, LedgerSum]:
        """A sum for each role that made a call."""
        return self._by(lambda entry: entry.role)

    def by_iteration(self) -> dict[int, LedgerSum]:
        """A sum for each iteration in which there was a call."""
        return self._by(lambda entry: entry.iteration)

    def by_model(self) -> dict[str | None, LedgerSum]:
        """A sum for each model."""
        return self._by(lambda entry: entry.model_id)

    def to_json(self) -> list[JsonValue]:
        """The entries as a JSON value."""
        return [entry.to_json() for entry in self]

    @classmethod
    def from_json(cls, stored: Iterable[Mapping[str, Any]]) -> Ledger:
        """What `to_json` gave."""
        return cls([LedgerEntry.from_json(entry) for entry in stored])

    def _by(self, key: Callable[[LedgerEntry], Key]) -> dict[Key, LedgerSum]:
        groups: dict[Key, list[LedgerEntry]] = {}
        for entry in self:
            groups.setdefault(key(entry), []).append(entry)
        return {name: _sum(entries) for name, entries in groups.items()}


def _sum(entries: Iterable[LedgerEntry]) -> LedgerSum:
    listed = list(entries)
    paid = [entry.cost_usd for entry in listed if entry.usage is not None or entry.outcome == OK]
    known = [cost for cost in paid if cost is not None]
    return LedgerSum(
        len(listed),
        sum_usage(entry.usage for entry in listed),
        sum(known) if len(known) == len(paid) else None,
        sum(entry.duration_s for entry in listed),
    )
