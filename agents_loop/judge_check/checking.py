"""A check of the judge that a loop file describes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from agents_loop.chat_client import ChatClient
from agents_loop.errors import ConfigurationError
from agents_loop.files.inputs import InputValue
from agents_loop.files.loop_file import LoopFile
from agents_loop.files.run_settings import RunSettings
from agents_loop.judge_check.cases import JudgeCase, problems_of
from agents_loop.judge_check.report import JudgeReport, Seen, cases_seen, check_results
from agents_loop.judge_check.running import CheckRuns, OutOfBudgetError, Verdict, revisions_of
from agents_loop.loop.result import LoopResult
from agents_loop.metering.ledger import Ledger
from agents_loop.numeric import check_count, is_number


def _say_nothing(text: str) -> None:
    del text


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeCheckOptions:
    """How a judge is checked.

    Raises:
        TypeError: `repeats` is no int, `min_agreement` no number, or `on_progress` is not callable.
        ConfigurationError: `repeats` is less than 2; `min_agreement` is not from 0 to 1.
    """

    repeats: int = 2
    """How often a draft of the kind `repeat` is judged."""
    min_agreement: float = 1.0
    """Which share of the verdicts on the same draft must agree, pair by pair, from 0 to 1."""
    on_progress: Callable[[str], None] = _say_nothing
    """Hears what was seen of each case."""

    def __post_init__(self) -> None:
        check_count("repeats", self.repeats, least=2, why="one verdict agrees with none")
        least = self.min_agreement
        if not is_number(least):
            raise TypeError(f"min_agreement must be a number, not {least!r}")
        if not 0 <= least <= 1:
            raise ConfigurationError(f"min_agreement must be from 0 to 1, not {least!r}")
        if not callable(self.on_progress):
            raise TypeError(f"on_progress must be callable, not {self.on_progress!r}")


class JudgeCheck:
    """Sees whether the judge of a loop file is worth looping on.

    It is the file's own evaluators that are asked, within its own loop; a case's draft stands in for the agent's first
    answer. Four things are looked at:

    - `agreement`: whether the same draft gets the same verdict each time;
    - `blind_spots`: how many drafts pass that are wrong in a way which the criterion can't see. That is a gap to know
      of, and fails nothing;
    - `never_passes`: whether a run whose check always finds fault ends, gives its last answer, and says so. Without a
      case of the kind it is the first case's draft, and no model is called;
    - `trivial_and_serious`: whether a small fault takes fewer revisions than a real one.

    Args:
        loop_file: The file.
        cases: What is judged.
        client_for: Gives the client of a model's name. A client with a cache would make all verdicts agree.
        inputs: Of the file, for all cases; a case's own win.
        settings: What stands in for what the file says. Its limits on tokens, money and time are those of the whole
            check, not of a run.
        options: How it is checked.

    Raises:
        ConfigurationError: There is no case, or one without a draft; the file is not one loop with evaluators, or does
            not take the inputs.
    """

    def __init__(
        self,
        loop_file: LoopFile,
        cases: Sequence[JudgeCase],
        client_for: Callable[[str], ChatClient],
        *,
        inputs: Mapping[str, InputValue] | None = None,
        settings: RunSettings | None = None,
        options: JudgeCheckOptions | None = None,
    ) -> None:
        if not cases:
            raise ConfigurationError("cases must not be empty: there is nothing to judge")
        self._file = loop_file
        self._cases = list(cases)
        self._options = options or JudgeCheckOptions()
        self._runs = CheckRuns(loop_file, client_for, settings or RunSettings(), inputs or {})
        self._seen = Seen()
        self._ended_early: str | None = "it has not run to its end"
        for case in self._cases:
            for place, problem in problems_of(case):
                raise ConfigurationError(f"the case {case.id!r}: {place} {problem}")
            self._runs.check_file(case)

    @property
    def report(self) -> JudgeReport:
        """What was seen so far: also of a check that was interrupted, or that failed."""
        return JudgeReport(
            self._file.name,
            check_results(self._seen, min_agreement=self._options.min_agreement),
            cases_seen(self._seen),
            Ledger(self._runs.calls).total,
            self._ended_early,
        )

    async def run(self) -> JudgeReport:
        """Check the judge. A limit on the whole ends it early, and its report says so.

        Raises:
            Exception: What a model's client raised, or another failure of the file's agent or evaluators; `report`
                holds what was seen until then.
        """
        self._runs.begin()
        try:
            for case in self._cases:
                await asyncio.sleep(0)  # an interrupt is heard between two cases, whatever the clients do
                await self._see(case)
            if not any(case.kind == "never_passes" for case in self._cases):
                await self._see_ending(self._cases[0])
        except OutOfBudgetError as error:
            self._ended_early = str(error)
            return self.report
        self._ended_early = None
        return self.report

    async def _see(self, case: JudgeCase) -> None:
        match case.kind:
            case "repeat":
                await self._see_verdicts(case, self._options.repeats)
            case "blind_spot":
                await self._see_verdicts(case, 1)
            case "never_passes":
                await self._see_ending(case)
            case "trivial" | "serious":
                result = await self._runs.revise(case)
                self._seen.revised.append((case, result))
                self._tell(case, _after_revisions(result))

    async def _see_verdicts(self, case: JudgeCase, times: int) -> None:
        verdicts: list[Verdict] = []
        self._seen.verdicts.append((case, verdicts))
        for _ in range(times):
            verdicts.append(await self._runs.judge(case))  # noqa: PERF401 - what was seen must be there if one fails
        self._tell(case, ", ".join(_word(verdict) for verdict in verdicts))

    async def _see_ending(self, case: JudgeCase) -> None:
        ending = await self._runs.never_pass(case)
        self._seen.endings.append((case, ending))
        self._tell(case, f"with a check that never passes: {_after_revisions(ending.result)}")

    def _tell(self, case: JudgeCase, what: str) -> None:
        self._options.on_progress(f"{case.id} ({case.kind}): {what}")


def _word(verdict: Verdict) -> str:
    return {True: "passes", False: "fails", None: "no verdict"}[verdict.passes]


def _after_revisions(result: LoopResult) -> str:
    revisions = revisions_of(result)
    return f"{result.stop_reason.value} after {revisions} revision{'' if revisions == 1 else 's'}"
