"""Judging by requirements: demands are listed once for a run, counted by code or asked about one by one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple, cast

from agents_loop.agent import AgentResponse
from agents_loop.chat_client import ChatClient, ChatOptions, ChatResponse
from agents_loop.errors import ConfigurationError
from agents_loop.gathering import gathered
from agents_loop.judging.asking import NoVerdict, ask, count_together, verdict_text
from agents_loop.judging.logprobs import with_logprobs
from agents_loop.judging.policy import JudgeFailurePolicy
from agents_loop.judging.requirements.claims import without_claims
from agents_loop.judging.requirements.countable import Countable, countable_demands, without_counted
from agents_loop.judging.requirements.demands import listing_messages, read_demands
from agents_loop.judging.requirements.evenness import of_each_fault
from agents_loop.judging.requirements.findings import DEFAULT_THRESHOLD, Finding, Opinion, is_met, opinion_of
from agents_loop.judging.requirements.probing import Probe, probe_messages, read_probe
from agents_loop.judging.requirements.wording import is_covered
from agents_loop.judging.shown import Piece, is_blank, judged_messages, pieces_of
from agents_loop.loop.context import LoopContext
from agents_loop.loop.regressions import regressed

_DEMANDS: Final = "_agents_loop.demands"
"""Where a run's context keeps what its request demands, by judge: the request does not change between iterations."""
_MEMORY: Final = "demands"
"""Where its memory keeps what the model listed, over a pause; of several such judges in a loop the first one's list."""


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
            ConfigurationError: The request has no text, and there are no criteria.
        """
        demands = await self._demands(request, context)
        if isinstance(demands, NoVerdict):
            return demands
        findings = _found_by_code(demands, request, context.last_response)
        decided = {finding.demand for finding in findings}
        undecided = [one.demand for one in demands.counted if one.demand not in decided]
        undecided = [demand for demand in undecided if not _is_part_of_one(demand, demands.asked)]
        asked = [demand for demand in dict.fromkeys([*demands.asked, *undecided]) if demand not in decided]
        probes = await gathered([self._probe(demand, request, answer, context) for demand in asked])
        failed = next((probe for probe in probes if isinstance(probe, NoVerdict)), None)
        read = [probe for probe in probes if isinstance(probe, Probe)]
        if probes:
            readable = all(probe.readable for probe in read)
            count_together(self._client, self._policy, context, failed, readable=readable)
        if failed is not None:
            return failed
        for demand, probe in zip(asked, read, strict=True):
            score = float(probe.met) if probe.probability is None else probe.probability
            findings.append(Finding(demand, score, readable=probe.readable))
        return opinion_of(findings, self._threshold, self._regressed(findings, context))

    def _regressed(self, findings: Sequence[Finding], context: LoopContext) -> set[str]:
        """The demands that are not met and were in an earlier iteration; those that are met now are remembered."""
        met = [finding.demand for finding in findings if is_met(finding, self._threshold)]
        unmet = {finding.demand for finding in findings if finding.readable} - set(met)
        return regressed(context, self, "demands", met=met, unmet=unmet)

    async def _demands(self, request: str, context: LoopContext) -> Demands | NoVerdict:
        known: dict[int, Demands] = context.additional_properties.setdefault(_DEMANDS, {})
        if id(self) not in known:
            remembered = _remembered(context) if not known else None
            listed = await self._listed(request, context) if remembered is None else Demands((), remembered)
            if isinstance(listed, NoVerdict):
                return listed
            if not known:
                context.memory[_MEMORY] = list(listed.asked)
            texts = [request, *self._criteria]
            counted = [one for text in texts for one in countable_demands(text)]
            asked = [
                left for text in (*listed.asked, *self._criteria) if (left := without_counted(text, counted, request))
            ]
            known[id(self)] = Demands(counted, asked)
        return known[id(self)]

    async def _listed(self, request: str, context: LoopContext) -> Demands | NoVerdict:
        if request.strip():
            return await self._ask(listing_messages(request, self._new_nonce), _read_listing(request), None, context)
        if not self._criteria:
            raise ConfigurationError(
                "the design 'requirements' reads the request's text, and it has none: give criteria"
            )
        return Demands((), ())

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
        return await ask(
            self._client, messages, options, self._policy, context, read, shorter, is_counted=shorter is None
        )


def _remembered(context: LoopContext) -> list[str] | None:
    """What the model listed before a pause."""
    kept: object = context.memory.get(_MEMORY)
    listed = cast("list[object]", kept) if isinstance(kept, list) else []
    texts = [text for text in listed if isinstance(text, str)]
    return texts if texts and len(texts) == len(listed) else None


def _found_by_code(demands: Demands, request: str, response: AgentResponse) -> list[Finding]:
    """What code finds out about an answer, as far as no model is needed to see it.

    It looks at what is written in all of the answer, however little of it a model is shown; at what the answer claims
    about itself only where that is part of what is counted.
    """
    messages = judged_messages(response)
    if is_blank(pieces_of(messages)):
        texts = [*[one.demand for one in demands.counted], *demands.asked]
        return [Finding(text, 0.0, "the response is empty") for text in texts]
    written = "\n\n".join(message.text for message in messages if message.text.strip())
    delivered = without_claims(written, request)
    counted = [_counted(one, delivered if one.is_to_stand else written) for one in demands.counted]
    uneven = [(demand, of_each_fault(demand, delivered)) for demand in demands.asked]
    faults = [Finding(demand, 0.0, fault) for demand, fault in uneven if fault is not None]
    return [*[one for one in counted if one is not None], *faults]


def _counted(one: Countable, text: str) -> Finding | None:
    """What code says of a demand; `None` where it can't tell of this answer."""
    fault = one.fault(text)
    if fault is None and not one.decides(text):
        return None
    return Finding(one.demand, float(fault is None), fault)


def _is_part_of_one(demand: str, others: Sequence[str]) -> bool:
    return any(is_covered(demand, [other], share=1) for other in others)


def _delivered(piece: Piece, request: str) -> Piece:
    return without_claims(piece, request) if isinstance(piece, str) else piece


def _read_listing(request: str) -> Callable[[ChatResponse], Demands]:
    def read(response: ChatResponse) -> Demands:
        demands = read_demands(verdict_text(response), request)
        return Demands((), demands or [request])

    return read
