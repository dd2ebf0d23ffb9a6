"""A thread for what blocks, for which nobody waits longer than they like: not even the end of the process."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from threading import Thread
from typing import TypeVar

T = TypeVar("T")


async def in_side_thread(function: Callable[[], T]) -> T:
    """What a function gives that blocks. Where the wait is cancelled, its thread goes on to its own end unheard.

    The threads of `asyncio.to_thread` are waited for when the event loop closes, and so would be a script that runs on.
    """
    loop = asyncio.get_running_loop()
    outcome: asyncio.Future[T] = loop.create_future()

    def settle(result: T | None, error: BaseException | None) -> None:
        if outcome.done():
            return
        if error is not None:
            outcome.set_exception(error)
        else:
            outcome.set_result(result)  # pyright: ignore[reportArgumentType] - without an error it is the result

    def work() -> None:
        result, failed = None, None
        try:
            result = function()
        except BaseException as error:  # noqa: BLE001 - it is raised where it is waited for
            failed = error
        with suppress(RuntimeError):  # the event loop is closed: nobody waits
            loop.call_soon_threadsafe(settle, result, failed)

    Thread(target=work, name="flow-script", daemon=True).start()
    return await outcome
