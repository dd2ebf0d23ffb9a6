"""What a run's calls use, and the budgets that bound it."""

from __future__ import annotations

import math
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import cast

from agents_loop.chat_client import ChatClient, ChatOptions, ChatResponse, ChatResponseUpdate
from agents_loop.errors import BudgetExceededError
from agents_loop.files.counting import counted
from agents_loop.messages import ChatMessage, TextReasoningContent, UsageContent, UsageDetails, sum_usage

_CHARACTERS_PER_TOKEN = 4


@dataclass(frozen=True, slots=True)
class TokenLimit:
    """A number of tokens that a run may use."""

    place: str
    """Where it was set, for the message: `budget.max_tokens`."""
    tokens: int


class Meter:
    """Counts the calls and the tokens of a run. One meter serves one run.

    Tokens are input and output as the provider reports them; what it read from its cache is not counted against a
    limit. Where it reports none they are estimated, a token for every 4 characters.

    Args:
        limits: Checked before each call: a run may go over one by the call in flight.
        on_estimate: Hears once that tokens are estimated.
    """

    def __init__(self, limits: Sequence[TokenLimit] = (), on_estimate: Callable[[str], None] | None = None) -> None:
        self._limits = sorted(limits, key=lambda limit: limit.tokens)
        self._on_estimate = on_estimate
        self._reported: list[UsageDetails] = []
        self.calls = 0
        """The calls that were begun."""
        self.tokens = 0
        """What counts against the limits."""
        self.last_model: str | None = None
        """The model of the latest call, by its name in the file."""

    @property
    def usage(self) -> UsageDetails | None:
        """The sum of what the providers reported; `None` when they reported nothing."""
        return sum_usage(self._reported)

    def begin(self, model: str) -> None:
        """A call is about to be made.

        Raises:
            BudgetExceededError: A limit is used up; the call must not be made.
        """
        for limit in self._limits:
            if self.tokens >= limit.tokens:
                raise BudgetExceededError(
                    f"{limit.place} is {limit.tokens:,}, and the run has used {counted(self.tokens, 'token')} "
                    f"in {counted(self.calls, 'call')}: the next call, to {model!r}, was not made"
                )
        self.calls += 1
        self.last_model = model

    def end(self, model: str, usage: UsageDetails | None, asked: int, answered: int) -> None:
        """A call is over.

        Args:
            model: The model, by its name in the file.
            usage: What the provider reported.
            asked: The characters that were sent.
            answered: The characters that came back.
        """
        if usage is not None:
            self._reported.append(usage)
        reported = _billable(usage)
        if reported is None:
            reported = math.ceil(asked / _CHARACTERS_PER_TOKEN) + math.ceil(answered / _CHARACTERS_PER_TOKEN)
            if self._on_estimate is not None:
                self._on_estimate(f"{model!r} reports no token usage: estimated as a token for every 4 characters")
                self._on_estimate = None
        self.tokens += reported


def _billable(usage: UsageDetails | None) -> int | None:
    if usage is None:
        return None
    if usage.input_token_count is None or usage.output_token_count is None:
        return usage.total_token_count
    return max(0, usage.input_token_count - (usage.cached_input_token_count or 0)) + usage.output_token_count


class MeteredChatClient(ChatClient):
    """A chat client whose calls are counted, and not made once a limit is used up.

    Args:
        inner: The client that is called.
        model: The model's name in the file.
        meter: Counts; shared by all clients of a run.
    """

    def __init__(self, inner: ChatClient, model: str, meter: Meter) -> None:
        self.inner = inner
        self.model = model
        self._meter = meter

    async def get_response(self, messages: Sequence[ChatMessage], options: ChatOptions | None = None) -> ChatResponse:
        """Ask, unless a limit is used up.

        Raises:
            BudgetExceededError: A limit is used up.
        """
        self._meter.begin(self.model)
        response = await self.inner.get_response(messages, options)
        self._meter.end(self.model, response.usage, _characters(messages), _characters(response.messages))
        return response

    async def get_streaming_response(
        self, messages: Sequence[ChatMessage], options: ChatOptions | None = None
    ) -> AsyncIterator[ChatResponseUpdate]:
        """Ask, unless a limit is used up; what came is counted however the stream ends.

        Raises:
            BudgetExceededError: A limit is used up.
        """
        self._meter.begin(self.model)
        stream = self.inner.get_streaming_response(messages, options)
        usages: list[UsageDetails] = []
        answered = 0
        try:
            async with aclosing(cast("AsyncGenerator[ChatResponseUpdate, None]", stream)):
                async for update in stream:
                    usages += [content.details for content in update.contents if isinstance(content, UsageContent)]
                    answered += len(update.text) + _reasoning(update.contents)
                    yield update
        except Exception:
            if usages or answered:
                self._meter.end(self.model, sum_usage(usages), _characters(messages), answered)
            raise
        self._meter.end(self.model, sum_usage(usages), _characters(messages), answered)


def _characters(messages: Sequence[ChatMessage]) -> int:
    return sum(len(message.text) + _reasoning(message.contents) for message in messages)


def _reasoning(contents: Sequence[object]) -> int:
    return sum(len(content.text) for content in contents if isinstance(content, TextReasoningContent))
