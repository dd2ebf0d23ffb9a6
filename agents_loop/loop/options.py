"""How a loop runs."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from agents_loop.agent import AgentSession
from agents_loop.errors import ConfigurationError
from agents_loop.ids import new_id

DEFAULT_MAX_ITERATIONS: Final = 10
"""The ancestor's."""

SessionCreatedCallback: TypeAlias = Callable[[AgentSession], Awaitable[object] | object]


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopAgentOptions:
    """How a loop runs.

    Raises:
        ConfigurationError: `max_iterations` is less than 1, or `evaluation_mode` is not a known one.
        TypeError: `max_iterations` is not an int.
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
    new_id: Callable[[], str] = new_id
    """Gives ids for runs, messages and responses."""
    clock: Callable[[], float] = time.monotonic
    """Seconds from any fixed point, never going back."""

    def __post_init__(self) -> None:
        cap = self.max_iterations
        if cap is not None:
            if not isinstance(cap, int) or isinstance(cap, bool):  # pyright: ignore[reportUnnecessaryIsInstance]
                raise TypeError(f"max_iterations must be an int, not {cap!r}")
            if cap < 1:
                raise ConfigurationError(f"max_iterations must be at least 1, not {cap}: it counts runs of the agent")
        for name in ("session_created_callback", "new_id", "clock"):
            given = getattr(self, name)
            if not callable(given) and (given is not None or name != "session_created_callback"):
                raise TypeError(f"{name} must be callable, not {given!r}")
        if self.evaluation_mode not in ("first", "all"):
            raise ConfigurationError(f"evaluation_mode must be 'first' or 'all', not {self.evaluation_mode!r}")
