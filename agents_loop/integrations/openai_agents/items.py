"""Messages as the SDK's input items, and the items of a run as messages."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Sequence
from typing import Any, cast

from agents_loop.call_json import read_arguments
from agents_loop.errors import ConfigurationError
from agents_loop.messages import (
    ChatMessage,
    ChatRole,
    Content,
    DataContent,
    ErrorContent,
    FunctionCallContent,
    FunctionResultContent,
    JsonValue,
    TextContent,
    TextReasoningContent,
    ToolApprovalRequestContent,
    UriContent,
    UsageDetails,
    sum_usage,
)

Item = dict[str, Any]


def to_items(messages: Iterable[ChatMessage]) -> list[Item]:
    """Our messages as input items. Reasoning, usage, errors and approvals are not sent: there is no place for them.

    Raises:
        ConfigurationError: A content that the SDK can't be sent.
    """
    items: list[Item] = []
    for message in messages:
        parts: list[Item] = []
        for content in message.contents:
            match content:
                case FunctionCallContent() | FunctionResultContent():
                    items += _spoken(message, parts)
                    parts = []
                    items.append(_tool_item(content))
                case TextContent() | DataContent() | UriContent():
                    parts.append(_part(content))
                case _:
                    pass
        items += _spoken(message, parts)
    return items


def _spoken(message: ChatMessage, parts: list[Item]) -> list[Item]:
    if not parts:
        return []
    texts = [part["text"] for part in parts if part["type"] == "input_text"]
    is_text = len(texts) == len(parts)
    if message.role == ChatRole.ASSISTANT and not is_text:
        raise ConfigurationError("the OpenAI Agents SDK can't be sent an assistant message that holds more than text")
    return [{"role": str(message.role), "content": "".join(texts) if is_text else parts}]


def _part(content: TextContent | DataContent | UriContent) -> Item:
    match content:
        case TextContent(text):
            return {"type": "input_text", "text": text}
        case UriContent(uri, media_type) if media_type.startswith("image/"):
            return {"type": "input_image", "image_url": uri, "detail": "auto"}
        case UriContent(uri):
            return {"type": "input_file", "file_url": uri}
        case DataContent(data, media_type):
            url = f"data:{media_type};base64,{base64.b64encode(data).decode()}"
            if media_type.startswith("image/"):
                return {"type": "input_image", "image_url": url, "detail": "auto"}
            return {"type": "input_file", "file_data": url, "filename": "file"}


def _tool_item(content: FunctionCallContent | FunctionResultContent) -> Item:
    if isinstance(content, FunctionCallContent):
        given = content.arguments
        arguments = given if isinstance(given, str) else json.dumps(given or {})
        return {"type": "function_call", "call_id": content.call_id, "name": content.name, "arguments": arguments}
    result = content.result if isinstance(content.result, str) else json.dumps(content.result, default=str)
    return {"type": "function_call_output", "call_id": content.call_id, "output": result}


def from_items(items: Iterable[Any]) -> list[ChatMessage]:
    """The items of a run as messages: what the assistant says or asks for up to a tool's result is one message."""
    messages: list[ChatMessage] = []
    for item in items:
        role, contents = from_item(item)
        if not contents:
            continue
        if not messages or messages[-1].role != role:
            messages.append(ChatMessage(role, [], author_name=author_of(item) if role != ChatRole.TOOL else None))
        messages[-1].contents += contents
    return messages


def from_item(item: Any) -> tuple[str, list[Content]]:
    """The role and the contents of one item; no contents for what is no part of a conversation."""
    match item.type:
        case "message_output_item":
            return ChatRole.ASSISTANT, _message_contents(item.raw_item)
        case "reasoning_item":
            return ChatRole.ASSISTANT, _reasoning(item.raw_item)
        case "tool_call_item" | "handoff_call_item":
            return ChatRole.ASSISTANT, [_call(item.raw_item)]
        case "tool_call_output_item" | "handoff_output_item":
            return ChatRole.TOOL, [FunctionResultContent(_field(item.raw_item, "call_id") or "", _output(item))]
        case "tool_approval_item":
            return ChatRole.ASSISTANT, [approval_request(item)]
        case _:
            return ChatRole.ASSISTANT, []


def approval_request(item: Any) -> ToolApprovalRequestContent:
    """A tool call that waits for approval; the call's id is the request's."""
    call = FunctionCallContent(item.call_id or "", item.name or "", read_arguments(item.arguments))
    return ToolApprovalRequestContent(call.call_id, call)


def author_of(item: Any) -> str | None:
    """The name of the agent that an item is of."""
    return getattr(getattr(item, "agent", None), "name", None)


def usage_of(responses: Sequence[Any]) -> UsageDetails | None:
    """What the model calls used. The SDK writes zeros where nothing was reported."""
    return sum_usage(_usage(response.usage) for response in responses)


def _usage(usage: Any) -> UsageDetails | None:
    if not usage.total_tokens and not usage.input_tokens and not usage.output_tokens:
        return None
    return UsageDetails(
        usage.input_tokens,
        usage.output_tokens,
        usage.total_tokens,
        usage.input_tokens_details.cached_tokens or None,
        usage.output_tokens_details.reasoning_tokens or None,
    )


def _message_contents(raw: Any) -> list[Content]:
    contents: list[Content] = []
    for part in raw.content:
        if part.type == "output_text":
            contents.append(TextContent(part.text))
        elif part.type == "refusal":
            contents.append(ErrorContent(part.refusal, code="refusal"))
    return contents


def _reasoning(raw: Any) -> list[Content]:
    parts: list[Any] = [*(raw.summary or ()), *(raw.content or ())]
    return [TextReasoningContent(part.text) for part in parts if part.text]


def _call(raw: Any) -> FunctionCallContent:
    kind = _field(raw, "type") or ""
    if kind == "function_call":
        return FunctionCallContent(
            _field(raw, "call_id"), _field(raw, "name"), read_arguments(_field(raw, "arguments"))
        )
    described = cast("Item", raw) if isinstance(raw, dict) else raw.model_dump(mode="json", exclude_unset=True)
    return FunctionCallContent(_field(raw, "call_id") or _field(raw, "id") or "", kind, described)


def _output(item: Any) -> JsonValue:
    output: Any = getattr(item, "output", None)
    if output is None:
        output = _field(item.raw_item, "output")
    return output if isinstance(output, str) else json.loads(json.dumps(output, default=str))


def _field(raw: Any, name: str) -> Any:
    return cast("Item", raw).get(name) if isinstance(raw, dict) else getattr(raw, name, None)
