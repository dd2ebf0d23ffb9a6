"""A chat client that answers from a script, for tests and demonstrations."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from inspect import isawaitable
from typing import TypeAlias

from agents_loop.chat_client import ChatClient, ChatOptions, ChatResponse
from agents_loop.errors import AgentsLoopError
from agents_loop.messages import ChatMessage

Reply: TypeAlias = str | ChatMessage | ChatResponse | BaseException
"""A text, a message or a whole response; an exception is raised."""


class ScriptExhaustedError(AgentsLoopError):
    """A scripted client was called more often than it has replies."""


@dataclass(slots=True)
class RecordedCall:
    """One call of a scripted client, as it was made."""

    messages: list[ChatMessage]
    options: ChatOptions | None


class ScriptedChatClient(ChatClient):
    """A chat client whose replies are given beforehand. It records its calls.

    Args:
        replies: The replies in order, one a call; or a function of the messages and options, sync or async.
        name: What the error calls it when it runs out.
        model_id: The model that it says it asks: what a ledger and a money budget go by.
    """

    def __init__(
        self,
        replies: Iterable[Reply] | Callable[[Sequence[ChatMessage], ChatOptions | None], Reply | Awaitable[Reply]],
        *,
        name: str = "ScriptedChatClient",
        model_id: str | None = None,
    ) -> None:
        if isinstance(replies, str):
            raise TypeError("replies must be a list of replies, not one str")
        self._answer = replies if callable(replies) else None
        self._replies = () if callable(replies) else tuple(replies)
        self._name = name
        self.model_id = model_id
        self.calls: list[RecordedCall] = []

    async def get_response(self, messages: Sequence[ChatMessage], options: ChatOptions | None = None) -> ChatResponse:
        """Give the next reply.

        Raises:
            ScriptExhaustedError: There is none left.
        """
        self.calls.append(RecordedCall(list(messages), options))
        if self._answer is not None:
            given = self._answer(messages, options)
            reply = await given if isawaitable(given) else given
        else:
            reply = self._next(messages)
        if isinstance(reply, BaseException):
            raise reply
        return reply if isinstance(reply, ChatResponse) else ChatResponse(reply)  # pyright: ignore[reportArgumentType]

    def _next(self, messages: Sequence[ChatMessage]) -> Reply:
        number = len(self.calls)
        if number > len(self._replies):
            said = messages[-1].text[:160] if messages else ""
            raise ScriptExhaustedError(
                f"{self._name} has {len(self._replies)} replies, and this is call {number}, which ends with: {said!r}"
            )
        return self._replies[number - 1]
