"""One call of a judge's model, and what it amounts to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from agents_loop.chat_client import ChatClient, ChatOptions, ChatResponse
from agents_loop.errors import JudgeFailedError
from agents_loop.failures import FailureCause, cause_of, cause_of_finish
from agents_loop.judging.policy import DEFAULT_RETRIES, JudgeFailurePolicy
from agents_loop.messages import ChatMessage, error_text
from agents_loop.retrying import Attempt
from agents_loop.time_limits import CallLimit


@dataclass(slots=True)
class FailedAttempt:
    """A call without a verdict."""

    cause: FailureCause
    error: Exception
    """What the client raised; where there was a reply, what is raised for it."""
    why: str
    retries: int
    """How often the same judge may be asked again for one verdict."""
    of_reply: bool = False
    """Whether there was a reply."""
    reading: Any = None
    """Of a reply that is whole and unreadable."""
    ending: str = "raise"
    """The policy's, once nothing helped."""


def failure_of_error(error: Exception, policy: JudgeFailurePolicy, attempt: Attempt) -> FailedAttempt:
    """The failure that an exception of the client is."""
    return FailedAttempt(cause_of(error), error, f"{type(error).__name__}: {error}", _retries(policy, attempt))


def failure_of_reply(response: ChatResponse, policy: JudgeFailurePolicy, reading: object | None) -> FailedAttempt:
    """The failure that a reply is: one that ended early, or else one whose reading is not readable."""
    cause = cause_of_finish(response.finish_reason) or FailureCause.UNREADABLE
    said = error_text(response.messages) if reading is None else "nothing in the reply can be read as a verdict"
    error = JudgeFailedError(cause.value, said)
    return FailedAttempt(cause, error, cause.value, _retries(policy), of_reply=True, reading=reading)


async def answer_in_time(
    client: ChatClient, messages: Sequence[ChatMessage], chat_options: ChatOptions | None, limit_s: float
) -> ChatResponse:
    """The client's answer.

    Raises:
        TimeoutError: It did not come in time.
    """
    limit = CallLimit.of_seconds(limit_s)
    try:
        async with limit:
            return await client.get_response(messages, chat_options)
    except TimeoutError as error:
        if not limit.is_over:
            raise
        raise TimeoutError(f"the judge did not answer within {limit_s:g} s") from error


def _retries(policy: JudgeFailurePolicy, attempt: Attempt | None = None) -> int:
    if attempt is not None and attempt.client_keeps:
        return 0
    if policy.retries is not None:
        return policy.retries
    own = None if attempt is None else attempt.clients_own
    return DEFAULT_RETRIES if own is None else own
