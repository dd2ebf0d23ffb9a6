"""The agent of a loop file: each iteration is one rendered prompt, and one call."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Generator, Mapping
from contextlib import aclosing, contextmanager
from typing import Any, cast

from agents_loop.agent import (
    AgentResponse,
    AgentResponseUpdate,
    AgentRunOptions,
    AgentSession,
    AIAgent,
)
from agents_loop.chat_client import ChatClient, ChatOptions, FinishReason
from agents_loop.errors import AgentsLoopError, BudgetExceededError
from agents_loop.failures import FailureCause, cause_of
from agents_loop.files.prompts import PromptTemplate
from agents_loop.loop.bad_response import bad_response_of
from agents_loop.messages import (
    ChatMessage,
    ChatRole,
    FunctionCallContent,
    JsonValue,
    UsageContent,
    error_text,
    join_text,
    sum_usage,
)

_STATE = "prompted_generator"


class NoCandidateError(AgentsLoopError):
    """The generator's model refused, or gave no text: there is nothing to evaluate.

    Args:
        cause: `"refusal"`, `"content_filter"`, `"length"`, or `"empty"`.
        detail: What to do, or what the provider said.
        who: Whose model it is.
    """

    def __init__(self, cause: str, detail: str, who: str = "generator") -> None:
        self.cause = cause
        self.detail = detail
        self.who = who
        super().__init__(f"the {who} gave no candidate ({cause}): {detail}")

    def __reduce__(self) -> tuple[type[NoCandidateError], tuple[str, str, str]]:
        return type(self), (self.cause, self.detail, self.who)


class PromptedGenerator(AIAgent):
    """Calls a model with a prompt that is rendered anew in each iteration; the model sees nothing else.

    The first run of a session sends the messages it is given, which are to be the first prompt, rendered. In each
    later one the incoming message is the evaluator's feedback: the prompt is rendered with `iteration`,
    `previous_output` and `evaluator_feedback`. The session remembers the iteration and the last candidate, and is
    for one run of the loop. A text that was cut off is a candidate; a refusal is none. An empty reply is asked for once
    more within the iteration, by the same prompt: the format has no place for another word, and its `max_iterations`
    counts rounds of generator and evaluator.

    Args:
        chat_client: The model.
        prompt: The prompt.
        inputs: The inputs' values.
        options: Asked of every call.
        name: The agent's name.
        part: The key in the file under which it stands; empty for a node that is no more than that.
    """

    def __init__(
        self,
        chat_client: ChatClient,
        prompt: PromptTemplate,
        inputs: Mapping[str, Any],
        *,
        options: ChatOptions | None = None,
        name: str | None = None,
        part: str = "generator",
    ) -> None:
        self.chat_client = chat_client
        self.prompt = prompt
        self.inputs = dict(inputs)
        self.options = options or ChatOptions()
        self.name = name
        self.part = part

    async def run_core(
        self, messages: list[ChatMessage], *, session: AgentSession | None, options: AgentRunOptions | None
    ) -> AgentResponse:
        """One iteration: one call.

        Raises:
            PromptError: The prompt can't be rendered.
            NoCandidateError: The model refused, or gave no text.
        """
        sent, asked = self._messages(messages, session), self._chat_options(options)
        response = AgentResponse([], agent_id=self.id).take(await self.chat_client.get_response(sent, asked))
        if bad_response_of(response) == "empty":
            with _empty_stands():
                again = AgentResponse([], agent_id=self.id).take(await self.chat_client.get_response(sent, asked))
                again.usage = sum_usage([response.usage, again.usage])
                response = again
        self._remember(session, response)
        return response

    async def run_core_streaming(
        self, messages: list[ChatMessage], *, session: AgentSession | None, options: AgentRunOptions | None
    ) -> AsyncIterator[AgentResponseUpdate]:
        """The same, in pieces."""
        pieces: list[AgentResponseUpdate] = []
        sent, asked = self._messages(messages, session), self._chat_options(options)
        has_shown = False
        async with aclosing(self._streamed(sent, asked)) as stream:
            async for update in stream:
                pieces.append(update)
                if has_shown:
                    yield update
                elif update.text.strip():
                    has_shown = True
                    for held in pieces:
                        yield held
        if not has_shown:
            is_empty = bad_response_of(AgentResponse.from_updates(pieces)) == "empty"
            for held in _usage_of(pieces) if is_empty else pieces:
                yield held
            if is_empty:
                again: list[AgentResponseUpdate] = []
                with _empty_stands():
                    async with aclosing(self._streamed(sent, asked)) as stream:
                        async for update in stream:
                            again.append(update)
                            yield update
                pieces = again or pieces
        self._remember(session, AgentResponse.from_updates(pieces))

    async def _streamed(self, sent: list[ChatMessage], asked: ChatOptions) -> AsyncGenerator[AgentResponseUpdate, None]:
        stream = self.chat_client.get_streaming_response(sent, asked)
        async with aclosing(cast("AsyncGenerator[Any, None]", stream)):
            async for piece in stream:
                yield AgentResponseUpdate.from_chat(piece, agent_id=self.id)

    def _messages(self, messages: list[ChatMessage], session: AgentSession | None) -> list[ChatMessage]:
        state = _state(session)
        if not state:
            return messages
        rendered = render_prompt(
            self.prompt,
            self.inputs,
            iteration=state["iteration"] + 1,
            previous_output=state["output"],
            evaluator_feedback=join_text(messages),
        )
        return [ChatMessage(ChatRole.USER, rendered)]

    def _remember(self, session: AgentSession | None, response: AgentResponse) -> None:
        text = response.text
        self._require_candidate(response, text)
        if session is not None:
            number = _state(session).get("iteration", 0) + 1
            session.state[_STATE] = {"iteration": number, "output": text}

    def _require_candidate(self, response: AgentResponse, text: str) -> None:
        reason = response.finish_reason
        if text.strip() and reason != FinishReason.REFUSAL:
            return
        said, who, at = error_text(response.messages), self.part or "agent", f"{self.part}.".lstrip(".")
        change = f"ask for text in {at}prompt, or name another {at}model"
        match reason:
            case FinishReason.REFUSAL | FinishReason.CONTENT_FILTER:
                raise NoCandidateError(str(reason), said or f"the provider gives no reason: {change}", who)
            case FinishReason.LENGTH:
                cut = f"the tokens ran out before any text: raise {at}max_output_tokens"
                raise NoCandidateError("length", cut, who)
            case _:
                raise NoCandidateError("empty", said or f"{_why_empty(response)}: {change}", who)

    def _chat_options(self, options: AgentRunOptions | None) -> ChatOptions:
        asked = None if options is None else options.chat_options
        return self.options if asked is None else asked.over(self.options)


def render_prompt(
    prompt: PromptTemplate,
    inputs: Mapping[str, Any],
    *,
    iteration: int = 1,
    previous_output: str = "",
    evaluator_feedback: str = "",
) -> str:
    """The generator's prompt of an iteration.

    Raises:
        PromptError: It can't be rendered.
    """
    loop = {"iteration": iteration, "previous_output": previous_output, "evaluator_feedback": evaluator_feedback}
    return prompt.render({**inputs, **loop})


def _usage_of(pieces: list[AgentResponseUpdate]) -> list[AgentResponseUpdate]:
    """What a stream has cost of which nothing else is kept."""
    used = [content for piece in pieces for content in piece.contents if isinstance(content, UsageContent)]
    return [AgentResponseUpdate(contents=used)] if used else []


@contextmanager
def _empty_stands() -> Generator[None, None, None]:
    """Where asking again fails for a reason of which nothing is known, the empty reply is what is told of."""
    try:
        yield
    except BudgetExceededError:
        raise
    except Exception as error:
        if cause_of(error) != FailureCause.OTHER:
            raise


def _state(session: AgentSession | None) -> dict[str, JsonValue]:
    return cast("dict[str, JsonValue]", session.state.get(_STATE, {})) if session else {}


def _why_empty(response: AgentResponse) -> str:
    contents = [content for message in response.messages for content in message.contents]
    tools = dict.fromkeys([content.name for content in contents if isinstance(content, FunctionCallContent)])
    if tools:
        return f"the model calls {', '.join(map(repr, tools))}, but a loop file has no tools"
    why = response.finish_reason
    return "the reply has no text" + (f" (finish_reason {str(why)!r})" if why else "")
