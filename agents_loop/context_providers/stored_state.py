"""A provider's state as a typed object: read from the session, and written back as JSON values."""

from __future__ import annotations

from typing import Generic, TypeVar

from pydantic import TypeAdapter, ValidationError

from agents_loop.agent import AgentSession
from agents_loop.errors import SessionStateError

State = TypeVar("State")


class StoredState(Generic[State]):
    """Reads and writes a dataclass. Reading changes nothing in the session.

    Args:
        kind: The dataclass; made without arguments where the session has none yet.
    """

    def __init__(self, kind: type[State]) -> None:
        self._kind = kind
        self._adapter = TypeAdapter(kind)

    def read(self, session: AgentSession, key: str) -> State:
        """The state, as an object that shares nothing with the session.

        Raises:
            SessionStateError: What is stored under the key is something else.
        """
        if key not in session.state:
            return self._kind()
        try:
            return self._adapter.validate_python(session.state[key])
        except ValidationError as error:
            raise SessionStateError(f"session.state[{key!r}] can't be read: {error}") from error

    def write(self, session: AgentSession, key: str, state: State) -> None:
        """Put the state into the session."""
        session.state[key] = self._adapter.dump_python(state, mode="json")
