"""The central evaluator: a second model says what is still missing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import ClassVar

from agents_loop.adapting import ChatClientLike, as_chat_client
from agents_loop.chat_client import ChatOptions, ChatResponse
from agents_loop.errors import ConfigurationError
from agents_loop.judging.asking import NoVerdict, ask, verdict_text
from agents_loop.judging.feedback import FeedbackFilter, screen_feedback, screened
from agents_loop.judging.policy import JudgeFailurePolicy
from agents_loop.judging.prompt import (
    CRITERIA_PLACEHOLDER,
    ITERATION_PLACEHOLDER,
    JUDGE_SEES,
    MAX_ITERATIONS_PLACEHOLDER,
    JudgeSees,
    counters_of,
    draw_nonce,
    fenced_message,
    has_counters,
    render_instructions,
)
from agents_loop.judging.reading import VerdictReading, read_reply
from agents_loop.judging.shown import earlier_messages
from agents_loop.judging.sizes import check_limit
from agents_loop.judging.trimming import ShownLimits, tighter
from agents_loop.judging.verdict import DONE_VERDICT_MARKER, MORE_VERDICT_MARKER, VERDICT_FORMAT
from agents_loop.loop.context import LoopContext
from agents_loop.loop.evaluation import LoopEvaluation
from agents_loop.loop.evaluator import LoopEvaluator
from agents_loop.messages import ChatMessage, ChatRole
from agents_loop.templates import fill


@dataclass(frozen=True, slots=True, kw_only=True)
class AIJudgeLoopEvaluatorOptions:
    """How a judge is asked, and what the agent hears.

    Raises:
        TypeError: `criteria` is a str, or holds something else than str; a limit is not an int; `feedback_filter` is
            not callable.
        ConfigurationError: `chat_options` holds tools; `judge_sees` is unknown; a limit is less than 200.
    """

    instructions: str | None = None
    """The system message: a template in which every `{criteria}` is replaced, and `{iteration}` and `{max_iterations}`
    by their numbers. `None`: `DEFAULT_INSTRUCTIONS`."""
    criteria: Sequence[str] | None = None
    """What a response must meet besides the request; blank ones are skipped."""
    feedback_message_template: str | None = None
    """The feedback: a template in which `{gap_analysis}` is replaced, and the two numbers as in the instructions.
    `None`: `DEFAULT_FEEDBACK_MESSAGE_TEMPLATE`."""
    feedback_filter: FeedbackFilter | None = screen_feedback
    """What of the judge's gap text the agent hears, before it is put into the template. `None`: all of it."""
    judge_sees: JudgeSees = "response"
    """The answer alone; `"messages"`: all messages of the response, with tool calls and results; `"conversation"`:
    what was said in the run before, too."""
    max_answer_chars: int | None = None
    """How many characters of the response the judge sees at most: its head and tail. `None`: all. The request is never
    cut."""
    max_conversation_chars: int | None = None
    """The same for what was said before the response, where the judge sees that."""
    chat_options: ChatOptions | None = None
    """Asked of every judge call; its `response_format`, when set, replaces the verdict's."""
    on_failure: JudgeFailurePolicy = field(default_factory=JudgeFailurePolicy)
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
        if self.feedback_filter is not None and not callable(self.feedback_filter):
            raise TypeError(f"feedback_filter must be callable or None, not {self.feedback_filter!r}")
        if self.judge_sees not in JUDGE_SEES:
            raise ConfigurationError(f"judge_sees must be one of {', '.join(JUDGE_SEES)}, not {self.judge_sees!r}")
        check_limit("max_answer_chars", self.max_answer_chars)
        check_limit("max_conversation_chars", self.max_conversation_chars)


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
    ITERATION_PLACEHOLDER: ClassVar[str] = ITERATION_PLACEHOLDER
    MAX_ITERATIONS_PLACEHOLDER: ClassVar[str] = MAX_ITERATIONS_PLACEHOLDER
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
        self._instructions = instructions if has_counters(instructions) else None
        template = options.feedback_message_template
        self._template = self.DEFAULT_FEEDBACK_MESSAGE_TEMPLATE if template is None else template
        self._template_counts = has_counters(self._template)
        self._limits = ShownLimits(options.max_answer_chars, options.max_conversation_chars)
        asked = options.chat_options or ChatOptions()
        self._chat_options = replace(asked, response_format=asked.response_format or VERDICT_FORMAT)

    def build_messages(self, context: LoopContext) -> list[ChatMessage]:
        """What the judge is sent: a system and a user message. No model is called."""
        return self._messages(context, self._limits)

    def _messages(self, context: LoopContext, limits: ShownLimits) -> list[ChatMessage]:
        options = self._options
        system, sees = self._system, options.judge_sees
        if self._instructions is not None:
            rendered = render_instructions(self._instructions, options.criteria or (), counters_of(context))
            system = ChatMessage(ChatRole.SYSTEM, rendered)
        shown = fenced_message(
            context.initial_messages,
            context.last_response,
            options.new_nonce,
            sees=sees,
            earlier=earlier_messages(context) if sees == "conversation" else (),
            evidence=context.evidence,
            max_answer_chars=limits.answer,
            max_conversation_chars=limits.conversation,
        )
        return [system, shown]

    def _shorter_messages(self, context: LoopContext, times: int) -> list[ChatMessage] | None:
        """With less of the answer, for a judge whose context the prompt does not fit."""
        limits = tighter(self._limits, context, times)
        return None if limits is None else self._messages(context, limits)

    async def evaluate(self, context: LoopContext) -> LoopEvaluation:
        """Ask the judge about the latest response.

        Raises:
            JudgeFailedError: The judge's reply was cut off, refused or filtered, and the policy is to raise.
        """
        reading = await ask(
            self._client,
            self.build_messages(context),
            self._chat_options,
            self._options.on_failure,
            context,
            _read,
            partial(self._shorter_messages, context),
        )
        if isinstance(reading, NoVerdict):
            return reading.evaluation()
        if reading.answered:
            return LoopEvaluation.stop(details=_details(reading))
        return LoopEvaluation.continue_(self._feedback(reading.gap, context), details=_details(reading))

    def _feedback(self, gap: str, context: LoopContext) -> str:
        heard = screened(gap, self._options.feedback_filter)
        if not self._template_counts:
            return self._template.replace(self.GAP_ANALYSIS_PLACEHOLDER, heard)
        return fill(self._template, {self.GAP_ANALYSIS_PLACEHOLDER: heard, **counters_of(context)})


def _read(response: ChatResponse) -> VerdictReading:
    return read_reply(verdict_text(response))


def _details(reading: VerdictReading) -> dict[str, object]:
    return {"answered": reading.answered, "gapAnalysis": reading.gap, "readable": reading.readable}
