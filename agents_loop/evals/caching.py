"""The cache of an evaluation: replies by the exact call, a file for each model."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable
from pathlib import Path

from agents_loop.clients.recordings import Recordings
from agents_loop.errors import ConfigurationError

_PLAIN = re.compile(r"[^\w.-]+", re.ASCII)
_LONGEST = 60


class CallCache:
    """Replies in a folder, as `RecordedChatClient` keeps and finds them.

    Args:
        folder: The folder; made when there is none.
        on_warning: Hears that a reply can't be kept.

    Raises:
        ConfigurationError: The folder can't be made.
    """

    def __init__(self, folder: Path, on_warning: Callable[[str], None] | None = None) -> None:
        self._folder = folder
        self._on_warning = on_warning or _hear_nothing
        self._files: dict[str, Recordings] = {}
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise ConfigurationError(f"the cache {str(folder)!r} can't be written: {error.strerror}") from error

    def of(self, model: str) -> Recordings:
        """The replies of a model.

        Raises:
            ConfigurationError: Its file is damaged, or of another kind.
        """
        if model not in self._files:
            self._files[model] = Recordings(self._folder / file_name(model), self._on_warning)
        return self._files[model]


def file_name(model: str) -> str:
    """A file's name for a model's: readable, and no other model's."""
    mark = hashlib.sha256(model.encode("utf-8", "surrogatepass")).hexdigest()[:8]
    return f"{_PLAIN.sub('-', model)[:_LONGEST].strip('-.')}-{mark}.jsonl"


def _hear_nothing(text: str) -> None:
    """Nobody wants to know."""
