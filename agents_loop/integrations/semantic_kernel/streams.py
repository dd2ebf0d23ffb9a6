"""Closing Semantic Kernel's generators, and those within them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterable
from types import TracebackType
from typing import Any, Generic, TypeVar

from agents_loop.streams import close_stream

Item = TypeVar("Item")


class ClosingAll(Generic[Item]):
    """A stream of Semantic Kernel, closed with all that it has open.

    Its generators iterate over others without closing them. One that is left early lets go of the next, which the event
    loop then closes in a task of its own, and so on down to the connection. Here these tasks are awaited.
    """

    def __init__(self, stream: AsyncIterable[Item]) -> None:
        self._stream = stream

    async def __aenter__(self) -> AsyncIterable[Item]:
        return self._stream

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        before = asyncio.all_tasks()
        await close_stream(aiter(self._stream))
        if kind is not None:
            while closings := await _new_closings(before):
                await asyncio.wait(closings)


async def _new_closings(before: set[asyncio.Task[Any]]) -> list[asyncio.Task[Any]]:
    """The tasks in which the event loop closes generators that were let go of a moment ago."""
    await asyncio.sleep(0)  # the event loop makes these tasks in its next turn
    return [task for task in asyncio.all_tasks() - before if type(task.get_coro()).__name__ == "async_generator_athrow"]
