"""The runs that a check is made of: a draft that is judged, one that is revised, one that never passes."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from agents_loop.chat_client import ChatClient
from agents_loop.errors import AgentsLoopError, ConfigurationError, EvaluatorFailedError, JudgeFailedError
from agents_loop.evaluators.delegate import DelegateLoopEvaluator
from agents_loop.files.inputs import InputError, InputValue
from agents_loop.files.loop_file import BuiltLoop, LoopFile
from agents_loop.files.run_settings import RunSettings
from agents_loop.judge_check.cases import JudgeCase
from agents_loop.judge_check.given_draft import GivenDraft, real_calls
from agents_loop.loop.agent import LoopAgent
from agents_loop.loop.evaluation import LoopEvaluation
from agents_loop.loop.events import LoopStopped
from agents_loop.loop.no_verdict import is_without_verdict
from agents_loop.loop.result import IterationRecord, LoopResult, StopReason
from agents_loop.metering.ledger import LedgerEntry
from agents_loop.metering.spending import tokens_of

FAULT = "The check has found a fault."
"""What the judge that never passes says."""
_LIMIT_FIELDS = ("max_tokens", "max_cost_usd", "deadline_s")
_LIMITS = (StopReason.BUDGET_EXCEEDED, StopReason.DEADLINE)


class OutOfBudgetError(AgentsLoopError):
    """The limit on the whole check is reached."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a file's evaluators say of one draft."""

    passes: bool | None
    """`None`: they gave no verdict."""
    said: str
    """Their words, as they were."""


@dataclass(frozen=True, slots=True)
class Ending:
    """How a run ended."""

    result: LoopResult
    is_recorded: bool
    """Whether its end was an event."""


class CheckRuns:
    """Runs the file's loop, in parts, within the limits on the whole.

    Args:
        loop_file: The file.
        client_for: Gives the client of a model's name.
        settings: What stands in for what the file says; its limits are those of all runs together.
        inputs: Of the file, for all cases.
        clock: Gives seconds from a fixed point.
    """

    def __init__(
        self,
        loop_file: LoopFile,
        client_for: Callable[[str], ChatClient],
        settings: RunSettings,
        inputs: Mapping[str, InputValue],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._file = loop_file
        self._new_client = client_for
        self._clients: dict[str, ChatClient] = {}
        self._settings = settings
        self._inputs = inputs
        self._clock = clock
        self._started_at: float | None = None
        self.calls: list[LedgerEntry] = []
        """Those that reached a model."""

    def begin(self) -> None:
        """From now on time counts."""
        self._started_at = self._clock()

    def check_file(self, case: JudgeCase) -> None:
        """See whether the file has evaluators, and takes a case's inputs. No model is called.

        Raises:
            ConfigurationError: It has none, or does not.
        """
        try:
            self._build(case, GivenDraft(case.draft, self._client_for))
        except InputError as error:
            raise ConfigurationError(f"the case {case.id!r}: {error}") from error

    async def judge(self, case: JudgeCase) -> Verdict:
        """Have the case's draft judged, once."""
        loop, built = self._build(case, GivenDraft(case.draft, self._client_for))
        options = replace(loop.options, max_iterations=1, evaluate_final_iteration=True)
        judged = LoopAgent(loop.inner_agent, loop.evaluators, options)
        try:
            ending = await self._run(judged, built)
        except (JudgeFailedError, EvaluatorFailedError) as error:
            return Verdict(None, f"{type(error).__name__}: {error}")
        return _verdict_of(ending.result)

    async def revise(self, case: JudgeCase) -> LoopResult:
        """Let the file's own loop go on from the case's draft."""
        loop, built = self._build(case, GivenDraft(case.draft, self._client_for))
        try:
            return (await self._run(loop, built)).result
        except (JudgeFailedError, EvaluatorFailedError) as error:
            result = LoopResult.of(error)
            if result is None:
                raise
            return result

    async def never_pass(self, case: JudgeCase) -> Ending:
        """Run the file's loop with a check in its evaluators' place that always finds fault."""
        given = GivenDraft(case.draft, self._client_for, always=case.draft is not None)
        loop, built = self._build(case, given)
        return await self._run(LoopAgent(loop.inner_agent, DelegateLoopEvaluator(lambda _: FAULT), loop.options), built)

    def _client_for(self, model: str) -> ChatClient:
        """One client for a model's name, in all runs."""
        if model not in self._clients:
            self._clients[model] = self._new_client(model)
        return self._clients[model]

    def _build(self, case: JudgeCase, given: GivenDraft) -> tuple[LoopAgent, BuiltLoop]:
        built = self._file.build({**self._inputs, **case.inputs}, given.client_for, self._settings_left())
        if not isinstance(built.agent, LoopAgent):
            raise ConfigurationError(
                f"{self._file.source}: its judge can't be checked: it is not one loop of an agent and evaluators"
            )
        return built.agent, built

    async def _run(self, loop: LoopAgent, built: BuiltLoop) -> Ending:
        is_recorded = False
        try:
            async with loop.events(built.message) as events:
                async for event in events:
                    is_recorded = is_recorded or isinstance(event, LoopStopped)
        except BaseException as error:
            self._count(LoopResult.of(error))
            raise
        result = events.result
        assert result is not None  # noqa: S101 - the run is over
        self._count(result)
        if result.stop_reason in _LIMITS and self._has_limit:
            raise OutOfBudgetError(result.stop_detail or result.stop_reason.value)
        return Ending(result, is_recorded)

    def _count(self, result: LoopResult | None) -> None:
        if result is not None:
            self.calls += real_calls(result.ledger)

    @property
    def _has_limit(self) -> bool:
        settings = self._settings
        return any(limit is not None for limit in (settings.max_tokens, settings.max_cost_usd, settings.deadline_s))

    def _settings_left(self) -> RunSettings:
        """The settings, with what is left of their limits.

        Raises:
            OutOfBudgetError: Nothing is.
        """
        settings = self._settings
        if self._started_at is None:
            return settings
        used = [tokens_of(entry.usage) for entry in self.calls]
        tokens = _left("tokens", settings.max_tokens, sum(spent[0] for spent in used if spent is not None))
        cost = _left("US dollars", settings.max_cost_usd, sum(entry.cost_usd or 0.0 for entry in self.calls))
        seconds = _left("seconds", settings.deadline_s, self._clock() - self._started_at)
        return replace(
            settings,
            max_tokens=None if tokens is None else int(tokens),
            max_cost_usd=cost,
            deadline_s=seconds,
            limit_names={name: f"what is left of {settings.called(name)}" for name in _LIMIT_FIELDS},
        )


def revisions_of(result: LoopResult) -> int:
    """How often the agent wrote anew."""
    return max(0, len(result.iterations) - 1)


def words_of(record: IterationRecord) -> str:
    """What the evaluators said after an iteration."""
    return "\n".join(_word(evaluation) for evaluation in record.evaluations)


def _word(evaluation: LoopEvaluation) -> str:
    said = [evaluation.reason, evaluation.question, evaluation.feedback, evaluation.note]
    words = "\n".join(part for part in said if part)
    return f"{evaluation.evaluator}: {evaluation.decision}" + (f": {words}" if words else "")


def _verdict_of(result: LoopResult) -> Verdict:
    said = words_of(result.iterations[-1]) if result.iterations else ""
    if result.stop_reason == StopReason.SATISFIED:
        return Verdict(passes=True, said=said)
    evaluations = result.iterations[-1].evaluations if result.iterations else ()
    wishes = [evaluation for evaluation in evaluations if evaluation.decision != "stop"]
    if not wishes or all(is_without_verdict(wish) for wish in wishes):
        return Verdict(None, said or result.stop_detail or result.stop_reason.value)
    return Verdict(passes=False, said=said)


def _left(what: str, limit: float | None, used: float) -> float | None:
    if limit is None:
        return None
    if used >= limit:
        raise OutOfBudgetError(f"the check may use {limit:g} {what}, and has used {used:g}")
    return limit - used
