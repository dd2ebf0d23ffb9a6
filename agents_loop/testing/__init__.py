"""Clients that answer from a script, for tests and demonstrations; and what a loop needs of an agent, as assertions."""

from agents_loop.testing.laws import assert_loop_laws
from agents_loop.testing.scripted import RecordedCall, Reply, ScriptedChatClient, ScriptExhaustedError

__all__ = ["RecordedCall", "Reply", "ScriptExhaustedError", "ScriptedChatClient", "assert_loop_laws"]
