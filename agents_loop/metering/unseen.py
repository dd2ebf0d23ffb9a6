"""How a run is metered of an agent that makes its calls unseen: it is one call, whoever runs it."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Final

from agents_loop.messages import UsageDetails
from agents_loop.metering.meter import PHASE, Characters, Phase, begin, keep, keep_failed, take_back


class UnseenRun:
    """A run of an agent of another framework, where it is made within a run of a loop.

    It may have passed itself on to agents of ours, whose calls were seen: then the numbers are the same, and it is none
    of its own. Where they are not, the calls that were seen were those of its tools.

    Raises:
        LimitReachedError: A budget is used up: the agent must not be run.
        ConfigurationError: There is a money budget, and no price for a model that is not named.
    """

    __slots__ = ("_outer", "_phase", "_position", "_started", "_within")

    def __init__(self) -> None:
        self._phase: Phase | None = PHASE.get()
        self._position, self._started = 0, 0.0
        self._outer = _RUNNING.get()
        self._within: list[UsageDetails] = []
        """What other such runs within this one have used."""
        if self._phase is not None:
            begin(self._phase, None, None, is_passed_on=False)
            meter = self._phase.meter
            self._position, self._started = len(meter.calls), meter.clock()

    @contextmanager
    def under_way(self) -> Generator[None, None, None]:
        """Let runs within this one know of it."""
        token = _RUNNING.set(self)
        try:
            yield
        finally:
            _RUNNING.reset(token)

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
        if seen and (usage is None or _is_sum_of_some(usage, seen)):
            take_back(phase)
            return
        around = self._outer
        while around is not None and usage is not None:
            around._within.append(usage)  # noqa: SLF001 - of the same class
            around = around._outer  # noqa: SLF001
        keep(phase, (phase.role, phase.iteration, None, None, None, usage, self._seconds(phase), None), characters)

    def fail(self, error: BaseException) -> None:
        """The agent was stopped, or has raised."""
        phase = self._phase
        if phase is None:
            return
        if self._seen(phase) or not keep_failed(phase, None, None, error, None, self._seconds(phase)):
            take_back(phase)

    def _seen(self, phase: Phase) -> list[UsageDetails | None]:
        """What the calls of clients have used since it began, and such runs within it; of a loop, its agent's."""
        within = set(map(id, self._within))
        return [
            call[5]
            for call in phase.meter.calls[self._position :]
            if call[0] == phase.role and (call[3] is not None or id(call[5]) in within)
        ]

    def _seconds(self, phase: Phase) -> float:
        return phase.meter.clock() - self._started


_RUNNING: Final[ContextVar[UnseenRun | None]] = ContextVar("agents_loop_unseen_run", default=None)


def _is_sum_of_some(usage: UsageDetails, seen: Sequence[UsageDetails | None]) -> bool:
    """Whether some calls in a row have used just that: all of them, or those of the agent that answered in the end."""
    target = _counts(usage)
    first = asked = answered = 0
    counts = [_counts(each) for each in seen if each is not None]
    for each in counts:
        asked, answered = asked + each[0], answered + each[1]
        while asked > target[0] or answered > target[1]:
            asked, answered = asked - counts[first][0], answered - counts[first][1]
            first += 1
        if (asked, answered) == target:
            return True
    return False


def _counts(usage: UsageDetails) -> tuple[int, int]:
    if usage.input_token_count is None and usage.output_token_count is None:
        return 0, usage.total_token_count or 0
    return usage.input_token_count or 0, usage.output_token_count or 0


def length(messages: Sequence[Any]) -> int:
    """The characters of messages."""
    return sum(len(message.text) for message in messages)
