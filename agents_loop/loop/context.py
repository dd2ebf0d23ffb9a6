"""What an evaluator sees of a run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from copy import copy
from typing import Any, overload

from agents_loop.agent import AgentResponse, AgentRunOptions, AgentSession, AIAgent, Messages
from agents_loop.loop.options import DEFAULT_MAX_ITERATIONS
from agents_loop.loop.result import IterationRecord
from agents_loop.messages import ChatMessage, JsonValue, UsageDetails, as_messages


class FeedbackLog(Sequence["str | None"]):
    """The feedback so far, one entry for each re-invocation, in order. It can be read, not written."""

    __slots__ = ("_entries",)

    def __init__(self, entries: list[str | None]) -> None:
        self._entries = entries

    @overload
    def __getitem__(self, index: int) -> str | None: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[str | None]: ...
    def __getitem__(self, index: int | slice) -> str | Sequence[str | None] | None:
        return self._entries[index]

    def __len__(self) -> int:
        return len(self._entries)

    def __iter__(self) -> Iterator[str | None]:
        return iter(self._entries)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, FeedbackLog | list | tuple):
            return self._entries == list(other)  # pyright: ignore[reportUnknownArgumentType]
        return NotImplemented

    __hash__ = None  # pyright: ignore[reportAssignmentType]

    def __repr__(self) -> str:
        return f"FeedbackLog({self._entries!r})"


class LoopContext:
    """The state of one run that evaluators read, and a bag that they may write.

    One context serves a whole run: its `session`, `last_response` and `iteration` move on with it.

    Args:
        agent: The inner agent.
        session: The session in use.
        initial_messages: The caller's messages.
        last_response: The inner agent's latest response.
        run_options: What the caller asked of the run.
        iteration: Which iteration the response is from, counted from 1.
        feedback: The feedback of the re-invocations so far.
        max_iterations: The cap of the run.
        iterations: The completed iterations, the latest included.
        memory: What evaluators remember.
        best_before: The best iteration of the run that this one continues.

    Raises:
        TypeError: The agent, the session, the messages or the response is `None`.
    """

    __slots__ = (
        "_iterations",
        "_max_iterations",
        "_reported_usage",
        "additional_properties",
        "agent",
        "best_before",
        "evidence",
        "feedback",
        "initial_messages",
        "iteration",
        "last_response",
        "memory",
        "run_options",
        "session",
    )

    def __init__(
        self,
        agent: AIAgent,
        session: AgentSession,
        initial_messages: Messages,
        last_response: AgentResponse,
        run_options: AgentRunOptions | None = None,
        *,
        iteration: int = 1,
        feedback: Iterable[str | None] = (),
        max_iterations: int = DEFAULT_MAX_ITERATIONS,
        iterations: Sequence[IterationRecord] = (),
        memory: dict[str, JsonValue] | None = None,
        best_before: IterationRecord | None = None,
    ) -> None:
        required: tuple[object, ...] = (agent, session, initial_messages, last_response)
        if None in required:
            name = ("agent", "session", "initial_messages", "last_response")[required.index(None)]
            raise TypeError(f"{name} must not be None")
        self.agent = agent
        self.session = session
        self.initial_messages: Sequence[ChatMessage] = tuple(as_messages(initial_messages))
        self.last_response = last_response
        self.run_options = run_options
        self.iteration = iteration
        self.feedback = feedback if isinstance(feedback, FeedbackLog) else FeedbackLog(list(feedback))
        self.additional_properties: dict[str, Any] = {}
        self.memory: dict[str, JsonValue] = {} if memory is None else memory
        """What evaluators remember of the run as JSON values: unlike the bag it is there too after the run had to wait
        for a person or a larger budget."""
        self.best_before = best_before
        """In a run that continues another: the best iteration before the pause."""
        self._max_iterations = max_iterations
        self._iterations = iterations
        self.evidence: Sequence[str] = ()
        self._reported_usage: list[UsageDetails] = []

    @property
    def max_iterations(self) -> int:
        """The cap of the run: at this iteration it ends, whatever the evaluators say."""
        return self._max_iterations

    @property
    def iterations(self) -> tuple[IterationRecord, ...]:
        """The completed iterations, in order, with what the agent was sent and what it answered.

        The last is the one that is judged, so its `evaluations` are not there yet. After an approval they are those
        since; in a context that was made by hand those that it was given.
        """
        return tuple(self._iterations)

    def with_evidence(self, evidence: Iterable[str]) -> LoopContext:
        """This context for one evaluator, with what checks found out about the latest response, one text each.

        A judge shows it to its model as data. The bag and the usage are shared; it does not move on with the run.
        """
        seen = copy(self)
        seen.evidence = (*self.evidence, *evidence)
        return seen

    def report_usage(self, usage: UsageDetails | None) -> None:
        """Tell the run what a model call of an evaluator used that was not made through a `ChatClient`.

        It is one call in the ledger. What a `ChatClient` or a `ChatClientAgent` used is there already; to report that
        too does no harm.
        """
        if usage is not None:
            self._reported_usage.append(usage)

    def take_reported_usages(self) -> Sequence[UsageDetails]:
        """What evaluators reported since this was last asked: for the loop."""
        if not self._reported_usage:
            return ()
        reported = tuple(self._reported_usage)
        self._reported_usage.clear()
        return reported
