"""How a loop runs."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias, cast

from agents_loop.agent import AgentSession
from agents_loop.errors import ConfigurationError
from agents_loop.flags import check_flags
from agents_loop.ids import new_id
from agents_loop.loop.stalls.policy import StallPolicy
from agents_loop.metering.budget import LoopBudget
from agents_loop.metering.prices import Prices, checked_prices
from agents_loop.numeric import check_count

DEFAULT_MAX_ITERATIONS: Final = 10
"""The ancestor's."""

SessionCreatedCallback: TypeAlias = Callable[[AgentSession], Awaitable[object] | object]


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopAgentOptions:
    """How a loop runs.

    Raises:
        ConfigurationError: `max_iterations` is less than 1, `evaluation_mode` or `on_bad_response` is not a known one,
            or `bad_response_retries` is less than 1.
        TypeError: One of the two numbers is not an int, or an option is not of its type.
    """

    max_iterations: int | None = None
    """How often the inner agent is run at most; `None`: `LoopAgent.DEFAULT_MAX_ITERATIONS`."""
    fresh_context_per_iteration: bool = False
    """Whether each re-invocation starts a new session with the caller's messages and all feedback so far."""
    on_behalf_of_author_name: str | None = None
    """Stamped on the messages that the loop writes in the caller's place."""
    exclude_on_behalf_of_messages: bool = False
    """Whether messages sent in the caller's place are left out of what is returned; they are still sent."""
    non_streaming_returns_last_response_only: bool = False
    """Whether `run` returns the last iteration's messages alone."""
    session_created_callback: SessionCreatedCallback | None = None
    """Hears of every session the loop makes or clones, before it is used; sync or async."""
    evaluate_final_iteration: bool = False
    """Whether the evaluators are asked about the answer that hits the cap."""
    evaluation_mode: Literal["first", "all"] = "first"
    """Ask evaluators in order until one wants to go on, or all of them at once."""
    on_bad_response: Literal["evaluate", "retry", "stop"] = "evaluate"
    """What happens when the agent's answer is refused, filtered, cut off or empty: the evaluators are asked all the
    same; or the agent is asked again, with a neutral word in the caller's place (`bad_response_retries` times in a row
    at most, and not about what a provider's filter stopped), and then the run ends; or it ends at once. It ends as
    `failed`, with the cause in `stop_detail`. Each run of the agent is an iteration."""
    return_best: bool = False
    """Whether a run that ends unsatisfied gives the best answer (`LoopResult.best`) instead of the last. The transcript
    ends with it then: what came later is in the result. A run that waits for a person gives its last answer."""
    stall: StallPolicy | None = None
    """When the run counts as stuck, and what follows; `None`: never, as in the ancestor."""
    bad_response_retries: int = 1
    """How often in a row `on_bad_response="retry"` asks again."""
    budget: LoopBudget | Sequence[LoopBudget] | None = None
    """What the run may spend in its whole life, resumes included; of several all hold."""
    resume_budget: LoopBudget | Sequence[LoopBudget] | None = None
    """What each resume of a run may spend, from where it goes on; `budget` holds beside it."""
    prices: Prices | None = None
    """What models cost, by name or glob. They win over the list of `genai-prices` (the extra `prices`)."""
    new_id: Callable[[], str] = new_id
    """Gives ids for runs, messages and responses."""
    clock: Callable[[], float] = time.monotonic
    """Seconds from any fixed point, never going back."""

    def __post_init__(self) -> None:
        for name, count in (
            ("max_iterations", self.max_iterations),
            ("bad_response_retries", self.bad_response_retries),
        ):
            if count is not None or name != "max_iterations":
                check_count(name, count, why="it counts runs of the agent")
        for name in ("session_created_callback", "new_id", "clock"):
            given = getattr(self, name)
            if not callable(given) and (given is not None or name != "session_created_callback"):
                raise TypeError(f"{name} must be callable, not {given!r}")
        for name in ("budget", "resume_budget"):
            _check_budget(name, getattr(self, name))
        check_flags(
            self,
            "fresh_context_per_iteration",
            "exclude_on_behalf_of_messages",
            "non_streaming_returns_last_response_only",
            "evaluate_final_iteration",
            "return_best",
        )
        checked_prices(self.prices)
        _check_stall(self.stall)
        if self.evaluation_mode not in ("first", "all"):
            raise ConfigurationError(f"evaluation_mode must be 'first' or 'all', not {self.evaluation_mode!r}")
        if self.on_bad_response not in ("evaluate", "retry", "stop"):
            raise ConfigurationError(
                f"on_bad_response must be 'evaluate', 'retry' or 'stop', not {self.on_bad_response!r}"
            )


def _check_stall(given: object) -> None:
    if given is not None and not isinstance(given, StallPolicy):
        raise TypeError(f"stall must be a StallPolicy or None, not {given!r}")


def _check_budget(name: str, given: object) -> None:
    listed = cast("Sequence[object]", given) if isinstance(given, list | tuple) else (given,)
    if given is not None and not all(isinstance(budget, LoopBudget) for budget in listed):
        raise TypeError(f"{name} must be a LoopBudget, or several, not {given!r}")
