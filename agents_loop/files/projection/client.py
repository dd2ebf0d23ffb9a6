"""A chat client that calls nobody, and writes down what would have been sent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, cast

from agents_loop.chat_client import ChatClient, ChatOptions, ChatResponse, FinishReason
from agents_loop.files.current_node import NODE
from agents_loop.files.projection.answers import projected_json, projected_text
from agents_loop.files.projection.tokens import estimated_tokens, has_files, tokens_of_messages, tokens_of_tools
from agents_loop.ids import new_id
from agents_loop.messages import ChatMessage, ChatRole, FunctionCallContent, UsageDetails
from agents_loop.metering.meter import PHASE

MOST_CALLS: Final = 10_000
"""Where a projection gives up: a flow that never ends."""


class TooManyCallsError(Exception):
    """A projection came to `MOST_CALLS`."""


@dataclass(frozen=True, slots=True)
class CountedCall:
    """A call that would have been made."""

    who: str
    node: str | None
    iteration: int | None
    model: str
    tokens_in: int
    tokens_out: int | None


@dataclass(slots=True)
class CallCounter:
    """The calls of one projection, of all its models."""

    calls: list[CountedCall] = field(default_factory=list[CountedCall])
    asks_judges: bool = False
    """Whether there are evaluators that may ask more than once for a verdict."""
    offers_functions: bool = False
    """Whether a model is to choose among functions."""
    offers_tools: bool = False
    """Whether a model may call code, which is not called here."""
    sends_files: bool = False
    leaves_out_code: bool = False
    """Whether there are evaluators that are not asked."""
    skipped_nodes: list[str] = field(default_factory=list[str])
    """Whose condition did not hold."""


class ProjectingChatClient(ChatClient):
    """Answers without a model. What may be called as a function is: the first one, once.

    An answer is as long as its call allows, so that the prompts that hold it are counted at their longest.

    Args:
        model: The model's name in the file.
        counter: Where calls are written down.
    """

    def __init__(self, model: str, counter: CallCounter) -> None:
        self.model_id = model
        self._counter = counter

    async def get_response(self, messages: Sequence[ChatMessage], options: ChatOptions | None = None) -> ChatResponse:
        """Count the call.

        Raises:
            TooManyCallsError: There are more than `MOST_CALLS`.
        """
        asked, counter = options or ChatOptions(), self._counter
        if len(counter.calls) >= MOST_CALLS:
            raise TooManyCallsError(f"more than {MOST_CALLS:,} calls")
        phase = PHASE.get()
        tokens_in = tokens_of_messages(messages) + tokens_of_tools(asked.tools)
        self._counter.calls.append(
            CountedCall(
                "agent" if phase is None else phase.role,
                NODE.get(),
                None if phase is None or not phase.iteration else phase.iteration,
                self.model_id,
                tokens_in,
                asked.max_output_tokens,
            )
        )
        counter.sends_files = counter.sends_files or has_files(messages)
        message = self._answer(asked, len(counter.calls))
        return ChatResponse(
            [message],
            model_id=self.model_id,
            finish_reason=FinishReason.STOP if message.text else FinishReason.TOOL_CALLS,
            usage=UsageDetails(tokens_in, _tokens_out(asked, message)),
        )

    def _answer(self, asked: ChatOptions, number: int) -> ChatMessage:
        function = _first_function(asked.tools)
        if function is not None:
            self._counter.offers_functions = True
            return ChatMessage(ChatRole.ASSISTANT, [_call_of(function)], message_id=new_id())
        self._counter.offers_tools = self._counter.offers_tools or bool(asked.tools)
        text = projected_text(number, asked.max_output_tokens)
        if asked.response_format is not None and asked.response_format != "text":
            text = projected_json(asked.response_format, text)
        return ChatMessage(ChatRole.ASSISTANT, text, message_id=new_id())


def _tokens_out(asked: ChatOptions, message: ChatMessage) -> int:
    return asked.max_output_tokens or estimated_tokens(message.text)


def _first_function(tools: Sequence[Any]) -> Mapping[str, Any] | None:
    """The first of what a model may only choose among; what has code behind it is never called."""
    described = [cast("Mapping[str, Any]", tool) for tool in tools if isinstance(tool, Mapping)]
    return described[0] if described and len(described) == len(tools) else None


def _call_of(function: Mapping[str, Any]) -> FunctionCallContent:
    inner = cast("dict[str, Any]", function.get("function", function))
    parameters = cast("dict[str, dict[str, Any]] | None", inner.get("parameters"))
    names = list((parameters or {}).get("properties") or ())
    return FunctionCallContent("call-1", str(inner.get("name")), dict.fromkeys(names[:1], "projected"))
