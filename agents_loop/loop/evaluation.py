"""What an evaluator says after an iteration."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from agents_loop.agent import Messages
from agents_loop.errors import ConfigurationError
from agents_loop.messages import ChatMessage, JsonValue, as_messages
from agents_loop.numeric import is_number

Decision: TypeAlias = Literal["continue", "stop", "abort", "ask"]


@dataclass(slots=True)
class LoopEvaluation:
    """An evaluator's word: go on, I ask for no more, end the run for good, or a person is needed.

    Made by `stop`, `continue_`, `continue_with_messages`, `abort` and `ask`; not to be changed afterwards.
    """

    decision: Decision
    """`stop` means "I do not ask for more"; it is no veto. `abort` outranks `ask`, and `ask` every wish to go on."""
    feedback: str | None = None
    """What the agent is to hear next, verbatim; never blank."""
    messages: tuple[ChatMessage, ...] | None = None
    """The next input, verbatim, in place of feedback."""
    reason: str | None = None
    """Why the run is aborted."""
    score: float | None = None
    """How good the answer is, from 0 to 1."""
    note: str | None = None
    """Recorded, never sent to the agent."""
    details: JsonValue = None
    """A JSON value; recorded, never sent to the agent."""
    evaluator: str | None = field(default=None, compare=False)
    """Who said it: set by the loop in what it records."""
    question: str | None = None
    """What a person is asked, where the decision is `ask`."""

    @property
    def should_reinvoke(self) -> bool:
        """Whether this evaluator wants another iteration."""
        return self.decision == "continue"

    @classmethod
    def stop(cls, *, score: float | None = None, note: str | None = None, details: JsonValue = None) -> LoopEvaluation:
        """Ask for no more.

        Raises:
            ConfigurationError: The score is not a number from 0 to 1.
        """
        return cls("stop", None, None, None, None if score is None else _checked(score), note, details)

    @classmethod
    def continue_(
        cls,
        feedback: str | None = None,
        *,
        score: float | None = None,
        note: str | None = None,
        details: JsonValue = None,
    ) -> LoopEvaluation:
        """Ask for another iteration, with feedback for the agent. Blank feedback is none.

        Raises:
            TypeError: The feedback is not a str.
            ConfigurationError: The score is not a number from 0 to 1.
        """
        if feedback is not None:
            if not isinstance(feedback, str):  # pyright: ignore[reportUnnecessaryIsInstance]
                raise TypeError(f"feedback must be a str or None, not {type(feedback).__name__}")
            if not feedback or feedback.isspace():
                feedback = None
        return cls("continue", feedback, None, None, None if score is None else _checked(score), note, details)

    @classmethod
    def continue_with_messages(
        cls,
        messages: Messages,
        *,
        score: float | None = None,
        note: str | None = None,
        details: JsonValue = None,
    ) -> LoopEvaluation:
        """Ask for another iteration whose input is these messages, verbatim.

        Raises:
            TypeError: `messages` is `None` or holds something else than messages.
            ConfigurationError: The score is not a number from 0 to 1.
        """
        if messages is None:
            raise TypeError("messages must not be None: pass messages, or use continue_()")
        return cls(
            "continue",
            None,
            tuple(as_messages(messages)),
            None,
            None if score is None else _checked(score),
            note,
            details,
        )

    @classmethod
    def abort(
        cls, reason: str, *, score: float | None = None, note: str | None = None, details: JsonValue = None
    ) -> LoopEvaluation:
        """End the run for good.

        Raises:
            TypeError: The reason is not a str.
            ConfigurationError: The reason is blank, or the score is not a number from 0 to 1.
        """
        if not isinstance(reason, str):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise TypeError(f"reason must be a str, not {type(reason).__name__}")
        if not reason.strip():
            raise ConfigurationError("reason must not be blank: it is what the run's result says")
        return cls("abort", None, None, reason, None if score is None else _checked(score), note, details)

    @classmethod
    def ask(
        cls,
        question: str,
        feedback: str | None = None,
        *,
        score: float | None = None,
        note: str | None = None,
        details: JsonValue = None,
    ) -> LoopEvaluation:
        """Need a person: the run ends as `pending_input`, and goes on with the answer when it is run again.

        Args:
            question: What the person is asked, as text.
            feedback: What the agent hears together with the person's answer. Blank feedback is none.
            score: How good the answer is, from 0 to 1.
            note: Recorded, never sent to the agent.
            details: A JSON value; recorded, never sent to the agent.

        Raises:
            TypeError: The question or the feedback is not a str.
            ConfigurationError: The question is blank, or the score is not a number from 0 to 1.
        """
        if not isinstance(question, str):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise TypeError(f"question must be a str, not {type(question).__name__}")
        if not question.strip():
            raise ConfigurationError("question must not be blank: it is what the person is asked")
        evaluation = cls.continue_(feedback, score=score, note=note, details=details)
        evaluation.decision, evaluation.question = "ask", question
        return evaluation


def _checked(score: float) -> float:
    if not is_number(score) or not 0 <= score <= 1:
        raise ConfigurationError(f"score must be a number from 0 to 1, not {score!r}")
    return score
