"""Asking a judge's model, and what happens when it gives no verdict. Every judge asks through this."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol, TypeVar

from agents_loop.chat_client import ChatClient, ChatOptions, ChatResponse
from agents_loop.errors import BudgetExceededError, EvaluatorFailedError, JudgeFailedError
from agents_loop.failures import FailureCause, cause_of_finish
from agents_loop.judging.attempt import FailedAttempt, answer_in_time, failure_of_error, failure_of_reply
from agents_loop.judging.policy import JudgeFailurePolicy
from agents_loop.judging.remedies import Remedies
from agents_loop.loop.context import LoopContext
from agents_loop.loop.evaluation import LoopEvaluation
from agents_loop.loop.no_verdict import NO_VERDICT
from agents_loop.messages import ChatMessage
from agents_loop.retrying import CALL, Attempt

FAILURES_IN_A_ROW: Final = "_agents_loop.judge_failures"
"""Where a run's context keeps the failures in a row, by judge."""
_UNREADABLE: Final = "nothing in a reply can be read as a verdict"


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

    cause: FailureCause
    why: str
    """For the record, never for the agent."""
    error: Exception | None = None
    """What the client raised, or what would have been raised for its reply."""

    def evaluation(self) -> LoopEvaluation:
        """Another iteration, of which the agent is told nothing."""
        note = f"the judge gave no verdict: {self.why}"
        return LoopEvaluation.continue_(note=note, details={NO_VERDICT: str(self.cause)})


async def ask(
    client: ChatClient,
    messages: Sequence[ChatMessage],
    chat_options: ChatOptions | None,
    policy: JudgeFailurePolicy,
    context: LoopContext,
    read: Callable[[ChatResponse], R],
    shorter: Callable[[int], Sequence[ChatMessage] | None] | None = None,
    *,
    is_counted: bool = True,
) -> R | NoVerdict:
    """One verdict of a judge's model, or that there is none.

    The policy tries again in place of the client's SDK, whose own attempts are off for these calls; a client that
    can't switch them off keeps them, and then `retry` does nothing (`agents_loop.retrying`).

    Args:
        client: The judge's model.
        messages: What it is sent.
        chat_options: Asked of the call.
        policy: What happens when it fails.
        context: The run's.
        read: Reads a reply that is whole. A reading that is not readable is given back where the policy goes on.
        shorter: Gives the messages with the agent's answer cut for the how manieth time, from 1; `None` where it can't
            be cut any more. Without it nothing is trimmed.
        is_counted: Whether it counts among the failures in a row. Where one verdict takes several calls they are not,
            and `count_together` counts it.

    Raises:
        JudgeFailedError: The reply was cut off, refused, filtered or unreadable, and the policy is to raise.
        EvaluatorFailedError: The policy is to stop the run.
        Exception: What the client raised, as it was raised, where the policy is to raise.
        TypeError: What the client gave is no `ChatResponse`.
    """
    asked, remedies = client, None
    while True:
        attempt = Attempt(asked, CALL.get())
        token = CALL.set(attempt)
        try:
            if policy.timeout_s is None:
                response = await asked.get_response(messages, chat_options)
            else:
                response = await answer_in_time(asked, messages, chat_options, policy.timeout_s)
        except BudgetExceededError:
            raise
        except Exception as error:  # noqa: BLE001 - the policy decides, and by default it raises it
            failure = failure_of_error(error, policy, attempt)
        else:
            reading = _read_whole(response, read)
            if reading is not None and reading.readable:
                if is_counted and FAILURES_IN_A_ROW in context.additional_properties:
                    _begin_anew(context, (id(client), id(policy)))
                return reading
            failure = failure_of_reply(response, policy, reading)
        finally:
            CALL.reset(token)
        if remedies is None:
            remedies = Remedies(client, messages, chat_options, policy, shorter)
        told = await remedies.after(failure)
        if told is not None:
            return _ended(told, policy, context, (id(client), id(policy)) if is_counted else None)
        asked, messages, chat_options = remedies.client, remedies.messages, remedies.options


def _read_whole(response: ChatResponse, read: Callable[[ChatResponse], R]) -> R | None:
    """What a reply says, unless it ended early."""
    if not isinstance(response, ChatResponse):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise TypeError(f"a judge's client must give a ChatResponse, not {type(response).__name__}")
    ended = response.finish_reason
    return read(response) if ended is None or cause_of_finish(ended) is None else None


def count_together(
    client: ChatClient, policy: JudgeFailurePolicy, context: LoopContext, failed: NoVerdict | None, *, readable: bool
) -> None:
    """Count the calls of one verdict as one: an outage, an unreadable verdict, or the end of both rows.

    Args:
        client: The judge's model.
        policy: What happens at its limits.
        context: The run's.
        failed: A call that gave no verdict.
        readable: Whether all that was said can be read.

    Raises:
        JudgeFailedError: It is one too many in a row that is unreadable, and the policy is to raise.
        EvaluatorFailedError: The same, and the policy is to stop the run.
        Exception: What the client raised, where it is one outage too many.
    """
    judge = id(client), id(policy)
    if failed is None and readable:
        _begin_anew(context, judge)
        return
    cause, why = (FailureCause.UNREADABLE, _UNREADABLE) if failed is None else (failed.cause, failed.why)
    error = (None if failed is None else failed.error) or JudgeFailedError(cause.value, why)
    reading = _UNREADABLE if failed is None else None
    _ended(FailedAttempt(cause, error, why, 0, reading=reading, ending="continue"), policy, context, judge)


def _begin_anew(context: LoopContext, judge: tuple[int, int]) -> None:
    if FAILURES_IN_A_ROW in context.additional_properties:
        context.additional_properties[FAILURES_IN_A_ROW].pop(judge, None)


def _ended(
    failure: FailedAttempt, policy: JudgeFailurePolicy, context: LoopContext, judge: tuple[int, int] | None
) -> Any:
    """What the policy's ending makes of a failure; of no judge it is not counted."""
    ending = failure.ending
    if ending == "continue" and judge is not None and _is_too_many(failure, policy, context, judge):
        ending = policy.at_limit
    if ending == "continue":
        return NoVerdict(failure.cause, failure.why, failure.error) if failure.reading is None else failure.reading
    if ending == "stop":
        said = failure.error if failure.of_reply else f"the judge gave no verdict ({failure.cause}): {failure.why}"
        raise EvaluatorFailedError(str(said)) from failure.error
    raise failure.error


def _is_too_many(
    failure: FailedAttempt, policy: JudgeFailurePolicy, context: LoopContext, judge: tuple[int, int]
) -> bool:
    """Count the failure, and see whether it is one too many in a row. An outage says nothing of readability."""
    rows: dict[tuple[int, int], dict[str, int]] = context.additional_properties.setdefault(FAILURES_IN_A_ROW, {})
    in_a_row = rows.setdefault(judge, {"unreadable": 0, "outage": 0})
    if failure.reading is None:
        in_a_row["outage"] += 1
        limit, count = policy.outage_limit, in_a_row["outage"]
    else:
        in_a_row["outage"] = 0
        in_a_row["unreadable"] += 1
        limit, count = policy.unreadable_limit, in_a_row["unreadable"]
    return limit is not None and count >= limit


def verdict_text(response: ChatResponse) -> str:
    """The text of the judge's last assistant message that has any."""
    if len(response.messages) == 1 and (only := response.messages[0]).role == "assistant":
        return only.text
    for message in reversed(response.messages):
        if message.role == "assistant" and (text := message.text).strip():
            return text
    return ""
