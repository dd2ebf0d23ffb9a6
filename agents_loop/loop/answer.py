"""Which part of a response is the agent's answer."""

from __future__ import annotations

from typing import Any

from agents_loop.agent import AgentResponse
from agents_loop.messages import ChatMessage, ChatRole, join_text, only_text

_NOT_THE_AGENT = frozenset({ChatRole.SYSTEM, ChatRole.USER, ChatRole.TOOL})


def reply_text(response: AgentResponse) -> str:
    """All that the agent itself wrote; not the messages of a user or a tool that a transcript holds too."""
    messages = response.messages
    if len(messages) == 1 and messages[0].role == "assistant":
        return messages[0].text
    return join_text([message for message in messages if message.role not in _NOT_THE_AGENT])


def answer_messages(response: AgentResponse) -> list[ChatMessage]:
    """The messages of the answer: what the agent wrote after the last message of a user or a tool.

    So the text before a tool call is no part of it, nor are the earlier drafts of a loop within a loop. If a response
    ends with a tool's result, it is what the agent wrote before that.
    """
    messages = response.messages
    if len(messages) == 1 and messages[0].role == "assistant" and response.loop_result is None:
        return messages
    end = len(messages)
    draft = end - _last_draft_size(response)
    while end > draft and messages[end - 1].role in _NOT_THE_AGENT:
        end -= 1
    start = end
    while start > draft and messages[start - 1].role not in _NOT_THE_AGENT:
        start -= 1
    return messages[start:end]


def plain_answer(response: AgentResponse) -> str | None:
    """The text of a response that is one text of the agent's and nothing else, as most are; else `None`."""
    messages = response.messages
    if response.loop_result is None and len(messages) == 1 and messages[0].role == "assistant":
        return only_text(messages)
    return None


def answer_text(response: AgentResponse) -> str:
    """The text of the answer; empty for an answer that has none, such as a tool call or an image."""
    return join_text(answer_messages(response))


def _last_draft_size(response: AgentResponse) -> int:
    """How many messages, from the end, the iteration gave whose answer the loop behind a response gives; else all."""
    if response.loop_result is None:
        return len(response.messages)
    returned: Any = getattr(response.loop_result, "returned", None)
    if returned is None:
        return len(response.messages)
    return min(len(response.messages), _last_draft_size(returned.response))
