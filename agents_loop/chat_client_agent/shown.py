"""What the caller of a run with tools gets: the messages of all rounds, signed, as one response or as pieces."""

from __future__ import annotations

from dataclasses import replace

from agents_loop.agent import AgentResponse, AgentResponseUpdate, AIAgent
from agents_loop.chat_client import ChatResponse, ChatResponseUpdate
from agents_loop.ids import new_id
from agents_loop.messages import ChatMessage, JsonValue, sum_usage


def signed(message: ChatMessage, name: str | None) -> ChatMessage:
    """The message with the agent's name, unless it has one."""
    return message if name is None or message.author_name is not None else replace(message, author_name=name)


def update_of(piece: ChatResponseUpdate, agent: AIAgent) -> AgentResponseUpdate:
    """A piece of a model's answer as the agent's."""
    return AgentResponseUpdate.from_chat(piece, agent_id=agent.id, author_name=agent.name)


class Shown:
    """The replies and results of one run, in order.

    Args:
        agent: Whose run it is.
    """

    def __init__(self, agent: AIAgent) -> None:
        self.agent = agent
        self.reply = ChatResponse([])
        """The model's latest."""
        self._messages: list[ChatMessage] = []
        self._replies: list[ChatResponse] = []
        self._properties: dict[str, JsonValue] = {}
        self._ids: set[str | None] = set()
        self._own_ids: dict[str, str] = {}

    def add(self, reply: ChatResponse) -> None:
        """A whole reply of the model. Its messages get the agent's name."""
        reply.messages = [signed(message, self.agent.name) for message in reply.messages]
        self.reply = reply
        self._messages += reply.messages
        self._replies.append(reply)
        self._properties |= reply.additional_properties or {}
        self._ids |= {message.message_id for message in reply.messages}
        self._own_ids.clear()

    def add_whole(self, reply: ChatResponse) -> AgentResponseUpdate:
        """A reply of one message that the model did not stream, as a piece."""
        self.add(reply)
        (message,) = reply.messages
        piece = ChatResponseUpdate(
            message.role,
            message.contents,
            response_id=reply.response_id,
            message_id=message.message_id,
            finish_reason=reply.finish_reason,
        )
        return update_of(piece, self.agent)

    def add_results(self, message: ChatMessage) -> AgentResponseUpdate:
        """The results of a round."""
        self._messages.append(message)
        return AgentResponseUpdate(
            message.role,
            message.contents,
            agent_id=self.agent.id,
            response_id=self.reply.response_id,
            message_id=message.message_id,
        )

    def update_of(self, piece: ChatResponseUpdate) -> AgentResponseUpdate:
        """A piece of the model's answer as the agent's."""
        return update_of(piece, self.agent)

    def with_own_id(self, piece: ChatResponseUpdate) -> ChatResponseUpdate:
        """The piece, with another message id where an earlier round had the same: else it would continue that one."""
        if piece.message_id is None or piece.message_id not in self._ids:
            return piece
        return replace(piece, message_id=self._own_ids.setdefault(piece.message_id, new_id()))

    def response(self) -> AgentResponse:
        """All of it: the usage of all replies, and the fields as they were last given, as in a stream."""
        replies = self._replies[::-1]
        return AgentResponse(
            self._messages,
            response_id=next((reply.response_id for reply in replies if reply.response_id), None),
            agent_id=self.agent.id,
            usage=sum_usage(reply.usage for reply in self._replies),
            finish_reason=next((reply.finish_reason for reply in replies if reply.finish_reason), None),
            created_at=next((reply.created_at for reply in replies if reply.created_at is not None), None),
            additional_properties=self._properties or None,
        )
