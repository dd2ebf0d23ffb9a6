"""What a run may spend."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass

from agents_loop.errors import ConfigurationError
from agents_loop.flags import check_flags


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopBudget:
    """What a run may spend. Checked before each model call: a run may go over it by the calls in flight, no more.

    It is shared by everything within the run: tools, evaluators, loops within the loop, and whatever runs at once. A
    run that reaches it ends as `budget_exceeded` or `deadline`, with its answer so far.

    Before a call of the agent, what the verdict on the answer will need is kept back: the mean of what this run's
    verdicts have cost so far (nothing, before the first).

    Raises:
        TypeError: A limit is no number, or of a wrong type.
        ConfigurationError: A limit is not more than 0, or none is set.
    """

    max_tokens: int | None = None
    """Input and output tokens of all calls. Where a provider reports none, there is one for every 4 characters."""
    max_cost_usd: float | None = None
    """US dollars. Needs the price of every model (`LoopAgentOptions.prices`, or the extra `prices`)."""
    max_model_calls: int | None = None
    """Calls, failed ones included."""
    deadline_s: float | None = None
    """Seconds for the run itself, without the time that it waits to be resumed. A call under way then is cancelled."""
    counts_cached_input: bool = True
    """Whether input that the provider read from its cache counts as tokens."""
    keeps_back_verdict: bool = True
    """Whether what the verdict will need is kept back before a call of the agent."""
    name: str = "budget"
    """What messages call it."""
    on_estimate: Callable[[str], None] | None = None
    """Hears, once a run, that a model reports no usage, so that its tokens are estimated."""

    def __post_init__(self) -> None:
        limits = [self.max_tokens, self.max_cost_usd, self.max_model_calls, self.deadline_s]
        if limits == [None] * len(limits):
            raise ConfigurationError(
                "a LoopBudget must set a limit: max_tokens, max_cost_usd, max_model_calls, deadline_s"
            )
        for name in ("max_tokens", "max_model_calls"):
            _check(name, getattr(self, name), int, "an int")
        for name in ("max_cost_usd", "deadline_s"):
            _check(name, getattr(self, name), int | float, "a number")
        check_flags(self, "counts_cached_input", "keeps_back_verdict")
        if not isinstance(self.name, str):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise TypeError(f"name must be a str, not {self.name!r}")
        if self.on_estimate is not None and not callable(self.on_estimate):
            raise TypeError(f"on_estimate must be callable, not {self.on_estimate!r}")

    def called(self, limit: str) -> str:
        """What messages call one of its limits, by the name of its field."""
        return f"{self.name}.{limit}"


def _check(name: str, limit: object, kind: object, called: str) -> None:
    if limit is None:
        return
    if not isinstance(limit, kind) or isinstance(limit, bool):  # pyright: ignore[reportArgumentType]
        raise TypeError(f"{name} must be {called}, not {limit!r}")
    if not 0 < limit <= sys.float_info.max:  # pyright: ignore[reportOperatorIssue] - a larger int is no float
        raise ConfigurationError(f"{name} must be more than 0, not {limit!r:.40}, and a finite number")
