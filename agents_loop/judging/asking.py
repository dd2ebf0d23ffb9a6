"""Asking a judge's model, and what happens when it gives no verdict. Every judge asks through this."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Generic, Protocol, TypeVar, cast

from agents_loop.chat_client import ChatClient, ChatOptions, ChatResponse
from agents_loop.errors import BudgetExceededError, EvaluatorFailedError, JudgeFailedError
from agents_loop.failures import FailureCause, cause_of, cause_of_finish, retry_after_s, usage_of_error
from agents_loop.judging.policy import DEFAULT_RETRIES, JudgeFailurePolicy
from agents_loop.loop.context import LoopContext
from agents_loop.loop.evaluation import LoopEvaluation
from agents_loop.messages import ChatMessage, error_text
from agents_loop.retrying import retrying_caller

_MORE_ROOM = 4
"""By how much the room for a reply grows: what was cut off is seldom cut off by little."""
_FAILURES_IN_A_ROW = "_agents_loop.judge_failures"
"""Where a run's context keeps the failures in a row, by judge."""


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

    def evaluation(self) -> LoopEvaluation:
        """Another iteration, of which the agent is told nothing."""
        note = f"the judge gave no verdict: {self.why}"
        return LoopEvaluation.continue_(note=note, details={"no_verdict": str(self.cause)})


def is_without_verdict(evaluation: LoopEvaluation) -> bool:
    """Whether an evaluation only says that a judge failed, or could not be read, and that the run goes on."""
    if not isinstance(evaluation.details, dict):
        return False
    details = cast("dict[str, object]", evaluation.details)
    return "no_verdict" in details or details.get("readable") is False


async def ask(
    client: ChatClient,
    messages: Sequence[ChatMessage],
    chat_options: ChatOptions | None,
    policy: JudgeFailurePolicy,
    context: LoopContext,
    read: Callable[[ChatResponse], R],
    shorter: Callable[[int], Sequence[ChatMessage] | None] | None = None,
) -> R | NoVerdict:
    """One verdict of a judge's model, or that there is none. What the calls use is reported to the context.

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

    Raises:
        JudgeFailedError: The reply was cut off, refused, filtered or unreadable, and the policy is to raise.
        EvaluatorFailedError: The policy is to stop the run.
        Exception: What the client raised, as it was raised, where the policy is to raise.
    """
    return await _Verdict(client, messages, chat_options, policy, context, read, shorter).get()


@dataclass(slots=True)
class _Failure:
    """An attempt without a verdict."""

    cause: FailureCause
    error: Exception
    why: str
    of_reply: bool
    reading: Any = None


@dataclass(slots=True)
class _Verdict(Generic[R]):
    """One verdict on its way: what is sent, and what was tried."""

    client: ChatClient
    messages: Sequence[ChatMessage]
    options: ChatOptions | None
    policy: JudgeFailurePolicy
    context: LoopContext
    read: Callable[[ChatResponse], R]
    shorter: Callable[[int], Sequence[ChatMessage] | None] | None
    judge: int = 0
    """Which one is asked; 0 is `client`."""
    retries: int = 0
    """How often this judge may be asked again."""
    tried: dict[str, int] = field(default_factory=dict[str, int])
    """How often each remedy was tried with this judge."""
    failures: list[_Failure] = field(default_factory=list[_Failure])

    async def get(self) -> R | NoVerdict:
        while True:
            outcome = await self._attempt()
            if not isinstance(outcome, _Failure):
                self._end_streaks()
                return outcome
            self.failures.append(outcome)
            ending = await self._remedied(outcome)
            if ending is not None:
                return self._end(ending)

    async def _attempt(self) -> R | _Failure:
        with retrying_caller() as retrying:
            try:
                response = await self._called()
            except BudgetExceededError:
                raise
            except Exception as error:  # noqa: BLE001 - the policy decides, and by default it raises it
                self.context.report_usage(usage_of_error(error))
                self.retries = 0 if retrying.client_keeps else _allowed(self.policy.retries, retrying.clients_own)
                return _Failure(cause_of(error), error, f"{type(error).__name__}: {error}", of_reply=False)
        self.context.report_usage(response.usage)
        cause = cause_of_finish(response.finish_reason)
        if cause is None:
            reading = self.read(response)
            if reading.readable:
                return reading
            cause, detail = FailureCause.UNREADABLE, "neither a boolean nor a marker in the reply"
        else:
            reading, detail = None, error_text(response.messages)
        self.retries = _allowed(self.policy.retries, None)
        return _Failure(cause, JudgeFailedError(cause.value, detail), cause.value, of_reply=True, reading=reading)

    async def _called(self) -> ChatResponse:
        client = self.client if self.judge == 0 else self.policy.further_judges[self.judge - 1]
        limit_s = self.policy.timeout_s
        if limit_s is None:
            return await client.get_response(self.messages, self.options)
        limit = asyncio.timeout(limit_s)
        try:
            async with limit:
                return await client.get_response(self.messages, self.options)
        except TimeoutError as error:
            if not limit.expired():
                raise
            raise TimeoutError(f"the judge did not answer within {limit_s:g} s") from error

    async def _remedied(self, failure: _Failure) -> str | None:
        """Try what the policy has left for the failure; gives its ending once nothing is."""
        *remedies, ending = self.policy.actions_for(failure.cause, of_reply=failure.of_reply)
        for remedy in dict.fromkeys(remedies):
            times = self.tried.get(remedy, 0) + 1
            most = self.retries if remedy == "retry" else remedies.count(remedy)
            if times <= most and await self._applied(remedy, times, failure):
                if remedy != "next_judge":
                    self.tried[remedy] = times
                return None
        return ending

    async def _applied(self, remedy: str, times: int, failure: _Failure) -> bool:
        """Whether the next attempt can be another one."""
        match remedy:
            case "retry":
                return failure.of_reply or await self._waited(times, failure.error)
            case "more_room":
                return self._given_more_room()
            case "trim":
                cut = None if self.shorter is None else self.shorter(times)
                self.messages = self.messages if cut is None else cut
                return cut is not None
            case _:
                self.judge += 1
                self.tried.clear()
                return self.judge <= len(self.policy.further_judges)

    def _given_more_room(self) -> bool:
        room = None if self.options is None else self.options.max_output_tokens
        if self.options is None or room is None:
            return False
        self.options = replace(self.options, max_output_tokens=room * _MORE_ROOM)
        return True

    async def _waited(self, times: int, error: Exception) -> bool:
        wait_s = self.policy.wait_s(times, retry_after_s(error))
        if wait_s is None:
            return False
        await self.policy.sleep(wait_s)
        return True

    def _end(self, ending: str) -> R | NoVerdict:
        failure = self._telling()
        if ending == "continue" and self._is_too_many(failure):
            ending = self.policy.at_limit
        if ending == "continue":
            return NoVerdict(failure.cause, failure.why) if failure.reading is None else failure.reading
        self._note_earlier(failure)
        if ending == "stop":
            said = failure.error if failure.of_reply else f"the judge gave no verdict ({failure.cause}): {failure.why}"
            raise EvaluatorFailedError(str(said)) from failure.error
        raise failure.error

    def _telling(self) -> _Failure:
        """The failure that is told of: the last one, unless that is an unknown error while a known one was remedied."""
        known = [failure for failure in self.failures if failure.cause != FailureCause.OTHER]
        return known[-1] if known else self.failures[-1]

    def _note_earlier(self, failure: _Failure) -> None:
        others = [other.why for other in self.failures if other is not failure]
        if others:
            failure.error.add_note(f"The judge was asked {len(others) + 1} times; the others: {'; '.join(others)}")

    def _is_too_many(self, failure: _Failure) -> bool:
        """Count the failure, and see whether it is one too many in a row. An outage says nothing of readability."""
        rows = self.context.additional_properties.setdefault(_FAILURES_IN_A_ROW, {})
        in_a_row: dict[str, int] = rows.setdefault(id(self.client), {"unreadable": 0, "outage": 0})
        if failure.reading is None:
            in_a_row["outage"] += 1
            limit, count = self.policy.outage_limit, in_a_row["outage"]
        else:
            in_a_row["outage"] = 0
            in_a_row["unreadable"] += 1
            limit, count = self.policy.unreadable_limit, in_a_row["unreadable"]
        return limit is not None and count >= limit

    def _end_streaks(self) -> None:
        rows = self.context.additional_properties.get(_FAILURES_IN_A_ROW)
        if rows is not None:
            rows.pop(id(self.client), None)


def verdict_text(response: ChatResponse) -> str:
    """The text of the judge's last assistant message that has any."""
    for message in reversed(response.messages):
        if message.role == "assistant" and (text := message.text).strip():
            return text
    return ""


def _allowed(retries: int | None, clients_own: int | None) -> int:
    if retries is not None:
        return retries
    return DEFAULT_RETRIES if clients_own is None else clients_own
