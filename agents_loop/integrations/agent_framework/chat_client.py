"""A chat client of Microsoft Agent Framework as a `ChatClient`."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Any

from agents_loop.chat_client import ChatClient, ChatOptions, ChatResponse, ChatResponseUpdate, FinishReason
from agents_loop.ids import new_id
from agents_loop.integrations.agent_framework.contents import (
    from_contents,
    from_time,
    from_usage,
    merged_calls,
    refusal_in,
    to_framework,
)
from agents_loop.integrations.agent_framework.options import declared, to_options
from agents_loop.integrations.agent_framework.sdk import content_filter_error, load_agent_framework
from agents_loop.messages import ChatMessage, ChatRole, Content, ErrorContent, UsageContent
from agents_loop.retrying import keeps


class AgentFrameworkChatClient(ChatClient):
    """A chat client of Microsoft Agent Framework, called directly: no session, no agent around it.

    The options are the framework's, a `response_format` included. Our tools are declared, and none of them is run
    here. What the framework raises reaches the caller as it was raised: an endpoint that does not know structured
    output is not asked a second time without. But a prompt that the provider's filter refuses is an answer whose
    `finish_reason` says so.

    Args:
        client: The framework's chat client.
    """

    def __init__(self, client: Any) -> None:
        load_agent_framework(type(self).__name__)
        self.client = client

    async def get_response(self, messages: Sequence[ChatMessage], options: ChatOptions | None = None) -> ChatResponse:
        """Ask the model, and wait for its whole answer."""
        try:
            whole = await self.client.get_response(to_framework(messages), options=self._options(options))
        except content_filter_error() as error:
            withheld = ChatMessage(ChatRole.ASSISTANT, [_withheld(error)], message_id=new_id())
            return ChatResponse([withheld], finish_reason=FinishReason.CONTENT_FILTER)
        refusal = "".join([refusal_in(message.contents) for message in whole.messages])
        return ChatResponse(
            [_message(message) for message in whole.messages],
            response_id=whole.response_id,
            model_id=whole.model,
            finish_reason=FinishReason.REFUSAL if refusal else whole.finish_reason,
            usage=from_usage(whole.usage_details),
            created_at=from_time(whole.created_at),
        )

    async def get_streaming_response(
        self, messages: Sequence[ChatMessage], options: ChatOptions | None = None
    ) -> AsyncIterator[ChatResponseUpdate]:
        """Ask the model, and get its answer in pieces."""
        reader = _StreamReader()
        try:
            stream = self.client.get_response(to_framework(messages), stream=True, options=self._options(options))
            async with stream:
                async for piece in stream:
                    yield reader.read(piece)
            last = reader.finish()
        except content_filter_error() as error:
            last = ChatResponseUpdate(
                ChatRole.ASSISTANT, [_withheld(error)], message_id=new_id(), finish_reason=FinishReason.CONTENT_FILTER
            )
        if last is not None:
            yield last

    def _options(self, options: ChatOptions | None) -> dict[str, Any]:
        keeps(self.client)
        named = to_options(options)
        if options is not None and options.tools:
            named["tools"] = [declared(tool) for tool in options.tools]
        return named


class _StreamReader:
    """Makes updates of a stream's pieces. Function calls and a refusal come whole, at the end."""

    def __init__(self) -> None:
        self._calls: list[Any] = []
        self._refusal: list[str] = []
        self._last: Any = None

    def read(self, piece: Any) -> ChatResponseUpdate:
        """What a piece shows by itself."""
        self._last = piece
        self._calls += [content for content in piece.contents if content.type == "function_call"]
        self._refusal.append(refusal_in(piece.contents))
        return _update(piece, from_contents([content for content in piece.contents if _is_shown(content)]))

    def finish(self) -> ChatResponseUpdate | None:
        """The calls, or the refusal in the answer's place."""
        refusal = "".join(self._refusal)
        if refusal:
            return _update(self._last, [ErrorContent(refusal, code="refusal")], FinishReason.REFUSAL)
        return _update(self._last, from_contents(merged_calls(self._calls))) if self._calls else None


def _is_shown(content: Any) -> bool:
    return content.type != "function_call" and not refusal_in([content])


def _message(message: Any) -> ChatMessage:
    refusal = refusal_in(message.contents)
    shown = [content for content in message.contents if not refusal_in([content])]
    contents: list[Content] = [ErrorContent(refusal, code="refusal")] if refusal else []
    contents += [content for content in from_contents(shown) if not isinstance(content, UsageContent)]
    return ChatMessage(
        str(message.role), contents, author_name=message.author_name, message_id=message.message_id or new_id()
    )


def _update(piece: Any, contents: list[Content], finish_reason: str | None = None) -> ChatResponseUpdate:
    return ChatResponseUpdate(
        piece.role,
        contents,
        author_name=piece.author_name,
        response_id=piece.response_id,
        message_id=piece.message_id,
        model_id=piece.model,
        finish_reason=finish_reason or piece.finish_reason,
        created_at=from_time(piece.created_at),
    )


def _withheld(error: Exception) -> ErrorContent:
    return ErrorContent(str(error), code="content_filter")
