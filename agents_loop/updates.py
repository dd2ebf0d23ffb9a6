"""A streamed answer: its pieces, and how pieces become messages again."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Self, TypedDict, TypeVar

from agents_loop.ids import new_id
from agents_loop.messages import (
    ChatMessage,
    ChatRole,
    Content,
    JsonValue,
    TextContent,
    TextReasoningContent,
    UsageContent,
    UsageDetails,
    as_contents,
    as_messages,
    join_text,
)

Update = TypeVar("Update", bound="ResponseUpdate")


class UpdateFields(TypedDict, total=False):
    """What a piece of a streamed answer may carry besides its role and contents."""

    author_name: str | None
    response_id: str | None
    message_id: str | None
    finish_reason: str | None
    created_at: float | None
    additional_properties: dict[str, JsonValue] | None


@dataclass(slots=True, init=False)
class ResponseUpdate:
    """A piece of a streamed answer.

    Args:
        role: Who speaks; `None` where an earlier piece said it.
        contents: A str, one content, or a sequence of both.
        author_name: The name of who wrote it.
        response_id: The answer this piece belongs to.
        message_id: The message this piece belongs to.
        finish_reason: Why the answer ended; on its last piece.
        created_at: Seconds since the epoch.
        additional_properties: JSON values that travel with the answer.
    """

    role: str | None
    contents: list[Content]
    author_name: str | None
    response_id: str | None
    message_id: str | None
    finish_reason: str | None
    created_at: float | None
    additional_properties: dict[str, JsonValue] | None

    def __init__(
        self,
        role: str | None = None,
        contents: str | Content | Sequence[str | Content] = (),
        *,
        author_name: str | None = None,
        response_id: str | None = None,
        message_id: str | None = None,
        finish_reason: str | None = None,
        created_at: float | None = None,
        additional_properties: dict[str, JsonValue] | None = None,
    ) -> None:
        self.role = role
        self.contents = as_contents(contents)
        self.author_name = author_name
        self.response_id = response_id
        self.message_id = message_id
        self.finish_reason = finish_reason
        self.created_at = created_at
        self.additional_properties = additional_properties

    @property
    def text(self) -> str:
        """The `TextContent` parts joined; nothing else."""
        return "".join([content.text for content in self.contents if isinstance(content, TextContent)])


@dataclass(slots=True)
class Response:
    """What was answered, whole.

    An answer that ended early is still an answer: `finish_reason` says `length`, `content_filter` or `refusal`, and the
    partial text and the usage are kept.
    """

    messages: list[ChatMessage]
    response_id: str | None = field(default=None, kw_only=True)
    usage: UsageDetails | None = field(default=None, kw_only=True)
    finish_reason: str | None = field(default=None, kw_only=True)
    """Why it ended: a `FinishReason`, or what else the provider says."""
    created_at: float | None = field(default=None, kw_only=True)
    """Seconds since the epoch."""
    additional_properties: dict[str, JsonValue] | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        given = self.messages
        if type(given) is list:
            if len(given) == 1 and type(given[0]) is ChatMessage:  # as most answers are
                return
            for message in given:
                if type(message) is not ChatMessage:
                    break
            else:
                return
        self.messages = as_messages(given, ChatRole.ASSISTANT)

    @property
    def text(self) -> str:
        """The messages' texts, a line break between them."""
        return join_text(self.messages)

    def take(self, merged: Response) -> Self:
        """These with everything that the pieces of a stream amount to."""
        for own in fields(Response):
            setattr(self, own.name, getattr(merged, own.name))
        return self


def merge_updates(updates: Iterable[ResponseUpdate]) -> Response:
    """Merge pieces into messages.

    A piece continues the message of its `message_id` within its response; without an id it continues the last
    message, unless its response, role or author is another. Usage contents are summed, once each, and leave the
    messages. The answer's id, finish reason and time are the last ones that were given.
    """
    merged = Response([])
    open_messages: dict[tuple[str, str], ChatMessage] = {}
    texts = _Texts()
    last: tuple[str | None, ChatMessage] | None = None
    for update in updates:
        _take_fields(merged, update)
        contents = _without_usage(merged, update)
        message = _message_for(update, open_messages, last)
        if message is None:
            if not contents and (update.contents or update.role is None):
                continue
            message = ChatMessage(update.role or ChatRole.ASSISTANT, [])
            merged.messages.append(message)
        message.author_name = message.author_name or update.author_name
        message.message_id = message.message_id or update.message_id
        texts.extend(message, contents)
        last = (update.response_id or (last[0] if last else None), message)
        if update.response_id is not None and message.message_id is not None:
            open_messages[update.response_id, message.message_id] = message
    texts.close()
    return merged


def _take_fields(merged: Response, update: ResponseUpdate) -> None:
    merged.response_id = update.response_id or merged.response_id
    merged.finish_reason = update.finish_reason or merged.finish_reason
    merged.created_at = merged.created_at if update.created_at is None else update.created_at
    if update.additional_properties:
        merged.additional_properties = (merged.additional_properties or {}) | update.additional_properties


def _without_usage(merged: Response, update: ResponseUpdate) -> list[Content]:
    contents: list[Content] = []
    for content in update.contents:
        if isinstance(content, UsageContent):
            merged.usage = (merged.usage or UsageDetails()) + content.details
        else:
            contents.append(content)
    return contents


def _message_for(
    update: ResponseUpdate,
    open_messages: dict[tuple[str, str], ChatMessage],
    last: tuple[str | None, ChatMessage] | None,
) -> ChatMessage | None:
    """The message that the piece continues, or `None` when it begins one."""
    if update.response_id is not None and update.message_id is not None:
        known = open_messages.get((update.response_id, update.message_id))
        if known is not None and update.role in (None, known.role):
            return known
    if last is None:
        return None
    response_id, message = last
    if update.role is None and message.role in (ChatRole.USER, ChatRole.SYSTEM):
        return None
    continues = (
        _same(update.response_id, response_id)
        and _same(update.message_id, message.message_id)
        and _same(update.role, message.role)
        and _same(update.author_name, message.author_name)
    )
    return message if continues else None


def _same(new: str | None, old: str | None) -> bool:
    return new is None or old is None or new == old


class _Texts:
    """Adds contents to messages; neighbouring texts become one, joined at the end so that long streams stay linear."""

    def __init__(self) -> None:
        self._pieces: dict[int, tuple[TextContent | TextReasoningContent, list[str]]] = {}

    def extend(self, message: ChatMessage, contents: list[Content]) -> None:
        for content in contents:
            if not isinstance(content, TextContent | TextReasoningContent):
                message.contents.append(content)
                continue
            previous = message.contents[-1] if message.contents else None
            if type(previous) is not type(content):
                previous = replace(content)
                self._pieces[id(previous)] = (previous, [])
                message.contents.append(previous)
            self._pieces[id(previous)][1].append(content.text)

    def close(self) -> None:
        for content, pieces in self._pieces.values():
            content.text = "".join(pieces)


def split(response: Response, make: Callable[..., Update]) -> list[Update]:
    """An answer as the pieces of a stream: one for each message, and one for its usage and its other fields.

    Args:
        response: The answer.
        make: Makes a piece; it fills in what only its kind of answer has.
    """
    pieces = [
        make(
            message.role,
            message.contents,
            author_name=message.author_name,
            response_id=response.response_id,
            message_id=message.message_id or new_id(),
        )
        for message in response.messages
    ]
    closing = make(
        contents=[] if response.usage is None else [UsageContent(response.usage)],
        response_id=response.response_id,
        finish_reason=response.finish_reason,
        created_at=response.created_at,
        additional_properties=response.additional_properties,
    )
    has_more = closing.contents or closing.finish_reason or closing.created_at or closing.additional_properties
    return [*pieces, closing] if has_more else pieces
