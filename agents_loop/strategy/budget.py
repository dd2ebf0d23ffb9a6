"""What is left for further iterations, and the matrix that says whether it is enough."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from agents_loop.errors import ConfigurationError
from agents_loop.numeric import is_int, is_number
from agents_loop.strategy.thresholds import AMPLE_ITERATIONS, AMPLE_TOKENS, HIGH_GAP, LOW_GAP, SCARCE_TOKENS


class MatrixAction(StrEnum):
    """What the budget matrix says."""

    ITERATE = "iterate"
    """Go on, with the strategy that the decision tree chooses."""
    REFINE = "refine"
    """Go on, and keep the answer: what is to be written anew is refined instead."""
    FINAL_ATTEMPT = "final_attempt"
    """Go on, once, with all that is to be mended."""
    ACCEPT = "accept"
    ESCALATE = "escalate"


def matrix_action(remaining_iterations: int, tokens_left: float | None, quality_gap: float | None) -> MatrixAction:
    """The cell of the matrix.

    Where the source has no row (three iterations and 25 to 50 % of the tokens) the row for one or two iterations
    holds; a gap of exactly 0.1 or 0.3 is medium, and 25 % of the tokens are not too few.

    Args:
        remaining_iterations: How many the cap leaves.
        tokens_left: The share of the token budget that is left, from 0 to 1. `None`: there is no limit.
        quality_gap: What is missing to the target. `None`: not known, so that only the rows without one hold.
    """
    left = 1.0 if tokens_left is None else tokens_left
    if remaining_iterations <= 0 or left < SCARCE_TOKENS:
        return MatrixAction.ESCALATE
    if quality_gap is None:
        return MatrixAction.ITERATE
    gap = round(quality_gap, 9)  # 0.95 - 0.85 is not exactly 0.1
    if remaining_iterations >= AMPLE_ITERATIONS and left > AMPLE_TOKENS:
        if gap < LOW_GAP:
            return MatrixAction.ACCEPT
        return MatrixAction.ITERATE if gap > HIGH_GAP else MatrixAction.REFINE
    return MatrixAction.FINAL_ATTEMPT if gap > HIGH_GAP else MatrixAction.ACCEPT


@dataclass(frozen=True, slots=True, kw_only=True)
class IterationBudget:
    """What a run has used and may use: iterations, tokens and time.

    Raises:
        TypeError: A number is none.
        ConfigurationError: `iteration`, or a limit other than of time, is less than 1; or another number is negative.
    """

    iteration: int
    """The one that is judged, counted from 1."""
    max_iterations: int
    max_tokens: int | None = None
    """`None`: no limit."""
    tokens_used: int | None = None
    """`None`: nobody reported any."""
    next_tokens: int | None = None
    """What the next iteration is expected to use; `None`: not known."""
    max_s: float | None = None
    """In seconds; `None`: no limit."""
    elapsed_s: float = 0.0
    next_s: float | None = None
    """How long the next iteration is expected to take; `None`: not known."""

    def __post_init__(self) -> None:
        for name in ("iteration", "max_iterations", "max_tokens", "tokens_used", "next_tokens"):
            value = getattr(self, name)
            if value is None and name not in ("iteration", "max_iterations"):
                continue
            if not is_int(value):
                raise TypeError(f"{name} must be an int, not {value!r}")
            if value < (0 if name in ("tokens_used", "next_tokens") else 1):
                raise ConfigurationError(f"{name} is too low: {value}")
        for name in ("max_s", "elapsed_s", "next_s"):
            value = getattr(self, name)
            if value is not None and not is_number(value):
                raise TypeError(f"{name} must be a number, not {value!r}")
            if value is not None and not value >= 0:
                raise ConfigurationError(f"{name} is too low: {value}")

    @property
    def remaining_iterations(self) -> int:
        """How many iterations the cap leaves."""
        return max(0, self.max_iterations - self.iteration)

    @property
    def remaining_tokens(self) -> int | None:
        """The tokens that are left; `None` without a limit, and where nobody reported what was used."""
        if self.max_tokens is None or self.tokens_used is None:
            return None
        return max(0, self.max_tokens - self.tokens_used)

    @property
    def tokens_left(self) -> float | None:
        """The share of the tokens that is left, from 0 to 1; `None` as for `remaining_tokens`."""
        left = self.remaining_tokens
        return None if left is None or self.max_tokens is None else left / self.max_tokens

    @property
    def is_scarce(self) -> bool:
        """Whether fewer tokens are left than the matrix demands of every row."""
        return self.tokens_left is not None and self.tokens_left < SCARCE_TOKENS

    @property
    def shortage(self) -> str | None:
        """Why one more iteration is not to be had, in words; `None` if it is, or nothing is known."""
        left = self.remaining_tokens
        if left is not None and self.next_tokens is not None and left < self.next_tokens:
            return f"{left} tokens are left, and the next iteration is expected to use {self.next_tokens}"
        if self.max_s is None:
            return None
        left_s = max(0.0, self.max_s - self.elapsed_s)
        if not left_s or (self.next_s is not None and left_s < self.next_s):
            expected = (
                "" if self.next_s is None else f", and the next iteration is expected to take {self.next_s:.3g} s"
            )
            return f"{left_s:.3g} of {self.max_s:.3g} s are left{expected}"
        return None
