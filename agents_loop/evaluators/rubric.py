"""An evaluator that lets a judge decide criterion by criterion, and counts in code."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar

from agents_loop.adapting import ChatClientLike, as_chat_client
from agents_loop.chat_client import ChatClient, ChatOptions, ChatResponse
from agents_loop.errors import ConfigurationError
from agents_loop.judging.asking import NoVerdict, ask, verdict_text
from agents_loop.judging.contradictions import pointed_out
from agents_loop.judging.feedback import FeedbackFilter, screen_feedback, screened
from agents_loop.judging.fences import draw_nonce
from agents_loop.judging.judge_options import check_judge_options
from agents_loop.judging.policy import JudgeFailurePolicy
from agents_loop.judging.prompt import CRITERIA_PLACEHOLDER, JudgeSees
from agents_loop.judging.rubric import (
    CriterionResult,
    CriterionVerdict,
    RubricCriterion,
    RubricReading,
    read_rubric_reply,
    rubric_format,
)
from agents_loop.judging.trimming import ShownLimits, shorter_prompts
from agents_loop.judging.user_message import user_message
from agents_loop.judging.verdict import UNKNOWN_GAP
from agents_loop.judging.voting import reaches
from agents_loop.loop.context import LoopContext
from agents_loop.loop.evaluation import LoopEvaluation
from agents_loop.loop.evaluator import LoopEvaluator
from agents_loop.loop.regressions import regressed
from agents_loop.messages import ChatMessage, ChatRole, JsonValue
from agents_loop.numeric import is_number
from agents_loop.templates import fill

_CLOSING = (
    'Reply with the JSON object. For the id of each criterion: a "reason", which quotes the words of the latest '
    'response that fulfil it or says what is missing, and then a "verdict", "met", "not_met" or "not_applicable". '
    'After all of them "answered".'
)


@dataclass(frozen=True, slots=True, kw_only=True)
class RubricLoopEvaluatorOptions:
    """How a judge is asked about a rubric, and what the agent hears.

    Raises:
        TypeError: An option is not of its type.
        ConfigurationError: `chat_options` holds tools; `judge_sees` is unknown; a limit is less than 200;
            `score_threshold` is not from 0 to 1.
    """

    instructions: str | None = None
    """The system message: a template in which every `{criteria}` is replaced by the list of criteria, one line each,
    `- <id> (required): <text>`. `None`: `DEFAULT_INSTRUCTIONS`."""
    feedback_message_template: str | None = None
    """The feedback: a template in which `{unmet_criteria}` is replaced by the unmet criteria, one line each. `None`:
    `DEFAULT_FEEDBACK_MESSAGE_TEMPLATE`."""
    feedback_filter: FeedbackFilter | None = screen_feedback
    """What of the unmet criteria, which hold the judge's words, the agent hears. `None`: all of it."""
    judge_sees: JudgeSees = "response"
    """The answer alone; `"messages"`: all messages of the response, with tool calls and results; `"conversation"`:
    what was said in the run before, too."""
    max_answer_chars: int | None = None
    """How many characters of the response the judge sees at most: its head and tail. `None`: all. The request is never
    cut."""
    max_conversation_chars: int | None = None
    """The same for what was said before the response, where the judge sees that."""
    score_threshold: float | None = None
    """The lowest score that is enough, from 0 to 1, besides all required criteria. `None`: any is."""
    chat_options: ChatOptions | None = None
    """Asked of every judge call; its `response_format`, when set, replaces the rubric's."""
    on_failure: JudgeFailurePolicy = field(default_factory=JudgeFailurePolicy)
    """What happens when the judge gives no verdict. A reply without a clear verdict of any criterion is unreadable."""
    new_nonce: Callable[[], str] = draw_nonce
    """Names the fences: unguessable in use, fixed in a snapshot test."""

    def __post_init__(self) -> None:
        check_judge_options(self)
        threshold = self.score_threshold
        if threshold is not None and not (is_number(threshold) and 0 <= threshold <= 1):
            raise ConfigurationError(f"score_threshold must be a number from 0 to 1, not {threshold!r}")


class RubricLoopEvaluator(LoopEvaluator):
    """Asks a judge which criteria of a rubric a response meets, and goes on while a required one is not met.

    The judge gives each criterion a reason and then a verdict: met, not met, or not applicable. Whether that is enough,
    and the score, is computed here: the score is the weight of what is met, of all that applies. A criterion that the
    judge leaves out, or is unclear about, is not met; if no criterion is met, nothing passes. The reply also says
    whether the whole is answered: if that is not what its criteria come to, the judge is told so and asked again, once.
    A reply that still contradicts itself does not pass, and has no score.

    The feedback lists the criteria that are not met, and names those that an earlier iteration had met. Each
    evaluation's `details` hold the result of each criterion.

    The judge is called directly: no tools, no session, no middleware. What the agent wrote is data to it. Its words
    reach the agent: mind both where either is confidential or untrusted.

    Args:
        judge_client: The model that judges: a `ChatClient`, or whatever `as_chat_client` makes one of.
        criteria: The rubric; at least one criterion is required, or the options have a `score_threshold`.
        options: How it is asked.

    Raises:
        TypeError: The client is `None` or nothing that is known; a criterion is no `RubricCriterion`.
        ConfigurationError: There is no criterion; an id is given twice; nothing of the rubric is required.
    """

    CRITERIA_PLACEHOLDER: ClassVar[str] = CRITERIA_PLACEHOLDER
    UNMET_CRITERIA_PLACEHOLDER: ClassVar[str] = "{unmet_criteria}"

    DEFAULT_INSTRUCTIONS: ClassVar[str] = f"""\
You grade an agent's latest response to a user's original request by a list of criteria. You do not answer the request \
yourself and you do not talk to the agent.

Take the criteria one by one. For each, look in the response for the words that fulfil it, and quote them as the \
"reason"; if there are none, say what is missing or wrong. Then decide the "verdict": "met" if the words that you \
quoted fulfil the criterion; "not_met" if there are none, or if the response only promises or claims it. What is \
absent is "not_met". It is "not_applicable" only if the original request leaves the criterion without any meaning; \
that the response says so is no reason.

The criteria, each with its id:{CRITERIA_PLACEHOLDER}

Reply with one JSON object of two fields, in this order: "criteria", an object that holds for the id of each criterion \
an object with "reason" and then "verdict"; and "answered", true if every required criterion that applies is met, and \
false otherwise."""

    DEFAULT_FEEDBACK_MESSAGE_TEMPLATE: ClassVar[str] = f"""\
Your last response does not meet these criteria:

{UNMET_CRITERIA_PLACEHOLDER}

Please deliver the complete answer, and keep what was right about the last one."""

    def __init__(
        self,
        judge_client: ChatClientLike,
        criteria: Sequence[RubricCriterion],
        options: RubricLoopEvaluatorOptions | None = None,
    ) -> None:
        options = options or RubricLoopEvaluatorOptions()
        self.judge_client = as_chat_client(judge_client, name="judge_client")
        self.criteria = _checked(criteria, options)
        self.options = options
        instructions = self.DEFAULT_INSTRUCTIONS if options.instructions is None else options.instructions
        rendered = fill(instructions, {CRITERIA_PLACEHOLDER: _listed(self.criteria)})
        self._system = ChatMessage(ChatRole.SYSTEM, rendered)
        template = options.feedback_message_template
        self._template = self.DEFAULT_FEEDBACK_MESSAGE_TEMPLATE if template is None else template
        self._limits = ShownLimits(options.max_answer_chars, options.max_conversation_chars)
        asked = options.chat_options or ChatOptions()
        response_format = asked.response_format or rubric_format(self.criteria)
        self._chat_options = replace(asked, response_format=response_format)

    def model_calls(self) -> Sequence[tuple[ChatClient, ChatOptions | None]]:
        """The judge's."""
        return [(self.judge_client, self._chat_options)]

    def build_messages(self, context: LoopContext) -> list[ChatMessage]:
        """What the judge is sent: a system and a user message. No model is called."""
        return self._messages(context, self._limits)

    def _messages(self, context: LoopContext, limits: ShownLimits) -> list[ChatMessage]:
        return [self._system, user_message(context, self.options, limits, closing=_CLOSING)]

    async def evaluate(self, context: LoopContext) -> LoopEvaluation:
        """Ask the judge about the latest response; again, once, if its reply contradicts itself.

        Raises:
            JudgeFailedError: The judge gave no verdict, and the policy is to raise.
        """
        reading = await self._ask(context)
        if isinstance(reading, NoVerdict):
            return reading.evaluation()
        if reading.readable and reading.contradicts_itself:
            again = await self._ask(context, pointed_out(reading.reply, _what_contradicts(reading)))
            if not isinstance(again, NoVerdict) and again.readable:
                reading = again
        if not reading.readable:
            return LoopEvaluation.continue_(note="the judge gave no verdict: unreadable", details=_details(reading, ()))
        return self._decided(reading, self._regressed(reading, context))

    async def _ask(self, context: LoopContext, further: Sequence[ChatMessage] = ()) -> RubricReading | NoVerdict:
        def read(response: ChatResponse) -> RubricReading:
            return read_rubric_reply(verdict_text(response), self.criteria)

        def prompt(context: LoopContext, limits: ShownLimits) -> list[ChatMessage]:
            return [*self._messages(context, limits), *further]

        shorter = shorter_prompts(prompt, self._limits, context)
        messages = [*self.build_messages(context), *further]
        return await ask(
            self.judge_client, messages, self._chat_options, self.options.on_failure, context, read, shorter
        )

    def _decided(self, reading: RubricReading, regressed: Collection[str]) -> LoopEvaluation:
        details = _details(reading, regressed)
        score = None if reading.contradicts_itself else reading.score
        threshold = self.options.score_threshold
        is_enough = threshold is None or (score is not None and reaches(score, threshold))
        if reading.passes and is_enough and not reading.contradicts_itself:
            return LoopEvaluation.stop(score=score, details=details)
        unmet = "\n".join(_line(result, is_regression=result.criterion.id in regressed) for result in reading.unmet)
        heard = screened(unmet or UNKNOWN_GAP, self.options.feedback_filter)
        feedback = fill(self._template, {self.UNMET_CRITERIA_PLACEHOLDER: heard})
        return LoopEvaluation.continue_(feedback, score=score, details=details)

    def _regressed(self, reading: RubricReading, context: LoopContext) -> set[str]:
        """The criteria that are not met and were in an earlier iteration; those that are met now are remembered."""
        met = [result.criterion.id for result in reading.results if result.verdict == CriterionVerdict.MET]
        unmet = [result.criterion.id for result in reading.unmet]
        name = f"rubric of {', '.join([criterion.id for criterion in self.criteria])}"
        return regressed(context, self, name, met=met, unmet=unmet)


def _checked(criteria: Sequence[RubricCriterion], options: RubricLoopEvaluatorOptions) -> tuple[RubricCriterion, ...]:
    if criteria is None or isinstance(criteria, str | RubricCriterion):  # pyright: ignore[reportUnnecessaryComparison]
        raise TypeError(f"criteria must be a sequence of RubricCriterion, not {type(criteria).__name__}")
    given = tuple(criteria)
    for criterion in given:
        if not isinstance(criterion, RubricCriterion):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise TypeError(f"criteria must hold RubricCriterion, not {type(criterion).__name__}")
    if not given:
        raise ConfigurationError("criteria must not be empty: without any, use an AIJudgeLoopEvaluator")
    ids = [criterion.id for criterion in given]
    if len(set(ids)) < len(ids):
        raise ConfigurationError(f"criteria must have ids of their own: {ids!r}")
    if options.score_threshold is None and not any(criterion.required for criterion in given):
        raise ConfigurationError("criteria must hold a required one, or the options a score_threshold")
    return given


def _listed(criteria: Sequence[RubricCriterion]) -> str:
    lines = [f"- {each.id} ({'required' if each.required else 'optional'}): {each.text.strip()}" for each in criteria]
    return "\n".join(["", *lines])


def _what_contradicts(reading: RubricReading) -> str:
    come_to = "true" if reading.passes else "false"
    return f'its verdicts come to "answered": {come_to}, and that is not what it says'


def _line(result: CriterionResult, *, is_regression: bool) -> str:
    optional = "" if result.criterion.required else " (optional)"
    regression = " (an earlier response met this)" if is_regression else ""
    reason = f": {result.reason}" if result.reason else ""
    return f"- {result.criterion.text.strip().rstrip('.')}{optional}{regression}{reason}"


def _details(reading: RubricReading, regressed: Collection[str]) -> dict[str, JsonValue]:
    return {
        "criteria": [{**each.to_json(), "regressed": each.criterion.id in regressed} for each in reading.results],
        "answered": reading.answered,
        "contradicts_itself": reading.contradicts_itself,
        "readable": reading.readable,
    }
