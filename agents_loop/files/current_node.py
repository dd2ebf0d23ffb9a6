"""Which node of a file the current code runs for, where a file has several."""

from __future__ import annotations

from contextvars import ContextVar
from typing import Final

NODE: Final[ContextVar[str | None]] = ContextVar("agents_loop_node", default=None)
"""Its id; set by what runs a node, for the rest of its task."""
