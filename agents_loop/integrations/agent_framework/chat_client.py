"""A chat client of Microsoft Agent Framework as a `ChatClient`."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Any

from agents_loop.chat_client import ChatClient, ChatOptions, ChatResponse, ChatResponseUpdate
from agents_loop.ids import new_id
from agents_loop.integrations.agent_framework.contents import (
    from_contents,
    from_framework,
    from_time,
    from_usage,
    to_framework,
)
from agents_loop.integrations.agent_framework.options import to_options
from agents_loop.integrations.agent_framework.sdk import load_agent_framework
from agents_loop.messages import ChatMessage


class AgentFrameworkChatClient(ChatClient):
    """A chat client of Microsoft Agent Framework, called directly: no session, no agent around it.

    The options are the framework's, a `response_format` included. What the framework raises reaches the caller as it
    was raised: an endpoint that does not know structured output is not asked a second time without.

    Args:
        client: The framework's chat client.
    """

    def __init__(self, client: Any) -> None:
        load_agent_framework(type(self).__name__)
        self.client = client

    async def get_response(self, messages: Sequence[ChatMessage], options: ChatOptions | None = None) -> ChatResponse:
        """Ask the model, and wait for its whole answer."""
        whole = await self.client.get_response(to_framework(messages), options=to_options(options))
        answered = from_framework(whole.messages)
        for message in answered:
            message.message_id = message.message_id or new_id()
        return ChatResponse(
            answered,
            response_id=whole.response_id,
            model_id=whole.model,
            finish_reason=whole.finish_reason,
            usage=from_usage(whole.usage_details),
            created_at=from_time(whole.created_at),
        )

    async def get_streaming_response(
        self, messages: Sequence[ChatMessage], options: ChatOptions | None = None
    ) -> AsyncIterator[ChatResponseUpdate]:
        """Ask the model, and get its answer in pieces."""
        stream = self.client.get_response(to_framework(messages), stream=True, options=to_options(options))
        async with stream:
            async for piece in stream:
                yield ChatResponseUpdate(
                    piece.role,
                    from_contents(piece.contents),
                    author_name=piece.author_name,
                    response_id=piece.response_id,
                    message_id=piece.message_id,
                    model_id=piece.model,
                    finish_reason=piece.finish_reason,
                    created_at=from_time(piece.created_at),
                )
