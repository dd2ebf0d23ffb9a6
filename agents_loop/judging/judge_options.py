"""What every judge's options have in common, and how they are checked."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from agents_loop.chat_client import ChatOptions
from agents_loop.errors import ConfigurationError
from agents_loop.judging.feedback import FeedbackFilter
from agents_loop.judging.policy import JudgeFailurePolicy
from agents_loop.judging.prompt import JUDGE_SEES, JudgeSees
from agents_loop.judging.sizes import check_limit
from agents_loop.numeric import check_count, is_number


class JudgeOptions(Protocol):
    """The options of any judge."""

    @property
    def instructions(self) -> str | None:
        """The system message's template."""
        ...

    @property
    def feedback_message_template(self) -> str | None:
        """The feedback's."""
        ...

    @property
    def feedback_filter(self) -> FeedbackFilter | None:
        """What of the judge's words the agent hears."""
        ...

    @property
    def judge_sees(self) -> JudgeSees:
        """How much is shown."""
        ...

    @property
    def max_answer_chars(self) -> int | None:
        """Of the response."""
        ...

    @property
    def max_conversation_chars(self) -> int | None:
        """Of what was said before."""
        ...

    @property
    def chat_options(self) -> ChatOptions | None:
        """Asked of each call."""
        ...

    @property
    def on_failure(self) -> JudgeFailurePolicy:
        """What happens without a verdict."""
        ...

    @property
    def new_nonce(self) -> Callable[[], str]:
        """Names the fences."""
        ...


def check_judge_options(options: JudgeOptions) -> None:
    """Check what the options of every judge have in common.

    Raises:
        TypeError: One is not of its type.
        ConfigurationError: `chat_options` holds tools; `judge_sees` is unknown; a limit is too low.
    """
    for name in ("instructions", "feedback_message_template"):
        _check_type(name, getattr(options, name), str, "a str or None", may_be_none=True)
    _check_type("chat_options", options.chat_options, ChatOptions, "ChatOptions or None", may_be_none=True)
    _check_type("on_failure", options.on_failure, JudgeFailurePolicy, "a JudgeFailurePolicy")
    if options.chat_options is not None and options.chat_options.tools:
        raise ConfigurationError("chat_options must hold no tools: a judge is called without any")
    if options.feedback_filter is not None and not callable(options.feedback_filter):
        raise TypeError(f"feedback_filter must be callable or None, not {options.feedback_filter!r}")
    if not callable(options.new_nonce):
        raise TypeError(f"new_nonce must be callable, not {options.new_nonce!r}")
    if options.judge_sees not in JUDGE_SEES:
        raise ConfigurationError(f"judge_sees must be one of {', '.join(JUDGE_SEES)}, not {options.judge_sees!r}")
    check_limit("max_answer_chars", options.max_answer_chars)
    check_limit("max_conversation_chars", options.max_conversation_chars)


def check_confidence(threshold: float | None, margin: float, samples: int) -> None:
    """Check when a verdict is unsure, and how often the judge is then asked.

    Raises:
        TypeError: One is no number.
        ConfigurationError: The threshold or the margin is not from 0 to 1; `samples` is less than 1.
    """
    for name, value in (("confidence_threshold", threshold), ("confidence_margin", margin)):
        if value is None and name == "confidence_threshold":
            continue
        if not is_number(value):
            raise TypeError(f"{name} must be a number, not {value!r}")
        if not 0 <= value <= 1:
            raise ConfigurationError(f"{name} must be a number from 0 to 1, not {value!r}")
    check_count("samples", samples)


def _check_type(name: str, given: object, kind: type, wanted: str, *, may_be_none: bool = False) -> None:
    if not isinstance(given, kind) and not (may_be_none and given is None):
        raise TypeError(f"{name} must be {wanted}, not {type(given).__name__}")
