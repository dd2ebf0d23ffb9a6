"""What the API replied, as a `ChatResponse`.

The SDK does not validate replies: what a server leaves out is missing or `None`, whatever the types say. So
fields are read with a default.
"""

from __future__ import annotations

from typing import Any, cast

from agents_loop.call_json import read_arguments
from agents_loop.chat_client import ChatResponse, FinishReason
from agents_loop.ids import new_id
from agents_loop.messages import (
    ChatMessage,
    ChatRole,
    Content,
    ErrorContent,
    FunctionCallContent,
    JsonValue,
    TextContent,
    TextReasoningContent,
    UsageDetails,
)

_FILTERED = "The provider's content filter withheld the answer."
_ADDITIONAL_COUNTS = {
    ("prompt_tokens_details", "audio_tokens"): "InputTokenDetails.AudioTokenCount",
    ("completion_tokens_details", "audio_tokens"): "OutputTokenDetails.AudioTokenCount",
    ("completion_tokens_details", "accepted_prediction_tokens"): "OutputTokenDetails.AcceptedPredictionTokenCount",
    ("completion_tokens_details", "rejected_prediction_tokens"): "OutputTokenDetails.RejectedPredictionTokenCount",
}
"""The ancestor's names for what `UsageDetails` has no field for."""


def read_reply(reply: Any) -> ChatResponse | None:
    """The answer in a whole reply, or `None` where there is no message in it."""
    choice = first_choice(reply)
    message = getattr(choice, "message", None)
    if message is None:
        return None
    contents = _contents(message)
    endings, finish_reason = ending(
        getattr(choice, "finish_reason", None),
        getattr(message, "refusal", None),
        is_empty=not contents,
    )
    return ChatResponse(
        [ChatMessage(ChatRole.ASSISTANT, [*contents, *endings], message_id=new_id())],
        response_id=getattr(reply, "id", None),
        model_id=getattr(reply, "model", None),
        finish_reason=finish_reason,
        usage=read_usage(getattr(reply, "usage", None)),
        created_at=read_time(reply),
        additional_properties=log_probabilities(read_log_probabilities(choice)),
    )


def filtered_prompt(said: str, model_id: str) -> ChatResponse:
    """The outcome of a request whose prompt the provider's filter refused to show to the model."""
    return ChatResponse(
        [ChatMessage(ChatRole.ASSISTANT, [filter_content(said)], message_id=new_id())],
        model_id=model_id,
        finish_reason=FinishReason.CONTENT_FILTER,
    )


def filter_content(said: str = _FILTERED) -> ErrorContent:
    """What stands in a message for what a filter withheld."""
    return ErrorContent(said, code="content_filter")


def ending(finish_reason: str | None, refusal: str | None, *, is_empty: bool) -> tuple[list[Content], str | None]:
    """The contents that tell of a refusal or a filter, and why the answer ended."""
    if refusal:
        return [ErrorContent(refusal, code="refusal")], FinishReason.REFUSAL
    if finish_reason == FinishReason.CONTENT_FILTER and is_empty:
        return [filter_content()], finish_reason
    return [], finish_reason


def first_choice(reply: Any) -> Any:
    """The one choice that was asked for, or `None`."""
    choices = getattr(reply, "choices", None)
    return cast("list[Any]", choices)[0] if isinstance(choices, list) and choices else None


def message_text(said: Any) -> str:
    """The text in a message or a delta; some servers write it as a list of parts."""
    content = getattr(said, "content", None)
    if isinstance(content, str):
        return content
    parts = cast("list[Any]", content) if isinstance(content, list) else []
    texts = [cast("dict[str, Any]", part).get("text") for part in parts if isinstance(part, dict)]
    return "".join([text for text in texts if isinstance(text, str)])


def reasoning_text(said: Any) -> str | None:
    """The reasoning in a message or a delta, under either name that servers give it."""
    for name in ("reasoning_content", "reasoning"):
        text = getattr(said, name, None)
        if isinstance(text, str) and text:
            return text
    return None


def function_call(call_id: str | None, name: str | None, arguments: str | None) -> FunctionCallContent:
    """A call with its arguments read, if they are a JSON object; a server that gives no id gets one drawn."""
    return FunctionCallContent(call_id or new_id(), name or "", read_arguments(arguments))


def read_usage(usage: Any) -> UsageDetails | None:
    """The counters the provider reported; those it did not stay `None`."""
    if usage is None:
        return None
    more = {name: _count(usage, *path) for path, name in _ADDITIONAL_COUNTS.items()}
    details = UsageDetails(
        _count(usage, "prompt_tokens"),
        _count(usage, "completion_tokens"),
        _count(usage, "total_tokens"),
        _count(usage, "prompt_tokens_details", "cached_tokens"),
        _count(usage, "completion_tokens_details", "reasoning_tokens"),
        {name: count for name, count in more.items() if count is not None} or None,
    )
    return None if details == UsageDetails() else details


def read_time(reply: Any) -> float | None:
    """When the reply was made, in seconds since the epoch."""
    created = getattr(reply, "created", None)
    return float(created) if isinstance(created, int | float) else None


def read_log_probabilities(choice: Any) -> list[JsonValue]:
    """The tokens' log probabilities as the API gives them; none unless the caller asked for them."""
    tokens = getattr(getattr(choice, "logprobs", None), "content", None)
    return [token.to_dict() for token in tokens or ()]


def log_probabilities(tokens: list[JsonValue]) -> dict[str, JsonValue] | None:
    """Where a response keeps log probabilities."""
    return {"logprobs": tokens} if tokens else None


def _contents(message: Any) -> list[Content]:
    contents: list[Content] = []
    if reasoning := reasoning_text(message):
        contents.append(TextReasoningContent(reasoning))
    if text := message_text(message):
        contents.append(TextContent(text))
    for call in getattr(message, "tool_calls", None) or ():
        function = getattr(call, "function", None)
        name, arguments = getattr(function, "name", None), getattr(function, "arguments", None)
        contents.append(function_call(getattr(call, "id", None), name, arguments))
    return contents


def _count(usage: Any, *path: str) -> int | None:
    for name in path:
        usage = getattr(usage, name, None)
    return usage if isinstance(usage, int) else None
