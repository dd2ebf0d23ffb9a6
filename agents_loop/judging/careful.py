"""A judge that is asked again where its verdict is unclear: it contradicts itself, or is near a threshold."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple, Protocol

from agents_loop.chat_client import ChatClient, ChatOptions, ChatResponse
from agents_loop.judging.asking import NoVerdict, ask
from agents_loop.judging.contradictions import pointed_out
from agents_loop.judging.feedback import screen_feedback
from agents_loop.judging.full_reading import FullReading, read_fully
from agents_loop.judging.logprobs import with_logprobs
from agents_loop.judging.policy import JudgeFailurePolicy
from agents_loop.judging.several import ends, gap_of, is_unsure, mean_probability, passes, score_of
from agents_loop.judging.verdict import UNKNOWN_GAP
from agents_loop.loop.context import LoopContext
from agents_loop.messages import ChatMessage, JsonValue


class Outcome(NamedTuple):
    """What a judgment comes to."""

    answered: bool
    gap: str
    impossible: str | None
    """Why the request can't be met, where it can't."""
    score: float | None
    details: dict[str, JsonValue]


class Prompt(Protocol):
    """Gives a judge's messages, with the answer cut for the how manieth time; `None` if it can't be cut any more."""

    def __call__(self, times: int, /) -> list[ChatMessage] | None:
        """The messages; at 0 nothing is cut."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class CarefulJudge:
    """Whether an answer is complete, from as many replies as it takes.

    A reply that contradicts itself is pointed out to the judge, once. Where the verdict is then unsure (`is_unsure`),
    the judge is asked anew, up to `samples` verdicts; where it is unsure still, a stronger judge is, and its boolean
    decides. What stays unclear is no pass.
    """

    client: ChatClient
    chat_options: ChatOptions
    policy: JudgeFailurePolicy
    names: Collection[str]
    """The further fields that the verdict holds."""
    threshold: float | None
    margin: float
    samples: int
    stronger: ChatClient | None

    async def judge(self, prompt: Prompt, context: LoopContext) -> Outcome | NoVerdict:
        """Judge the latest response.

        Raises:
            JudgeFailedError: A reply was cut off, refused, filtered or unreadable, and the policy is to raise.
            EvaluatorFailedError: The policy is to stop the run.
            Exception: What a client raised, where the policy is to raise it.
        """
        judgment = _Judgment(self, prompt, context)
        first = await judgment.asked_again_if_contradictory()
        if isinstance(first, NoVerdict):
            return first
        if not first.readable:
            details = {**first.to_json(self.names), "calls": judgment.calls}
            return Outcome(answered=False, gap=first.verdict.gap, impossible=None, score=None, details=details)
        readings = [first]
        while self._is_unsure(readings) and len(readings) < self.samples:
            another = await judgment.ask(sample=len(readings))
            if isinstance(another, NoVerdict) or not another.readable:
                break
            readings.append(another)
        if self.stronger is None or not self._is_unsure(readings):
            return self._outcome(readings, readings, passes(readings, self.threshold), judgment.calls)
        last = await judgment.asked_again_if_contradictory(self.stronger)
        if isinstance(last, NoVerdict) or not last.readable:
            outcome = self._outcome(readings, readings, False, judgment.calls)  # noqa: FBT003 - what is unsure
            return outcome._replace(impossible=None, details={**outcome.details, "escalated": "failed"})
        outcome = self._outcome([last], readings, last.passes, judgment.calls)
        return outcome._replace(details={**outcome.details, "escalated": "judged"})

    def options_for(self, sample: int, *, is_stronger: bool) -> ChatOptions:
        """What is asked of a call. A seed is moved on with each sample; a stronger judge is not the judge's model."""
        options = self.chat_options
        if is_stronger:
            return replace(options, model_id=None)
        if self.threshold is not None:
            options = with_logprobs(options)
        return options if options.seed is None else replace(options, seed=options.seed + sample)

    def _is_unsure(self, readings: Sequence[FullReading]) -> bool:
        return is_unsure(readings, self.threshold, self.margin)

    def _outcome(
        self,
        deciding: Sequence[FullReading],
        of_judge: Sequence[FullReading],
        answered: bool,  # noqa: FBT001 - the verdict itself
        calls: int,
    ) -> Outcome:
        shown = next((reading for reading in deciding if reading.passes == answered), deciding[0])
        details = shown.to_json(self.names)
        if self.threshold is not None:
            details["probability"] = mean_probability(of_judge)
        details["calls"] = calls
        if len(of_judge) > 1:
            details["samples"] = [{**one.to_json(self.names), "probability": one.probability} for one in of_judge]
        why = _why_impossible(deciding) if ends(deciding) else None
        score = score_of(deciding, of_judge, self.threshold, answered=answered)
        return Outcome(answered, gap_of(deciding), why, score, details)


def _why_impossible(readings: Sequence[FullReading]) -> str:
    ending = [reading for reading in readings if reading.ends]
    gap = gap_of(ending)
    why = next((reading.reasoning for reading in ending if reading.reasoning), "") if gap == UNKNOWN_GAP else gap
    return screen_feedback(why).strip() or "the judge says that the request can't be met"


@dataclass(slots=True)
class _Judgment:
    """The calls about one answer."""

    judge: CarefulJudge
    prompt: Prompt
    context: LoopContext
    calls: int = field(default=0)

    async def asked_again_if_contradictory(self, stronger: ChatClient | None = None) -> FullReading | NoVerdict:
        """A reading; where it contradicts itself, the one after that was pointed out, if it is readable."""
        reading = await self.ask(stronger)
        if isinstance(reading, NoVerdict) or reading.contradiction is None:
            return reading
        again = await self.ask(stronger, further=pointed_out(reading.reply, reading.contradiction))
        return reading if isinstance(again, NoVerdict) or not again.readable else again

    async def ask(
        self, stronger: ChatClient | None = None, *, sample: int = 0, further: Sequence[ChatMessage] = ()
    ) -> FullReading | NoVerdict:
        """One reading.

        Args:
            stronger: Who is asked in place of the judge.
            sample: The how manieth it is that is drawn, from 0.
            further: What is said after the prompt.
        """
        judge = self.judge
        wants_probability = judge.threshold is not None and stronger is None

        def read(response: ChatResponse) -> FullReading:
            return read_fully(response, judge.names, wants_probability=wants_probability)

        def messages(times: int) -> list[ChatMessage] | None:
            shown = self.prompt(times)
            return None if shown is None else [*shown, *further]

        options = judge.options_for(sample, is_stronger=stronger is not None)
        self.calls += 1
        return await ask(
            stronger or judge.client, messages(0) or [], options, judge.policy, self.context, read, messages
        )
