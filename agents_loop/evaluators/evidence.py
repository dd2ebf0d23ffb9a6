"""An evaluator that gives a judge the results of checks, and lets no judge call done what fails one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple, cast

from agents_loop.chat_client import ChatClient, ChatOptions
from agents_loop.checks.check import Check
from agents_loop.errors import ConfigurationError
from agents_loop.loop.asking import ask, ask_all
from agents_loop.loop.context import LoopContext
from agents_loop.loop.evaluation import LoopEvaluation
from agents_loop.loop.evaluator import LoopEvaluator
from agents_loop.loop.joining import joined_wish
from agents_loop.loop.result import evaluation_to_json
from agents_loop.messages import JsonValue


@dataclass(frozen=True, slots=True, kw_only=True)
class EvidenceLoopEvaluatorOptions:
    """When the judge is asked.

    Raises:
        ConfigurationError: `on_failed_check` is unknown.
    """

    on_failed_check: Literal["ask_judge", "go_on"] = "ask_judge"
    """What happens when a required check fails. `ask_judge`: the judge can't call that done, but it may say what else
    is missing, or that the request can't be met. `go_on`: its call is saved."""

    def __post_init__(self) -> None:
        if self.on_failed_check not in ("ask_judge", "go_on"):
            raise ConfigurationError(f"on_failed_check must be 'ask_judge' or 'go_on', not {self.on_failed_check!r}")


class EvidenceLoopEvaluator(LoopEvaluator):
    """Runs checks, shows a judge their results, and goes on while a required check fails, whatever the judge says.

    The checks run at once. What they found stands in the judge's prompt, fenced as data (`LoopContext.evidence`). The
    judge's word stands where all required checks pass. Where one fails, "done" becomes another iteration, with the
    checks' feedback and then the judge's; but an abort, the judge's or a check's, ends the run. A check that is not
    required is evidence, and its feedback is heard when the loop goes on anyway. If a check raises, the others are
    cancelled, the judge is not asked, and that exception is raised.

    A vetoed evaluation has no score: the judge's was for an answer that it took for complete.

    Args:
        judge: Any evaluator that shows `context.evidence` to its model, such as an `AIJudgeLoopEvaluator`.
        checks: What code decides: one, or several. All but a `Check` with `required=False` are required.
        options: When the judge is asked.

    Raises:
        TypeError: The judge or a check is no `LoopEvaluator`.
        ConfigurationError: There is no check.
    """

    def __init__(
        self,
        judge: LoopEvaluator,
        checks: LoopEvaluator | Sequence[LoopEvaluator],
        options: EvidenceLoopEvaluatorOptions | None = None,
    ) -> None:
        if checks is None:  # pyright: ignore[reportUnnecessaryComparison]
            raise TypeError("checks must not be None")
        given = [checks] if isinstance(checks, LoopEvaluator) else checks
        if not isinstance(judge, LoopEvaluator):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise TypeError(f"judge must be a LoopEvaluator, not {type(judge).__name__}")
        for check in given:
            if not isinstance(check, LoopEvaluator):  # pyright: ignore[reportUnnecessaryIsInstance]
                raise TypeError(
                    f"checks must hold LoopEvaluators, not {type(check).__name__}: wrap it, check(name, fn)"
                )
        if not given:
            raise ConfigurationError("checks must not be empty: without any, use the judge alone")
        self.judge = judge
        self.checks = tuple(given)
        self.options = options or EvidenceLoopEvaluatorOptions()

    def model_calls(self) -> Sequence[tuple[ChatClient, ChatOptions | None]]:
        """The judge's, and the checks'."""
        return [call for asked in (self.judge, *self.checks) for call in asked.model_calls()]

    async def evaluate(self, context: LoopContext) -> LoopEvaluation:
        """Run the checks, then ask the judge."""
        answers: list[LoopEvaluation] = []
        error = await ask_all(self.checks, context, answers)
        if error is not None:
            raise error
        results = [_Result.of(check, answer) for check, answer in zip(self.checks, answers, strict=True)]
        aborted = next((answer for answer in answers if answer.decision == "abort"), None)
        if aborted is not None:
            return replace(aborted, details=_details(results, None), evaluator=None)
        word = None
        if self.options.on_failed_check == "ask_judge" or not any(result.is_veto for result in results):
            word = await ask(self.judge, context.with_evidence([result.evidence() for result in results]))
        return _decided(results, word)


class _Result(NamedTuple):
    name: str
    required: bool
    answer: LoopEvaluation

    @classmethod
    def of(cls, check: LoopEvaluator, answer: LoopEvaluation) -> _Result:
        if isinstance(check, Check):
            return cls(check.name, check.required, answer)
        return cls(type(check).__name__, required=True, answer=answer)

    @property
    def passed(self) -> bool:
        return self.answer.decision == "stop"

    @property
    def is_veto(self) -> bool:
        return self.required and not self.passed

    @property
    def problem(self) -> str | None:
        """What is wrong, in the check's own words."""
        details = self.answer.details
        found: object = cast("dict[str, object]", details).get("problem") if isinstance(details, dict) else None
        return found if isinstance(found, str) else self.answer.feedback or self.answer.reason

    def evidence(self) -> str:
        if self.passed:
            return f"- passed: {self.name}"
        failed = "FAILED" if self.required else "FAILED (not required)"
        problem = f": {self.problem}" if self.problem else ""
        return f"- {failed}: {self.name}{problem}".replace("\n", "\n  ")  # what it quotes begins no line of its own

    def to_json(self) -> dict[str, JsonValue]:
        return {"check": self.name, "required": self.required, "passed": self.passed, "problem": self.problem}


def _decided(results: Sequence[_Result], word: LoopEvaluation | None) -> LoopEvaluation:
    """What the checks' results and the judge's word come to."""
    details = _details(results, word)
    answers = [result.answer for result in results]
    if word is None or (word.decision == "stop" and any(result.is_veto for result in results)):
        return joined_wish(answers, note="a required check failed", details=details)
    if word.decision in ("continue", "ask"):
        return joined_wish([*answers, word], score=word.score, note=word.note, details=details)
    return replace(word, details=details, evaluator=None)


def _details(results: Sequence[_Result], word: LoopEvaluation | None) -> dict[str, JsonValue]:
    judge = None if word is None else evaluation_to_json(word)
    return {"checks": [result.to_json() for result in results], "judge": judge}
