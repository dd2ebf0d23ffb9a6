"""A verdict with all that it holds, and how sure the judge was of it. A pure function; nothing unclear is a pass."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, Final, NamedTuple

from agents_loop.chat_client import ChatResponse
from agents_loop.judging.asking import verdict_text
from agents_loop.judging.contradictions import contradiction_in
from agents_loop.judging.logprobs import probability
from agents_loop.judging.reading import VerdictReading, clean_text, read_reply
from agents_loop.messages import JsonValue
from agents_loop.numeric import is_number

_TRUE: Final = ("true", "tru", "tr", "t")
_FALSE: Final = ("false", "fals", "fal", "fa", "f")
"""With the first letters of each, into which a small vocabulary may split it."""


class FullReading(NamedTuple):
    """What a judge's reply says, with the further fields that it was asked for."""

    verdict: VerdictReading
    reply: str
    reasoning: str | None = None
    score: float | None = None
    """From 0 to 1; what is no such number is no score."""
    impossible: bool = False
    """Whether it clearly says that the request can't be met."""
    contradiction: str | None = None
    """What of it does not go together."""
    probability: float | None = None
    """Of `answered: true`, where the client gives log probabilities."""

    @property
    def readable(self) -> bool:
        """Whether it says anything."""
        return self.verdict.readable

    @property
    def passes(self) -> bool:
        """Whether it says that the request is answered, and nothing else."""
        return self.verdict.answered and self.contradiction is None

    @property
    def ends(self) -> bool:
        """Whether it says that the request can't be met, and nothing else."""
        return self.impossible and self.contradiction is None

    def to_json(self, names: Collection[str]) -> dict[str, JsonValue]:
        """The reading as a JSON value.

        Args:
            names: The further fields that were asked for.
        """
        verdict = self.verdict
        said: dict[str, JsonValue] = {
            "answered": verdict.answered,
            "gapAnalysis": verdict.gap,
            "readable": verdict.readable,
        }
        own: dict[str, JsonValue] = {"reasoning": self.reasoning, "score": self.score, "impossible": self.impossible}
        said |= {name: value for name, value in own.items() if name in names}
        return said if self.contradiction is None else {**said, "contradiction": self.contradiction}


def read_fully(response: ChatResponse, names: Collection[str], *, wants_probability: bool) -> FullReading:
    """Read a judge's reply.

    Only a reply that is one JSON object has further fields, and only a strict `true` says that a request is impossible.

    Args:
        response: The judge's.
        names: The further fields that were asked for; others are not looked at.
        wants_probability: Whether the log probabilities are looked at.
    """
    reply = verdict_text(response)
    verdict = read_reply(reply)
    sure = probability(response, _TRUE, _FALSE, after='"answered":') if wants_probability else None
    fields = verdict.fields
    if fields is None or not verdict.readable:
        return FullReading(verdict, reply, probability=sure)
    score = _score(fields) if "score" in names else None
    impossible = "impossible" in names and fields.get("impossible") is True
    contradiction = contradiction_in(verdict.answered, fields, score, impossible=impossible)
    reasoning = _text(fields) if "reasoning" in names else None
    return FullReading(verdict, reply, reasoning, score, impossible, contradiction, sure)


def _score(fields: Mapping[str, Any]) -> float | None:
    score = fields.get("score")
    if not is_number(score):
        return None
    return float(score) if 0 <= score <= 1 else None


def _text(fields: Mapping[str, Any]) -> str | None:
    reasoning = fields.get("reasoning")
    return clean_text(reasoning) if isinstance(reasoning, str) and reasoning.strip() else None
