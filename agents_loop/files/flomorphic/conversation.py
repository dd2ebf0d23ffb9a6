"""The conversation that an `llm` node keeps in the context, and what its model is sent of it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, cast

from agents_loop.files.flomorphic.graph import FlowFunction, SeedMessage
from agents_loop.files.flomorphic.templates import fill, inlined
from agents_loop.judging.strict_json import strict_json
from agents_loop.messages import (
    ChatMessage,
    ChatRole,
    Content,
    FunctionCallContent,
    FunctionResultContent,
    JsonValue,
    TextContent,
)

_FOLLOWED = "The call was taken as the choice of how to go on."
"""The result of a call by which a flow went on: providers demand one for each call before they go on."""


class ConversationError(ValueError):
    """What stands in the context is no conversation."""


def seeded(seeds: Sequence[SeedMessage], root: JsonValue, this: JsonValue) -> list[dict[str, JsonValue]]:
    """The first messages of a conversation; blank ones are left out.

    Raises:
        ConversationError: No message is left that could be answered.
    """
    filled = [{"role": seed.role, "content": fill(seed.content, root, this)} for seed in seeds]
    messages: list[dict[str, JsonValue]] = [message for message in filled if message["content"].strip()]
    if all(message["role"] == ChatRole.SYSTEM for message in messages):
        raise ConversationError("there is no message to send: it needs a user message that is not blank")
    return messages


def chat_messages(messages: Sequence[JsonValue]) -> list[ChatMessage]:
    """The messages of the context as a model is sent them.

    Raises:
        ConversationError: One is no message.
    """
    said: list[ChatMessage] = []
    open_calls: list[FunctionCallContent] = []
    for number, given in enumerate(messages):
        if not isinstance(given, dict):
            raise ConversationError(f"messages[{number}] is no message: {given!r:.60}")
        message = cast("dict[str, Any]", given)
        if message.get("role") == ChatRole.TOOL:
            call_id = str(message.get("tool_call_id") or (open_calls[0].call_id if open_calls else f"call-{number}"))
            open_calls = [call for call in open_calls if call.call_id != call_id]
            result = FunctionResultContent(call_id, _content_of(message))
            said.append(ChatMessage(ChatRole.TOOL, [result]))
            continue
        said += _results(open_calls)
        one, open_calls = _message(number, message)
        said.append(one)
    return said + _results(open_calls)


def _message(number: int, message: dict[str, Any]) -> tuple[ChatMessage, list[FunctionCallContent]]:
    role = message.get("role") or ChatRole.USER
    if role not in (ChatRole.SYSTEM, ChatRole.USER, ChatRole.ASSISTANT):
        raise ConversationError(f"messages[{number}] has the role {role!r:.40}: there are system, user and assistant")
    text = _content_of(message)
    calls = _calls(number, message.get("tool_calls")) if role == ChatRole.ASSISTANT else []
    contents: list[Content] = [TextContent(text)] if text or not calls else []
    return ChatMessage(ChatRole(role), [*contents, *calls]), calls


def _content_of(message: dict[str, Any]) -> str:
    content = message.get("content")
    return "" if content is None else inlined(content)


def _calls(number: int, given: Any) -> list[FunctionCallContent]:
    calls: list[FunctionCallContent] = []
    for index, each in enumerate(cast("list[Any]", given) if isinstance(given, list) else []):
        call = cast("dict[str, Any]", each) if isinstance(each, dict) else {}
        if not isinstance(call.get("name"), str):
            raise ConversationError(f"messages[{number}].tool_calls[{index}] is no call: {each!r:.60}")
        calls.append(
            FunctionCallContent(
                str(call.get("id") or f"call-{number}-{index}"), call["name"], inlined(call.get("arguments") or "{}")
            )
        )
    return calls


def _results(calls: Sequence[FunctionCallContent]) -> list[ChatMessage]:
    return [ChatMessage(ChatRole.TOOL, [FunctionResultContent(call.call_id, _FOLLOWED)]) for call in calls]


def wire_functions(functions: Sequence[FlowFunction]) -> list[dict[str, JsonValue]]:
    """The functions as a model is offered them: their name, description and parameters, and nothing else."""
    return [{"type": "function", "function": _described(function)} for function in functions]


def _described(function: FlowFunction) -> dict[str, JsonValue]:
    described: dict[str, JsonValue] = {"name": function.name}
    if function.description:
        described["description"] = function.description
    return described | {"parameters": dict(function.parameters)}


def calls_in(messages: Sequence[ChatMessage]) -> list[FunctionCallContent]:
    """The calls of a reply, in order: those of the assistant, whatever else it holds."""
    said = [message for message in messages if message.role == ChatRole.ASSISTANT]
    contents = [content for message in said for content in message.contents]
    return [content for content in contents if isinstance(content, FunctionCallContent)]


def assistant_message(text: str, calls: Sequence[FunctionCallContent]) -> dict[str, JsonValue]:
    """A reply as the context keeps it. Arguments are a text: the JSON that the model wrote."""
    message: dict[str, JsonValue] = {"role": "assistant", "content": text}
    if calls:
        message["tool_calls"] = [
            {"id": call.call_id, "name": call.name, "arguments": arguments_text(call)} for call in calls
        ]
    return message


def arguments_text(call: FunctionCallContent) -> str:
    """A call's arguments as JSON text."""
    if isinstance(call.arguments, str):
        return call.arguments
    return json.dumps(call.arguments or {}, ensure_ascii=False, separators=(",", ":"))


def arguments_of(call: FunctionCallContent) -> JsonValue:
    """A call's arguments as a value; the text itself where it is no JSON."""
    text = arguments_text(call)
    try:
        return strict_json(text)
    except ValueError:
        return text
