"""Messages as a graph's state holds them, and back."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable
from typing import Any

from agents_loop.call_json import json_text
from agents_loop.ids import new_id
from agents_loop.integrations.langgraph.sdk import load_messages
from agents_loop.messages import (
    ChatMessage,
    ChatRole,
    Content,
    DataContent,
    FunctionCallContent,
    FunctionResultContent,
    JsonValue,
    TextContent,
    TextReasoningContent,
    UriContent,
    UsageDetails,
    sum_usage,
)

_ROLES = {"human": ChatRole.USER, "ai": ChatRole.ASSISTANT, "system": ChatRole.SYSTEM, "tool": ChatRole.TOOL}
_KINDS = ("image", "audio", "video")


def to_state(messages: Iterable[ChatMessage]) -> list[Any]:
    """Our messages as the state's. Each gets a new id: a state replaces a message whose id it knows."""
    kinds = load_messages("a LangGraph message")
    return [written for message in messages for written in _to_state(kinds, message)]


def from_state(messages: Iterable[Any]) -> list[ChatMessage]:
    """The state's messages as ours."""
    return [
        ChatMessage(role_of(message), contents_of(message), author_name=message.name, message_id=message.id)
        for message in messages
    ]


def unanswered(messages: Iterable[Any], given: Iterable[Any], why: str) -> list[Any]:
    """Results that say why, for the calls in a state that have none; nor do the messages given after it hold one."""
    kinds = load_messages("a LangGraph message")
    calls: dict[str, str] = {}
    for message in [*messages, *given]:
        if message.type == "tool":
            calls.pop(message.tool_call_id, None)
        calls |= {call["id"]: call["name"] for call in getattr(message, "tool_calls", ())}
    new = {call["id"] for message in given for call in getattr(message, "tool_calls", ())}
    return [
        kinds.ToolMessage(why, tool_call_id=call_id, name=name, status="error", id=new_id())
        for call_id, name in calls.items()
        if call_id not in new
    ]


def role_of(message: Any) -> str:
    """The role of a message of the state."""
    return _ROLES.get(message.type) or getattr(message, "role", None) or message.type


def contents_of(message: Any) -> list[Content]:
    """The contents of a message of the state."""
    if message.type == "tool":
        return [FunctionResultContent(message.tool_call_id, _json(message.content))]
    if isinstance(message.content, str) and not getattr(message, "tool_calls", None) and not message.additional_kwargs:
        return [TextContent(message.content)] if message.content else []  # plain text: blocks are slow to make
    return [content for block in message.content_blocks if (content := _from_block(block)) is not None]


def text_of(chunk: Any) -> list[Content]:
    """The text and the reasoning in a piece of a model's message."""
    contents = [_from_block(block) for block in chunk.content_blocks]
    return [content for content in contents if isinstance(content, TextContent | TextReasoningContent) and content.text]


def usage_of(messages: Iterable[Any]) -> UsageDetails | None:
    """What the model calls used whose messages the state holds."""
    return sum_usage(_usage(getattr(message, "usage_metadata", None)) for message in messages)


def _usage(usage: Any) -> UsageDetails | None:
    if not usage:
        return None
    return UsageDetails(
        usage.get("input_tokens"),
        usage.get("output_tokens"),
        usage.get("total_tokens"),
        usage.get("input_token_details", {}).get("cache_read"),
        usage.get("output_token_details", {}).get("reasoning"),
    )


def _to_state(kinds: Any, message: ChatMessage) -> list[Any]:
    results = [content for content in message.contents if isinstance(content, FunctionResultContent)]
    written = [
        kinds.ToolMessage(json_text(result.result), tool_call_id=result.call_id, id=new_id()) for result in results
    ]
    blocks = [block for content in message.contents if (block := _to_block(content)) is not None]
    calls = [_to_call(content) for content in message.contents if isinstance(content, FunctionCallContent)]
    if not blocks and not calls:
        return written
    said: dict[str, Any] = {"content": _joined(blocks), "id": new_id(), "name": message.author_name}
    match message.role:
        case ChatRole.USER:
            spoken = kinds.HumanMessage(**said)
        case ChatRole.ASSISTANT:
            spoken = kinds.AIMessage(**said, tool_calls=calls)
        case ChatRole.SYSTEM:
            spoken = kinds.SystemMessage(**said)
        case role:
            spoken = kinds.ChatMessage(**said, role=role)
    return [*written, spoken]


def _joined(blocks: list[dict[str, Any]]) -> str | list[dict[str, Any]]:
    texts = [block["text"] for block in blocks if block["type"] == "text"]
    return "".join(texts) if len(texts) == len(blocks) else blocks


def _to_block(content: Content) -> dict[str, Any] | None:
    match content:
        case TextContent(text):
            return {"type": "text", "text": text}
        case DataContent(data, media_type):
            return {
                "type": _kind(media_type),
                "base64": base64.b64encode(data).decode(),
                "mime_type": media_type,
            }
        case UriContent(uri, media_type):
            return {"type": _kind(media_type), "url": uri, "mime_type": media_type}
        case _:
            return None


def _kind(media_type: str) -> str:
    kind = media_type.partition("/")[0]
    return kind if kind in _KINDS else "file"


def _to_call(call: FunctionCallContent) -> dict[str, Any]:
    arguments = call.arguments if isinstance(call.arguments, dict) else {"input": call.arguments}
    return {"name": call.name, "args": {} if call.arguments is None else arguments, "id": call.call_id}


def _from_block(block: Any) -> Content | None:  # noqa: PLR0911 - one case a type
    match block["type"]:
        case "text":
            return TextContent(block["text"]) if block["text"] else None
        case "reasoning":
            return TextReasoningContent(block["reasoning"]) if block.get("reasoning") else None
        case "tool_call" | "server_tool_call":
            return FunctionCallContent(block.get("id") or "", block["name"], _json(block.get("args")))
        case "server_tool_result":
            return FunctionResultContent(block.get("tool_call_id") or "", _json(block.get("output")))
        case kind if kind in (*_KINDS, "file"):
            media_type = block.get("mime_type") or "application/octet-stream"
            if "base64" in block:
                return DataContent(base64.b64decode(block["base64"]), media_type)
            return UriContent(block.get("url") or block.get("file_id") or "", media_type)
        case _:
            return None


def _json(value: Any) -> JsonValue:
    return value if value is None or isinstance(value, str) else json.loads(json.dumps(value, default=str))
