"""When a run counts as stalled, and what follows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from agents_loop.agent import AIAgent
from agents_loop.errors import ConfigurationError
from agents_loop.loop.stalls.answers import (
    AlternatingAnswersSignal,
    EmptyAnswersSignal,
    NearSameAnswerSignal,
    SameAnswerSignal,
    SameToolCallsSignal,
)
from agents_loop.loop.stalls.ladder import (
    AnotherAgentStep,
    AskPersonStep,
    FreshContextStep,
    NudgeStep,
    StallStep,
    StopStep,
)
from agents_loop.loop.stalls.signal import StallSignal
from agents_loop.loop.stalls.verdicts import (
    FallingScoreSignal,
    FlatScoreSignal,
    SameFailingCriteriaSignal,
    SameFeedbackSignal,
)


def default_signals() -> tuple[StallSignal, ...]:
    """All signals with their default thresholds, in the order in which they are looked for."""
    return (
        EmptyAnswersSignal(),
        SameAnswerSignal(),
        AlternatingAnswersSignal(),
        SameToolCallsSignal(),
        NearSameAnswerSignal(),
        SameFailingCriteriaSignal(),
        FallingScoreSignal(),
        FlatScoreSignal(),
        SameFeedbackSignal(),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class StallPolicy:
    """When a run counts as stalled, and what follows.

    The signals are looked for after each iteration that was judged and is not the last. Each time that one is true the
    run takes the next step of the ladder; at the end of the ladder it takes the last one again.

    Raises:
        TypeError: A signal or a step is none, or a signal has no name.
        ConfigurationError: There is no signal or no step; the ladder does not end with a `StopStep` or an
            `AskPersonStep`.
    """

    signals: Sequence[StallSignal] = field(default_factory=default_signals)
    """What is looked for, in this order: the first that is true is named."""
    ladder: Sequence[StallStep] = (NudgeStep(), StopStep())
    """What follows, step by step."""

    def __post_init__(self) -> None:
        for name, kind in (("signals", StallSignal), ("ladder", StallStep)):
            given: object = getattr(self, name)
            if not isinstance(given, Sequence) or isinstance(given, str):
                raise TypeError(f"{name} must be a sequence, not {type(given).__name__}")
            for each in tuple(given):  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
                if not isinstance(each, kind):
                    raise TypeError(f"{name} must not hold {each!r}")
            if not given:
                raise ConfigurationError(f"{name} must not be empty: without a policy nothing is looked for")
            object.__setattr__(self, name, tuple(given))  # pyright: ignore[reportUnknownArgumentType]
        for signal in self.signals:
            name: object = getattr(signal, "name", None)
            if not isinstance(name, str) or not name.strip():
                raise TypeError(f"a StallSignal needs a name, and {type(signal).__name__}.name is {name!r}")
        if not isinstance(self.ladder[-1], StopStep | AskPersonStep):
            raise ConfigurationError("ladder must end with a StopStep or an AskPersonStep: a stuck run has to end")

    @property
    def clones_sessions(self) -> bool:
        """Whether a step goes on with what the caller's session held before the run."""
        return any(isinstance(step, FreshContextStep) for step in self.ladder)

    def agent_after(self, steps: int) -> AIAgent | None:
        """The agent that the first steps have put in the loop's place; `None` where it is the loop's own."""
        taken = [step.as_agent for step in self.ladder[:steps] if isinstance(step, AnotherAgentStep)]
        return taken[-1] if taken else None
