"""What Semantic Kernel's messages say of tokens: it stands in their metadata, under `usage`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from semantic_kernel.contents.chat_message_content import ChatMessageContent
from semantic_kernel.contents.streaming_chat_message_content import StreamingChatMessageContent

from agents_loop.messages import UsageDetails, sum_usage

_INPUT_DETAILS = ("prompt_tokens_details", "input_tokens_details")
_OUTPUT_DETAILS = ("completion_tokens_details", "output_tokens_details")
_NOTHING: Mapping[str, Any] = {}


class UsageCount:
    """Sums the usage of a run's messages, each model call once.

    The same usage stands in several messages: a tool call's in the chunk that brought it and in the whole message that
    is put together of the chunks. Of the chunks of one call the last that reports counts.
    """

    def __init__(self) -> None:
        self._by_call: dict[object, UsageDetails] = {}
        self._kept: list[Any] = []

    def take(self, message: ChatMessageContent) -> None:
        """Note what a message or a chunk reports."""
        metadata = message.metadata
        usage = metadata.get("usage") if metadata else None
        if usage is None:
            return
        details = read_usage(usage)
        if details is not None:
            self._kept.append(usage)  # so that no other object gets its identity
            self._by_call[_call_of(message, usage)] = details

    @property
    def total(self) -> UsageDetails | None:
        """The sum so far; `None` when nothing was reported."""
        return sum_usage(self._by_call.values())


def _call_of(message: ChatMessageContent, usage: Any) -> object:
    """What tells the model calls of a run apart."""
    step = message.metadata.get("step_id")
    if step is not None:
        return ("step", step)
    if isinstance(message, StreamingChatMessageContent):
        return ("attempt", message.function_invoke_attempt)
    if isinstance(usage, Mapping):  # a new dict in each message of a response
        return ("response", message.metadata.get("id") or id(cast("object", usage)))
    return ("object", id(usage))


def read_usage(usage: Any) -> UsageDetails | None:
    """The counters under any of the names that connectors give them; those not reported stay `None`.

    Semantic Kernel drops the total that OpenAI reports; it is the sum of the other two.
    """
    if usage is None:
        return None
    fields = _fields(usage)
    sent, received = _fields_of(fields, _INPUT_DETAILS), _fields_of(fields, _OUTPUT_DETAILS)
    details = UsageDetails(
        _count(fields, "prompt_tokens", "input_tokens"),
        _count(fields, "completion_tokens", "output_tokens"),
        _count(fields, "total_tokens"),
        _count(sent, "cached_tokens"),
        _count(received, "reasoning_tokens"),
        _additional_counts(sent, received) if sent or received else None,
    )
    if details.total_token_count is None and None not in (details.input_token_count, details.output_token_count):
        details.total_token_count = (details.input_token_count or 0) + (details.output_token_count or 0)
    return None if details == UsageDetails() else details


def _additional_counts(sent: Mapping[str, Any], received: Mapping[str, Any]) -> dict[str, int] | None:
    """The ancestor's names for what `UsageDetails` has no field for."""
    counts = {
        "InputTokenDetails.AudioTokenCount": _count(sent, "audio_tokens"),
        "OutputTokenDetails.AudioTokenCount": _count(received, "audio_tokens"),
        "OutputTokenDetails.AcceptedPredictionTokenCount": _count(received, "accepted_prediction_tokens"),
        "OutputTokenDetails.RejectedPredictionTokenCount": _count(received, "rejected_prediction_tokens"),
    }
    return {name: count for name, count in counts.items() if count is not None} or None


def _count(fields: Mapping[str, Any], *names: str) -> int | None:
    for name in names:
        count = fields.get(name)
        if type(count) is int:
            return count
    return None


def _fields_of(fields: Mapping[str, Any], names: tuple[str, ...]) -> Mapping[str, Any]:
    return next((_fields(held) for name in names if (held := fields.get(name)) is not None), _NOTHING)


def _fields(holder: Any) -> Mapping[str, Any]:
    """What a mapping or an object holds, by name; asking pydantic's models for what they lack is slow."""
    if isinstance(holder, dict | Mapping):
        return cast("Mapping[str, Any]", holder)
    return getattr(holder, "__dict__", _NOTHING)
