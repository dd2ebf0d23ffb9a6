"""Messages as JSON and back. A content is an object with a `type`; bytes are base64."""

from __future__ import annotations

import base64
import dataclasses
import functools
from collections.abc import Mapping
from typing import Any, cast

from pydantic import TypeAdapter, ValidationError

from agents_loop.errors import SessionStateError
from agents_loop.messages import (
    ChatMessage,
    Content,
    DataContent,
    ErrorContent,
    FunctionCallContent,
    FunctionResultContent,
    JsonValue,
    TextContent,
    TextReasoningContent,
    ToolApprovalRequestContent,
    ToolApprovalResponseContent,
    UriContent,
    UsageContent,
    UsageDetails,
)

_TYPE_NAMES: dict[type[Content], str] = {
    TextContent: "text",
    TextReasoningContent: "reasoning",
    DataContent: "data",
    UriContent: "uri",
    FunctionCallContent: "function_call",
    FunctionResultContent: "function_result",
    ToolApprovalRequestContent: "tool_approval_request",
    ToolApprovalResponseContent: "tool_approval_response",
    UsageContent: "usage",
    ErrorContent: "error",
}
_TYPES = {name: content_type for content_type, name in _TYPE_NAMES.items()}


def usage_to_json(usage: UsageDetails) -> dict[str, JsonValue]:
    """The counters that were reported; the others are left out."""
    return {name: count for name, count in dataclasses.asdict(usage).items() if count is not None}


def content_to_json(content: Content) -> dict[str, JsonValue]:
    """One content as an object with its `type`."""
    fields: dict[str, JsonValue] = {"type": _TYPE_NAMES[type(content)]}
    match content:
        case DataContent():
            fields |= {"data": base64.b64encode(content.data).decode(), "media_type": content.media_type}
        case UsageContent():
            fields["details"] = usage_to_json(content.details)
        case _:
            fields |= dataclasses.asdict(content)
    return fields


def message_to_json(message: ChatMessage) -> dict[str, JsonValue]:
    """One message; what it does not have is left out."""
    fields: dict[str, JsonValue] = {
        "role": str(message.role),
        "contents": [content_to_json(content) for content in message.contents],
        "author_name": message.author_name,
        "message_id": message.message_id,
        "additional_properties": message.additional_properties,
    }
    return {name: value for name, value in fields.items() if value is not None}


@functools.cache
def _adapter(content_type: type[Content]) -> TypeAdapter[Content]:
    return TypeAdapter(content_type)


def content_from_json(value: JsonValue) -> Content:
    """Read one content.

    Raises:
        SessionStateError: The value is not a content of a known type.
    """
    if not isinstance(value, Mapping):
        raise SessionStateError(f"a content must be an object with a `type`, not {value!r}")
    fields = dict(cast("Mapping[str, Any]", value))
    name = fields.pop("type", None)
    content_type = _TYPES.get(name) if isinstance(name, str) else None
    if content_type is None:
        raise SessionStateError(f"unknown content type {name!r}; known: {', '.join(_TYPES)}")
    try:
        if content_type is DataContent:
            fields["data"] = base64.b64decode(fields.get("data", b"!"), validate=True)
        return _adapter(content_type).validate_python(fields)
    except (ValidationError, ValueError, TypeError) as error:
        raise SessionStateError(f"a stored {name!r} content can't be read: {error}") from error


def message_from_json(value: JsonValue) -> ChatMessage:
    """Read one message.

    Raises:
        SessionStateError: The value is not a message.
    """
    try:
        read = _message_adapter().validate_python(value)
    except ValidationError as error:
        raise SessionStateError(f"a stored message can't be read: {error}") from error
    return ChatMessage(
        read.role,
        [content_from_json(content) for content in read.contents],
        author_name=read.author_name,
        message_id=read.message_id,
        additional_properties=read.additional_properties,
    )


@dataclasses.dataclass(slots=True)
class _StoredMessage:
    role: str
    contents: list[Any]
    author_name: str | None = None
    message_id: str | None = None
    additional_properties: dict[str, Any] | None = None


@functools.cache
def _message_adapter() -> TypeAdapter[_StoredMessage]:
    return TypeAdapter(_StoredMessage)
