"""What a stall signal is."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import ClassVar

from agents_loop.errors import ConfigurationError
from agents_loop.loop.stalls.facts import IterationFacts
from agents_loop.numeric import check_count, is_number


class StallSignal(ABC):
    """Tells from the last iterations whether a run still comes closer. It keeps nothing of a run.

    Args:
        repeats: How many iterations it looks at: the signal is true once so many in a row look alike.

    Raises:
        TypeError: `repeats` is not an int.
        ConfigurationError: `repeats` is less than 2.
    """

    name: ClassVar[str]
    """What it is called in `stop_detail`, in events and in records."""

    def __init__(self, repeats: int) -> None:
        check_count("repeats", repeats, least=2, why="one iteration repeats nothing")
        self.repeats = repeats

    @abstractmethod
    def is_alike(self, iterations: Sequence[IterationFacts]) -> bool:
        """Whether the signal is true.

        Args:
            iterations: The last `repeats` iterations that were judged and not accepted, in order.
        """

    @property
    @abstractmethod
    def observation(self) -> str:
        """What has been seen where the signal is true, as a clause that a person and the agent can read."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.repeats})"


def check_fraction(name: str, value: float) -> float:
    """A number above 0 and up to 1.

    Raises:
        ConfigurationError: It is none.
    """
    if not is_number(value) or not 0 < value <= 1:
        raise ConfigurationError(f"{name} must be a number above 0 and up to 1, not {value!r}")
    return value
