"""What of a response Semantic Kernel gets as the answer, and what it is told aside."""

from __future__ import annotations

from collections.abc import Sequence

from agents_loop.agent import AgentResponse, AgentResponseUpdate
from agents_loop.integrations.semantic_kernel.approvals import request_sentence
from agents_loop.loop.answer import answer_messages
from agents_loop.loop.resuming import pending_approvals
from agents_loop.messages import ChatMessage, ChatRole, Content, TextContent


def joined_contents(messages: Sequence[ChatMessage]) -> list[Content]:
    """The contents of several messages, a line break between texts of different ones."""
    contents: list[Content] = []
    for message in messages:
        if contents and isinstance(contents[-1], TextContent) and message.text:
            contents.append(TextContent("\n"))
        contents += message.contents
    return contents


def waiting_contents(response: AgentResponse, *, is_begun: bool) -> list[Content]:
    """A sentence that says what waits for approval, on a line of its own."""
    requests = pending_approvals(response)
    return [TextContent(("\n" if is_begun else "") + request_sentence(requests))] if requests else []


def before_the_answer(response: AgentResponse) -> list[ChatMessage]:
    """The messages that are told aside, of an answer that comes whole."""
    answer = answer_messages(response)
    return [message for message in response.messages if not any(message is part for part in answer)]


def parted(update: AgentResponseUpdate) -> tuple[list[Content], list[ChatMessage]]:
    """The agent's text, and what is to be told aside: calls, results, and messages in the caller's place."""
    if update.role in (None, ChatRole.ASSISTANT):
        shown: list[Content] = [content for content in update.contents if isinstance(content, TextContent)]
        rest: list[Content] = [content for content in update.contents if not isinstance(content, TextContent)]
    else:
        shown, rest = [], update.contents
    return shown, [ChatMessage(update.role or ChatRole.ASSISTANT, rest, author_name=update.author_name)] if rest else []
