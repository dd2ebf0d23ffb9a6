"""Messages and options as one request."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from pydantic import BaseModel

from agents_loop.chat_client import ChatOptions, JsonSchemaFormat, ResponseFormat
from agents_loop.clients.chat_completions.dialect import Dialect
from agents_loop.clients.chat_completions.schema import model_format
from agents_loop.clients.chat_completions.wire_messages import Wire, wire_messages
from agents_loop.errors import ConfigurationError
from agents_loop.messages import ChatMessage
from agents_loop.tools import FunctionTool, Tool, as_tool
from agents_loop.well_formed import well_formed

_ANY_OBJECT = "Answer with one JSON object and nothing else."
_OF_SCHEMA = "Answer with one JSON object that is valid against this JSON schema, and nothing else:\n"


class Request:
    """One call, before it is known how the endpoint wants it put.

    Structured output has three rungs. Where `json_schema` was rejected, `json_object` is asked for and a system
    message at the end of the request says the schema (that mode demands the word JSON in the prompt). Where that
    was rejected too, the messages are sent as they are, and asking for JSON is left to them. The caller's own
    messages are never changed.

    Args:
        messages: What the model is to see.
        options: The call's options, defaults included.
        model_id: The model to ask.
        streaming: Whether the answer is to come in pieces.
    """

    def __init__(
        self, messages: Sequence[ChatMessage], options: ChatOptions, model_id: str, *, streaming: bool
    ) -> None:
        self._messages = wire_messages(messages)
        self._options = options
        self._model_id = model_id
        self._streaming = streaming
        self._format = _wire_format(options.response_format)

    def put(self, dialect: Dialect) -> Wire:
        """The arguments of `chat.completions.create`. What the caller did not ask for is not in them."""
        options = self._options
        asked: Wire = {
            "model": self._model_id,
            "messages": self._messages,
            "temperature": options.temperature,
            "top_p": options.top_p,
            dialect.max_tokens_parameter: options.max_output_tokens,
            "stop": [well_formed(stop) for stop in options.stop_sequences or ()] or None,
            "seed": options.seed,
            "frequency_penalty": options.frequency_penalty,
            "presence_penalty": options.presence_penalty,
            **_log_probabilities(options.top_logprobs, dialect),
            "tools": [_wire_tool(given) for given in options.tools] or None,
            "stream_options": {"include_usage": True} if self._streaming and dialect.stream_options else None,
            "extra_body": dict(options.additional_properties or {}) or None,
        }
        self._put_format(asked, dialect.rejected_formats)
        return {name: value for name, value in asked.items() if value is not None}

    def _put_format(self, asked: Wire, rejected: set[str]) -> None:
        wanted = self._format
        if wanted is None:
            return
        if wanted["type"] not in rejected:
            asked["response_format"] = wanted
        elif "json_object" not in rejected:
            asked["response_format"] = {"type": "json_object"}
        else:
            return
        if asked["response_format"]["type"] == "json_object":
            asked["messages"] = [*self._messages, *self._instruction(wanted)]

    def _instruction(self, wanted: Wire) -> list[Wire]:
        """The word JSON, which `json_object` demands: with the schema, or where the prompt does not have it."""
        if wanted["type"] == "json_schema":
            schema = json.dumps(wanted["json_schema"]["schema"], ensure_ascii=False)
            return [{"role": "system", "content": well_formed(_OF_SCHEMA + schema)}]
        prompt = json.dumps([message.get("content") for message in self._messages])
        return [] if "json" in prompt.lower() else [{"role": "system", "content": _ANY_OBJECT}]


def _log_probabilities(alternatives: int | None, dialect: Dialect) -> Wire:
    return {} if alternatives is None or not dialect.logprobs else {"logprobs": True, "top_logprobs": alternatives}


def _wire_tool(given: Tool) -> Wire:
    """A function tool as the API declares it; a mapping as it stands."""
    offered = as_tool(given)
    if not isinstance(offered, FunctionTool):
        return dict(offered)
    function: Wire = {"name": offered.name, "parameters": offered.parameters}
    if offered.description:
        function["description"] = well_formed(offered.description)
    return {"type": "function", "function": function}


def _wire_format(response_format: ResponseFormat | None) -> dict[str, Any] | None:
    match response_format:
        case None | "text":
            return None
        case "json_object":
            return {"type": "json_object"}
        case JsonSchemaFormat():
            schema = response_format
        case type() if issubclass(response_format, BaseModel):  # pyright: ignore[reportUnnecessaryIsInstance]
            schema = model_format(response_format)
        case _:
            raise ConfigurationError(
                f"response_format must be a pydantic model class, a JsonSchemaFormat, 'json_object' or 'text', "
                f"not {response_format!r}"
            )
    body = {"name": schema.name, "schema": dict(schema.schema), "strict": schema.strict}
    return {"type": "json_schema", "json_schema": body}
