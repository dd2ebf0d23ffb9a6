from __future__ import annotations

import asyncio
from contextlib import suppress
from threading import Event
from typing import Any

import pytest

from agents_loop.files.flomorphic.side_thread import in_side_thread


async def test_a_side_thread_gives_what_its_function_gives():
    """What a function gives or raises in a side thread reaches the one who waits, as it is."""

    def fails() -> None:
        raise KeyError("x")

    assert await in_side_thread(lambda: [1]) == [1]
    assert await in_side_thread(lambda: None) is None
    with pytest.raises(KeyError, match="x"):
        await in_side_thread(fails)


def test_nobody_waits_for_a_thread_that_runs_on():
    """An event loop closes while a script that nobody waits for any more still runs; its end is no error."""
    began, may_end, ended = Event(), Event(), Event()

    def blocks() -> None:
        began.set()
        may_end.wait()
        ended.set()

    async def leave() -> None:
        running = asyncio.ensure_future(in_side_thread(blocks))
        await asyncio.to_thread(began.wait)
        running.cancel()
        with suppress(asyncio.CancelledError):
            await running

    asyncio.run(leave())
    assert not ended.is_set()
    may_end.set()
    assert ended.wait(60)


async def test_an_outcome_after_the_wait_is_dropped():
    """What comes when nobody waits any more is dropped, and is no error of the event loop."""
    may_end = Event()
    unheard: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: unheard.append(context))
    running = asyncio.ensure_future(in_side_thread(may_end.wait))
    await asyncio.sleep(0)
    running.cancel()
    with suppress(asyncio.CancelledError):
        await running
    may_end.set()
    await in_side_thread(lambda: None)
    assert unheard == []
