"""An evaluator whose judge decides by calling a function."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import ClassVar, Final, cast

from agents_loop.adapting import ChatClientLike, as_chat_client
from agents_loop.chat_client import ChatClient, ChatOptions
from agents_loop.errors import ConfigurationError
from agents_loop.judging.asking import NoVerdict, ask
from agents_loop.judging.feedback import FeedbackFilter, screen_feedback, screened
from agents_loop.judging.fences import draw_nonce
from agents_loop.judging.function_calls import JudgeFunction, offered, read_calls
from agents_loop.judging.judge_options import check_judge_options
from agents_loop.judging.policy import JudgeFailurePolicy
from agents_loop.judging.prompt import (
    CRITERIA_PLACEHOLDER,
    JudgeSees,
    counters_of,
    render_instructions,
)
from agents_loop.judging.trimming import ShownLimits, shorter_prompts
from agents_loop.judging.user_message import user_message
from agents_loop.judging.verdict import UNKNOWN_GAP
from agents_loop.loop.context import LoopContext
from agents_loop.loop.evaluation import LoopEvaluation
from agents_loop.loop.evaluator import LoopEvaluator
from agents_loop.messages import ChatMessage, ChatRole, JsonValue
from agents_loop.templates import fill

CONTINUE_FUNCTION: Final = JudgeFunction(
    "continue",
    "Something that the request asks for is still missing or weak in the answer.",
    "question",
    "One short question or task whose answer brings the work closer to the goal.",
    is_required=True,
)
ANSWERED_FUNCTION: Final = JudgeFunction(
    "answered",
    "The answer has everything that the request asks for.",
    "summary",
    "Why nothing is missing, in one or two sentences.",
)
DEFAULT_FALLBACK_QUESTION: Final = (
    "Look at the weakest point of your last answer: what exactly supports it, and what would make it stronger? "
    "Give the whole answer again with that put right."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class FunctionCallLoopEvaluatorOptions:
    """How a judge that calls functions is asked, and what the agent hears.

    Raises:
        TypeError: An option is not of its type; `criteria` is a str, or holds something else than str.
        ConfigurationError: The two functions have one name; `fallback_question` is blank; `chat_options` holds tools or
            a `response_format`; `judge_sees` is unknown; a limit is less than 200.
    """

    continue_function: JudgeFunction = CONTINUE_FUNCTION
    """What the judge calls to ask for more; its argument is what the agent hears next."""
    answered_function: JudgeFunction = ANSWERED_FUNCTION
    """What it calls to ask for no more; its argument is recorded."""
    instructions: str | None = None
    """The system message: a template in which `{continue}` and `{answered}` are replaced by the functions' names,
    `{criteria}` by the criteria, and `{iteration}` and `{max_iterations}` by their numbers. `None`:
    `DEFAULT_INSTRUCTIONS`."""
    criteria: Sequence[str] | None = None
    """What a response must meet besides the request; blank ones are skipped."""
    fallback_question: str = DEFAULT_FALLBACK_QUESTION
    """What the agent hears where the judge asks for more and gives no question: no iteration is spent on nothing."""
    feedback_message_template: str | None = None
    """The feedback: a template in which `{question}` is replaced, and the two numbers as in the instructions. `None`:
    the question alone."""
    feedback_filter: FeedbackFilter | None = screen_feedback
    """What of the judge's words the agent hears. `None`: all of it."""
    judge_sees: JudgeSees = "response"
    """The answer alone; `"messages"`: all messages of the response, with tool calls and results; `"conversation"`:
    what was said in the run before, too."""
    max_answer_chars: int | None = None
    """How many characters of the response the judge sees at most: its head and tail. `None`: all. The request is never
    cut."""
    max_conversation_chars: int | None = None
    """The same for what was said before the response, where the judge sees that."""
    chat_options: ChatOptions | None = None
    """Asked of every call of the judge, such as `additional_properties={"tool_choice": "required"}`."""
    on_failure: JudgeFailurePolicy = field(default_factory=JudgeFailurePolicy)
    """What happens when the judge gives no verdict. A reply without a call, with a call of something else or with
    arguments that are no JSON object is unreadable."""
    new_nonce: Callable[[], str] = draw_nonce
    """Names the fences: unguessable in use, fixed in a snapshot test."""

    def __post_init__(self) -> None:
        check_judge_options(self)
        for name in ("continue_function", "answered_function"):
            if not isinstance(getattr(self, name), JudgeFunction):
                raise TypeError(f"{name} must be a JudgeFunction, not {getattr(self, name)!r}")
        if self.continue_function.name == self.answered_function.name:
            raise ConfigurationError(f"the two functions must have two names, not both {self.answered_function.name!r}")
        if not isinstance(self.fallback_question, str):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise TypeError(f"fallback_question must be a str, not {self.fallback_question!r}")
        if not self.fallback_question.strip():
            raise ConfigurationError("fallback_question must not be blank: it is what the agent hears")
        criteria: object = self.criteria
        if isinstance(criteria, str) or any(
            not isinstance(each, str) for each in cast("tuple[object]", criteria or ())
        ):
            raise TypeError(f"criteria must be a sequence of str, not {criteria!r}")
        if self.chat_options is not None and self.chat_options.response_format is not None:
            raise ConfigurationError("chat_options must hold no response_format: the judge answers with a call")


class FunctionCallLoopEvaluator(LoopEvaluator):
    """Asks a judge that decides by calling one of two functions: `continue(question)` or `answered(summary)`.

    The question is what the agent hears next, so the judge leads the conversation. The functions are offered and never
    run; the judge has no other tools, no session and no middleware. What the agent wrote is data to it. Only a reply
    that calls `answered` and nothing else is a pass. Where both are called, the run goes on. The judge sees the request
    and the answer, and its words reach the agent: mind both where either is confidential or untrusted.

    Args:
        judge_client: The model that judges: a `ChatClient`, or whatever `as_chat_client` makes one of. It must support
            function calls.
        options: How it is asked.

    Raises:
        TypeError: The client is `None` or nothing that is known.
    """

    CRITERIA_PLACEHOLDER: ClassVar[str] = CRITERIA_PLACEHOLDER
    CONTINUE_PLACEHOLDER: ClassVar[str] = "{continue}"
    ANSWERED_PLACEHOLDER: ClassVar[str] = "{answered}"
    QUESTION_PLACEHOLDER: ClassVar[str] = "{question}"

    DEFAULT_INSTRUCTIONS: ClassVar[str] = f"""\
You review the work of an agent, which has been given a request. You do not do the work yourself.

Compare the agent's latest response with everything that the request asks for, and decide by calling one function:
- {CONTINUE_PLACEHOLDER}: something is missing, weak or not supported. Ask for one thing, the one that matters most.
- {ANSWERED_PLACEHOLDER}: everything is there, and more questions would not make it better.

Call exactly one of them, and write nothing else. In doubt, call {CONTINUE_PLACEHOLDER}.{CRITERIA_PLACEHOLDER}"""

    DEFAULT_FEEDBACK_MESSAGE_TEMPLATE: ClassVar[str] = QUESTION_PLACEHOLDER

    def __init__(self, judge_client: ChatClientLike, options: FunctionCallLoopEvaluatorOptions | None = None) -> None:
        options = options or FunctionCallLoopEvaluatorOptions()
        self.judge_client = as_chat_client(judge_client, name="judge_client")
        self.options = options
        self._instructions = self.DEFAULT_INSTRUCTIONS if options.instructions is None else options.instructions
        template = options.feedback_message_template
        self._template = self.DEFAULT_FEEDBACK_MESSAGE_TEMPLATE if template is None else template
        self._limits = ShownLimits(options.max_answer_chars, options.max_conversation_chars)
        functions = offered([options.continue_function, options.answered_function])
        self._chat_options = replace(options.chat_options or ChatOptions(), tools=functions)
        names = f"{options.continue_function.name} or {options.answered_function.name}"
        self._closing = f"Decide now by calling {names}, and write nothing else."

    def model_calls(self) -> Sequence[tuple[ChatClient, ChatOptions | None]]:
        """The judge's."""
        return [(self.judge_client, self._chat_options)]

    def build_messages(self, context: LoopContext) -> list[ChatMessage]:
        """What the judge is sent: a system and a user message. No model is called."""
        return self._messages(context, self._limits)

    def _messages(self, context: LoopContext, limits: ShownLimits) -> list[ChatMessage]:
        options = self.options
        names = {
            self.CONTINUE_PLACEHOLDER: options.continue_function.name,
            self.ANSWERED_PLACEHOLDER: options.answered_function.name,
        }
        rendered = render_instructions(self._instructions, options.criteria or (), {**names, **counters_of(context)})
        shown = user_message(context, options, limits, closing=self._closing)
        return [ChatMessage(ChatRole.SYSTEM, rendered), shown]

    async def evaluate(self, context: LoopContext) -> LoopEvaluation:
        """Ask the judge about the latest response.

        Raises:
            JudgeFailedError: The judge gave no verdict, and the policy is to raise.
        """
        options = self.options
        reading = await ask(
            self.judge_client,
            self._messages(context, self._limits),
            self._chat_options,
            options.on_failure,
            context,
            partial(read_calls, goes_on=options.continue_function, passes=options.answered_function),
            shorter_prompts(self._messages, self._limits, context),
        )
        if isinstance(reading, NoVerdict):
            return reading.evaluation()
        details: dict[str, JsonValue] = {
            "function": reading.called,
            "arguments": reading.arguments,
            "readable": reading.readable,
        }
        if reading.called == options.answered_function.name:
            return LoopEvaluation.stop(details=details)
        if not reading.readable:
            heard = self._feedback(reading.text, context) if reading.text else None
            return LoopEvaluation.continue_(heard, note=f"the judge gave no verdict: {reading.why}", details=details)
        return LoopEvaluation.continue_(self._feedback(reading.text, context), details=details)

    def _feedback(self, question: str, context: LoopContext) -> str:
        heard = screened(question, self.options.feedback_filter).strip() if question else ""
        is_question = heard not in ("", UNKNOWN_GAP)  # a filter may have left nothing of it
        values = {self.QUESTION_PLACEHOLDER: heard if is_question else self.options.fallback_question}
        return fill(self._template, {**values, **counters_of(context)})
