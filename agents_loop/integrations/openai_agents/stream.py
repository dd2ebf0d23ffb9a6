"""The events of a streamed run as updates."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from agents_loop.agent import AgentResponse, AgentResponseUpdate
from agents_loop.ids import new_id
from agents_loop.integrations.openai_agents.items import author_of, from_item
from agents_loop.messages import (
    ChatRole,
    Content,
    TextContent,
    TextReasoningContent,
    ToolApprovalRequestContent,
    UsageContent,
)

_DELTAS: dict[str, type[TextContent | TextReasoningContent]] = {
    "response.output_text.delta": TextContent,
    "response.reasoning_text.delta": TextReasoningContent,
    "response.reasoning_summary_text.delta": TextReasoningContent,
}
"""The events that bring a piece of text, and of what."""


class StreamedItems:
    """Makes updates of the SDK's events: the same messages that the items of the whole run make.

    Args:
        agent_id: The agent's id.
    """

    def __init__(self, agent_id: str) -> None:
        self._agent_id = agent_id
        self._response_id = new_id()
        self._role: str | None = None
        self._message_id = new_id()
        self._author: str | None = None
        self._streamed: dict[type[Content], str] = {}
        """The texts that deltas brought and whose item has not come yet."""
        self._requests: list[ToolApprovalRequestContent] = []

    def updates(self, event: Any) -> Iterator[AgentResponseUpdate]:
        """The updates of one event; most have none."""
        if event.type == "agent_updated_stream_event":
            self._author = event.new_agent.name
        elif event.type == "raw_response_event" and event.data.type in _DELTAS:
            kind = _DELTAS[event.data.type]
            self._streamed[kind] = self._streamed.get(kind, "") + event.data.delta
            yield self._update(ChatRole.ASSISTANT, [kind(event.data.delta)])
        elif event.type == "run_item_stream_event":
            yield from self._item(event.item)

    def ending(self, response: AgentResponse) -> Iterator[AgentResponseUpdate]:
        """What has no event: requests for approval, and the usage."""
        contents = [content for message in response.messages for content in message.contents]
        requests: list[Content] = [
            content
            for content in contents
            if isinstance(content, ToolApprovalRequestContent) and content not in self._requests
        ]
        if requests:
            yield self._update(ChatRole.ASSISTANT, requests)
        response.response_id = self._response_id
        if response.usage is not None:
            yield AgentResponseUpdate(
                contents=UsageContent(response.usage), agent_id=self._agent_id, response_id=self._response_id
            )

    def _item(self, item: Any) -> Iterator[AgentResponseUpdate]:
        role, contents = from_item(item)
        contents = self._not_streamed(contents)
        self._requests += [content for content in contents if isinstance(content, ToolApprovalRequestContent)]
        if contents:
            self._author = author_of(item) or self._author
            yield self._update(role, contents)

    def _not_streamed(self, contents: list[Content]) -> list[Content]:
        """An item's contents without the text that its deltas brought."""
        for kind in _DELTAS.values():
            texts = [content.text for content in contents if isinstance(content, kind)]
            if texts and self._streamed.pop(kind, "") == "".join(texts):
                contents = [content for content in contents if not isinstance(content, kind)]
        return contents

    def _update(self, role: str, contents: list[Content]) -> AgentResponseUpdate:
        if role != self._role:
            self._role, self._message_id = role, new_id()
        return AgentResponseUpdate(
            role,
            contents,
            author_name=self._author if role == ChatRole.ASSISTANT else None,
            agent_id=self._agent_id,
            response_id=self._response_id,
            message_id=self._message_id,
        )
