"""Chat options as the framework's."""

from __future__ import annotations

from typing import Any

from agents_loop.chat_client import ChatOptions, JsonSchemaFormat, ResponseFormat
from agents_loop.integrations.agent_framework.sdk import load_agent_framework
from agents_loop.tools import FunctionTool, Tool, as_tool

_NAMES = {
    "model_id": "model",
    "temperature": "temperature",
    "top_p": "top_p",
    "max_output_tokens": "max_tokens",
    "stop_sequences": "stop",
    "seed": "seed",
    "frequency_penalty": "frequency_penalty",
    "presence_penalty": "presence_penalty",
}


def to_options(options: ChatOptions | None) -> dict[str, Any]:
    """What is set, under the framework's names; what is not set is not sent."""
    if options is None:
        return {}
    named: dict[str, Any] = {theirs: getattr(options, ours) for ours, theirs in _NAMES.items()}
    named["stop"] = None if options.stop_sequences is None else list(options.stop_sequences)
    named["response_format"] = _format(options.response_format)
    named["tools"] = list(options.tools) or None
    return {name: value for name, value in named.items() if value is not None} | dict(
        options.additional_properties or {}
    )


def declared(given: Tool) -> Any:
    """A tool that the framework tells the model of and does not run; its own tools and mappings stay as they are."""
    framework = load_agent_framework("a tool")
    tool = given if isinstance(given, framework.FunctionTool) else as_tool(given)
    if not isinstance(tool, FunctionTool):
        return tool
    return framework.FunctionTool(
        name=tool.name, description=tool.description or "", func=None, input_model=tool.parameters
    )


def _format(response_format: ResponseFormat | None) -> Any:
    match response_format:
        case JsonSchemaFormat():
            schema = {
                "name": response_format.name,
                "schema": dict(response_format.schema),
                "strict": response_format.strict,
            }
            return {"type": "json_schema", "json_schema": schema}
        case "json_object":
            return {"type": "json_object"}
        case "text" | None:
            return None
        case model:
            return model
