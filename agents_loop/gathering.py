"""Waiting for several things at once, so that none of them is left behind."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Sequence
from typing import Any, TypeVar

T = TypeVar("T")


async def gathered(calls: Sequence[Awaitable[T]]) -> list[T]:
    """The results of calls that run at once, in their order.

    As soon as one raises, or the caller is cancelled, the others are cancelled and awaited. Of several exceptions it is
    the first call's. A call that is to run in a context of its own is given as a task.
    """
    tasks = [asyncio.ensure_future(call) for call in calls]
    failed = await settled(tasks)
    if failed is not None:
        raise failed
    return [task.result() for task in tasks]


async def settled(tasks: Sequence[asyncio.Future[Any]]) -> BaseException | None:
    """Wait until all tasks are over; gives what one of them raised, the first in their order.

    As soon as one raises, or the caller is cancelled, the others are cancelled and awaited.
    """
    pending, failed = set(tasks), None
    try:
        while pending and failed is None:
            _, pending = await asyncio.wait(pending, return_when=asyncio.FIRST_COMPLETED)
            failed = next((error for task in tasks if (error := error_of(task)) is not None), None)
    finally:
        for task in pending:
            task.cancel()
        if pending:
            await asyncio.gather(*pending, return_exceptions=True)
    return failed


def error_of(task: asyncio.Future[Any]) -> BaseException | None:
    """What a task has raised, a cancellation too; `None` where it goes on or gave a result."""
    if not task.done():
        return None
    try:
        return task.exception()
    except asyncio.CancelledError as error:
        return error
