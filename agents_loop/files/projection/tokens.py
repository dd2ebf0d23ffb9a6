"""How many tokens a text may have, without any model's tokenizer."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, cast

from agents_loop.message_json import content_to_json
from agents_loop.messages import ChatMessage, DataContent, TextContent, TextReasoningContent, UriContent
from agents_loop.tools import FunctionTool

_CHARACTERS_PER_TOKEN = 4


def estimated_tokens(text: str) -> int:
    """An estimate: as many as there are words, or a quarter of the characters, whichever is more; 0 for no text.

    It is that of the write-and-check example's own dry run. English prose comes out close; code and other languages
    may have half as many again, and more.
    """
    if not text:
        return 0
    return max(len(text.split()), 1, round(len(text) / _CHARACTERS_PER_TOKEN))


def tokens_of_messages(messages: Iterable[ChatMessage]) -> int:
    """The estimate for messages: images and files count nothing."""
    return sum(estimated_tokens(_text(content)) for message in messages for content in message.contents)


def tokens_of_tools(tools: Iterable[Any]) -> int:
    """The estimate for the descriptions of functions, which are sent with each call."""
    return sum(estimated_tokens(json.dumps(_described(tool))) for tool in tools)


def has_files(messages: Iterable[ChatMessage]) -> bool:
    """Whether there are images or files among the contents."""
    return any(isinstance(content, DataContent | UriContent) for message in messages for content in message.contents)


def _text(content: Any) -> str:
    if isinstance(content, TextContent | TextReasoningContent):
        return content.text
    return "" if isinstance(content, DataContent | UriContent) else json.dumps(content_to_json(content), default=repr)


def _described(tool: Any) -> dict[str, Any]:
    if isinstance(tool, Mapping):
        return dict(cast("Mapping[str, Any]", tool))
    if not isinstance(tool, FunctionTool):
        return {"name": getattr(tool, "__name__", repr(tool))}
    return {"name": tool.name, "description": tool.description, "parameters": tool.parameters}
