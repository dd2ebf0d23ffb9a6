"""The conversation state that an agent keeps between runs."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, cast

from agents_loop.errors import SessionStateError
from agents_loop.ids import new_id
from agents_loop.message_json import message_from_json, message_to_json
from agents_loop.messages import ChatMessage, JsonValue


class AgentSession:
    """The conversation state an agent keeps between runs. It compares by identity.

    Args:
        session_id: The conversation's id; drawn when there is none.
        state: A dict of JSON values for whatever an agent wants to remember.

    `messages` is the conversation so far, for agents that keep it on this side. Only what serialises is kept by
    `serialize_session`: the id, the state and the messages.
    """

    __slots__ = ("__weakref__", "messages", "session_id", "state")

    def __init__(self, *, session_id: str | None = None, state: dict[str, JsonValue] | None = None) -> None:
        if state is not None and not isinstance(state, dict):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise TypeError(f"state must be a dict of JSON values, not {type(state).__name__}")
        self.session_id = session_id or new_id()
        self.state: dict[str, JsonValue] = {} if state is None else state
        self.messages: list[ChatMessage] = []

    def __repr__(self) -> str:
        return f"AgentSession(session_id={self.session_id!r}, {len(self.messages)} messages)"


def session_to_json(session: AgentSession) -> JsonValue:
    """The session as a JSON value that shares nothing with it.

    Raises:
        SessionStateError: The session holds something that is not a JSON value.
    """
    stored: dict[str, JsonValue] = {
        "session_id": session.session_id,
        "state": session.state,
    }
    try:
        stored["messages"] = [message_to_json(message) for message in session.messages]
        return json.loads(json.dumps(stored, allow_nan=False))
    except (TypeError, ValueError) as error:
        raise SessionStateError(f"session {session.session_id!r} holds what is not a JSON value: {error}") from error


def session_from_json(state: JsonValue) -> AgentSession:
    """A new session, from what `session_to_json` gave, that shares nothing with it.

    Raises:
        SessionStateError: The value is not one of `session_to_json`.
    """
    if not isinstance(state, Mapping):
        raise SessionStateError(f"a stored session must be an object, not {type(state).__name__}")
    try:
        stored: dict[str, Any] = json.loads(json.dumps(state))
    except (TypeError, ValueError) as error:
        raise SessionStateError(f"a stored session holds what is not a JSON value: {error}") from error
    session_id, kept, messages = stored.get("session_id"), stored.get("state", {}), stored.get("messages", [])
    if not isinstance(session_id, str | None) or not isinstance(kept, dict) or not isinstance(messages, list):
        raise SessionStateError("a stored session needs a str `session_id`, an object `state`, a list `messages`")
    session = AgentSession(session_id=session_id, state=cast("dict[str, JsonValue]", kept))
    session.messages = [message_from_json(message) for message in cast("list[Any]", messages)]
    return session
