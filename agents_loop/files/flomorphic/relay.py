"""Branches of a run and the reader of its events, in step: no branch goes on before its event has been taken."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Coroutine
from typing import TypeAlias

from agents_loop.loop.events import LoopEvent

_Told: TypeAlias = "tuple[LoopEvent, asyncio.Future[None]]"


class Relay:
    """Runs branches as tasks, and gives their events in the order in which they happen."""

    def __init__(self) -> None:
        self._queue: asyncio.Queue[_Told | asyncio.Task[None]] = asyncio.Queue()
        self._tasks: set[asyncio.Task[None]] = set()

    def start(self, branch: Coroutine[None, None, None]) -> None:
        """Let a branch begin."""
        task = asyncio.create_task(branch)
        self._tasks.add(task)
        task.add_done_callback(self._queue.put_nowait)

    async def tell(self, event: LoopEvent) -> None:
        """Wait until an event has been taken: for branches."""
        seen: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._queue.put_nowait((event, seen))
        await seen

    async def events(self) -> AsyncGenerator[LoopEvent, None]:
        """The events, until all branches have ended.

        Raises:
            BaseException: What a branch raised.
        """
        while self._tasks:
            told = await self._queue.get()
            if isinstance(told, asyncio.Task):
                self._tasks.discard(told)
                told.result()
                continue
            event, seen = told
            yield event
            if not seen.done():
                seen.set_result(None)

    async def stop(self) -> None:
        """Cancel what is under way, and wait until it is over."""
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.gather(*self._tasks, return_exceptions=True)
        self._tasks.clear()
