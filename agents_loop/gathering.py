"""Waiting for several calls at once, so that none of them is left behind."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Sequence
from typing import TypeVar

T = TypeVar("T")


async def gathered(calls: Sequence[Awaitable[T]]) -> list[T]:
    """The results of calls that run at once, in their order.

    As soon as one raises, or the caller is cancelled, the others are cancelled and awaited.
    """
    tasks = [asyncio.ensure_future(call) for call in calls]
    try:
        return list(await asyncio.gather(*tasks))
    finally:
        left = [task for task in tasks if not task.done()]
        for task in left:
            task.cancel()
        if left:
            await asyncio.gather(*left, return_exceptions=True)
