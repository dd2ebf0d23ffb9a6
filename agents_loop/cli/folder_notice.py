"""What a person is told of the folder in which a run is kept."""

from __future__ import annotations

from collections.abc import Callable

from agents_loop.files import RunFolder
from agents_loop.loop.events import LoopEvent, NodeChanged


class FolderNotice:
    """Tells where a run is kept, once it has begun there: a folder that can't be used has no run to go on with.

    Args:
        folder: The run's.
        tell: Hears it.
    """

    def __init__(self, folder: RunFolder, tell: Callable[[str], None]) -> None:
        self._folder = folder
        self._tell = tell
        self._is_told = False

    def on_event(self, event: LoopEvent) -> None:
        """At the first change of a node."""
        if self._is_told or not isinstance(event, NodeChanged):
            return
        self._is_told = True
        run_id = self._folder.run_id
        self._tell(f"run: {run_id} (--run-id {run_id} resumes it; it is kept in {self._folder.path})")

    def close(self) -> None:
        """Nothing is left to do."""
