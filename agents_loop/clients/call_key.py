"""What makes two calls of a model the same call."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, cast

from agents_loop.chat_client import ChatOptions, JsonSchemaFormat, ResponseFormat
from agents_loop.message_json import message_to_json
from agents_loop.messages import ChatMessage, JsonValue
from agents_loop.tools import FunctionTool

_FENCE = re.compile(r"</?[a-z][a-z_]*_([0-9a-f]{16})[ >]")
"""A tag of `judging.fences`, with its nonce."""


def call_json(model: str, messages: Sequence[ChatMessage], options: ChatOptions | None) -> dict[str, JsonValue]:
    """A call as JSON: all that the model gets to see, and all that is asked of it.

    Message ids are left out, since they are made anew in each run. So are the nonces of fences: each is replaced by
    its number, in order of appearance.

    Args:
        model: Who is asked.
        messages: What it is sent.
        options: What is asked of the call.
    """
    call: dict[str, JsonValue] = {
        "model": model,
        "messages": [_message_json(message) for message in messages],
        "options": _options_json(options or ChatOptions()),
    }
    text = json.dumps(call, ensure_ascii=False, default=repr)
    for number, nonce in enumerate(dict.fromkeys(_FENCE.findall(text)), start=1):
        text = text.replace(nonce, f"nonce-{number}")
    return cast("dict[str, JsonValue]", json.loads(text))


def key_of(call: Mapping[str, JsonValue]) -> str:
    """The SHA-256 of what `call_json` gave, as 64 hex digits. The same call has the same key on every machine."""
    text = json.dumps(call, ensure_ascii=True, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


class ModelCall(NamedTuple):
    """A call, with the key that is worked out once."""

    fields: dict[str, JsonValue]
    """What `call_json` gave."""
    key: str

    @classmethod
    def of(cls, model: str, messages: Sequence[ChatMessage], options: ChatOptions | None) -> ModelCall:
        """The call of a model."""
        fields = call_json(model, messages, options)
        return cls(fields, key_of(fields))


def _message_json(message: ChatMessage) -> dict[str, JsonValue]:
    fields = message_to_json(message)
    fields.pop("message_id", None)
    return fields


def _options_json(options: ChatOptions) -> dict[str, JsonValue]:
    fields = {each.name: getattr(options, each.name) for each in dataclasses.fields(options)}
    fields["response_format"] = _format_json(options.response_format)
    fields["tools"] = [_tool_json(tool) for tool in options.tools]
    fields["stop_sequences"] = options.stop_sequences and list(options.stop_sequences)
    fields["additional_properties"] = options.additional_properties and dict(options.additional_properties)
    return {name: value for name, value in fields.items() if value not in (None, [], {})}


def _format_json(response_format: ResponseFormat | None) -> JsonValue:
    if isinstance(response_format, type):
        return {"name": response_format.__name__, "schema": response_format.model_json_schema()}
    if isinstance(response_format, JsonSchemaFormat):
        return {"name": response_format.name, "schema": dict(response_format.schema), "strict": response_format.strict}
    return response_format


def _tool_json(tool: Any) -> JsonValue:
    if isinstance(tool, Mapping):
        return dict(cast("Mapping[str, JsonValue]", tool))
    made = tool if isinstance(tool, FunctionTool) else FunctionTool(tool)
    return {"name": made.name, "description": made.description, "parameters": dict(made.parameters)}
