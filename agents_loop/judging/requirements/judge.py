"""Judging by requirements: demands are listed once for a run, counted by code or asked about one by one."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final, NamedTuple

from agents_loop.chat_client import ChatClient, ChatOptions, ChatResponse
from agents_loop.judging.asking import NoVerdict, ask, verdict_text
from agents_loop.judging.logprobs import with_logprobs
from agents_loop.judging.policy import JudgeFailurePolicy
from agents_loop.judging.requirements.claims import without_claims
from agents_loop.judging.requirements.countable import Countable, countable_demands, without_counted
from agents_loop.judging.requirements.demands import listing_messages, read_demands
from agents_loop.judging.requirements.evenness import of_each_fault
from agents_loop.judging.requirements.findings import DEFAULT_THRESHOLD, Finding, Opinion, opinion_of
from agents_loop.judging.requirements.probing import Probe, probe_messages, read_probe
from agents_loop.judging.shown import Piece, is_blank
from agents_loop.loop.context import LoopContext

_DEMANDS: Final = "_agents_loop.demands"
"""Where a run's context keeps what its request demands, by judge: the request does not change between iterations."""


class Demands(NamedTuple):
    """What a request demands."""

    counted: Sequence[Countable]
    asked: Sequence[str]
    readable: bool = True


class RequirementsJudge:
    """Whether an answer fulfils each demand of a request.

    Args:
        client: The judge's model.
        chat_options: Asked of each call.
        policy: What happens when a call fails.
        new_nonce: Names the fences.
        criteria: Demands besides the request's.
        threshold: The least probability with which a demand is met; `None`: `DEFAULT_THRESHOLD`.
    """

    def __init__(
        self,
        client: ChatClient,
        chat_options: ChatOptions,
        policy: JudgeFailurePolicy,
        new_nonce: Callable[[], str],
        criteria: Sequence[str],
        threshold: float | None,
    ) -> None:
        self._client = client
        self._chat_options = chat_options
        self._policy = policy
        self._new_nonce = new_nonce
        self._criteria = [text for criterion in criteria if (text := criterion.strip(" .;\n"))]
        self._threshold = DEFAULT_THRESHOLD if threshold is None else threshold

    async def judge(
        self, request: str, answer: Callable[[int], Sequence[Piece] | None], context: LoopContext
    ) -> Opinion | NoVerdict:
        """Judge an answer.

        Args:
            request: The request's text.
            answer: The answer; cut for the how manieth time, from 1, where it does not fit the model's context.
            context: The run's.

        Raises:
            JudgeFailedError: A reply was cut off, refused, filtered or unreadable, and the policy is to raise.
            EvaluatorFailedError: The policy is to stop the run.
            Exception: What the client raised, where the policy is to raise it.
        """
        demands = await self._demands(request, context)
        if isinstance(demands, NoVerdict):
            return demands
        shown = [_delivered(piece, request) for piece in answer(0) or ()]
        findings = _found_by_code(demands, shown)
        faulty = {finding.demand for finding in findings}
        asked = [demand for demand in demands.asked if demand not in faulty]
        probes = await _all([self._probe(demand, request, answer, context) for demand in asked])
        for demand, probe in zip(asked, probes, strict=True):
            if isinstance(probe, NoVerdict):
                return probe
            score = float(probe.met) if probe.probability is None else probe.probability
            findings.append(Finding(demand, score, readable=probe.readable))
        findings += [Finding(one.demand, 1.0) for one in demands.counted if one.demand not in faulty]
        return opinion_of(findings, self._threshold)

    async def _demands(self, request: str, context: LoopContext) -> Demands | NoVerdict:
        known: dict[int, Demands] = context.additional_properties.setdefault(_DEMANDS, {})
        if id(self) not in known:
            listed = await self._ask(listing_messages(request, self._new_nonce), _read_listing(request), None, context)
            if isinstance(listed, NoVerdict):
                return listed
            texts = [request, *self._criteria]
            counted = [one for text in texts for one in countable_demands(text)]
            asked = [left for text in (*listed.asked, *self._criteria) if (left := without_counted(text, counted))]
            known[id(self)] = Demands(counted, asked)
        return known[id(self)]

    async def _probe(
        self, demand: str, request: str, answer: Callable[[int], Sequence[Piece] | None], context: LoopContext
    ) -> Probe | NoVerdict:
        def messages(times: int) -> Any:
            shown = answer(times)
            if shown is None:
                return None
            delivered = [_delivered(piece, request) for piece in shown]
            return probe_messages(delivered, demand, self._new_nonce, context.evidence)

        return await self._ask(messages(0), read_probe, messages, context)

    async def _ask(self, messages: Any, read: Callable[[ChatResponse], Any], shorter: Any, context: LoopContext) -> Any:
        options = with_logprobs(self._chat_options)
        return await ask(self._client, messages, options, self._policy, context, read, shorter)


def _found_by_code(demands: Demands, shown: Sequence[Piece]) -> list[Finding]:
    """What is wrong with an answer as far as no model is needed to see it."""
    if is_blank(shown):
        texts = [*[one.demand for one in demands.counted], *demands.asked]
        return [Finding(text, 0.0, "the response is empty") for text in texts]
    text = "\n\n".join(piece for piece in shown if isinstance(piece, str))
    counted = [(one.demand, one.fault(text)) for one in demands.counted] if text else []
    uneven = [(demand, of_each_fault(demand, text)) for demand in demands.asked]
    return [Finding(demand, 0.0, fault) for demand, fault in (*counted, *uneven) if fault is not None]


def _delivered(piece: Piece, request: str) -> Piece:
    return without_claims(piece, request) if isinstance(piece, str) else piece


def _read_listing(request: str) -> Callable[[ChatResponse], Demands]:
    def read(response: ChatResponse) -> Demands:
        demands = read_demands(verdict_text(response), request)
        return Demands((), demands or [request], readable=True)

    return read


async def _all(calls: Sequence[Awaitable[Any]]) -> list[Any]:
    """The results of calls at once; the first error cancels the others and waits for them."""
    tasks = [asyncio.ensure_future(call) for call in calls]
    try:
        return list(await asyncio.gather(*tasks))
    finally:
        left = [task for task in tasks if not task.done()]
        for task in left:
            task.cancel()
        if left:
            await asyncio.gather(*left, return_exceptions=True)
