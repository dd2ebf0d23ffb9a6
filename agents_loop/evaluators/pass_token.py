"""An evaluator whose checker says a pass token, or what is missing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import ClassVar

from agents_loop.adapting import ChatClientLike, as_chat_client
from agents_loop.chat_client import ChatClient, ChatOptions, ChatResponse
from agents_loop.errors import ConfigurationError
from agents_loop.judging.asking import NoVerdict, ask, verdict_text
from agents_loop.judging.feedback import FeedbackFilter, screen_feedback, screened
from agents_loop.judging.fences import draw_nonce
from agents_loop.judging.judge_options import check_judge_options
from agents_loop.judging.pass_token import PassTokenReading, checked_token, read_pass_token
from agents_loop.judging.policy import JudgeFailurePolicy
from agents_loop.judging.prompt import JudgeSees, counters_of, fenced_sources
from agents_loop.judging.sources import Source, Sources, check_sources, find_sources, sources_now
from agents_loop.judging.trimming import ShownLimits, shorter_prompts
from agents_loop.judging.user_message import user_message
from agents_loop.loop.context import LoopContext
from agents_loop.loop.evaluation import LoopEvaluation
from agents_loop.loop.evaluator import LoopEvaluator
from agents_loop.messages import ChatMessage, ChatRole
from agents_loop.numeric import check_count
from agents_loop.templates import fill


@dataclass(frozen=True, slots=True, kw_only=True)
class PassTokenLoopEvaluatorOptions:
    """How a checker is asked, and what the agent hears.

    Raises:
        TypeError: An option is not of its type.
        ConfigurationError: `pass_token` has no letter or digit, or several lines; `max_output_tokens` is less than 1;
            `chat_options` holds tools or a `response_format`; `instructions` hold `{sources}` and there are none;
            `judge_sees` is unknown; a limit is less than 200.
    """

    pass_token: str = "ALL CITATIONS SUPPORTED"  # noqa: S105 - what the checker says is no secret
    """What the checker replies, alone, if nothing is missing."""
    instructions: str | None = None
    """The system message: a template in which `{pass_token}` and `{sources}` are replaced, and `{iteration}` and
    `{max_iterations}` by their numbers. Without `{sources}` in it, they stand in the user message. `None`:
    `DEFAULT_INSTRUCTIONS`."""
    sources: Sources | None = None
    """What the answer is checked against: a text, pairs of a citation and a text, or a callable of the context, sync or
    async, that gives one of these. `None`: the original request, which may hold them."""
    max_output_tokens: int = 200
    """How long the checker's reply may be; a `max_output_tokens` of `chat_options` replaces it. 200 is what the
    published example of the technique takes (gradientascent, "Write and check")."""
    feedback_message_template: str | None = None
    """The feedback: a template in which `{verdict}` is replaced by the checker's words, and the two numbers as in the
    instructions. `None`: `DEFAULT_FEEDBACK_MESSAGE_TEMPLATE`."""
    feedback_filter: FeedbackFilter | None = screen_feedback
    """What of the checker's words the agent hears. `None`: all of it."""
    judge_sees: JudgeSees = "response"
    """The answer alone; `"messages"`: all messages of the response, with tool calls and results; `"conversation"`:
    what was said in the run before, too."""
    max_answer_chars: int | None = None
    """How many characters of the response the checker sees at most: its head and tail. `None`: all. Sources and the
    request are never cut."""
    max_conversation_chars: int | None = None
    """The same for what was said before the response, where the checker sees that."""
    chat_options: ChatOptions | None = None
    """Asked of every call of the checker."""
    on_failure: JudgeFailurePolicy = field(default_factory=JudgeFailurePolicy)
    """What happens when the checker gives no verdict. An empty reply is unreadable."""
    new_nonce: Callable[[], str] = draw_nonce
    """Names the fences: unguessable in use, fixed in a snapshot test."""

    def __post_init__(self) -> None:
        check_judge_options(self)
        object.__setattr__(self, "pass_token", checked_token(self.pass_token))
        check_sources(self.sources)
        check_count("max_output_tokens", self.max_output_tokens)
        if self.chat_options is not None and self.chat_options.response_format is not None:
            raise ConfigurationError("chat_options must hold no response_format: the pass token is a plain text")
        if self.sources is None and self.instructions is not None and "{sources}" in self.instructions:
            raise ConfigurationError("sources must be given: the instructions hold {sources}")


class PassTokenLoopEvaluator(LoopEvaluator):
    """Asks a checker about one fixed criterion: its reply is a pass token and nothing else, or it is the feedback.

    So the code never interprets anything softer than a comparison. The whole reply must be the token; a reply that
    merely holds it, with a "not" before or an "except" after, is no pass, nor is one that is empty, refused or cut off
    (`agents_loop.judging.pass_token`). By default the criterion is that each citation of the answer names one of the
    sources; where that is all, `citation_check` does it without a model. Have other criteria by other instructions: a
    specific one, that two people would apply alike.

    The checker is called directly: no tools, no session, no middleware. The sources and the answer are data to it. Its
    words reach the agent: mind both where either is confidential or untrusted.

    Args:
        checker_client: The model that checks: a `ChatClient`, or whatever `as_chat_client` makes one of.
        options: How it is asked.

    Raises:
        TypeError: The client is `None` or nothing that is known.
    """

    PASS_TOKEN_PLACEHOLDER: ClassVar[str] = "{pass_token}"  # noqa: S105 - a placeholder
    SOURCES_PLACEHOLDER: ClassVar[str] = "{sources}"
    VERDICT_PLACEHOLDER: ClassVar[str] = "{verdict}"

    DEFAULT_INSTRUCTIONS: ClassVar[str] = f"""\
You check the citations of an agent's latest response. You do not answer the question, and you do not rewrite anything.

A citation is the name of a source, such as manual#3. Take the citations of the response one by one, and look for a \
source of that very name among those that you are shown. Whether the response is true or well written is not asked.

If each citation of the response names one of the sources, reply with this line and nothing else:
{PASS_TOKEN_PLACEHOLDER}

Otherwise write one line for each citation that names none of them, and nothing else, as in:
MISSING: manual#4"""

    DEFAULT_FEEDBACK_MESSAGE_TEMPLATE: ClassVar[str] = f"""\
A check of your last answer found this:

{VERDICT_PLACEHOLDER}

Write the whole answer again without these faults. Go by the sources that you were given, and keep the form that was \
asked for."""

    def __init__(self, checker_client: ChatClientLike, options: PassTokenLoopEvaluatorOptions | None = None) -> None:
        options = options or PassTokenLoopEvaluatorOptions()
        self.checker_client = as_chat_client(checker_client, name="checker_client")
        self.options = options
        self._instructions = self.DEFAULT_INSTRUCTIONS if options.instructions is None else options.instructions
        template = options.feedback_message_template
        self._template = self.DEFAULT_FEEDBACK_MESSAGE_TEMPLATE if template is None else template
        self._limits = ShownLimits(options.max_answer_chars, options.max_conversation_chars)
        asked = options.chat_options or ChatOptions()
        room = options.max_output_tokens if asked.max_output_tokens is None else asked.max_output_tokens
        self._chat_options = replace(asked, max_output_tokens=room)
        self._closing = (
            "Check the latest response now. If nothing is wrong, reply with this line alone:\n"
            f"{options.pass_token}\nOtherwise list what is wrong, and don't write that line."
        )

    def model_calls(self) -> Sequence[tuple[ChatClient, ChatOptions | None]]:
        """The checker's."""
        return [(self.checker_client, self._chat_options)]

    def build_messages(self, context: LoopContext) -> list[ChatMessage]:
        """What the checker is sent: a system and a user message. No model is called.

        Raises:
            ConfigurationError: The sources are looked up by an async callable.
        """
        sources = self.options.sources
        return self._messages(None if sources is None else sources_now(sources, context), context, self._limits)

    def _messages(
        self, sources: Sequence[Source] | None, context: LoopContext, limits: ShownLimits
    ) -> list[ChatMessage]:
        options, values = self.options, {self.PASS_TOKEN_PLACEHOLDER: self.options.pass_token, **counters_of(context)}
        if sources is not None and self.SOURCES_PLACEHOLDER in self._instructions:
            values[self.SOURCES_PLACEHOLDER] = fenced_sources(sources, options.new_nonce)
            sources = ()
        shown = user_message(context, options, limits, closing=self._closing, sources=sources)
        return [ChatMessage(ChatRole.SYSTEM, fill(self._instructions, values)), shown]

    async def evaluate(self, context: LoopContext) -> LoopEvaluation:
        """Ask the checker about the latest response.

        Raises:
            JudgeFailedError: The checker gave no verdict, and the policy is to raise.
        """
        given = self.options.sources
        sources = None if given is None else await find_sources(given, context)
        prompt = partial(self._messages, sources)
        reading = await ask(
            self.checker_client,
            prompt(context, self._limits),
            self._chat_options,
            self.options.on_failure,
            context,
            partial(_read, token=self.options.pass_token),
            shorter_prompts(prompt, self._limits, context),
        )
        if isinstance(reading, NoVerdict):
            return reading.evaluation()
        details = {"passes": reading.passes, "verdict": reading.verdict, "readable": reading.readable}
        if reading.passes:
            return LoopEvaluation.stop(details=details)
        if not reading.readable:
            return LoopEvaluation.continue_(note="the checker gave no verdict: unreadable", details=details)
        return LoopEvaluation.continue_(self._feedback(reading.verdict, context), details=details)

    def _feedback(self, verdict: str, context: LoopContext) -> str:
        heard = screened(verdict, self.options.feedback_filter)
        return fill(self._template, {self.VERDICT_PLACEHOLDER: heard, **counters_of(context)})


def _read(response: ChatResponse, *, token: str) -> PassTokenReading:
    return read_pass_token(verdict_text(response), token)
