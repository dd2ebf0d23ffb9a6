"""The central evaluator: a second model says what is still missing."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, ClassVar, Final, Literal, TypeAlias, get_args

from agents_loop.adapting import ChatClientLike, as_chat_client
from agents_loop.chat_client import ChatClient, ChatOptions, ChatResponse
from agents_loop.errors import ConfigurationError
from agents_loop.failures import FailureCause
from agents_loop.flags import check_flags
from agents_loop.judging.asking import NoVerdict, ask, verdict_text
from agents_loop.judging.feedback import FeedbackFilter, screen_feedback, screened
from agents_loop.judging.judge_options import check_confidence, check_judge_options
from agents_loop.judging.policy import JudgeFailurePolicy
from agents_loop.judging.prompt import (
    CRITERIA_PLACEHOLDER,
    ITERATION_PLACEHOLDER,
    MAX_ITERATIONS_PLACEHOLDER,
    VERDICT_CLOSING,
    JudgeSees,
    counters_of,
    draw_nonce,
    has_counters,
    plain_message,
    render_instructions,
)
from agents_loop.judging.reading import VerdictReading, read_reply
from agents_loop.judging.shown import Piece, answer_pieces, request_text
from agents_loop.judging.trimming import ShownLimits, shorter_prompts, tighter
from agents_loop.judging.user_message import user_message
from agents_loop.judging.verdict import (
    DONE_VERDICT_MARKER,
    MORE_VERDICT_MARKER,
    VerdictField,
    check_fields,
    further_names,
    verdict_format,
)
from agents_loop.judging.verdict_wording import closing, reply_instructions
from agents_loop.loop.context import LoopContext
from agents_loop.loop.evaluation import LoopEvaluation
from agents_loop.loop.evaluator import LoopEvaluator
from agents_loop.loop.no_verdict import NO_VERDICT
from agents_loop.messages import ChatMessage, ChatRole, JsonValue
from agents_loop.templates import fill

if TYPE_CHECKING:
    from agents_loop.judging.careful import CarefulJudge
    from agents_loop.judging.requirements.judge import RequirementsJudge

JudgeDesign: TypeAlias = Literal["verdict", "requirements"]
JUDGE_DESIGNS: Final[tuple[str, ...]] = get_args(JudgeDesign)


@dataclass(frozen=True, slots=True, kw_only=True)
class AIJudgeLoopEvaluatorOptions:
    """How a judge is asked, and what the agent hears.

    Raises:
        TypeError: `criteria` is a str, or holds something else than str; another option is not of its type.
        ConfigurationError: `chat_options` holds tools; `judge_sees`, `design` or a verdict's field is unknown; a limit
            is less than 200; a threshold or margin is not from 0 to 1; `samples` is less than 1; an option is not for
            the design.
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
    design: JudgeDesign = "verdict"
    """`"verdict"`: one call, and the judge's boolean decides. `"requirements"`: what the request demands is listed once
    for a run; code decides what can be counted, and the judge is asked about each other demand by itself."""
    confidence_threshold: float | None = None
    """From which probability on "yes" is a yes, from 0 to 1, where the client gives log probabilities; of each demand,
    or of the verdict. `None`: the design's own."""
    confidence_margin: float = 0.1
    """How near to the threshold a probability is unsure, so that the judge is asked again."""
    samples: int = 1
    """How many verdicts are asked for at most where the first is unsure: near the threshold, or still contradicting
    itself after that was pointed out. More than half must pass, and the mean of their probabilities must reach the
    threshold. A temperature above 0 makes them differ."""
    escalate_to: ChatClientLike | None = None
    """Who is asked where the verdict is unsure still; its boolean decides. It is not sent `chat_options.model_id`."""
    verdict_fields: Collection[VerdictField] = ()
    """What the verdict holds besides: `"reasoning"` and `"score"` are recorded, `"impossible"` ends the run. A
    `JudgeVerdict` of yours that has such fields, as the `response_format`, does the same."""
    ask_again_on_contradiction: bool = False
    """Whether a verdict that contradicts itself is pointed out to the judge, once, and does not pass if that does not
    help. With any of the four options above it is in any case; `False`: it is recorded, and the boolean decides."""
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
        check_judge_options(self)
        check_flags(self, "ask_again_on_contradiction")
        if isinstance(self.criteria, str):
            raise TypeError("criteria must be a sequence of str, not one str")
        for criterion in self.criteria or ():
            if not isinstance(criterion, str):  # pyright: ignore[reportUnnecessaryIsInstance]
                raise TypeError(f"criteria must hold str, not {type(criterion).__name__}")
        check_fields(self.verdict_fields)
        check_confidence(self.confidence_threshold, self.confidence_margin, self.samples)
        self._check_design()

    def _check_design(self) -> None:
        if self.design not in JUDGE_DESIGNS:
            raise ConfigurationError(f"design must be one of {', '.join(JUDGE_DESIGNS)}, not {self.design!r}")
        if self.design == "verdict":
            return
        if self.verdict_fields or self.samples > 1 or self.escalate_to is not None or self.ask_again_on_contradiction:
            raise ConfigurationError(
                "verdict_fields, samples, escalate_to and ask_again_on_contradiction are for the design 'verdict' alone"
            )
        if self.instructions is not None or (self.chat_options and self.chat_options.response_format is not None):
            raise ConfigurationError("instructions and a response_format are for the design 'verdict' alone")
        if self.judge_sees == "conversation":
            raise ConfigurationError("the design 'requirements' looks at the response or its messages alone")


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

{reply_instructions()}"""

    DEFAULT_FEEDBACK_MESSAGE_TEMPLATE: ClassVar[str] = f"""\
Your last response does not fully address the original request yet. What is missing or wrong:

{GAP_ANALYSIS_PLACEHOLDER}

Please go on and deliver the complete answer."""

    def __init__(self, judge_client: ChatClientLike, options: AIJudgeLoopEvaluatorOptions | None = None) -> None:
        options = options or AIJudgeLoopEvaluatorOptions()
        given = options.instructions
        self.judge_client = as_chat_client(judge_client, name="judge_client")
        self.options = options
        asked = options.chat_options or ChatOptions()
        further = further_names(options.verdict_fields, asked.response_format)
        default = self.DEFAULT_INSTRUCTIONS.replace(reply_instructions(), reply_instructions(further))
        instructions = default if given is None else given
        self._closing = closing(further)
        self._system = ChatMessage(ChatRole.SYSTEM, render_instructions(instructions, options.criteria or ()))
        self._instructions = instructions if has_counters(instructions) else None
        template = options.feedback_message_template
        self._template = self.DEFAULT_FEEDBACK_MESSAGE_TEMPLATE if template is None else template
        self._template_counts = has_counters(self._template)
        self._limits = ShownLimits(options.max_answer_chars, options.max_conversation_chars)
        is_cut = options.max_answer_chars is not None
        self._is_plain = options.judge_sees == "response" and not is_cut and self._closing is VERDICT_CLOSING
        self._chat_options = replace(asked, response_format=asked.response_format or verdict_format(further))
        self._by_design = self._designed(further, asked)
        """In place of one call whose boolean decides."""

    def _designed(
        self, further: Collection[str], asked: ChatOptions
    ) -> Callable[[LoopContext], Awaitable[LoopEvaluation]] | None:
        options = self.options
        if options.design == "requirements":
            from agents_loop.judging.requirements.judge import RequirementsJudge  # noqa: PLC0415 - a fifth of the import

            threshold = options.confidence_threshold
            by_requirements = RequirementsJudge(
                self.judge_client, asked, options.on_failure, options.new_nonce, options.criteria or (), threshold
            )
            return partial(self._by_requirements, by_requirements)
        careful = self._careful_judge(further)
        return None if careful is None else partial(self._carefully, careful)

    def _careful_judge(self, further: Collection[str]) -> CarefulJudge | None:
        """Who judges where one reply may not be enough."""
        options = self.options
        stronger = None
        if options.escalate_to is not None:
            stronger = as_chat_client(options.escalate_to, name="escalate_to")
        threshold, again = options.confidence_threshold, options.ask_again_on_contradiction
        if not (further or again or threshold is not None or options.samples > 1 or stronger is not None):
            return None
        from agents_loop.judging.careful import CarefulJudge  # noqa: PLC0415 - most judges need none

        return CarefulJudge(
            client=self.judge_client,
            chat_options=self._chat_options,
            policy=options.on_failure,
            names=further,
            threshold=threshold,
            margin=options.confidence_margin,
            samples=options.samples,
            stronger=stronger,
        )

    def model_calls(self) -> Sequence[tuple[ChatClient, ChatOptions | None]]:
        """The judge's."""
        return [(self.judge_client, self._chat_options)]

    def build_messages(self, context: LoopContext) -> list[ChatMessage]:
        """What the judge is sent: a system and a user message. No model is called.

        By requirements, it is what a run's first call is sent: to list what the request demands.
        """
        if self.options.design == "requirements":
            from agents_loop.judging.requirements.demands import listing_messages  # noqa: PLC0415 - as in `_designed`

            return listing_messages(request_text(context.initial_messages), self.options.new_nonce)
        return self._messages(context, self._limits)

    def _messages(self, context: LoopContext, limits: ShownLimits) -> list[ChatMessage]:
        options = self.options
        system = self._system
        if self._instructions is not None:
            rendered = render_instructions(self._instructions, options.criteria or (), counters_of(context))
            system = ChatMessage(ChatRole.SYSTEM, rendered)
        if self._is_plain and limits is self._limits and not context.evidence:
            return [system, plain_message(context.initial_messages, context.last_response, options.new_nonce)]
        return [system, user_message(context, options, limits, closing=self._closing)]

    async def evaluate(self, context: LoopContext) -> LoopEvaluation:
        """Ask the judge about the latest response.

        Raises:
            JudgeFailedError: The judge's reply was cut off, refused or filtered, and the policy is to raise.
        """
        if self._by_design is not None:
            return await self._by_design(context)
        reading = await ask(
            self.judge_client,
            self.build_messages(context),
            self._chat_options,
            self.options.on_failure,
            context,
            _read,
            shorter_prompts(self._messages, self._limits, context),
        )
        if isinstance(reading, NoVerdict):
            return reading.evaluation()
        if reading.answered:
            return LoopEvaluation.stop(details=_details(reading))
        return LoopEvaluation.continue_(self._feedback(reading.gap, context), details=_details(reading))

    async def _carefully(self, judge: CarefulJudge, context: LoopContext) -> LoopEvaluation:
        shorter = shorter_prompts(self._messages, self._limits, context)

        def prompt(times: int) -> list[ChatMessage] | None:
            return shorter(times) if times else self.build_messages(context)

        outcome = await judge.judge(prompt, context)
        if isinstance(outcome, NoVerdict):
            return outcome.evaluation()
        if outcome.impossible is not None:
            return LoopEvaluation.abort(outcome.impossible, score=outcome.score, details=outcome.details)
        if outcome.answered:
            return LoopEvaluation.stop(score=outcome.score, details=outcome.details)
        feedback = self._feedback(outcome.gap, context)
        return LoopEvaluation.continue_(feedback, score=outcome.score, details=outcome.details)

    async def _by_requirements(self, judge: RequirementsJudge, context: LoopContext) -> LoopEvaluation:
        opinion = await judge.judge(request_text(context.initial_messages), partial(self._answer, context), context)
        if isinstance(opinion, NoVerdict):
            return opinion.evaluation()
        if opinion.answered:
            return LoopEvaluation.stop(score=opinion.score, details=opinion.details)
        if not opinion.gap:
            note = "the judge gave no readable word on any demand that is not known to be met"
            details: JsonValue = {**opinion.details, NO_VERDICT: str(FailureCause.UNREADABLE)}
            return LoopEvaluation.continue_(note=note, details=details)
        return LoopEvaluation.continue_(
            self._feedback(opinion.gap, context), score=opinion.score, details=opinion.details
        )

    def _answer(self, context: LoopContext, times: int) -> list[Piece] | None:
        """What is judged, cut for the how manieth time."""
        limits = self._limits if times == 0 else tighter(self._limits, context, times)
        if limits is None:
            return None
        return answer_pieces(
            context.last_response, all_messages=self.options.judge_sees == "messages", most=limits.answer
        )

    def _feedback(self, gap: str, context: LoopContext) -> str:
        heard = screened(gap, self.options.feedback_filter)
        if not self._template_counts:
            return self._template.replace(self.GAP_ANALYSIS_PLACEHOLDER, heard)
        return fill(self._template, {self.GAP_ANALYSIS_PLACEHOLDER: heard, **counters_of(context)})


def _read(response: ChatResponse) -> VerdictReading:
    return read_reply(verdict_text(response))


def _details(reading: VerdictReading) -> dict[str, JsonValue]:
    details: dict[str, JsonValue] = {
        "answered": reading.answered,
        "gapAnalysis": reading.gap,
        "readable": reading.readable,
    }
    if reading.answered and reading.fields is not None:
        from agents_loop.judging.contradictions import contradiction_in  # noqa: PLC0415 - its patterns are large

        said = contradiction_in(True, reading.fields)  # noqa: FBT003 - the verdict itself
        if said is not None:
            details["contradiction"] = said
    return details
