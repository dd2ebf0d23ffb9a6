"""A candidate: one of several runs of the same request, and what came of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import IntEnum

from agents_loop.agent import AgentResponse, AgentResponseUpdate, AgentSession
from agents_loop.loop.bad_response import bad_response_of
from agents_loop.loop.result import LoopResult, StopReason
from agents_loop.loop.resuming import pending_approvals
from agents_loop.messages import JsonValue

_WAITS = (StopReason.PENDING_APPROVAL, StopReason.PENDING_INPUT)


class Standing(IntEnum):
    """What a candidate has come to. One of a higher standing is kept before all of a lower one, whatever they score."""

    FAILED = 0
    """It raised."""
    NO_ANSWER = 1
    """Its answer is none: refused, filtered, cut off, or empty."""
    WAITING = 2
    """It waits for a person: for an approval or, where it is a loop, for an answer to a question."""
    UNSATISFIED = 3
    """It is a loop that ended with an answer, and unsatisfied."""
    ANSWERED = 4
    """It has an answer; where it is a loop, one that satisfies its evaluators."""

    @classmethod
    def of(cls, response: AgentResponse) -> Standing:
        """What a response amounts to."""
        if pending_approvals(response):
            return cls.WAITING
        result = None if response.loop_result is None else LoopResult.of(response)
        if result is None:
            return cls.ANSWERED if bad_response_of(response) is None else cls.NO_ANSWER
        if result.stop_reason in _WAITS:
            return cls.WAITING
        if result.stop_reason is StopReason.SATISFIED:
            return cls.ANSWERED
        has_answer = result.returned is not None and result.returned.bad_response is None
        return cls.UNSATISFIED if has_answer else cls.NO_ANSWER


@dataclass(slots=True)
class Candidate:
    """One of several runs of the same request."""

    number: int
    """Counted from 1."""
    session: AgentSession
    """Its own."""
    response: AgentResponse | None = None
    """What it gave; `None` if it raised."""
    updates: list[AgentResponseUpdate] = field(default_factory=list[AgentResponseUpdate])
    """Its pieces, where it was streamed."""
    error: BaseException | None = None
    """What it raised."""
    score: float | None = None
    """What the chooser made of it, if it rates."""
    note: str | None = None
    """Why there is no score, where the chooser failed."""

    @property
    def answer(self) -> AgentResponse:
        """What it gave, where it is known that it gave something."""
        assert self.response is not None  # noqa: S101 - a failed one is never chosen among
        return self.response

    @property
    def standing(self) -> Standing:
        """What it has come to."""
        return Standing.FAILED if self.response is None else Standing.of(self.response)

    @property
    def has_answer(self) -> bool:
        """Whether there is an answer that can be judged."""
        return self.standing >= Standing.UNSATISFIED

    def to_json(self) -> dict[str, JsonValue]:
        """As a JSON value, for the record."""
        told: dict[str, JsonValue] = {
            "number": self.number,
            "standing": self.standing.name.lower(),
            "score": self.score,
        }
        if self.error is not None:
            told["error"] = f"{type(self.error).__name__}: {self.error}"
        if self.note is not None:
            told["note"] = self.note
        return told


def finalists(candidates: Sequence[Candidate]) -> list[Candidate]:
    """Those of the highest standing, among which is to be chosen."""
    highest = max(candidate.standing for candidate in candidates)
    return [candidate for candidate in candidates if candidate.standing == highest]
