"""What is done when a run stalls: the steps of a ladder."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Final, TypeAlias

from agents_loop.adapting import AgentLike, as_agent
from agents_loop.agent import AIAgent
from agents_loop.errors import ConfigurationError
from agents_loop.templates import fill

_NO_FEEDBACK: Final = "whatever the request asks for that is not there yet"


@dataclass(frozen=True, slots=True, kw_only=True)
class NudgeStep:
    """Say the feedback in other words, once.

    Raises:
        TypeError: The template is not a str.
        ConfigurationError: The template is blank.
    """

    name: ClassVar[str] = "nudge"
    OBSERVATION_PLACEHOLDER: ClassVar[str] = "{observation}"
    FEEDBACK_PLACEHOLDER: ClassVar[str] = "{feedback}"
    DEFAULT_TEMPLATE: ClassVar[str] = """\
This does not come any closer: {observation}. More of the same will not be enough. Read the request again from its \
beginning, put aside how you went about it so far, and try another way.

Still missing: {feedback}"""

    template: str | None = None
    """What the agent hears in place of the feedback: a template in which `{observation}` is what was noticed, and
    `{feedback}` the feedback. `None`: `DEFAULT_TEMPLATE`."""

    def __post_init__(self) -> None:
        _check_text("template", self.template, "it is what the agent hears")

    def text(self, observation: str, feedback: str | None) -> str:
        """What the agent hears."""
        template = self.DEFAULT_TEMPLATE if self.template is None else self.template
        return fill(
            template,
            {self.OBSERVATION_PLACEHOLDER: observation, self.FEEDBACK_PLACEHOLDER: feedback or _NO_FEEDBACK},
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class FreshContextStep:
    """Go on in a new session with the request and all feedback so far, without the answers that lead nowhere."""

    name: ClassVar[str] = "fresh_context"


@dataclass(frozen=True, slots=True)
class AnotherAgentStep:
    """Go on with another agent, or the same one with another model, in a session of its own.

    It gets the request and all feedback so far. It stays for the rest of the run, and its sessions are those of the
    result: it should keep them as the loop's own agent does (`serialize_session`).

    Raises:
        TypeError: The agent is `None` or nothing that is known.
    """

    name: ClassVar[str] = "another_agent"

    agent: AgentLike
    """An `AIAgent`, or whatever `as_agent` makes one of."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "agent", as_agent(self.agent, name="agent"))

    @property
    def as_agent(self) -> AIAgent:
        """The agent."""
        return self.agent  # pyright: ignore[reportReturnType] - made so when it was given


@dataclass(frozen=True, slots=True, kw_only=True)
class AskPersonStep:
    """Ask a person: the run ends as `pending_input`, and goes on with the answer.

    Raises:
        TypeError: The question is not a str.
        ConfigurationError: The question is blank.
    """

    name: ClassVar[str] = "ask_person"

    question: str | None = None
    """What the person is asked. `None`: what was noticed, what is missing, and how to go on."""

    def __post_init__(self) -> None:
        _check_text("question", self.question, "it is what the person is asked")

    def text(self, observation: str, feedback: str | None) -> str:
        """What the person is asked."""
        if self.question is not None:
            return self.question
        missing = f"Still missing: {feedback}\n\n" if feedback else ""
        return f"The loop no longer comes closer: {observation}.\n\n{missing}How should it go on?"


@dataclass(frozen=True, slots=True, kw_only=True)
class StopStep:
    """End the run as `stalled`."""

    name: ClassVar[str] = "stop"


def _check_text(name: str, text: object, why: str) -> None:
    if text is None:
        return
    if not isinstance(text, str):
        raise TypeError(f"{name} must be a str or None, not {type(text).__name__}")
    if not text.strip():
        raise ConfigurationError(f"{name} must not be blank: {why}")


StallStep: TypeAlias = NudgeStep | FreshContextStep | AnotherAgentStep | AskPersonStep | StopStep
