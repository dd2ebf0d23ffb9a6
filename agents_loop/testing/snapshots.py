"""Snapshots of a judge's messages, for syrupy."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, cast

from agents_loop.errors import MissingExtraError
from agents_loop.messages import ChatMessage
from agents_loop.testing.rendering import render_messages

try:
    from syrupy.extensions.amber import AmberSnapshotExtension
except ImportError as error:
    raise MissingExtraError("JudgeMessagesExtension", "testing") from error

if TYPE_CHECKING:
    from syrupy.types import SerializableData


class JudgeMessagesExtension(AmberSnapshotExtension):
    """A syrupy extension that writes messages readably: `messages == snapshot(extension_class=JudgeMessagesExtension)`.

    A list of `ChatMessage`, or one, is written by `render_messages`; anything else as syrupy does it.
    """

    def serialize(self, data: SerializableData, **kwargs: Any) -> str:  # noqa: D102 - syrupy's
        if isinstance(data, ChatMessage):
            return super().serialize(render_messages([data]), **kwargs)
        listed = list(cast("Iterable[Any]", data)) if isinstance(data, list | tuple) else []
        if listed and all(isinstance(item, ChatMessage) for item in listed):
            return super().serialize(render_messages(listed), **kwargs)
        return super().serialize(data, **kwargs)
