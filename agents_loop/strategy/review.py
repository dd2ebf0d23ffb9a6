"""A detector that is a model."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar

from agents_loop.adapting import ChatClientLike, as_chat_client
from agents_loop.chat_client import ChatOptions, ChatResponse
from agents_loop.errors import ConfigurationError
from agents_loop.judging.asking import NoVerdict, ask, verdict_text
from agents_loop.judging.fences import draw_nonce
from agents_loop.judging.policy import JudgeFailurePolicy
from agents_loop.judging.prompt import (
    CRITERIA_PLACEHOLDER,
    JUDGE_SEES,
    JudgeSees,
    render_instructions,
)
from agents_loop.judging.trimming import ShownLimits, shorter_prompts
from agents_loop.judging.user_message import user_message
from agents_loop.loop.context import LoopContext
from agents_loop.messages import ChatMessage, ChatRole
from agents_loop.strategy.detectors import SignalDetector
from agents_loop.strategy.review_reading import ReviewReading, read_review, review_format
from agents_loop.strategy.signals import IterationSignals

_CLOSING = (
    'Reply with the JSON object: "unmetRequirements", "unsupportedClaims", "lacking" and "confidence". A list without '
    "entries is right where there is nothing to name."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviewSignalDetectorOptions:
    """How a reviewer is asked.

    Raises:
        TypeError: `criteria` is one str.
        ConfigurationError: `chat_options` holds tools, or `judge_sees` is unknown.
    """

    instructions: str | None = None
    """The system message: a template in which every `{criteria}` is replaced by the criteria. `None`:
    `DEFAULT_INSTRUCTIONS`."""
    criteria: Sequence[str] = ()
    """What the answer must meet beside the request: a line each."""
    judge_sees: JudgeSees = "response"
    """The answer alone; `"messages"`: with tool calls and results, so that claims can be held against sources;
    `"conversation"`: what was said in the run before, too."""
    chat_options: ChatOptions | None = None
    """Asked of every call; its `response_format`, when set, replaces the review's."""
    on_failure: JudgeFailurePolicy = field(default_factory=JudgeFailurePolicy)
    """What happens when the reviewer fails, or its reply can't be read. Where it goes on, the signals are unclear."""
    new_nonce: Callable[[], str] = draw_nonce
    """Names the fences: unguessable in use, fixed in a snapshot test."""

    def __post_init__(self) -> None:
        if isinstance(self.criteria, str):
            raise TypeError("criteria must be a sequence of str, not one str")
        if self.chat_options is not None and self.chat_options.tools:
            raise ConfigurationError("chat_options must hold no tools: a reviewer is called without any")
        if self.judge_sees not in JUDGE_SEES:
            raise ConfigurationError(f"judge_sees must be one of {', '.join(JUDGE_SEES)}, not {self.judge_sees!r}")


class ReviewSignalDetector(SignalDetector):
    """Asks a model for signals: requirements that are not met, claims that nothing supports, and its confidence.

    The model is called directly, as a judge is: no tools, no session, no middleware; the request and the answer stand
    between fences, as data. A reply that is unclear in any part is no review, and `on_failure` says what then happens.
    A model's confidence is an opinion: set `StrategyThresholds.min_confidence` by what you see of it.

    Args:
        review_client: The model: a `ChatClient`, or whatever `as_chat_client` makes one of.
        options: How it is asked.

    Raises:
        TypeError: The client is `None` or nothing that is known.
    """

    CRITERIA_PLACEHOLDER: ClassVar[str] = CRITERIA_PLACEHOLDER
    DEFAULT_INSTRUCTIONS: ClassVar[str] = f"""\
You review an agent's latest response to a user's original request. You do not answer the request yourself and you do \
not talk to the agent; you say what is wrong, so that it can be decided how the agent goes on.{CRITERIA_PLACEHOLDER}

Name in "unmetRequirements" whatever the request asks for and the response does not deliver: one short text for each, \
that says what is missing. Name in "unsupportedClaims" each statement of fact that neither the request nor a source in \
the material supports: the "claim" in the response's own words, and whether you are "certain" that it is wrong or made \
up. Opinions, plans and common knowledge are no such claims.

Then say what the response is most "lacking": "evidence" if its statements may be right but are not shown to be, \
"certainty" if its facts are doubtful, "nothing" if neither. Last, give your "confidence" that a careful reader could \
rely on the response as it stands, from 0 to 1."""

    def __init__(self, review_client: ChatClientLike, options: ReviewSignalDetectorOptions | None = None) -> None:
        options = options or ReviewSignalDetectorOptions()
        self.review_client = as_chat_client(review_client, name="review_client")
        self.options = options
        instructions = self.DEFAULT_INSTRUCTIONS if options.instructions is None else options.instructions
        self._system = ChatMessage(ChatRole.SYSTEM, render_instructions(instructions, options.criteria))
        asked = options.chat_options or ChatOptions()
        self._chat_options = replace(asked, response_format=asked.response_format or review_format())

    def build_messages(self, context: LoopContext) -> list[ChatMessage]:
        """What the reviewer is sent: a system and a user message. No model is called."""
        return self._messages(context, ShownLimits())

    def _messages(self, context: LoopContext, limits: ShownLimits) -> list[ChatMessage]:
        return [self._system, user_message(context, self.options, limits, closing=_CLOSING)]

    async def detect(self, context: LoopContext) -> IterationSignals:
        """Ask the reviewer.

        Raises:
            JudgeFailedError: It gave no review, and the policy is to raise.
        """
        shorter = shorter_prompts(self._messages, ShownLimits(), context)
        messages, policy = self.build_messages(context), self.options.on_failure
        reading = await ask(self.review_client, messages, self._chat_options, policy, context, _read, shorter)
        if isinstance(reading, NoVerdict):
            return IterationSignals(unclear=f"the reviewer gave no review: {reading.why}")
        return reading.signals or IterationSignals(unclear="the reviewer gave no review: unreadable")


def _read(response: ChatResponse) -> ReviewReading:
    return read_review(verdict_text(response))
