"""An agent that runs several candidates at once, and keeps one."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import aclosing
from dataclasses import replace
from typing import Final

from agents_loop.adapting import AgentLike, as_agent
from agents_loop.agent import (
    AgentResponse,
    AgentResponseStream,
    AgentResponseUpdate,
    AgentRunOptions,
    AgentSession,
    AIAgent,
    DelegatingAIAgent,
    Messages,
)
from agents_loop.agent_response import with_fields
from agents_loop.candidates.candidate import Candidate, finalists
from agents_loop.candidates.choosing import CandidateChooser, Chooser, as_chooser
from agents_loop.candidates.phases import asked_in
from agents_loop.candidates.running import clones_of, goes_on, run_candidates_of
from agents_loop.failures import usage_of_error
from agents_loop.loop.context import LoopContext
from agents_loop.loop.result import LoopResult
from agents_loop.messages import ChatMessage, JsonValue, UsageContent, UsageDetails, as_messages, sum_usage
from agents_loop.numeric import check_count

RECORD: Final = "candidates"
"""The key, in a response's additional properties, of what is known of the candidates."""


class CandidateAgent(DelegatingAIAgent):
    """Runs several candidates of each run at once, and keeps one.

    Each candidate is a run of the inner agent in a clone of the session. The session then becomes what the session of
    the kept one is, and stays the same object; of the others only the usage is kept: the response's usage is the sum
    of all, and in a loop their calls are in the ledger and count against its budgets.

    An answer is kept before a candidate that waits for a person, and that before one that is no answer (refused,
    filtered, cut off, empty). Among answers the chooser decides; it is not asked where there is one. Of equals the
    first is kept. One that fails is left out; if all do, what the first raised is raised, with the others as notes. A
    chooser that fails, because of its provider or a budget, is no verdict: what it would have said is left out.

    An input that answers a request for approval, a tool call or a question goes on with the one run that asked: the
    inner agent is run once then. Streamed, the candidates are streamed unseen, and the pieces of the kept one come once
    it is chosen. Runs that are cancelled, and streams that are closed early, stop all and leave the session as it was.

    What candidates do beside their answers, with tools that change something, is done by each of them.

    Args:
        inner_agent: The agent: an `AIAgent`, or whatever `as_agent` makes one of.
        n: How many candidates. With 1 the inner agent is run as it is.
        chooser: Decides which is kept: a `LoopEvaluator`, by its score (of equal ones that which asks for no more, then
            that which met more criteria); a function of a `LoopContext` that gives a number, the higher the better, or
            `None`; or a `PairwiseJudge`, which compares in rounds of pairs.

    Raises:
        TypeError: The agent or the chooser is `None` or of another type, or `n` is not an int.
        ConfigurationError: `n` is less than 1.
    """

    def __init__(self, inner_agent: AgentLike, n: int, chooser: CandidateChooser) -> None:
        super().__init__(as_agent(inner_agent, name="inner_agent"))
        check_count("n", n, why="it counts candidates")
        self.n = n
        self._chooser = as_chooser(chooser)

    async def run_core(
        self, messages: list[ChatMessage], *, session: AgentSession | None, options: AgentRunOptions | None
    ) -> AgentResponse:
        """Run the candidates, and give the kept one's response."""
        if self.n == 1 or goes_on(messages, session):
            return await self.inner_agent.run(messages, session=session, options=options)
        kept = await self._kept(messages, session, options, streaming=False)
        await kept.restore(session)
        return kept.response

    def run_streaming(
        self, messages: Messages = None, *, session: AgentSession | None = None, options: AgentRunOptions | None = None
    ) -> AgentResponseStream:
        """Stream the candidates unseen, and give the pieces of the kept one; a single one is streamed as it comes."""
        if self.n == 1:
            return self.inner_agent.run_streaming(messages, session=session, options=options)
        given: list[AgentResponse] = []
        return AgentResponseStream(self._updates(as_messages(messages), session, options, given), lambda: given[0])

    async def run_core_streaming(
        self, messages: list[ChatMessage], *, session: AgentSession | None, options: AgentRunOptions | None
    ) -> AsyncIterator[AgentResponseUpdate]:
        """The pieces of `run_streaming`."""
        async with aclosing(self.run_streaming(messages, session=session, options=options)) as stream:
            async for update in stream:
                yield update

    async def _updates(
        self,
        messages: list[ChatMessage],
        session: AgentSession | None,
        options: AgentRunOptions | None,
        given: list[AgentResponse],
    ) -> AsyncGenerator[AgentResponseUpdate, None]:
        if goes_on(messages, session):
            async with aclosing(self.inner_agent.run_streaming(messages, session=session, options=options)) as stream:
                async for update in stream:
                    yield update
                given.append(await stream.final_response())
            return
        kept = await self._kept(messages, session, options, streaming=True)
        for update in kept.updates():
            yield update
        await kept.restore(session)
        given.append(kept.response)

    async def _kept(
        self,
        messages: list[ChatMessage],
        session: AgentSession | None,
        options: AgentRunOptions | None,
        *,
        streaming: bool,
    ) -> KeptCandidate:
        request = asked_in(session, messages)
        sessions = await clones_of(self.inner_agent, session, self.n)
        candidates = await run_candidates_of(
            self.inner_agent, messages, sessions, options, request, streaming=streaming
        )
        chosen = await chosen_of(candidates, self._chooser, self.inner_agent, request, options)
        return KeptCandidate(self.inner_agent, candidates, chosen, session)


async def chosen_of(
    candidates: Sequence[Candidate],
    chooser: Chooser,
    agent: AIAgent,
    request: Sequence[ChatMessage],
    options: AgentRunOptions | None,
) -> Candidate:
    """The one to keep; the chooser is asked only where there are several answers of one standing."""

    def context_of(candidate: Candidate) -> LoopContext:
        return LoopContext(agent, candidate.session, list(request), candidate.answer, options)

    among = finalists(candidates)
    return await chooser.choose(among, context_of) if len(among) > 1 and among[0].has_answer else among[0]


class KeptCandidate:
    """The candidate that is kept, as the response of all of them.

    Args:
        agent: Whose runs they are.
        candidates: All.
        chosen: The one that is kept.
        session: The caller's, if any.
    """

    def __init__(
        self, agent: AIAgent, candidates: Sequence[Candidate], chosen: Candidate, session: AgentSession | None
    ) -> None:
        self._agent = agent
        self._chosen = chosen
        answer = chosen.answer
        self._others = sum_usage([_usage_of(candidate) for candidate in candidates if candidate is not chosen])
        self._record: dict[str, JsonValue] = {
            RECORD: {"kept": chosen.number, "of": [candidate.to_json() for candidate in candidates]}
        }
        self.response = with_fields(answer, list(answer.messages), sum_usage([answer.usage, self._others]))
        """Its response, with the usage of all."""
        self.response.additional_properties = {**(answer.additional_properties or {}), **self._record}
        result = None if answer.loop_result is None else LoopResult.of(answer)
        if session is not None and result is not None and result.session is chosen.session:
            self.response.loop_result = replace(result, session=session)

    def updates(self) -> list[AgentResponseUpdate]:
        """Its pieces, and one for what the others have used."""
        closing = AgentResponseUpdate(
            contents=[] if self._others is None else [UsageContent(self._others)],
            agent_id=self.response.agent_id,
            response_id=self.response.response_id,
            additional_properties=self._record,
        )
        return [*self._chosen.updates, closing]

    async def restore(self, session: AgentSession | None) -> None:
        """Make the caller's session what the kept candidate's is."""
        if session is not None:
            await self._agent.restore_session(session, await self._agent.serialize_session(self._chosen.session))


def _usage_of(candidate: Candidate) -> UsageDetails | None:
    if candidate.response is not None:
        return candidate.response.usage
    return None if candidate.error is None else usage_of_error(candidate.error)
