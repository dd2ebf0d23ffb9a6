"""How a run is metered of an agent that makes its calls unseen: it is one call, whoever runs it."""

from __future__ import annotations

from typing import Any

from agents_loop.messages import UsageDetails, sum_usage
from agents_loop.metering.meter import PHASE, Characters, Phase, begin, keep, keep_failed, take_back


class UnseenRun:
    """A run of an agent of another framework, where it is made within a run of a loop.

    It may have passed itself on to agents of ours, whose calls were seen: then the numbers are the same, and it is none
    of its own. Where they are not, the calls that were seen were those of its tools.

    Raises:
        LimitReachedError: A budget is used up: the agent must not be run.
        ConfigurationError: There is a money budget, and no price for a model that is not named.
    """

    __slots__ = ("_phase", "_position", "_started")

    def __init__(self) -> None:
        self._phase: Phase | None = PHASE.get()
        self._position, self._started = 0, 0.0
        if self._phase is not None:
            begin(self._phase, None, None, is_passed_on=False)
            meter = self._phase.meter
            self._position, self._started = len(meter.calls), meter.clock()

    def end(self, usage: UsageDetails | None, characters: Characters) -> None:
        """The agent has answered.

        Args:
            usage: What it reports.
            characters: For tokens that have to be estimated.
        """
        phase = self._phase
        if phase is None:
            return
        seen = self._seen(phase)
        used = [each for each in seen if each is not None]
        if seen and (usage is None or usage in used or usage == sum_usage(used)):
            take_back(phase)
            return
        keep(phase, (phase.role, phase.iteration, None, None, None, usage, self._seconds(phase), None), characters)

    def fail(self, error: BaseException) -> None:
        """The agent was stopped, or has raised."""
        phase = self._phase
        if phase is None:
            return
        if self._seen(phase) or not keep_failed(phase, None, None, error, None, self._seconds(phase)):
            take_back(phase)

    def _seen(self, phase: Phase) -> list[UsageDetails | None]:
        """What the calls of clients have used since it began."""
        return [call[5] for call in phase.meter.calls[self._position :] if call[3] is not None]

    def _seconds(self, phase: Phase) -> float:
        return phase.meter.clock() - self._started


def length(messages: Any) -> int:
    """The characters of messages."""
    return sum(len(message.text) for message in messages)
