"""Our chat options as Semantic Kernel's execution settings, or as the arguments of a service agent's run.

A service has settings of its own class, and each class has names of its own for what can be set. An option that has no
place there is an error: it would be ignored otherwise. A response format is the exception: where a service has no
setting for it, asking for JSON is left to the messages.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from inspect import signature
from typing import Any, cast

from pydantic import BaseModel
from semantic_kernel.agents.agent import Agent
from semantic_kernel.connectors.ai.chat_completion_client_base import ChatCompletionClientBase
from semantic_kernel.connectors.ai.prompt_execution_settings import PromptExecutionSettings

from agents_loop.chat_client import ChatOptions, JsonSchemaFormat, ResponseFormat
from agents_loop.errors import ConfigurationError
from agents_loop.tools import FunctionTool, Tool, as_tool

_NAMES: dict[str, tuple[str, ...]] = {
    "model_id": ("ai_model_id", "model"),
    "temperature": ("temperature",),
    "top_p": ("top_p",),
    "max_output_tokens": ("max_completion_tokens", "max_output_tokens", "max_tokens"),
    "stop_sequences": ("stop", "stop_sequences"),
    "seed": ("seed", "random_seed"),
    "frequency_penalty": ("frequency_penalty",),
    "presence_penalty": ("presence_penalty",),
}
"""Our options, and the names under which services know them; the first that is there is used."""


def service_settings(
    service: ChatCompletionClientBase, base: PromptExecutionSettings | None, options: ChatOptions
) -> PromptExecutionSettings:
    """Settings of the service's own class: a copy of `base` with the options laid over it.

    Raises:
        ConfigurationError: The service has no setting for an option, or does not take its value.
    """
    kind = service.get_prompt_execution_settings_class()
    asked = _asked(options, kind.model_fields, type(service).__name__)
    kept = {} if base is None else _given(base)
    try:
        settings = kind(service_id=None if base is None else base.service_id, **{**kept, **asked})
    except ValueError as error:
        raise ConfigurationError(f"{kind.__name__} does not take the options {sorted(asked)}: {error}") from error
    if base is not None:
        settings.function_choice_behavior = base.function_choice_behavior
    return settings


def _given(settings: PromptExecutionSettings) -> dict[str, Any]:
    """What was set, without the fields that every settings class has."""
    names = settings.model_fields_set - {"service_id", "extension_data", "function_choice_behavior"}
    return {**settings.extension_data, **{name: getattr(settings, name) for name in names}}


def run_arguments(agent: Agent, invoke: Callable[..., Any], options: ChatOptions) -> dict[str, Any]:
    """The options as keyword arguments of an agent's run, for agents without execution settings.

    Raises:
        ConfigurationError: The run has no argument for an option.
    """
    return _asked(options, signature(invoke).parameters, type(agent).__name__)


def _asked(options: ChatOptions, known: Collection[str], owner: str) -> dict[str, Any]:
    asked: dict[str, Any] = {}
    for option, names in _NAMES.items():
        value = getattr(options, option)
        if value is None:
            continue
        name = next((name for name in names if name in known), None)
        if name is None:
            raise ConfigurationError(f"{owner} has no setting for {option}={value!r}: leave it out")
        asked[name] = list(cast("Sequence[Any]", value)) if isinstance(value, list | tuple) else value
    if options.tools:
        if "tools" not in known:
            raise ConfigurationError(f"{owner} has no setting for tools: leave them out")
        asked["tools"] = [_declared(tool) for tool in options.tools]
    asked |= _format(options.response_format, known)
    return asked | _others(options.additional_properties or {}, known, owner)


def _declared(given: Tool) -> dict[str, Any]:
    """A function tool as the chat completions API declares it; a mapping as it stands. Semantic Kernel runs neither."""
    tool = as_tool(given)
    if not isinstance(tool, FunctionTool):
        return dict(tool)
    function = {"name": tool.name, "description": tool.description or "", "parameters": tool.parameters}
    return {"type": "function", "function": function}


def _others(properties: Mapping[str, Any], known: Collection[str], owner: str) -> dict[str, Any]:
    """The provider's own parameters: as settings of their names, the rest in the body where a service takes that."""
    asked = {name: value for name, value in properties.items() if name in known}
    rest = {name: value for name, value in properties.items() if name not in known}
    if rest and "extra_body" not in known:
        raise ConfigurationError(f"{owner} has no setting for {sorted(rest)}: leave them out")
    return {**asked, "extra_body": rest} if rest else asked


def _format(response_format: ResponseFormat | None, known: Collection[str]) -> dict[str, Any]:
    """The format under the name that OpenAI and its kin, the Responses API, or Ollama have for it."""
    if response_format is None or response_format == "text":
        return {}
    if "response_format" in known:
        return {"response_format": _chat_format(response_format)}
    if "text" in known:
        return {"text": {"format": _flat_format(response_format)}}
    if "format" in known:
        return {"format": "json" if response_format == "json_object" else dict(_schema(response_format).schema)}
    return {}


def _chat_format(response_format: ResponseFormat) -> Any:
    """A pydantic model goes as it is: Semantic Kernel makes its strict schema."""
    if isinstance(response_format, type):
        return response_format
    if response_format == "json_object":
        return {"type": "json_object"}
    schema = _schema(response_format)
    body = {"name": schema.name, "schema": dict(schema.schema), "strict": schema.strict}
    return {"type": "json_schema", "json_schema": body}


def _flat_format(response_format: ResponseFormat) -> dict[str, Any]:
    if response_format == "json_object":
        return {"type": "json_object"}
    schema = _schema(response_format)
    return {"type": "json_schema", "name": schema.name, "schema": dict(schema.schema), "strict": schema.strict}


def _schema(response_format: ResponseFormat) -> JsonSchemaFormat:
    match response_format:
        case JsonSchemaFormat():
            return response_format
        case type() if issubclass(response_format, BaseModel):  # pyright: ignore[reportUnnecessaryIsInstance]
            return JsonSchemaFormat(response_format.__name__, response_format.model_json_schema(), strict=False)
        case _:
            raise ConfigurationError(
                "response_format must be a pydantic model class, a JsonSchemaFormat, 'json_object' or 'text', "
                f"not {response_format!r}"
            )
