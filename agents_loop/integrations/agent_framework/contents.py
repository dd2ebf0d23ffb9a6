"""Messages, contents and usage: ours as the framework's, and back."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, cast

from agents_loop.call_json import read_arguments
from agents_loop.ids import new_id
from agents_loop.integrations.agent_framework.sdk import load_agent_framework
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

_COUNTERS = {
    "input_token_count": "input_token_count",
    "output_token_count": "output_token_count",
    "total_token_count": "total_token_count",
    "cached_input_token_count": "cache_read_input_token_count",
    "reasoning_token_count": "reasoning_output_token_count",
}
"""Our counters, and what the framework calls them."""


def to_framework(messages: Iterable[ChatMessage], requests: Mapping[str, Any] | None = None) -> list[Any]:
    """Messages as the framework's. Each has an id: without one, a turn that was said before would not be kept.

    Args:
        messages: Ours.
        requests: The framework's own approval requests by id, which responses are bound to.
    """
    framework = load_agent_framework("an Agent Framework message")
    return [
        framework.Message(
            str(message.role),
            [_to_content(framework.Content, content, requests or {}) for content in message.contents],
            author_name=message.author_name,
            message_id=message.message_id or new_id(),
            additional_properties=message.additional_properties,
        )
        for message in messages
    ]


def from_framework(messages: Iterable[Any]) -> list[ChatMessage]:
    """The framework's messages as ours; usage is no part of a message."""
    return [
        ChatMessage(
            str(message.role),
            [content for content in from_contents(message.contents) if not isinstance(content, UsageContent)],
            author_name=message.author_name,
            message_id=message.message_id,
        )
        for message in messages
    ]


def from_contents(contents: Iterable[Any]) -> list[Content]:
    """The framework's contents as ours."""
    return [_from_content(content) for content in contents]


def refusal_in(contents: Iterable[Any]) -> str:
    """What a model said in refusing. The framework passes it on as text, with a mark that tells it apart."""
    return "".join([content.text or "" for content in contents if content.type == "text" and _is_refusal(content)])


def _is_refusal(content: Any) -> bool:
    marks: dict[str, Any] = content.additional_properties or {}
    core: dict[str, Any] = marks.get("core") or {}
    return "refusal" in (marks.get("model_output_kind"), core.get("model_output_kind"))


def from_usage(usage: Mapping[str, Any] | None) -> UsageDetails | None:
    """The counters that were reported; those without a field of ours keep their names."""
    if not usage:
        return None
    known = {ours: usage.get(theirs) for ours, theirs in _COUNTERS.items()}
    others = {name: count for name, count in usage.items() if name not in _COUNTERS.values() and isinstance(count, int)}
    return UsageDetails(**known, additional_counts=others or None)


def to_usage(usage: UsageDetails | None) -> dict[str, int] | None:
    """Our counters under the framework's names."""
    if usage is None:
        return None
    named = {theirs: getattr(usage, ours) for ours, theirs in _COUNTERS.items()}
    return {name: count for name, count in named.items() if count is not None} | (usage.additional_counts or {})


def from_time(created_at: object) -> float | None:
    """Seconds since the epoch, from the framework's ISO time."""
    try:
        return datetime.fromisoformat(created_at).timestamp() if isinstance(created_at, str) else None
    except ValueError:
        return None


def _to_content(kind: Any, content: Content, requests: Mapping[str, Any]) -> Any:  # noqa: C901, PLR0911 - one case a type
    match content:
        case TextContent(text):
            return kind.from_text(text)
        case TextReasoningContent(text):
            return kind.from_text_reasoning(text=text)
        case DataContent(data, media_type):
            return kind.from_data(data, media_type)
        case UriContent(uri, media_type):
            return kind.from_uri(uri, media_type=media_type)
        case FunctionCallContent():
            return _to_call(kind, content)
        case FunctionResultContent(call_id, result):
            return kind.from_function_result(call_id, result=result)
        case ToolApprovalRequestContent(request_id, tool_call):
            return kind.from_function_approval_request(request_id, _to_call(kind, tool_call, request_id))
        case ToolApprovalResponseContent(request_id, approved, tool_call):
            if request_id in requests:
                return requests[request_id].to_function_approval_response(approved)
            return kind.from_function_approval_response(approved, request_id, _to_call(kind, tool_call, request_id))
        case UsageContent(details):
            return kind.from_usage(to_usage(details))
        case ErrorContent(message):
            return kind.from_error(message=message, error_code=content.code)


def _to_call(kind: Any, call: FunctionCallContent, occurrence: str | None = None) -> Any:
    return kind.from_function_call(call.call_id, call.name, arguments=call.arguments, id=occurrence)


def _from_content(content: Any) -> Content:  # noqa: C901, PLR0911, PLR0912 - one case a type
    match content.type:
        case "text":
            return TextContent(content.text)
        case "text_reasoning":
            return TextReasoningContent(content.text or "")
        case "data" | "uri":
            return _from_uri(content.uri, content.media_type)
        case "hosted_file":
            return UriContent(content.file_id, content.media_type or "application/octet-stream")
        case "error":
            return ErrorContent(content.message or content.error_details or "error", code=content.error_code)
        case "usage":
            return UsageContent(from_usage(content.usage_details) or UsageDetails())
        case "function_call":
            return _from_call(content)
        case "function_result":
            return FunctionResultContent(content.call_id, _json(content.exception or content.result))
        case "function_approval_request":
            return ToolApprovalRequestContent(content.id, _from_call(content.function_call))
        case "function_approval_response":
            return ToolApprovalResponseContent(content.id, content.approved, _from_call(content.function_call))
        case str(kind) if content.user_input_request:  # a person is asked for something else, such as consent
            request_id = content.id or new_id()
            call = FunctionCallContent(request_id, kind, _described(content))
            return ToolApprovalRequestContent(request_id, call)
        case str(kind) if kind.endswith(("_result", "_output")):
            return FunctionResultContent(content.call_id or "", _described(content))
        case kind:  # what a service did by itself
            return FunctionCallContent(content.call_id or "", content.tool_name or kind, _described(content))


def _from_uri(uri: str, media_type: str | None) -> Content:
    head, found, data = uri.partition(";base64,")
    if not (found and head.startswith("data:")):
        return UriContent(uri, media_type or "application/octet-stream")
    return DataContent(base64.b64decode(data), media_type or head.removeprefix("data:"))


def _from_call(call: Any) -> FunctionCallContent:
    arguments: Any = call.arguments
    if isinstance(arguments, str):
        arguments = read_arguments(arguments)
    elif isinstance(arguments, Mapping):
        arguments = _json(dict(cast("Mapping[str, Any]", arguments)))
    return FunctionCallContent(call.call_id or "", call.name or "", arguments)


def _described(content: Any) -> dict[str, JsonValue]:
    return _json({name: value for name, value in content.to_dict().items() if name != "raw_representation"})


def _json(value: Any) -> Any:
    """The value, where it is JSON; what is not is written as a str."""
    if value is None or isinstance(value, str | int | float | bool):
        return value
    return json.loads(json.dumps(value, default=str))


def merged_calls(calls: Sequence[Any]) -> list[Any]:
    """Whole function calls from the pieces that a stream brings: a piece without a call id continues the last one."""
    whole: list[Any] = []
    for piece in calls:
        at = next((at for at, call in enumerate(whole) if piece.call_id and call.call_id == piece.call_id), None)
        if at is None and not piece.call_id and whole:
            at = len(whole) - 1
        if at is None:
            whole.append(piece)
        else:
            whole[at] = whole[at] + piece
    return whole
