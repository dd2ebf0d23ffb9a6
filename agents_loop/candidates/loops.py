"""Running several whole loops at once, of which the best is given."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace

from agents_loop.agent import AgentResponse, AgentRunOptions, AgentSession, Messages
from agents_loop.candidates.agent import KeptCandidate, chosen_of
from agents_loop.candidates.candidate import Candidate, finalists
from agents_loop.candidates.choosing import CandidateChooser, Chooser, as_chooser
from agents_loop.candidates.running import clones_of, goes_on, run_candidates_of
from agents_loop.loop.agent import LoopAgent
from agents_loop.loop.best import DIGITS
from agents_loop.loop.criteria import criteria_met
from agents_loop.loop.metered_run import budgets_of
from agents_loop.loop.options import LoopAgentOptions
from agents_loop.loop.result import LoopResult
from agents_loop.messages import ChatMessage, as_messages
from agents_loop.metering.ledger import Ledger
from agents_loop.metering.meter import PHASE, Phase, RunMeter
from agents_loop.metering.spending import LimitReachedError
from agents_loop.numeric import check_count


@dataclass(frozen=True, slots=True, kw_only=True)
class CandidateRuns:
    """Several runs of a loop, and the best of them."""

    best: LoopResult
    """The best run."""
    response: AgentResponse
    """Its response; the usage is the agent's, of all runs."""
    results: tuple[LoopResult, ...]
    """All runs in the order of their numbers, those that failed too."""
    ledger: Ledger
    """Each model call of all runs, run by run; at its end the calls of the choice, as of iteration 0."""


async def run_candidates(
    loop: LoopAgent,
    n: int,
    messages: Messages = None,
    *,
    chooser: CandidateChooser | None = None,
    session: AgentSession | None = None,
    options: AgentRunOptions | None = None,
) -> CandidateRuns:
    """Run a loop several times at once, and give the best run.

    A satisfied run is better than one that ended otherwise with an answer, that than one that waits for a person, and
    that than one whose answer is none (refused, filtered, cut off, empty). Among equals the chooser decides or, without
    one, the score of the answer that each run gives (with `return_best` its best); one with a score is better than one
    without. Then it is the run that met more criteria, the one of fewer iterations, and the first. A run that raises is
    left out; if all do, what the first raised is raised, with the others as notes.

    The loop's budgets bound all runs together. A run that stops for want of what the others have used up ends with its
    answer so far, and can't be resumed; what it keeps back for its own verdict another may use. Where nothing is left
    for the chooser, the choice goes by score.

    Args:
        loop: The loop.
        n: How many runs.
        messages: The request.
        chooser: As in `CandidateAgent`; `None`: by the runs' own scores.
        session: The conversation, if there is one already: each run has a clone of it, and it becomes what that of the
            best is. Where a person's answer goes on with a run that waits in it, there is one run.
        options: Handed to every inner run.

    Raises:
        TypeError: The loop is no `LoopAgent`, the chooser is of another type, or `n` is not an int.
        ConfigurationError: `n` is less than 1.
        Exception: What the first run raised, if all did.
    """
    if not isinstance(loop, LoopAgent):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise TypeError(f"loop must be a LoopAgent, not {type(loop).__name__}")
    check_count("n", n, why="it counts candidates")
    chooses = None if chooser is None else as_chooser(chooser)
    request = as_messages(messages)
    if n == 1 or goes_on(request, session):
        response = await loop.run(request, session=session, options=options)
        result = _result_of(response)
        return CandidateRuns(best=result, response=response, results=(result,), ledger=result.ledger)
    group = _Group(loop.options)
    token = PHASE.set(group.phase)
    try:
        return await group.run(loop, n, request, chooses, session, options)
    finally:
        PHASE.reset(token)


class _Group:
    """Runs that share the budgets of their loop."""

    def __init__(self, options: LoopAgentOptions) -> None:
        self._meter = RunMeter(options.clock, options.prices)
        budgets = [replace(budget, on_estimate=None) for budget in budgets_of(options.budget)]  # each run tells of it
        if budgets:
            self._meter.guard(budgets, (), None)
        self.phase = Phase(self._meter, "agent")

    async def run(
        self,
        loop: LoopAgent,
        n: int,
        request: list[ChatMessage],
        chooser: Chooser | None,
        session: AgentSession | None,
        options: AgentRunOptions | None,
    ) -> CandidateRuns:
        sessions = await clones_of(loop, session, n)
        candidates = await run_candidates_of(loop, request, sessions, options, request, streaming=False)
        calls = len(self._meter.calls)
        ranked = sorted(finalists(candidates), key=_rank, reverse=True)
        chosen = ranked[0]
        if chooser is not None:
            with suppress(LimitReachedError):
                chosen = await self._meter.in_time(chosen_of(ranked, chooser, loop, request, options))
        kept = KeptCandidate(loop, candidates, chosen, session)
        await kept.restore(session)
        results = [_result_of(each.error if each.response is None else each.response) for each in candidates]
        choice = self._meter.ledger(len(self._meter.calls))[calls:]
        return CandidateRuns(
            best=_result_of(kept.response),
            response=kept.response,
            results=tuple(results),
            ledger=Ledger([*[entry for result in results for entry in result.ledger], *choice]),
        )


def _rank(candidate: Candidate) -> tuple[bool, float, int, int, int]:
    """Where a run stands among those of its standing, by what its own evaluators have said; the highest is the best."""
    result = _result_of(candidate.answer)
    returned = result.returned
    score = candidate.score = None if returned is None else returned.score
    met = 0 if returned is None else sum(criteria_met(returned.evaluations).values())
    return score is not None, round(score or 0.0, DIGITS), met, -len(result.iterations), -candidate.number


def _result_of(run: object) -> LoopResult:
    result = LoopResult.of(run)
    assert result is not None  # noqa: S101 - a loop's run has one, however it ends
    return result
