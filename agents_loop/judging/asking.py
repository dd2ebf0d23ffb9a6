"""Asking a judge's model, and what happens when it gives no verdict. Every judge asks through this."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

from agents_loop.chat_client import ChatClient, ChatOptions, ChatResponse, FinishReason
from agents_loop.errors import BudgetExceededError, JudgeFailedError
from agents_loop.judging.policy import JudgeFailurePolicy
from agents_loop.loop.context import LoopContext
from agents_loop.loop.evaluation import LoopEvaluation
from agents_loop.messages import ChatMessage, error_text


class Reading(Protocol):
    """What a judge's reply says."""

    @property
    def readable(self) -> bool:
        """Whether it says anything."""
        ...


R = TypeVar("R", bound=Reading)


@dataclass(frozen=True, slots=True)
class NoVerdict:
    """The judge failed, and by the policy the run goes on."""

    why: str
    """For the record, never for the agent."""

    def evaluation(self) -> LoopEvaluation:
        """Another iteration, of which the agent is told nothing."""
        return LoopEvaluation.continue_(note=f"the judge gave no verdict: {self.why}")


async def ask(
    client: ChatClient,
    messages: Sequence[ChatMessage],
    chat_options: ChatOptions | None,
    policy: JudgeFailurePolicy,
    context: LoopContext,
    read: Callable[[ChatResponse], R],
) -> R | NoVerdict:
    """One verdict of a judge's model, or that there is none. What the calls use is reported to the context.

    Args:
        client: The judge's model.
        messages: What it is sent.
        chat_options: Asked of the call.
        policy: What happens when it fails.
        context: The run's.
        read: Reads a reply that is whole. A reading that is not readable is given back where the policy goes on.

    Raises:
        JudgeFailedError: The reply was cut off, refused, filtered or unreadable, and the policy is to raise.
    """
    try:
        response = await client.get_response(messages, chat_options)
    except BudgetExceededError:
        raise
    except Exception as error:
        if policy.error == "raise":
            raise
        return NoVerdict(f"{type(error).__name__}: {error}")
    context.report_usage(response.usage)
    cause = _FAILURES.get(response.finish_reason)
    if cause is not None:
        if getattr(policy, cause) == "raise":
            raise JudgeFailedError(cause, error_text(response.messages))
        return NoVerdict(cause)
    reading = read(response)
    if not reading.readable and policy.unreadable == "raise":
        raise JudgeFailedError("unreadable", "neither a boolean nor a marker in the reply")
    return reading


def verdict_text(response: ChatResponse) -> str:
    """The text of the judge's last assistant message that has any."""
    for message in reversed(response.messages):
        if message.role == "assistant" and (text := message.text).strip():
            return text
    return ""


_FAILURES: dict[str | None, str] = {
    FinishReason.LENGTH: "length",
    FinishReason.CONTENT_FILTER: "content_filter",
    FinishReason.REFUSAL: "refusal",
}
"""Endings of a reply that are no verdict, whatever its text says."""
