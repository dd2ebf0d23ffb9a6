"""What is tried when a judge gave no verdict, and how that ends when nothing helps."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from agents_loop.chat_client import ChatClient, ChatOptions
from agents_loop.failures import FailureCause, retry_after_s
from agents_loop.judging.attempt import FailedAttempt
from agents_loop.judging.policy import JudgeFailurePolicy
from agents_loop.messages import ChatMessage

_MORE_ROOM = 4
"""By how much the room for a reply grows: what was cut off is seldom cut off by little."""


@dataclass(slots=True)
class Remedies:
    """Further attempts at one verdict: what is asked next, and what was tried."""

    client: ChatClient
    messages: Sequence[ChatMessage]
    options: ChatOptions | None
    policy: JudgeFailurePolicy
    shorter: Callable[[int], Sequence[ChatMessage] | None] | None
    judges_left: list[ChatClient] = field(default_factory=list[ChatClient])
    tried: dict[str, int] = field(default_factory=dict[str, int])
    """How often each remedy was tried with this judge."""
    failures: list[FailedAttempt] = field(default_factory=list[FailedAttempt])

    def __post_init__(self) -> None:
        self.judges_left = list(self.policy.further_judges)

    async def after(self, failure: FailedAttempt) -> FailedAttempt | None:
        """What is told of once the policy has nothing left, with its ending; `None` when there is another attempt."""
        self.failures.append(failure)
        ending = await self._remedied(failure)
        return None if ending is None else self._told(ending)

    async def _remedied(self, failure: FailedAttempt) -> str | None:
        """Try what the policy has left for the failure; gives its ending once nothing is."""
        *remedies, ending = self.policy.actions_for(failure.cause, of_reply=failure.of_reply)
        for remedy in dict.fromkeys(remedies):
            times = self.tried.get(remedy, 0) + 1
            most = failure.retries if remedy == "retry" else remedies.count(remedy)
            if times <= most and await self._applied(remedy, times, failure):
                if remedy != "next_judge":
                    self.tried[remedy] = times
                return None
        return ending

    async def _applied(self, remedy: str, times: int, failure: FailedAttempt) -> bool:
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
                if not self.judges_left:
                    return False
                self.client = self.judges_left.pop(0)
                self.tried.clear()
                return True

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

    def _told(self, ending: str) -> FailedAttempt:
        """The last failure, unless that is an unknown error while a known one was remedied; the others in its notes."""
        known = [failure for failure in self.failures if failure.cause != FailureCause.OTHER]
        told = known[-1] if known else self.failures[-1]
        told.ending = ending
        others = [failure.why for failure in self.failures if failure is not told]
        if others:
            told.error.add_note(f"The judge was asked {len(others) + 1} times; the others: {'; '.join(others)}")
        return told
