"""How much less a judge is shown where the prompt was too long for its model."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from agents_loop.judging.shown import count_chars, earlier_messages, shown_messages
from agents_loop.judging.sizes import LEAST_CHARS
from agents_loop.loop.context import LoopContext
from agents_loop.messages import ChatMessage

_SHARE = 4
"""Each time a quarter stays: servers seldom say how much was too much."""


class ShownLimits(NamedTuple):
    """How many characters a judge is shown at most; `None`: all."""

    answer: int | None = None
    conversation: int | None = None


def tighter(limits: ShownLimits, context: LoopContext, times: int) -> ShownLimits | None:
    """The limits for the how manieth time, from 1, that a prompt was too long; `None` if nothing more can be cut.

    Only the response and what was said before it are cut; the request and the criteria never are.
    """
    answer = _cut(count_chars(shown_messages(context.last_response.messages)), limits.answer, times)
    conversation = _cut(count_chars(shown_messages(earlier_messages(context))), limits.conversation, times)
    if answer is None and conversation is None:
        return None
    return ShownLimits(answer or LEAST_CHARS, conversation or LEAST_CHARS)


def shorter_prompts(
    prompt: Callable[[LoopContext, ShownLimits], list[ChatMessage]], limits: ShownLimits, context: LoopContext
) -> Callable[[int], list[ChatMessage] | None]:
    """Gives the prompt for the how manieth time that it was too long for the judge's model, as `ask` wants it.

    Args:
        prompt: Makes the prompt.
        limits: What holds for it as long as it is not too long.
        context: What is judged.
    """

    def shorter(times: int) -> list[ChatMessage] | None:
        less = tighter(limits, context, times)
        return None if less is None else prompt(context, less)

    return shorter


def _cut(chars: int, most: int | None, times: int) -> int | None:
    shown = chars if most is None else min(chars, most)
    if shown // _SHARE ** (times - 1) <= LEAST_CHARS:
        return None
    return max(LEAST_CHARS, shown // _SHARE**times)
