"""Closing what may be an async generator."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any


async def close_stream(stream: AsyncIterator[Any]) -> None:
    """Close an async iterator, if it is one that can be closed."""
    close = getattr(stream, "aclose", None)
    if close is not None:
        await close()
