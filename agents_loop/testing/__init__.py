"""What tests of loops need: scripted clients and judges, snapshots of prompts, and laws as assertions."""

from typing import TYPE_CHECKING, Any

from agents_loop.testing.judge import ScriptedJudge, ScriptedVerdict
from agents_loop.testing.laws import assert_loop_laws
from agents_loop.testing.rendering import render_messages
from agents_loop.testing.scripted import RecordedCall, Reply, ScriptedChatClient, ScriptExhaustedError
from agents_loop.testing.stateless import assert_evaluator_is_stateless

if TYPE_CHECKING:
    from agents_loop.testing.snapshots import JudgeMessagesExtension

__all__ = [
    "JudgeMessagesExtension",
    "RecordedCall",
    "Reply",
    "ScriptExhaustedError",
    "ScriptedChatClient",
    "ScriptedJudge",
    "ScriptedVerdict",
    "assert_evaluator_is_stateless",
    "assert_loop_laws",
    "render_messages",
]


def __getattr__(name: str) -> Any:
    if name == "JudgeMessagesExtension":  # needs syrupy, which only tests have
        from agents_loop.testing.snapshots import JudgeMessagesExtension  # noqa: PLC0415

        return JudgeMessagesExtension
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
