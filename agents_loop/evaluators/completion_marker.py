"""An evaluator that looks for a marker in the agent's reply."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from agents_loop.errors import ConfigurationError
from agents_loop.loop.answer import reply_text
from agents_loop.loop.context import LoopContext
from agents_loop.loop.evaluation import LoopEvaluation
from agents_loop.loop.evaluator import LoopEvaluator
from agents_loop.templates import fill


@dataclass(frozen=True, slots=True, kw_only=True)
class CompletionMarkerLoopEvaluatorOptions:
    """What the agent hears while the marker is missing."""

    feedback_message_template: str | None = None
    """A template in which `{completion_marker}` and `{last_response}` are replaced. `None`: the default template."""


class CompletionMarkerLoopEvaluator(LoopEvaluator):
    """Goes on until the agent's reply contains a marker.

    Only what the agent itself wrote in this iteration is searched, case-sensitively: not the request, which may name
    the marker, nor tool results.

    Args:
        completion_marker: What to look for.
        options: What the agent hears.

    Raises:
        TypeError: The marker is not a str.
        ConfigurationError: The marker is blank.
    """

    COMPLETION_MARKER_PLACEHOLDER: ClassVar[str] = "{completion_marker}"
    LAST_RESPONSE_PLACEHOLDER: ClassVar[str] = "{last_response}"
    DEFAULT_FEEDBACK_MESSAGE_TEMPLATE: ClassVar[str] = (
        "The task is not finished yet. Carry on from where you are. Once everything is done, and only then, end your "
        f"reply with {COMPLETION_MARKER_PLACEHOLDER}"
    )

    def __init__(self, completion_marker: str, options: CompletionMarkerLoopEvaluatorOptions | None = None) -> None:
        if not isinstance(completion_marker, str):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise TypeError(f"completion_marker must be a str, not {type(completion_marker).__name__}")
        if not completion_marker.strip():
            raise ConfigurationError("completion_marker must not be blank")
        self.options = options or CompletionMarkerLoopEvaluatorOptions()
        template = self.options.feedback_message_template
        self.completion_marker = completion_marker
        self._template = self.DEFAULT_FEEDBACK_MESSAGE_TEMPLATE if template is None else template

    async def evaluate(self, context: LoopContext) -> LoopEvaluation:
        """Look for the marker in the latest reply."""
        text = reply_text(context.last_response)
        if self.completion_marker in text:
            return LoopEvaluation.stop()
        values = {self.COMPLETION_MARKER_PLACEHOLDER: self.completion_marker, self.LAST_RESPONSE_PLACEHOLDER: text}
        return LoopEvaluation.continue_(fill(self._template, values))
