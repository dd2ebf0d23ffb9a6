"""Recorded calls of models in a file: one JSON object a line, with the call, its key, and the reply."""

from __future__ import annotations

import dataclasses
import difflib
import errno
import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final, cast

from agents_loop.chat_client import ChatResponse
from agents_loop.clients.call_key import ModelCall, key_of
from agents_loop.errors import AgentsLoopError, ConfigurationError, SessionStateError
from agents_loop.file_kinds import why_not_read
from agents_loop.message_json import message_from_json, message_to_json, usage_to_json
from agents_loop.messages import JsonValue, UsageDetails

_START: Final = b'{"key": '
"""How every file of recorded calls begins."""
_SHOWN = 60
_COMPARED = 20_000
"""How many letters of each call are compared to find the nearest one."""


class UnknownCallError(AgentsLoopError):
    """A call is not among those that were recorded."""


class Recordings:
    """Recorded calls, in the order in which they were made.

    Args:
        path: The file.
        on_warning: Hears once that a reply can't be written down. The run goes on.
        leaves_out_torn: Whether lines that break off are left out, and told, wherever they stand: of a file that many
            runs add to, any of which may have been ended within a line. Otherwise only the last line may.

    Raises:
        ConfigurationError: The file can't be read, or holds something else.
    """

    def __init__(
        self, path: Path, on_warning: Callable[[str], None] | None = None, *, leaves_out_torn: bool = False
    ) -> None:
        self.path = path
        self._on_warning = on_warning
        self._leaves_out_torn = leaves_out_torn
        self._calls: dict[str, dict[str, JsonValue]] = {}
        self._replies: dict[str, list[dict[str, Any]]] = {}
        self._answers = True
        self._has_failed = False
        if path.exists():
            self._read()

    @classmethod
    def begin(cls, path: Path, on_warning: Callable[[str], None] | None = None) -> Recordings:
        """An empty file, for calls that are made from now on; recorded ones that are there already are replaced.

        Raises:
            ConfigurationError: It can't be written, or holds something else than recorded calls.
        """
        if why := why_not_read(path):
            raise ConfigurationError(f"{path}: calls can't be recorded there: {why}")
        try:
            if path.is_file() and path.read_bytes()[: len(_START)] not in (b"", _START):
                raise ConfigurationError(f"{path} is a file of another kind, and would be replaced")
            path.write_bytes(b"")
        except OSError as error:
            raise ConfigurationError(f"{path}: calls can't be recorded there: {error.strerror}") from error
        recordings = cls(path, on_warning)
        recordings._answers = False
        return recordings

    @classmethod
    def load(cls, path: Path) -> Recordings:
        """Calls that were recorded before.

        Raises:
            ConfigurationError: There is no such file, or it holds something else.
        """
        if why := why_not_read(path):
            raise ConfigurationError(f"{path}: the recorded calls can't be read: {why}")
        if not path.exists():
            raise ConfigurationError(f"{path}: there are no recorded calls: no such file")
        return cls(path)

    def __len__(self) -> int:
        return sum(map(len, self._replies.values()))

    def reply(self, call: ModelCall, number: int) -> ChatResponse | None:
        """What a call was answered when it was made for the n-th time, counted from 1; `None`: it was not."""
        replies = self._replies.get(call.key, ()) if self._answers else ()
        return _response(replies[number - 1]) if number <= len(replies) else None

    def add(self, call: ModelCall, response: ChatResponse) -> None:
        """Write a call and its reply down."""
        reply = _reply(response)
        self._calls[call.key] = call.fields
        self._replies.setdefault(call.key, []).append(reply)
        line = _line({"key": call.key, "call": call.fields, "reply": reply})
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            _append(self.path, line)
        except OSError as error:
            if not self._has_failed and self._on_warning is not None:
                self._on_warning(f"the calls in {str(self.path)!r} are not complete: {error.strerror}; the run goes on")
            self._has_failed = True

    def unknown(self, call: ModelCall, number: int) -> UnknownCallError:
        """The error for a call that was not recorded; it says what comes nearest."""
        model = call.fields["model"]
        recorded = len(self._replies.get(call.key, ()))
        said = f"{self.path} holds no reply for a call to the model {model!r}"
        if recorded:
            return UnknownCallError(f"{said}: it is made for the {number}. time, and was recorded {recorded} time(s)")
        to_model = [known for known in self._calls.values() if known["model"] == model]
        if not to_model:
            names = list(dict.fromkeys([str(known["model"]) for known in self._calls.values()]))
            return UnknownCallError(f"{said}: recorded are calls to {', '.join(map(repr, names)) or 'none'}")
        text = _text(call.fields)
        nearest = max(to_model, key=lambda known: _likeness(text, _text(known)))
        return UnknownCallError(f"{said}: {_difference(text, _text(nearest))}; record it anew")

    def _read(self) -> None:
        try:
            lines = self.path.read_bytes().split(b"\n")
        except OSError as error:
            raise ConfigurationError(f"{self.path}: the recorded calls can't be read: {error.strerror}") from error
        torn = 0
        for number, line in enumerate(lines, start=1):
            if not line.strip():
                continue
            try:
                key, call, reply = _parts(json.loads(line))
            except (ValueError, KeyError, TypeError, AttributeError, SessionStateError) as error:
                if number == len(lines):  # whoever wrote it was ended within the line
                    break
                if self._leaves_out_torn and line.startswith(_START) and isinstance(error, ValueError):
                    torn += 1
                    continue
                raise ConfigurationError(f"{self.path}:{number}: this is no recorded call: {error}") from error
            self._calls[key] = call
            self._replies.setdefault(key, []).append(reply)
        if torn and self._on_warning is not None:
            self._on_warning(f"lines of {str(self.path)!r} broke off ({torn}): these calls are made again")


def _parts(fields: Any) -> tuple[str, dict[str, JsonValue], dict[str, Any]]:
    """The key, call and reply of a line.

    Raises:
        SessionStateError: The key is another call's: the line was changed, and is an answer to neither.
    """
    key, call, reply = fields["key"], fields["call"], fields["reply"]
    if key != key_of(call):
        raise SessionStateError("its key is not that of its call, one of them was changed: record it anew")
    _response(reply)
    return key, call, reply


def _line(fields: Mapping[str, object]) -> bytes:
    """A line of the file. What UTF-8 can't hold is escaped: replaced, it would be another call when it is read."""
    try:
        text = json.dumps(fields, ensure_ascii=False, default=repr).encode()
    except UnicodeEncodeError:
        text = json.dumps(fields, default=repr).encode()
    return text + b"\n"


def _append(path: Path, line: bytes) -> None:
    """Add a line in one piece, for others may add to the file too; one before it that broke off stays one of its own.

    Raises:
        OSError: It can't be written.
    """
    with path.open("ab+", buffering=0) as file:
        size = file.seek(0, os.SEEK_END)
        if size:
            file.seek(size - 1)
            line = line if file.read(1) == b"\n" else b"\n" + line
        if file.write(line) < len(line):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def _reply(response: ChatResponse) -> dict[str, Any]:
    fields: dict[str, Any] = {
        each.name: getattr(response, each.name) for each in dataclasses.fields(response) if each.name != "messages"
    }
    fields["usage"] = None if response.usage is None else usage_to_json(response.usage)
    fields["finish_reason"] = None if response.finish_reason is None else str(response.finish_reason)
    given = {name: value for name, value in fields.items() if value is not None}
    return {"messages": [message_to_json(message) for message in response.messages], **given}


def _response(reply: Mapping[str, Any]) -> ChatResponse:
    fields = dict(reply)
    messages = [message_from_json(message) for message in fields.pop("messages")]
    usage = fields.pop("usage", None)
    return ChatResponse(messages, usage=None if usage is None else UsageDetails(**usage), **fields)


def _text(call: Mapping[str, JsonValue]) -> str:
    messages = cast("list[dict[str, Any]]", call["messages"])
    said = [str(content.get("text", content)) for message in messages for content in message["contents"]]
    return "\n".join([*said, json.dumps(call["options"], sort_keys=True, default=repr)])


def _likeness(text: str, other: str) -> float:
    return difflib.SequenceMatcher(None, text[:_COMPARED], other[:_COMPARED]).quick_ratio()


def _difference(text: str, other: str) -> str:
    pairs = enumerate(zip(text, other, strict=False))
    at = next((place for place, (one, two) in pairs if one != two), min(len(text), len(other)))
    start = max(0, at - 20)
    return (
        f"from the nearest one it differs at {text[start : at + _SHOWN]!r}, recorded as {other[start : at + _SHOWN]!r}"
    )
