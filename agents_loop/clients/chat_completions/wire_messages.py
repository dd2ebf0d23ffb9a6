"""Our messages as the API wants them.

Reasoning, usage, errors and approvals are not sent: the API has no place for them.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterable, Sequence
from typing import Any

from agents_loop.call_json import json_text
from agents_loop.errors import ConfigurationError
from agents_loop.messages import (
    ChatMessage,
    ChatRole,
    Content,
    DataContent,
    ErrorContent,
    FunctionCallContent,
    FunctionResultContent,
    TextContent,
    TextReasoningContent,
    ToolApprovalRequestContent,
    ToolApprovalResponseContent,
    UriContent,
    UsageContent,
)
from agents_loop.well_formed import well_formed

Wire = dict[str, Any]

_NOT_SENT = (
    TextReasoningContent,
    UsageContent,
    ErrorContent,
    ToolApprovalRequestContent,
    ToolApprovalResponseContent,
)
_ROLES = (ChatRole.SYSTEM, "developer", ChatRole.USER, ChatRole.ASSISTANT, ChatRole.TOOL)
_AUDIO_FORMATS = {
    "audio/wav": "wav",
    "audio/x-wav": "wav",
    "audio/wave": "wav",
    "audio/vnd.wave": "wav",
    "audio/mpeg": "mp3",
    "audio/mp3": "mp3",
}
_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")


def wire_messages(messages: Iterable[ChatMessage]) -> list[Wire]:
    """All messages, in order. One without anything to send is left out.

    Raises:
        ConfigurationError: A role or a content that the API does not know.
    """
    return [wire for message in messages for wire in _wire_message(message)]


def _wire_message(message: ChatMessage) -> list[Wire]:
    """One message for the contents between two function results, and one for each result."""
    if message.role not in _ROLES:
        known = ", ".join(str(role) for role in _ROLES)
        raise ConfigurationError(f"the chat completions API has no role {message.role!r}; it has {known}")
    wires: list[Wire] = []
    together: list[Content] = []
    for content in message.contents:
        if isinstance(content, FunctionResultContent):
            wires += _spoken(message, together)
            wires.append(_result(content))
            together = []
        elif not isinstance(content, _NOT_SENT):
            together.append(content)
    return wires + _spoken(message, together)


def _spoken(message: ChatMessage, contents: Sequence[Content]) -> list[Wire]:
    if not contents:
        return []
    if message.role == ChatRole.TOOL:
        raise _unsupported(contents[0], "a tool message holds function results only")
    wire: Wire = {"role": str(message.role)}
    calls = [content for content in contents if isinstance(content, FunctionCallContent)]
    rest = [content for content in contents if not isinstance(content, FunctionCallContent)]
    if rest or not calls:
        wire["content"] = _content(message, rest)
    if calls and message.role != ChatRole.ASSISTANT:
        raise _unsupported(calls[0], f"a {message.role} message can't hold it")
    if calls:
        wire["tool_calls"] = [_call(call) for call in calls]
    if message.author_name and _NAME.fullmatch(message.author_name):
        wire["name"] = message.author_name
    return [wire]


def _content(message: ChatMessage, contents: Sequence[Content]) -> str | list[Wire]:
    """A plain str where all is text, parts otherwise."""
    texts = [content.text for content in contents if isinstance(content, TextContent)]
    if len(texts) == len(contents):
        return well_formed("".join(texts))
    if message.role != ChatRole.USER:
        other = next(content for content in contents if not isinstance(content, TextContent))
        raise _unsupported(other, f"a {message.role} message holds text only")
    return [_part(content) for content in contents]


def _part(content: Content) -> Wire:
    match content:
        case TextContent(text):
            return {"type": "text", "text": well_formed(text)}
        case UriContent(uri, media_type) if media_type.lower().startswith("image/"):
            return {"type": "image_url", "image_url": {"url": uri}}
        case DataContent(data, media_type):
            return _data_part(content, base64.b64encode(data).decode(), media_type.partition(";")[0].strip())
        case _:
            raise _unsupported(content)


def _data_part(content: DataContent, data: str, media_type: str) -> Wire:
    kind = media_type.lower()
    if kind.startswith("image/"):
        return {"type": "image_url", "image_url": {"url": f"data:{media_type};base64,{data}"}}
    if kind in _AUDIO_FORMATS:
        return {"type": "input_audio", "input_audio": {"data": data, "format": _AUDIO_FORMATS[kind]}}
    if kind == "application/pdf":
        file = {"filename": "document.pdf", "file_data": f"data:{kind};base64,{data}"}
        return {"type": "file", "file": file}
    raise _unsupported(content)


def _call(call: FunctionCallContent) -> Wire:
    arguments = json_text({} if call.arguments is None else call.arguments)
    function = {"name": call.name, "arguments": well_formed(arguments)}
    return {"id": call.call_id, "type": "function", "function": function}


def _result(content: FunctionResultContent) -> Wire:
    return {"role": "tool", "tool_call_id": content.call_id, "content": well_formed(json_text(content.result))}


def _unsupported(content: Content, why: str = "it takes text, images, audio (wav, mp3) and PDF") -> ConfigurationError:
    kind = type(content).__name__
    if isinstance(content, DataContent | UriContent):
        kind += f" of type {content.media_type!r}"
    return ConfigurationError(f"the chat completions API can't be sent a {kind}: {why}")
