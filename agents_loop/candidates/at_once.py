"""Running several things at once, so that none of them is left behind."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Sequence
from contextvars import Context
from typing import Any, TypeVar

T = TypeVar("T")


async def at_once(works: Sequence[tuple[Coroutine[Any, Any, T], Context]]) -> list[T]:
    """What all of them give, each run in a context of its own.

    As soon as one raises, or the caller is cancelled, the others are cancelled and awaited. Of several exceptions it is
    the first work's.
    """
    tasks = [asyncio.create_task(work, context=context) for work, context in works]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_EXCEPTION)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    for task in tasks:
        if not task.cancelled() and (error := task.exception()) is not None:
            raise error
    return [task.result() for task in tasks]
