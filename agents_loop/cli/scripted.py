"""Replies from a file, for tests and demonstrations: one JSON object a line, used in order."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from agents_loop.chat_client import ChatClient, ChatOptions, ChatResponse, FinishReason
from agents_loop.errors import ConfigurationError
from agents_loop.file_kinds import why_not_read
from agents_loop.files.counting import counted
from agents_loop.ids import new_id
from agents_loop.judging.strict_json import key_given_twice
from agents_loop.messages import ChatMessage, ChatRole, Content, FunctionCallContent, TextContent, UsageDetails
from agents_loop.testing import ScriptedChatClient, ScriptExhaustedError

_Count = Annotated[int, Field(ge=0)]


class _Closed(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class _Usage(_Closed):
    input_token_count: _Count | None = None
    output_token_count: _Count | None = None
    total_token_count: _Count | None = None
    cached_input_token_count: _Count | None = None
    reasoning_token_count: _Count | None = None


class _ToolCall(_Closed):
    name: Annotated[str, Field(min_length=1)]
    arguments: dict[str, Any] | str = Field(default_factory=dict)
    """A text stands for what a model wrote, which need not be JSON."""


class _Line(_Closed):
    text: str | None = None
    model: Annotated[str, Field(min_length=1)] | None = None
    usage: _Usage | None = None
    tool_calls: list[_ToolCall] = Field(default_factory=list[_ToolCall])


class Script:
    """The replies of one file, shared by all models that it answers for.

    Args:
        path: The file.

    Raises:
        ConfigurationError: It can't be read, or a line is no reply; the message says which.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._left = _read(path)
        self._total = len(self._left)
        self._calls = 0

    def client_for(self, model: str) -> ChatClient:
        """A client that answers as this model."""

        def answer(messages: Sequence[ChatMessage], options: ChatOptions | None) -> ChatResponse:
            del messages, options
            return self._take(model)

        return ScriptedChatClient(answer, name=str(self._path), model_id=model)

    def _take(self, model: str) -> ChatResponse:
        self._calls += 1
        for index, line in enumerate(self._left):
            if line.model is None or fnmatchcase(model, line.model):
                del self._left[index]
                return _response(line, model)
        left = f"; {counted(len(self._left), 'reply', 'replies')} left, for other models" if self._left else ""
        raise ScriptExhaustedError(
            f"{self._path} has {counted(self._total, 'reply', 'replies')} and none is left for call {self._calls}, "
            f"to the model {model!r}{left}: add a line to it"
        )


def _read(path: Path) -> list[_Line]:
    if why := why_not_read(path):
        raise ConfigurationError(f"{path}: the scripted replies can't be read: {why}")
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, ValueError) as error:
        said = getattr(error, "strerror", None) or "it is not UTF-8"
        raise ConfigurationError(f"{path}: the scripted replies can't be read: {said}") from error
    lines: list[_Line] = []
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        try:
            read = _Line.model_validate_json(line)
        except ValidationError as error:
            raise ConfigurationError(f"{path}:{number}: {_first(error)}") from error
        if twice := key_given_twice(line):
            raise ConfigurationError(f"{path}:{number}: {twice}")
        if read.text is None and not read.tool_calls:
            raise ConfigurationError(f"{path}:{number}: a reply needs `text` or `tool_calls`")
        lines.append(read)
    return lines


def _first(error: ValidationError) -> str:
    details = error.errors()[0]
    place = ".".join(str(part) for part in details["loc"])
    return f"{place}: {details['msg']}" if place else details["msg"]


def _response(line: _Line, model: str) -> ChatResponse:
    contents: list[Content] = [] if line.text is None else [TextContent(line.text)]
    numbers = itertools.count(1)
    contents += [FunctionCallContent(f"call-{next(numbers)}", call.name, call.arguments) for call in line.tool_calls]
    return ChatResponse(
        [ChatMessage(ChatRole.ASSISTANT, contents, message_id=new_id())],
        model_id=model,
        finish_reason=FinishReason.TOOL_CALLS if line.tool_calls else FinishReason.STOP,
        usage=None if line.usage is None else UsageDetails(**line.usage.model_dump()),
    )
