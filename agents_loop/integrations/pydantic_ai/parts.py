"""Messages as the framework's model messages, and back."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

from pydantic_core import to_jsonable_python

from agents_loop.call_json import read_arguments
from agents_loop.errors import ConfigurationError
from agents_loop.integrations.pydantic_ai.sdk import load_pydantic_ai
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
)

_URLS = {"image": "ImageUrl", "audio": "AudioUrl", "video": "VideoUrl"}


def to_prompt(messages: Sequence[ChatMessage]) -> tuple[list[Any], str | list[Any] | None]:
    """What was said before the prompt, as model messages; and the prompt: all that the user said last, in order."""
    start = len(messages)
    while start and messages[start - 1].role == ChatRole.USER and _is_said(messages[start - 1]):
        start -= 1
    prompt = [part for message in messages[start:] for part in _user_parts(message)]
    if not prompt:
        return _to_history(messages[:start]), None
    return _to_history(messages[:start]), prompt[0] if len(prompt) == 1 and isinstance(prompt[0], str) else prompt


def from_history(history: Iterable[Any]) -> list[ChatMessage]:
    """What the agent and its tools said: each model response is one message, and so are the results that follow it."""
    messages: list[ChatMessage] = []
    for said in history:
        contents = from_parts(said.parts)
        if contents:
            messages.append(ChatMessage(ChatRole.ASSISTANT if said.kind == "response" else ChatRole.TOOL, contents))
    return messages


def from_parts(parts: Iterable[Any]) -> list[Content]:
    """The contents of parts; prompts, and what the framework tells the model by itself, have none."""
    return [content for part in parts if (content := from_part(part)) is not None]


def from_part(part: Any) -> Content | None:  # noqa: PLR0911 - one case a kind
    """The content of one part."""
    match part.part_kind:
        case "text":
            return TextContent(part.content) if part.content else None
        case "thinking":
            return TextReasoningContent(part.content) if part.content else None
        case "file":
            return DataContent(part.content.data, part.content.media_type)
        case "tool-call" | "builtin-tool-call":
            return FunctionCallContent(part.tool_call_id, part.tool_name, _arguments(part.args))
        case "tool-return" | "builtin-tool-return":
            return FunctionResultContent(part.tool_call_id, as_json(part.content))
        case "retry-prompt" if part.tool_name:
            return FunctionResultContent(part.tool_call_id, part.model_response())
        case _:
            return None


def output_text(output: Any) -> str:
    """A structured output as JSON."""
    return json.dumps(as_json(output), ensure_ascii=False)


def as_json(value: Any) -> JsonValue:
    """A value as JSON; what is none is written as a str."""
    return to_jsonable_python(value, fallback=str, bytes_mode="base64")


def from_usage(usage: Any) -> UsageDetails | None:
    """What a run used. The framework writes zeros where nothing was reported."""
    if not usage.input_tokens and not usage.output_tokens:
        return None
    details = dict(usage.details)
    return UsageDetails(
        usage.input_tokens,
        usage.output_tokens,
        usage.input_tokens + usage.output_tokens,
        usage.cache_read_tokens or None,
        details.pop("reasoning_tokens", None),
        details or None,
    )


def _is_said(message: ChatMessage) -> bool:
    return not any(isinstance(content, FunctionResultContent) for content in message.contents)


def _to_history(messages: Iterable[ChatMessage]) -> list[Any]:
    framework = load_pydantic_ai("a Pydantic AI message")
    history: list[Any] = []
    for message in messages:
        if message.role == ChatRole.ASSISTANT:
            parts = [_response_part(framework, content) for content in message.contents]
            history.append(framework.ModelResponse(parts=[part for part in parts if part is not None]))
        elif message.role == ChatRole.SYSTEM:
            history.append(framework.ModelRequest(parts=[framework.SystemPromptPart(message.text)]))
        else:
            history.append(framework.ModelRequest(parts=_request_parts(framework, message)))
    return history


def _response_part(framework: Any, content: Content) -> Any:
    match content:
        case TextContent(text):
            return framework.TextPart(text)
        case TextReasoningContent(text):
            return framework.ThinkingPart(text)
        case FunctionCallContent(call_id, name, arguments):
            return framework.ToolCallPart(name, arguments, call_id)
        case DataContent(data, media_type):
            return framework.FilePart(framework.BinaryContent(data, media_type=media_type))
        case _:
            return None


def _request_parts(framework: Any, message: ChatMessage) -> list[Any]:
    parts: list[Any] = [
        framework.ToolReturnPart("", content.result, content.call_id)
        for content in message.contents
        if isinstance(content, FunctionResultContent)
    ]
    said = _user_parts(message)
    return [*parts, framework.UserPromptPart(said)] if said else parts


def _user_parts(message: ChatMessage) -> list[Any]:
    framework = load_pydantic_ai("a Pydantic AI message")
    parts: list[Any] = []
    for content in message.contents:
        match content:
            case TextContent(text):
                parts.append(text)
            case DataContent(data, media_type):
                parts.append(framework.BinaryContent(data, media_type=media_type))
            case UriContent(uri, media_type):
                kind = _URLS.get(media_type.partition("/")[0], "DocumentUrl")
                parts.append(getattr(framework, kind)(uri, media_type=media_type))
            case FunctionCallContent():
                raise ConfigurationError("a user message can't hold a function call: an assistant message does")
            case _:
                pass
    return parts


def _arguments(given: Any) -> dict[str, JsonValue] | str | None:
    if not isinstance(given, str):
        return None if given is None else as_json(given)
    return read_arguments(given)
