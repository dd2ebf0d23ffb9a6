"""What who runs a file may set, beside or instead of what the file says."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from agents_loop.files.run_folder import RunFolder
from agents_loop.metering.prices import Prices


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits that a file, or who runs it, can set."""

    max_tokens: int | None = None
    max_cost_usd: float | None = None
    deadline_s: float | None = None

    def without(self, others: Limits) -> Limits:
        """Those of these that the others don't set."""
        return Limits(
            self.max_tokens if others.max_tokens is None else None,
            self.max_cost_usd if others.max_cost_usd is None else None,
            self.deadline_s if others.deadline_s is None else None,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSettings:
    """How a file is run, where it is not as the file says. `None` leaves it to the file."""

    max_iterations: int | None = None
    """Instead of the file's, for each of its loops."""
    max_tokens: int | None = None
    """Input and output tokens at most, of all calls, instead of the file's budgets."""
    max_cost_usd: float | None = None
    """US dollars at most, of all calls, instead of the file's budgets."""
    deadline_s: float | None = None
    """How long the run may take, in seconds."""
    prices: Prices | None = None
    """What models cost, by the name in the file or that of the model that answers."""
    return_best: bool = False
    """Whether a run that ends unsatisfied gives the best answer (by score) instead of the last."""
    allow_imports: bool = False
    """Whether the file may name Python objects by their import path. They are code of this machine."""
    outputs_dir: Path | None = None
    """Where what the file calls its `outputs` is written; `None`: nowhere."""
    run_folder: RunFolder | None = None
    """Where what nodes have finished is kept, so that the run can be resumed; `None`: nowhere."""
    limit_names: Mapping[str, str] = field(default_factory=dict[str, str])
    """What messages call `max_tokens`, `max_cost_usd` and `deadline_s`, such as `--max-tokens`; without a name they are
    `RunSettings.max_tokens` and so on."""
    on_notice: Callable[[str], None] | None = None
    """Hears what a person should know while it runs."""

    def called(self, limit: str) -> str:
        """What messages call a limit, by the name of its field."""
        return self.limit_names.get(limit) or f"RunSettings.{limit}"

    @property
    def limits(self) -> Limits:
        """The limits on spending and time."""
        return Limits(self.max_tokens, self.max_cost_usd, self.deadline_s)
