"""Asking a person: what a run keeps while it waits for the answer, and what counts as one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from agents_loop.agent import AgentResponse
from agents_loop.errors import ConfigurationError
from agents_loop.loop.asking import Outcome
from agents_loop.loop.evaluation import LoopEvaluation
from agents_loop.loop.kept_records import kept_text
from agents_loop.message_json import message_from_json, message_to_json
from agents_loop.messages import ChatMessage, ChatRole, JsonValue

PERSON: Final = "person"
"""Who accepted an answer, where an evaluation names its evaluator."""
_ACCEPTS: Final = "agents_loop.accept"
"""The property of a message that accepts: no text does, since text may come from a model."""


def accept_answer() -> ChatMessage:
    """The message with which a person accepts the answer at hand, in place of answering the question.

        await loop.run(accept_answer(), session=result.session)

    The run that waits ends as `satisfied` with that answer; the agent is not run. Any other message is an answer to
    the question, whatever it says, and the agent is run with it.
    """
    return ChatMessage(ChatRole.USER, [], additional_properties={_ACCEPTS: True})


def is_acceptance(messages: Sequence[ChatMessage]) -> bool:
    """Whether the messages accept the answer at hand.

    Raises:
        ConfigurationError: They accept it, and say something else: what is meant is unclear.
    """
    if not any(_accepts(message) for message in messages):
        return False
    if len(messages) > 1 or messages[0].contents:
        raise ConfigurationError("accept_answer() must be the only message: it ends the run, so nobody hears another")
    return True


def _accepts(message: ChatMessage) -> bool:
    properties = message.additional_properties
    return properties is not None and properties.get(_ACCEPTS) is True


@dataclass(slots=True, kw_only=True)
class Question:
    """What a run that waits for a person needs to go on."""

    text: str
    response: AgentResponse
    """The answer at hand."""
    feedback: str | None = None
    """What the agent hears with the person's answer."""
    messages: tuple[ChatMessage, ...] | None = None
    """Explicit messages that the agent is sent with it."""

    def outcome(self) -> Outcome:
        """What the evaluators wanted, beside the question."""
        return Outcome(goes_on=True, messages=self.messages, feedback=self.feedback)

    def feedback_with(self, answer: Sequence[ChatMessage]) -> str | None:
        """What the feedback log gets for the iteration that the person's answer drives."""
        said = [text for message in answer if (text := message.text).strip()]
        return "\n\n".join([self.feedback, *said] if self.feedback else said) or None

    def acceptance(self) -> LoopEvaluation:
        """The person's verdict on the answer at hand."""
        accepted = LoopEvaluation.stop(note="a person accepted the answer")
        accepted.evaluator = PERSON
        return accepted

    def to_json(self) -> dict[str, JsonValue]:
        """As a JSON value."""
        response = self.response
        return {
            "text": self.text,
            "answer": [message_to_json(message) for message in response.messages],
            "response_id": response.response_id,
            "agent_id": response.agent_id,
            "feedback": self.feedback,
            "messages": None if self.messages is None else [message_to_json(message) for message in self.messages],
        }

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Question:
        """What `to_json` gave.

        Raises:
            TypeError: It is not.
        """
        answer = [message_from_json(message) for message in stored["answer"]]
        held, text = stored["messages"], kept_text(stored["text"])
        if text is None:
            raise TypeError("a question without a text")
        return cls(
            text=text,
            response=AgentResponse(answer, response_id=stored["response_id"], agent_id=stored["agent_id"]),
            feedback=kept_text(stored["feedback"]),
            messages=None if held is None else tuple([message_from_json(message) for message in held]),
        )
