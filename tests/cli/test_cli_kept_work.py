from __future__ import annotations

import asyncio
import signal

import pytest

from agents_loop.cli.interrupts import KeptWork


class Closed:
    def __init__(self) -> None:
        self.times = 0

    async def __call__(self) -> None:
        self.times += 1


async def _for_ever() -> None:
    await asyncio.Event().wait()


def test_the_first_interrupt_cancels_the_work_and_closes_what_it_used():
    """Nothing is raised: the work says itself what has come of it."""
    done: list[str] = []

    async def work() -> None:
        done.append("one")
        signal.raise_signal(signal.SIGINT)
        await _for_ever()

    closed = Closed()
    with KeptWork() as kept:
        kept.run(work, closed)

    assert (done, kept.is_interrupted, closed.times) == (["one"], True, 1)


def test_a_further_interrupt_does_not_wait_for_work_that_goes_on():
    """What will not end when it is cancelled is left, and the result so far can be shown."""

    async def stubborn() -> None:
        signal.raise_signal(signal.SIGINT)
        try:
            await _for_ever()
        except asyncio.CancelledError:
            signal.raise_signal(signal.SIGINT)
            await _for_ever()

    with KeptWork() as kept:
        kept.run(stubborn, Closed())

    assert kept.is_interrupted


def test_interrupts_within_the_work_are_raised_nowhere_in_it():
    """However many there are: a task that is under way hears of its cancellation, and of nothing else."""
    heard: list[str] = []

    async def work() -> None:
        signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGINT)
        try:
            await _for_ever()
        except BaseException as error:
            heard.append(type(error).__name__)
            raise

    with KeptWork() as kept:
        kept.run(work, Closed())

    assert kept.is_interrupted
    assert heard == ["CancelledError"]


def test_an_interrupt_while_the_result_is_written_loses_nothing():
    """It is heard, and the writing goes on; afterwards interrupts are Python's again."""
    before = signal.getsignal(signal.SIGINT)
    with KeptWork() as kept:
        kept.run(Closed(), Closed())
        signal.raise_signal(signal.SIGINT)
        written = True

    assert written
    assert kept.is_interrupted
    assert signal.getsignal(signal.SIGINT) is before


def test_an_interrupt_before_the_work_is_heard_by_it():
    """It is not begun."""
    work = Closed()
    with KeptWork() as kept:
        signal.raise_signal(signal.SIGINT)
        kept.run(work, Closed())

    assert (work.times, kept.is_interrupted) == (0, True)


@pytest.mark.parametrize("error", [RuntimeError("broken"), ValueError("broken")])
def test_what_work_raises_that_was_not_interrupted_is_raised(error: Exception):
    """A failure is no interrupt; what the work used is closed."""

    async def work() -> None:
        raise error

    closed = Closed()
    with KeptWork() as kept, pytest.raises(type(error), match="broken"):
        kept.run(work, closed)

    assert (kept.is_interrupted, closed.times) == (False, 1)


def test_interrupts_that_are_not_pythons_stay_as_they_are():
    """Where a host, or `nohup`, has taken them, they are left to it."""
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with KeptWork():
            assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)
