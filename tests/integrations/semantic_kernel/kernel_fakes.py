"""A chat completion service of Semantic Kernel that answers from a script, and records."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from typing import Any, ClassVar

from pydantic import PrivateAttr
from semantic_kernel.agents import ChatCompletionAgent
from semantic_kernel.connectors.ai.chat_completion_client_base import ChatCompletionClientBase
from semantic_kernel.connectors.ai.completion_usage import CompletionUsage
from semantic_kernel.connectors.ai.open_ai import OpenAIChatPromptExecutionSettings
from semantic_kernel.contents import (
    ChatHistory,
    ChatMessageContent,
    FunctionCallContent,
    StreamingChatMessageContent,
    StreamingTextContent,
    TextContent,
)
from semantic_kernel.contents.utils.author_role import AuthorRole
from semantic_kernel.contents.utils.finish_reason import FinishReason
from semantic_kernel.functions import kernel_function


def says(*items: Any, usage: tuple[int, int] | None = None, finish_reason: str = "stop") -> ChatMessageContent:
    """A reply of texts and other items."""
    return ChatMessageContent(
        role=AuthorRole.ASSISTANT,
        items=[TextContent(text=item) if isinstance(item, str) else item for item in items],
        finish_reason=FinishReason(finish_reason),
        metadata={"usage": CompletionUsage(prompt_tokens=usage[0], completion_tokens=usage[1]) if usage else None},
    )


def calls(name: str, arguments: str = "{}", *, id: str = "call-1", before: str = "", usage: Any = None) -> Any:  # noqa: A002
    """A reply that calls a function; connectors list calls first."""
    items = [FunctionCallContent(id=id, index=0, name=name, arguments=arguments), *([before] if before else [])]
    return says(*items, usage=usage, finish_reason="tool_calls")


class ScriptedService(ChatCompletionClientBase):
    """Gives its replies in order; a str is a text, an exception is raised (in a stream after half a text)."""

    SUPPORTS_FUNCTION_CALLING: ClassVar[bool] = True

    _replies: list[Any] = PrivateAttr()
    _requests: list[list[ChatMessageContent]] = PrivateAttr(default_factory=list)
    _settings: list[Any] = PrivateAttr(default_factory=list)
    _opened: int = PrivateAttr(default=0)
    _closed: int = PrivateAttr(default=0)
    _asked: asyncio.Event = PrivateAttr(default_factory=asyncio.Event)
    _hang: asyncio.Event | None = PrivateAttr(default=None)

    def __init__(self, *replies: Any, hangs: bool = False) -> None:
        super().__init__(ai_model_id="scripted", service_id="scripted")
        self._replies = list(replies)
        self._hang = asyncio.Event() if hangs else None

    @property
    def inputs(self) -> list[list[tuple[str, str]]]:
        """Roles and texts of each request."""
        return [[(message.role.value, str(message)) for message in request] for request in self._requests]

    def get_prompt_execution_settings_class(self) -> type[OpenAIChatPromptExecutionSettings]:
        return OpenAIChatPromptExecutionSettings

    def _update_function_choice_settings_callback(self) -> Any:
        return lambda configuration, settings, kind: None

    def _reset_function_choice_settings(self, settings: Any) -> None:
        pass

    def _next(self, history: ChatHistory, settings: Any) -> Any:
        self._requests.append([message.model_copy() for message in history.messages])
        self._settings.append(settings)
        self._asked.set()
        assert self._replies, f"call {len(self._requests)}, and there are no replies left"
        reply = self._replies.pop(0)
        return says(reply) if isinstance(reply, str) else reply

    async def _inner_get_chat_message_contents(self, chat_history: ChatHistory, settings: Any) -> Any:
        self._opened += 1
        try:
            reply = self._next(chat_history, settings)
            if self._hang:
                await self._hang.wait()
            if isinstance(reply, BaseException):
                raise reply
            return [reply]
        finally:
            self._closed += 1

    async def _inner_get_streaming_chat_message_contents(
        self, chat_history: ChatHistory, settings: Any, function_invoke_attempt: int = 0
    ) -> AsyncGenerator[list[StreamingChatMessageContent], Any]:
        self._opened += 1
        try:
            reply = self._next(chat_history, settings)
            if isinstance(reply, BaseException):
                yield [chunk([StreamingTextContent(choice_index=0, text="half an ans")], function_invoke_attempt)]
                raise reply
            for number, piece in enumerate(pieces(reply, function_invoke_attempt)):
                if number and self._hang:
                    await self._hang.wait()
                yield [piece]
        finally:
            await asyncio.sleep(0)  # as a connection that is closed
            self._closed += 1


def chunk(items: Sequence[Any], attempt: int, **given: Any) -> StreamingChatMessageContent:
    return StreamingChatMessageContent(
        role=AuthorRole.ASSISTANT,
        choice_index=0,
        items=list(items),
        function_invoke_attempt=attempt,
        ai_model_id="scripted",
        **given,
    )


def pieces(reply: ChatMessageContent, attempt: int) -> list[StreamingChatMessageContent]:
    """A reply as connectors stream it: texts in halves, then calls, the finish reason, and last the usage alone."""
    found = []
    for item in sorted(reply.items, key=lambda item: isinstance(item, FunctionCallContent)):
        if isinstance(item, TextContent):
            middle = len(item.text) // 2
            halves = (item.text[:middle], item.text[middle:])
            found += [chunk([StreamingTextContent(choice_index=0, text=half)], attempt) for half in halves]
        else:
            found.append(chunk([item], attempt))
    found.append(chunk([], attempt, finish_reason=reply.finish_reason))
    if reply.metadata.get("usage"):
        found.append(chunk([], attempt, metadata=reply.metadata))
    return found


class Weather:
    """A plugin."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    @kernel_function(description="The weather in a city")
    def look(self, city: str) -> str:
        self.asked.append(city)
        return f"rain in {city}"


def chat_agent(*replies: Any, service: ScriptedService | None = None, **given: Any) -> ChatCompletionAgent:
    """An agent over a script; its service is `agent.service`."""
    return ChatCompletionAgent(service=service or ScriptedService(*replies), name=given.pop("name", "writer"), **given)
