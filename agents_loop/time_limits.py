"""How long a model's call may take, where its caller bounds it: a call that is cut short is told as a timeout."""

from __future__ import annotations

import asyncio
from contextvars import ContextVar, Token
from types import TracebackType
from typing import Final, Self

_AROUND: Final[ContextVar[CallLimit | None]] = ContextVar("agents_loop_call_limit", default=None)


class CallLimit:
    """An `asyncio.timeout_at` that those within it can tell from any other reason to be cancelled.

    Args:
        ends_at: When what is within it is cancelled, by the clock of the running event loop.
    """

    __slots__ = ("_outer", "_timeout", "_token")

    def __init__(self, ends_at: float) -> None:
        self._timeout = asyncio.timeout_at(ends_at)
        self._outer = _AROUND.get()
        self._token: Token[CallLimit | None] | None = None

    @classmethod
    def of_seconds(cls, seconds: float) -> CallLimit:
        """One that begins now."""
        return cls(asyncio.get_running_loop().time() + seconds)

    @property
    def is_over(self) -> bool:
        """Whether the time is up, and what is within it was cancelled for that."""
        return self._timeout.expired()

    @property
    def is_over_around(self) -> bool:
        """Whether its time is up, or that of one around it."""
        return self.is_over or (self._outer is not None and self._outer.is_over_around)

    async def __aenter__(self) -> Self:
        """Begin.

        Raises:
            TimeoutError: At the end of the block: the time was up.
        """
        await self._timeout.__aenter__()
        self._token = _AROUND.set(self)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> bool | None:
        """End."""
        if self._token is not None:
            _AROUND.reset(self._token)
        return await self._timeout.__aexit__(kind, error, traceback)


def is_cut_by_its_caller() -> bool:
    """Whether a call that was cancelled just now was so because a `CallLimit` around it is over."""
    limit = _AROUND.get()
    return limit is not None and limit.is_over_around
