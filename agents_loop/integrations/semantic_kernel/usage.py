"""What Semantic Kernel's messages say of tokens: it stands in their metadata, under `usage`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from semantic_kernel.contents.chat_message_content import ChatMessageContent
from semantic_kernel.contents.streaming_chat_message_content import StreamingChatMessageContent

from agents_loop.messages import UsageDetails, sum_usage

_ADDITIONAL_COUNTS = {
    (("prompt_tokens_details", "input_tokens_details"), "audio_tokens"): "InputTokenDetails.AudioTokenCount",
    (("completion_tokens_details", "output_tokens_details"), "audio_tokens"): "OutputTokenDetails.AudioTokenCount",
    (
        ("completion_tokens_details",),
        "accepted_prediction_tokens",
    ): "OutputTokenDetails.AcceptedPredictionTokenCount",
    (
        ("completion_tokens_details",),
        "rejected_prediction_tokens",
    ): "OutputTokenDetails.RejectedPredictionTokenCount",
}
"""The ancestor's names for what `UsageDetails` has no field for."""


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
        usage = message.metadata.get("usage")
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
    more = {name: _count(usage, (key,), owners) for (owners, key), name in _ADDITIONAL_COUNTS.items()}
    details = UsageDetails(
        _count(usage, ("prompt_tokens", "input_tokens")),
        _count(usage, ("completion_tokens", "output_tokens")),
        _count(usage, ("total_tokens",)),
        _count(usage, ("cached_tokens",), ("prompt_tokens_details", "input_tokens_details")),
        _count(usage, ("reasoning_tokens",), ("completion_tokens_details", "output_tokens_details")),
        {name: count for name, count in more.items() if count is not None} or None,
    )
    sent, received = details.input_token_count, details.output_token_count
    if details.total_token_count is None and sent is not None and received is not None:
        details.total_token_count = sent + received
    return None if details == UsageDetails() else details


def _count(usage: Any, names: tuple[str, ...], owners: tuple[str, ...] = ()) -> int | None:
    holders = [_field(usage, owner) for owner in owners] if owners else [usage]
    for holder in holders:
        for name in names:
            count = _field(holder, name)
            if isinstance(count, int) and not isinstance(count, bool):
                return count
    return None


def _field(holder: Any, name: str) -> Any:
    if isinstance(holder, Mapping):
        return cast("Mapping[str, Any]", holder).get(name)
    return getattr(holder, name, None)
