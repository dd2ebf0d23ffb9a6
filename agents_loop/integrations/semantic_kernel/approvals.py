"""Approvals among Semantic Kernel's messages: a sentence to read, and the contents themselves as JSON in the metadata.

Semantic Kernel has no content for either; its orchestrations and histories keep a message's text and its metadata.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, TypeVar, cast

from semantic_kernel.contents.chat_message_content import ChatMessageContent
from semantic_kernel.contents.text_content import TextContent as KernelText
from semantic_kernel.contents.utils.author_role import AuthorRole

from agents_loop.call_json import json_text
from agents_loop.message_json import content_from_json, content_to_json
from agents_loop.messages import FunctionCallContent, JsonValue, ToolApprovalRequestContent, ToolApprovalResponseContent

REQUESTS_KEY = "approval_requests"
"""Where a message's metadata holds the requests that wait, as JSON."""
RESPONSES_KEY = "approval_responses"
"""Where a message's metadata holds the answers to requests, as JSON."""

_Kind = TypeVar("_Kind", ToolApprovalRequestContent, ToolApprovalResponseContent)


def approval_requests(message: ChatMessageContent) -> list[ToolApprovalRequestContent]:
    """The tool calls that wait for a person's word, from an answer of an agent that `as_semantic_kernel_agent` made.

    Raises:
        SessionStateError: What the metadata hold are no requests.
    """
    return _read(message, REQUESTS_KEY, ToolApprovalRequestContent)


def approval_message(
    requests: ToolApprovalRequestContent | Sequence[ToolApprovalRequestContent], *, approved: bool
) -> ChatMessageContent:
    """A person's word on one or more requests, to be sent in the thread in which they were made: the run goes on.

    Args:
        requests: What `approval_requests` gave.
        approved: Whether the calls may run.
    """
    asked = [requests] if isinstance(requests, ToolApprovalRequestContent) else requests
    return response_message(
        [ToolApprovalResponseContent(request.request_id, approved, request.tool_call) for request in asked]
    )


def approval_responses(message: ChatMessageContent) -> list[ToolApprovalResponseContent]:
    """A person's word that a message carries; another agent's message carries none."""
    return _read(message, RESPONSES_KEY, ToolApprovalResponseContent) if message.role == AuthorRole.USER else []


def response_message(responses: Sequence[ToolApprovalResponseContent]) -> ChatMessageContent:
    """Answers to requests as a message, with a sentence for the agents that were not asked."""
    said = [
        f"{word}: {', '.join(calls)}."
        for word, is_approved in (("Approved", True), ("Not approved", False))
        if (calls := [_call(response.tool_call) for response in responses if response.approved is is_approved])
    ]
    sentence = KernelText(text=" ".join(said), metadata={RESPONSES_KEY: True})
    return ChatMessageContent(
        role=AuthorRole.USER, items=[sentence], metadata={RESPONSES_KEY: contents_json(responses)}
    )


def is_response_sentence(item: Any) -> bool:
    """Whether an item only says what the message's metadata hold."""
    return isinstance(item, KernelText) and RESPONSES_KEY in item.metadata


def request_sentence(requests: Iterable[ToolApprovalRequestContent]) -> str:
    """What waits for approval, for whoever reads the answer."""
    return f"Waiting for approval of {', '.join(_call(request.tool_call) for request in requests)}."


def contents_json(contents: Iterable[ToolApprovalRequestContent | ToolApprovalResponseContent]) -> list[JsonValue]:
    """Requests or answers as they stand in the metadata."""
    return [content_to_json(content) for content in contents]


def _call(call: FunctionCallContent) -> str:
    return f"{call.name}({json_text({} if call.arguments is None else call.arguments)})"


def _read(message: ChatMessageContent, key: str, kind: type[_Kind]) -> list[_Kind]:
    written = cast("list[JsonValue]", message.metadata.get(key) or ()) if message.metadata else ()
    return [content for value in written if isinstance(content := content_from_json(value), kind)]
