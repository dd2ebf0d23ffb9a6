"""The numbers that the rules go by, with their sources."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from agents_loop.errors import ConfigurationError
from agents_loop.numeric import is_number

HIGH_GAP: Final = 0.3
"""The budget matrix: a gap above this is high."""
LOW_GAP: Final = 0.1
"""The budget matrix: a gap below this is low; from here to `HIGH_GAP`, both included, it is medium."""
AMPLE_TOKENS: Final = 0.5
"""The budget matrix: the share of tokens that must be left for its first rows: more than this."""
SCARCE_TOKENS: Final = 0.25
"""The budget matrix: less than this share of tokens left is an escalation."""
AMPLE_ITERATIONS: Final = 3
"""The budget matrix: the iterations that must be left for its first rows."""
BURNT_TOKENS: Final = 0.75
"""Budget burn: more than this share of the tokens is used."""
SAME_FOR: Final = 3
"""Infinite loop: the iterations in a row that have the same triggers. Plateau: the scores that are looked at."""
MOST_FAILURES: Final = 2
"""Strategy mismatch: after so many failures in a run a strategy is not used again."""
GAIN_SHARE: Final = (0.7, 0.3)
"""What of the mean severity of what is fixable another iteration is expected to gain; the second on a plateau."""
LIKELIHOOD: Final = (1.0, 0.5)
"""How likely what is fixable is to be mended; the second on a plateau. Both are recorded, and decide nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StrategyThresholds:
    """What of the rules depends on the task. The defaults are the source's, where it has one.

    Raises:
        TypeError: A threshold is no number.
        ConfigurationError: A share is not from 0 to 1, or `cascade_factor` is less than 1.
    """

    min_confidence: float = 0.75
    """Confidence below this is a trigger."""
    target_quality: float = 0.85
    """The quality gap is what is missing to this. The source leaves it open; a sibling of it uses this number."""
    min_fixability: float = 0.3
    """With a lower share of fixable triggers a person is asked."""
    min_gain: float = 0.1
    """Budget burn: a lower gain of quality for each iteration is too little for what it cost."""
    plateau_deviation: float = 0.02
    """Plateau: a lower standard deviation of the last three scores is none. The source calls it a variance; the
    numbers of its examples are standard deviations."""
    min_improvement: float = 0.02
    """An answer is better than the one before if its quality is higher by more than this."""
    cascade_factor: float = 1.2
    """Cascade: more triggers than this times those of the iteration before."""

    def __post_init__(self) -> None:
        for name in self.__slots__:
            value = getattr(self, name)
            if not is_number(value):
                raise TypeError(f"{name} must be a number, not {value!r}")
            if name == "cascade_factor":
                if not value >= 1:
                    raise ConfigurationError(f"cascade_factor must be at least 1, not {value!r}")
            elif not 0 <= value <= 1:
                raise ConfigurationError(f"{name} must be from 0 to 1, not {value!r}")
