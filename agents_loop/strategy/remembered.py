"""What a run's attempts were and used, as an evaluator remembers them: also where the run had to wait in between."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, cast

from agents_loop.errors import SessionStateError
from agents_loop.loop.context import LoopContext
from agents_loop.loop.result import IterationRecord
from agents_loop.messages import JsonValue
from agents_loop.metering.spending import tokens_at_least
from agents_loop.strategy.history import Attempt, IterationStrategy

_IN_RUN: Final = "_agents_loop.iteration_strategy"
"""Where a run's context keeps, by evaluator, what it remembers."""
_MEMORY: Final = "iteration_strategy"
"""Where its memory does, by the evaluator's name."""


class Used:
    """What iterations used: how many there were, their time, and the tokens of those that reported some."""

    __slots__ = ("iterations", "reports", "seconds", "tokens")

    def __init__(self, iterations: int = 0, seconds: float = 0.0, reports: int = 0, tokens: int = 0) -> None:
        self.iterations = iterations
        self.seconds = seconds
        self.reports = reports
        self.tokens = tokens

    def with_records(self, records: Sequence[IterationRecord]) -> Used:
        """These, and what further iterations used."""
        reported = [tokens for record in records if (tokens := tokens_at_least(record.usage)) is not None]
        return Used(
            self.iterations + len(records),
            self.seconds + sum(record.duration_s for record in records),
            self.reports + len(reported),
            self.tokens + sum(reported),
        )


class Remembered:
    """The attempts of a run, and what they used, as one evaluator saw them.

    Args:
        kept: The same as a JSON value: what is left of a run that this one continues, and is kept up to date.
        iteration: The one that is judged.

    Raises:
        KeyError, TypeError, ValueError: What is left can't be read.
    """

    __slots__ = ("_attempts", "_before", "_stored", "kept")

    def __init__(self, kept: dict[str, JsonValue], iteration: int) -> None:
        self._stored = cast("list[JsonValue]", kept.setdefault("attempts", []))
        self._attempts = [Attempt.from_json(cast("dict[str, Any]", each)) for each in self._stored]
        self._before = Used(**cast("dict[str, Any]", kept.get("used", {})))
        self.kept = kept
        before = self.attempts(iteration)
        if before and before[-1].strategy == IterationStrategy.ESCALATE:  # a person has answered: that is new
            self._attempts.clear()
            self._stored.clear()

    @classmethod
    def of(cls, context: LoopContext, evaluator: object) -> Remembered:
        """What an evaluator remembers of the run.

        Of several evaluators of one class in a loop, what the first one saw is remembered over a pause.

        Raises:
            SessionStateError: What stands in the session can't be read.
        """
        of_all: dict[int, Remembered] = context.additional_properties.setdefault(_IN_RUN, {})
        if id(evaluator) not in of_all:
            name = type(evaluator).__name__
            try:
                by_name: Any = context.memory.setdefault(_MEMORY, {})
                kept = by_name.setdefault(name, {})
                is_taken = any(each.kept is kept for each in of_all.values())
                of_all[id(evaluator)] = cls({} if is_taken else kept, context.iteration)
            except (KeyError, TypeError, ValueError, AttributeError) as error:
                raise SessionStateError(f"context.memory[{_MEMORY!r}][{name!r}] can't be read: {error!r}") from error
        return of_all[id(evaluator)]

    def attempts(self, iteration: int) -> list[Attempt]:
        """Those before an iteration, in order: one whose judgment broke off is judged again."""
        while self._attempts and self._attempts[-1].iteration >= iteration:
            self._attempts.pop()
            self._stored.pop()
        return list(self._attempts)

    def used(self, context: LoopContext) -> Used:
        """What the run has used, with the iterations before a pause as far as they were judged."""
        return self._before.with_records(context.iterations)

    def keep(self, attempt: Attempt, used: Used) -> None:
        """The latest answer has been decided on.

        Args:
            attempt: The iteration.
            used: What the run has used by now.
        """
        self._attempts.append(attempt)
        self._stored.append(attempt.to_json())
        self.kept["used"] = {
            "iterations": used.iterations,
            "seconds": used.seconds,
            "reports": used.reports,
            "tokens": used.tokens,
        }
