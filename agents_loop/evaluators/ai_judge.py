"""The central evaluator: a second model says what is still missing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Literal, TypeAlias

from agents_loop.adapting import ChatClientLike, as_chat_client
from agents_loop.chat_client import ChatOptions, ChatResponse, FinishReason
from agents_loop.errors import BudgetExceededError, ConfigurationError, JudgeFailedError
from agents_loop.judging.prompt import CRITERIA_PLACEHOLDER, draw_nonce, fenced_message, render_instructions
from agents_loop.judging.reading import VerdictReading, read_reply
from agents_loop.judging.verdict import DONE_VERDICT_MARKER, MORE_VERDICT_MARKER, VERDICT_FORMAT
from agents_loop.loop.context import LoopContext
from agents_loop.loop.evaluation import LoopEvaluation
from agents_loop.loop.evaluator import LoopEvaluator
from agents_loop.messages import ChatMessage, ChatRole, error_text

FailureAction: TypeAlias = Literal["raise", "continue"]


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeFailurePolicy:
    """What happens, by cause, when the judge gives no verdict.

    `raise` ends the run with an exception that carries the `LoopResult` so far; `continue` runs the agent again. A
    failure says nothing of the answer, so the agent is not told of it.
    """

    error: FailureAction = "raise"
    """The judge's client raised: it is down, say. Raised as it is; a spent budget always is."""
    length: FailureAction = "raise"
    """The reply was cut off by a token limit."""
    refusal: FailureAction = "raise"
    content_filter: FailureAction = "raise"
    unreadable: FailureAction = "continue"
    """There is neither a boolean nor a marker in it; when the run goes on, the reply's prose is the gap."""

    def __post_init__(self) -> None:
        for cause in self.__slots__:
            if getattr(self, cause) not in ("raise", "continue"):
                raise ConfigurationError(f"{cause} must be 'raise' or 'continue', not {getattr(self, cause)!r}")


@dataclass(frozen=True, slots=True, kw_only=True)
class AIJudgeLoopEvaluatorOptions:
    """How a judge is asked, and what the agent hears.

    Raises:
        TypeError: `criteria` is a str, or holds something else than str.
        ConfigurationError: `chat_options` holds tools.
    """

    instructions: str | None = None
    """The system message: a template in which every `{criteria}` is replaced. `None`: `DEFAULT_INSTRUCTIONS`."""
    criteria: Sequence[str] | None = None
    """What a response must meet besides the request; blank ones are skipped."""
    feedback_message_template: str | None = None
    """The feedback: a template in which `{gap_analysis}` is replaced. `None`: `DEFAULT_FEEDBACK_MESSAGE_TEMPLATE`."""
    chat_options: ChatOptions | None = None
    """Asked of every judge call; its `response_format`, when set, replaces the verdict's."""
    on_failure: JudgeFailurePolicy = JudgeFailurePolicy()
    new_nonce: Callable[[], str] = draw_nonce
    """Names the fences: unguessable in use, fixed in a snapshot test."""

    def __post_init__(self) -> None:
        if self.chat_options is not None and self.chat_options.tools:
            raise ConfigurationError("chat_options must hold no tools: a judge is called without any")
        if isinstance(self.criteria, str):
            raise TypeError("criteria must be a sequence of str, not one str")
        for criterion in self.criteria or ():
            if not isinstance(criterion, str):  # pyright: ignore[reportUnnecessaryIsInstance]
                raise TypeError(f"criteria must hold str, not {type(criterion).__name__}")


class AIJudgeLoopEvaluator(LoopEvaluator):
    """Asks a judge whether the request is fully addressed, and goes on with its gap analysis while it is not.

    The judge is called directly: no tools, no session, no middleware. What the agent wrote is data to it, and nothing
    unclear is a pass (`agents_loop.judging.reading`). The judge sees the request and the answer, and its words reach
    the agent: mind both where either is confidential or untrusted. LLM judges are costly and err, so consider a cap
    lower than the loop's default.

    Args:
        judge_client: The model that judges: a `ChatClient`, or whatever `as_chat_client` makes one of.
        options: How it is asked.

    Raises:
        TypeError: The client is `None` or nothing that is known.
    """

    CRITERIA_PLACEHOLDER: ClassVar[str] = CRITERIA_PLACEHOLDER
    GAP_ANALYSIS_PLACEHOLDER: ClassVar[str] = "{gap_analysis}"
    DONE_VERDICT_MARKER: ClassVar[str] = DONE_VERDICT_MARKER
    MORE_VERDICT_MARKER: ClassVar[str] = MORE_VERDICT_MARKER

    DEFAULT_INSTRUCTIONS: ClassVar[str] = f"""\
You judge whether an agent's latest response fully addresses a user's original request. You do not answer the request \
yourself and you do not talk to the agent.

Go through everything the request asks for, stated limits and formats included, and look for each in the response. \
The response is complete only if nothing is missing, unfinished, promised for later, or merely claimed to be there. \
When in doubt, it is not complete.{CRITERIA_PLACEHOLDER}

Reply with one JSON object of two fields, in this order: "gapAnalysis", a string that names each thing that is missing \
or wrong (empty if nothing is), then "answered", true if the response is complete and false otherwise. If you can't \
write JSON, write what is missing and then, on a line of its own, {DONE_VERDICT_MARKER} if the response is complete or \
{MORE_VERDICT_MARKER} if it is not."""

    DEFAULT_FEEDBACK_MESSAGE_TEMPLATE: ClassVar[str] = f"""\
Your last response does not fully address the original request yet. What is missing or wrong:

{GAP_ANALYSIS_PLACEHOLDER}

Please go on and deliver the complete answer."""

    def __init__(self, judge_client: ChatClientLike, options: AIJudgeLoopEvaluatorOptions | None = None) -> None:
        options = options or AIJudgeLoopEvaluatorOptions()
        given = options.instructions
        self._client = as_chat_client(judge_client, name="judge_client")
        self._options = options
        instructions = self.DEFAULT_INSTRUCTIONS if given is None else given
        self._system = ChatMessage(ChatRole.SYSTEM, render_instructions(instructions, options.criteria or ()))
        template = options.feedback_message_template
        self._template = self.DEFAULT_FEEDBACK_MESSAGE_TEMPLATE if template is None else template
        asked = options.chat_options or ChatOptions()
        self._chat_options = replace(asked, response_format=asked.response_format or VERDICT_FORMAT)

    def build_messages(self, context: LoopContext) -> list[ChatMessage]:
        """What the judge is sent: a system and a user message. No model is called."""
        return [
            self._system,
            fenced_message(context.initial_messages, context.last_response, self._options.new_nonce),
        ]

    async def evaluate(self, context: LoopContext) -> LoopEvaluation:
        """Ask the judge about the latest response.

        Raises:
            JudgeFailedError: The judge's reply was cut off, refused or filtered, and the policy is to raise.
        """
        try:
            response = await self._client.get_response(self.build_messages(context), self._chat_options)
        except BudgetExceededError:
            raise
        except Exception as error:
            if self._options.on_failure.error == "raise":
                raise
            return _without_verdict(f"{type(error).__name__}: {error}")
        context.report_usage(response.usage)
        cause = _FAILURES.get(response.finish_reason)
        if cause is not None:
            if getattr(self._options.on_failure, cause) == "raise":
                raise JudgeFailedError(cause, error_text(response.messages))
            return _without_verdict(cause)
        reading = read_reply(_verdict_text(response))
        if not reading.readable and self._options.on_failure.unreadable == "raise":
            raise JudgeFailedError("unreadable", "neither a boolean nor a marker in the reply")
        if reading.answered:
            return LoopEvaluation.stop(details=_details(reading))
        return LoopEvaluation.continue_(self._feedback(reading.gap), details=_details(reading))

    def _feedback(self, gap: str) -> str:
        return self._template.replace(self.GAP_ANALYSIS_PLACEHOLDER, gap)


def _without_verdict(cause: str) -> LoopEvaluation:
    return LoopEvaluation.continue_(note=f"the judge gave no verdict: {cause}")


def _details(reading: VerdictReading) -> dict[str, object]:
    return {"answered": reading.answered, "gapAnalysis": reading.gap, "readable": reading.readable}


_FAILURES: dict[str | None, str] = {
    FinishReason.LENGTH: "length",
    FinishReason.CONTENT_FILTER: "content_filter",
    FinishReason.REFUSAL: "refusal",
}
"""Endings of a reply that are no verdict, whatever its text says."""


def _verdict_text(response: ChatResponse) -> str:
    """The text of the judge's last assistant message that has any."""
    for message in reversed(response.messages):
        if message.role == "assistant" and (text := message.text).strip():
            return text
    return ""
