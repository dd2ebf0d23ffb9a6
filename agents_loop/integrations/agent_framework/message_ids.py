"""Which message the pieces of a stream belong to."""

from __future__ import annotations

from typing import Any

from agents_loop.ids import new_id


class MessageIds:
    """Which message of a stream a piece belongs to, as the framework sees it: one goes on until role or id change.

    The ids are the framework's where it gives some, but never the same for two messages.
    """

    def __init__(self) -> None:
        self.role: str | None = None
        self.message_id: str | None = None
        self.response_id: str | None = None
        self._theirs: str | None = None
        self._used: set[str] = set()

    def is_new(self, piece: Any) -> bool:
        """Whether the piece begins another message than the one before."""
        other_id = bool(piece.message_id and self._theirs and piece.message_id != self._theirs)
        return self.message_id is None or other_id or bool(piece.role and piece.role != self.role)

    def follow(self, piece: Any) -> None:
        """Go on to the message of a piece."""
        if self.is_new(piece):
            self._theirs = piece.message_id
            is_unused = piece.message_id and piece.message_id not in self._used
            self.message_id = piece.message_id if is_unused else new_id()
            self._used.add(self.message_id or "")
        self._theirs = piece.message_id or self._theirs
        self.role = piece.role or self.role
        self.response_id = self.response_id or piece.response_id or new_id()
