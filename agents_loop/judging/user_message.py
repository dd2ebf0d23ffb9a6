"""The user message of a judge, from the context of a run and the judge's options."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from agents_loop.judging.prompt import VERDICT_CLOSING, JudgeSees, fenced_message
from agents_loop.judging.shown import earlier_messages
from agents_loop.judging.sources import Source
from agents_loop.judging.trimming import ShownLimits
from agents_loop.loop.context import LoopContext
from agents_loop.messages import ChatMessage


class ShowsToJudge(Protocol):
    """What the options of a judge say of its user message."""

    @property
    def judge_sees(self) -> JudgeSees:
        """How much is shown."""
        ...

    @property
    def new_nonce(self) -> Callable[[], str]:
        """Names the fences."""
        ...


def user_message(
    context: LoopContext,
    options: ShowsToJudge,
    limits: ShownLimits,
    *,
    closing: str = VERDICT_CLOSING,
    sources: Sequence[Source] | None = None,
) -> ChatMessage:
    """What `fenced_message` makes of a context.

    Args:
        context: The run's.
        options: The judge's.
        limits: How much of the response, and of what was said before it, is shown.
        closing: What is said last, outside of the fences.
        sources: Shown in the request's place; where it is empty neither is.

    Raises:
        ConfigurationError: The nonce source keeps giving what the texts contain.
    """
    return fenced_message(
        context.initial_messages,
        context.last_response,
        options.new_nonce,
        sees=options.judge_sees,
        earlier=earlier_messages(context) if options.judge_sees == "conversation" else (),
        evidence=context.evidence,
        closing=closing,
        max_answer_chars=limits.answer,
        max_conversation_chars=limits.conversation,
        sources=sources,
    )
