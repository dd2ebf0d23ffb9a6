"""What the agent hears next."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TypeAlias

from agents_loop.loop.asking import Outcome
from agents_loop.loop.options import LoopAgentOptions
from agents_loop.messages import ChatMessage, ChatRole

FEEDBACK_HEADING = "## Feedback"
"""What stands above all feedback so far in a fresh context; the ancestor's."""

_Messages: TypeAlias = tuple[ChatMessage, ...]


def next_input(
    outcome: Outcome,
    initial: _Messages,
    feedback: Sequence[str | None],
    options: LoopAgentOptions,
    *,
    is_fresh: bool | None = None,
) -> tuple[_Messages, _Messages]:
    """The next input, and the part of it that the loop sends in the caller's place.

    Args:
        outcome: What the evaluators want.
        initial: The caller's messages, which a fresh context is sent again.
        feedback: All feedback so far, the latest included.
        options: How the loop runs.
        is_fresh: Whether it begins a new session; `None`: as the options say.
    """
    if outcome.messages is not None:
        explicit = tuple([m if m.message_id else replace(m, message_id=options.new_id()) for m in outcome.messages])
        sent = explicit if outcome.feedback is None else (*explicit, _written(outcome.feedback, options))
        return sent, sent
    if not (options.fresh_context_per_iteration if is_fresh is None else is_fresh):
        sent = () if outcome.feedback is None else (_written(outcome.feedback, options),)
        return sent, sent
    entries = [entry for entry in feedback if entry is not None]
    if not entries:
        return initial, ()
    heard = _written("\n".join([FEEDBACK_HEADING, "", *[f"- {entry}" for entry in entries]]), options)
    return (*initial, heard), (heard,)


def nudged_input(
    text: str, initial: _Messages, feedback: Sequence[str | None], options: LoopAgentOptions
) -> tuple[_Messages, _Messages]:
    """The next input of an agent that is asked again about the same: what a fresh context needs, and then a nudge."""
    sent, on_behalf_of = next_input(Outcome(goes_on=True), initial, feedback, options)
    nudge = _written(text, options)
    return (*sent, nudge), (*on_behalf_of, nudge)


def _written(text: str, options: LoopAgentOptions) -> ChatMessage:
    message = ChatMessage(ChatRole.USER, text)  # keywords would cost as much again
    message.author_name, message.message_id = options.on_behalf_of_author_name, options.new_id()
    return message
