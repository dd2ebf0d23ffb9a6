"""Watching one run for stalls."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import groupby
from typing import NamedTuple

from agents_loop.agent import AIAgent
from agents_loop.loop.asking import Outcome
from agents_loop.loop.events import StallNoticed
from agents_loop.loop.result import IterationRecord
from agents_loop.loop.stalls.facts import IterationFacts
from agents_loop.loop.stalls.ladder import AnotherAgentStep, FreshContextStep, NudgeStep, StallStep
from agents_loop.loop.stalls.policy import StallPolicy
from agents_loop.loop.stalls.signal import StallSignal


class Stall(NamedTuple):
    """A signal that is true, and the step that follows."""

    signal: StallSignal
    step: StallStep

    @property
    def detail(self) -> str:
        """The signal's name, and what was noticed."""
        return f"{self.signal.name}: {self.signal.observation}"

    @property
    def renews_session(self) -> bool:
        """Whether the next iteration has a session of its own."""
        return isinstance(self.step, FreshContextStep | AnotherAgentStep)

    def event(self, number: int) -> StallNoticed:
        """The fact, after an iteration."""
        return StallNoticed(number, self.signal.name, self.signal.observation, self.step.name)

    def retold(self, outcome: Outcome) -> Outcome:
        """What the evaluators want, in other words where the step is a nudge."""
        if not isinstance(self.step, NudgeStep):
            return outcome
        return replace(outcome, feedback=self.step.text(self.signal.observation, outcome.feedback))


class StallWatch:
    """The iterations of one run, and how far up the ladder it is.

    Args:
        policy: What is looked for, and what follows.
    """

    def __init__(self, policy: StallPolicy) -> None:
        self._policy = policy
        rows = groupby(policy.signals, key=lambda signal: signal.repeats)
        self._looked_for = [(repeats, list(row)) for repeats, row in rows]
        """The signals in their order; those in a row that look at as many iterations see the same list of them."""
        self._most = max(signal.repeats for signal in policy.signals)
        self._iterations: list[IterationFacts] = []
        self.steps = 0
        """How many steps have been taken."""

    @property
    def records(self) -> list[IterationRecord]:
        """The latest iterations, as many as the signals look at."""
        return [facts.record for facts in self._iterations]

    def resume(self, steps: int, records: Sequence[IterationRecord]) -> None:
        """Go on where the run was that this one continues.

        Args:
            steps: How many steps it had taken.
            records: Its latest iterations, where they still count.
        """
        self.steps = steps
        self._iterations = [IterationFacts(record) for record in records[-self._most :]]

    @property
    def agent(self) -> AIAgent | None:
        """The agent that the steps so far have put in the loop's place; `None` where it is the loop's own."""
        return self._policy.agent_after(self.steps)

    def after(self, record: IterationRecord) -> Stall | None:
        """Look at an iteration that was judged and not accepted; gives what is to be done if the run stalls."""
        iterations = self._iterations
        if len(iterations) == self._most:
            del iterations[0]
        iterations.append(IterationFacts(record))
        count = len(iterations)
        for repeats, row in self._looked_for:
            if count >= repeats:
                latest = iterations[-repeats:]
                for signal in row:
                    if signal.is_alike(latest):
                        return self._stall(signal)
        return None

    def _stall(self, signal: StallSignal) -> Stall:
        """The next step of the ladder."""
        step = self._policy.ladder[min(self.steps, len(self._policy.ladder) - 1)]
        self.steps += 1
        if isinstance(step, AnotherAgentStep):
            self._iterations.clear()  # what another agent did says nothing of this one
        return Stall(signal, step)
