"""One run of a Semantic Kernel agent, read message by message or chunk by chunk."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from semantic_kernel.contents.chat_message_content import ChatMessageContent
from semantic_kernel.contents.utils.finish_reason import FinishReason as KernelFinishReason

from agents_loop.agent import AgentResponse, AgentResponseUpdate
from agents_loop.chat_client import FinishReason
from agents_loop.ids import new_id
from agents_loop.integrations.semantic_kernel.approvals import approval_requests
from agents_loop.integrations.semantic_kernel.contents import our_contents
from agents_loop.integrations.semantic_kernel.usage import UsageCount
from agents_loop.messages import ChatMessage, Content, TextContent, UsageContent


class RunReader:
    """Makes updates of what an agent gives, in the order in which it happened.

    Semantic Kernel gives the text of a message in chunks, and then, when the message has a tool call, the whole of it
    once more as an intermediate message. What was streamed is not said again.

    Args:
        agent_id: The agent that speaks.
    """

    def __init__(self, agent_id: str) -> None:
        self._agent_id = agent_id
        self._response_id = new_id()
        self._message_id: str | None = None
        self._streamed: list[str] = []
        self._attempt: int | None = None
        self._known: list[ChatMessageContent] = []
        self._usage = UsageCount()
        self._finish_reason: str | None = None
        self._created_at: float | None = None

    def whole(self, message: ChatMessageContent) -> ChatMessage | None:
        """A whole message, intermediate or final; `None` if all of it was given already."""
        if any(message is known for known in self._known):
            return None
        self._known.append(message)
        self._note(message)
        contents = [*our_contents(message.items), *approval_requests(message)]
        message_id = None
        if self._message_id is not None:
            text = "".join(content.text for content in contents if isinstance(content, TextContent))
            if self._streamed and text == "".join(self._streamed):
                contents = [content for content in contents if not isinstance(content, TextContent)]
                message_id = self._message_id
            self._close()
        if not contents:
            return None
        return ChatMessage(message.role.value, contents, author_name=message.name, message_id=message_id or new_id())

    def chunk(self, chunk: ChatMessageContent) -> AgentResponseUpdate | None:
        """A piece of a message, if there is something in it to see."""
        self._note(chunk)
        contents = our_contents(chunk.items)
        if chunk.metadata:
            contents += approval_requests(chunk)
        if not contents:
            return None
        attempt = getattr(chunk, "function_invoke_attempt", None)
        if self._message_id is None or attempt != self._attempt:
            self._close()
            self._message_id, self._attempt = new_id(), attempt
        for content in contents:
            if type(content) is TextContent:
                self._streamed.append(content.text)
        return self._update(chunk.role.value, contents, chunk.name, self._message_id)

    def update(self, message: ChatMessage) -> AgentResponseUpdate:
        """A whole message as an update."""
        return self._update(message.role, message.contents, message.author_name, message.message_id)

    def usage(self) -> Iterator[AgentResponseUpdate]:
        """What the run has cost so far, if it was reported; a broken run has cost that too."""
        total = self._usage.total
        if total is not None:
            yield AgentResponseUpdate(
                contents=UsageContent(total), agent_id=self._agent_id, response_id=self._response_id
            )

    def end(self) -> Iterator[AgentResponseUpdate]:
        """The last updates: why the answer ended, and what it cost."""
        yield from self.usage()
        yield AgentResponseUpdate(
            agent_id=self._agent_id,
            response_id=self._response_id,
            finish_reason=self._finish_reason,
            created_at=self._created_at,
        )

    def response(self, messages: list[ChatMessage]) -> AgentResponse:
        """The whole response."""
        return AgentResponse(
            messages,
            response_id=self._response_id,
            agent_id=self._agent_id,
            usage=self._usage.total,
            finish_reason=self._finish_reason,
            created_at=self._created_at,
        )

    def _close(self) -> None:
        """What comes next is another message."""
        self._message_id = None
        self._streamed = []

    def _note(self, message: ChatMessageContent) -> None:
        if message.metadata:
            self._usage.take(message)
            if self._created_at is None:
                self._created_at = read_time(message)
        if message.finish_reason is not None:
            self._finish_reason = read_finish_reason(message)

    def _update(
        self, role: str, contents: list[Content], author_name: str | None, message_id: str | None
    ) -> AgentResponseUpdate:
        return AgentResponseUpdate(
            role,
            contents,
            author_name=author_name,
            agent_id=self._agent_id,
            response_id=self._response_id,
            message_id=message_id,
        )


def read_finish_reason(message: ChatMessageContent) -> str | None:
    """Why a model stopped, in our words."""
    reason: Any = message.finish_reason
    if reason == KernelFinishReason.FUNCTION_CALL:
        return FinishReason.TOOL_CALLS
    return getattr(reason, "value", reason)


def read_time(message: ChatMessageContent) -> float | None:
    """When a message was made, in seconds since the epoch, if its service says so."""
    created = message.metadata.get("created", message.metadata.get("created_at"))
    return float(created) if isinstance(created, int | float) else None
