"""Closing Semantic Kernel's generators, and what they have open."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import AsyncGenerator, AsyncIterable, Awaitable, Callable
from inspect import isasyncgen, iscoroutinefunction
from types import TracebackType
from typing import Any, Generic, TypeVar

from agents_loop.streams import close_stream

Item = TypeVar("Item")
Close = Callable[[], Awaitable[Any]]


class ClosingAll(Generic[Item]):
    """A stream of Semantic Kernel, closed with all that it has open.

    Its generators iterate over others, and over the streams of SDKs, without closing them. One that is left early lets
    go of the next, which then lives until the collector finds it, and the connection too. Here each is closed in turn.
    """

    def __init__(self, stream: AsyncIterable[Item]) -> None:
        self._stream = stream

    async def __aenter__(self) -> AsyncIterable[Item]:
        return self._stream

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            return
        before = asyncio.all_tasks()
        within = _opened_by(self._stream) if isasyncgen(self._stream) else []
        await close_stream(aiter(self._stream))
        for close in within:
            await close()
        while closings := await _new_closings(before):
            await asyncio.wait(closings)


def _opened_by(generator: AsyncGenerator[Any, Any]) -> list[Close]:
    """How to close what a suspended generator of Semantic Kernel iterates over, and what is within that; in order."""
    frame: Any = getattr(generator, "ag_frame", None)
    if frame is None or not str(frame.f_globals.get("__name__")).startswith("semantic_kernel."):
        return []
    closes: list[Close] = []
    for held in gc.get_referents(generator):  # the frame's variables, and the iterator of its `async for`
        if isasyncgen(held):
            closes += [held.aclose, *_opened_by(held)]
        elif hasattr(held, "__anext__") and iscoroutinefunction(getattr(held, "close", None)):
            closes.append(held.close)
    return closes


async def _new_closings(before: set[asyncio.Task[Any]]) -> list[asyncio.Task[Any]]:
    """The tasks in which the event loop closes generators that others let go of a moment ago."""
    await asyncio.sleep(0)  # the event loop makes these tasks in its next turn
    return [task for task in asyncio.all_tasks() - before if type(task.get_coro()).__name__ == "async_generator_athrow"]
