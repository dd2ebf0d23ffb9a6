"""What the API streams, as `ChatResponseUpdate`s that amount to what it would have replied at once."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from agents_loop.chat_client import ChatResponseUpdate, FinishReason
from agents_loop.clients.chat_completions.response import (
    ending,
    filter_content,
    first_choice,
    function_call,
    log_probabilities,
    message_text,
    read_log_probabilities,
    read_time,
    read_usage,
    reasoning_text,
)
from agents_loop.ids import new_id
from agents_loop.messages import (
    ChatRole,
    Content,
    JsonValue,
    TextContent,
    TextReasoningContent,
    UsageContent,
    UsageDetails,
)


@dataclass(slots=True)
class _Call:
    """A function call whose pieces are still coming."""

    call_id: str | None = None
    name: str | None = None
    arguments: list[str] = field(default_factory=list[str])


class StreamReader:
    """Reads one stream, chunk by chunk.

    Text and reasoning are given on at once. Calls, a refusal and the usage are held back until they are whole:
    some servers repeat the usage so far in each chunk, so the last one is the one that counts.

    Args:
        model_id: The model that was asked; the chunks may name another.
    """

    def __init__(self, model_id: str) -> None:
        self.has_shown = False
        """Whether something of the answer went out, so that trying again would show it twice."""
        self.finish_reason: str | None = None
        self._model_id = model_id
        self._message_id = new_id()
        self._response_id: str | None = None
        self._created_at: float | None = None
        self._usage: UsageDetails | None = None
        self._refusal: list[str] = []
        self._calls: dict[Any, list[_Call]] = {}
        self._log_probabilities: list[JsonValue] = []

    def read(self, chunk: Any) -> ChatResponseUpdate | None:
        """What a chunk adds for a reader to see, if it does."""
        self._response_id = getattr(chunk, "id", None) or self._response_id
        self._model_id = getattr(chunk, "model", None) or self._model_id
        self._created_at = read_time(chunk) or self._created_at
        self._usage = read_usage(getattr(chunk, "usage", None)) or self._usage
        choice = first_choice(chunk)
        if choice is None or getattr(choice, "index", None):  # one choice was asked for; others have an index
            return None
        self.finish_reason = getattr(choice, "finish_reason", None) or self.finish_reason
        self._log_probabilities += read_log_probabilities(choice)
        contents = self._take(getattr(choice, "delta", None))
        if not contents:
            return None
        self.has_shown = True
        return self._update(contents)

    def withheld(self, said: str) -> Iterator[ChatResponseUpdate]:
        """The last updates of a stream that the provider's filter ended."""
        yield self._update([filter_content(said)], finish_reason=FinishReason.CONTENT_FILTER)
        yield from self.usage_so_far()

    def finish(self) -> Iterator[ChatResponseUpdate]:
        """The last updates: what was held back, why the answer ended, and what it cost."""
        calls: list[Content] = [
            function_call(call.call_id, call.name, "".join(call.arguments))
            for calls in self._calls.values()
            for call in calls
        ]
        is_empty = not self.has_shown and not calls
        endings, finish_reason = ending(self.finish_reason, "".join(self._refusal), is_empty=is_empty)
        last = self._update([*calls, *endings], finish_reason=finish_reason)
        last.additional_properties = log_probabilities(self._log_probabilities)
        yield last
        yield from self.usage_so_far()

    def usage_so_far(self) -> Iterator[ChatResponseUpdate]:
        """The usage that was reported, if it was; a broken stream has cost that too."""
        if self._usage is not None:
            yield self._update([UsageContent(self._usage)])

    def _take(self, delta: Any) -> list[Content]:
        contents: list[Content] = []
        if reasoning := reasoning_text(delta):
            contents.append(TextReasoningContent(reasoning))
        if text := message_text(delta):
            contents.append(TextContent(text))
        if refusal := getattr(delta, "refusal", None):
            self._refusal.append(refusal)
        for piece in getattr(delta, "tool_calls", None) or ():
            self._take_call(piece)
        return contents

    def _take_call(self, piece: Any) -> None:
        """A piece belongs to the call of its index; another id under the same index is another call."""
        calls = self._calls.setdefault(getattr(piece, "index", None), [])
        call_id = getattr(piece, "id", None)
        if not calls or (call_id and calls[-1].call_id and call_id != calls[-1].call_id):
            calls.append(_Call())
        call = calls[-1]
        function = getattr(piece, "function", None)
        call.call_id = call.call_id or call_id
        call.name = call.name or getattr(function, "name", None)
        call.arguments.append(getattr(function, "arguments", None) or "")

    def _update(self, contents: list[Content], *, finish_reason: str | None = None) -> ChatResponseUpdate:
        return ChatResponseUpdate(
            ChatRole.ASSISTANT,
            contents,
            response_id=self._response_id,
            message_id=self._message_id,
            model_id=self._model_id,
            finish_reason=finish_reason,
            created_at=self._created_at,
        )
