"""What agents and models say to each other: roles, contents, messages and usage.

Plain slotted dataclasses without validation; `agents_loop.message_json` reads and writes them as JSON and
checks what comes from outside.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final, TypeAlias, cast

JsonValue: TypeAlias = Any
"""A value that `json.dumps` writes: None, bool, int, float, str, a list of these, or a dict with str keys."""


class ChatRole(StrEnum):
    """Who speaks. Any other string is allowed as a role too."""

    SYSTEM = "system"
    USER = "user"
    ASSISTANT = "assistant"
    TOOL = "tool"


_MOST: Final = 2**63 - 1
"""The most tokens that a provider can mean: the largest number of 64 bits with a sign."""


@dataclass(slots=True)
class UsageDetails:
    """Token counts as the provider reported them. `None` means: not reported.

    What counts nothing becomes `None`: a negative number, so that no budget and no sum gets smaller by a call, and one
    that 64 bits do not hold, with which no cost can be worked out.
    """

    input_token_count: int | None = None
    output_token_count: int | None = None
    total_token_count: int | None = None
    cached_input_token_count: int | None = None
    """The part of the input that the provider read from its cache."""
    reasoning_token_count: int | None = None
    """The part of the output that was spent on reasoning."""
    additional_counts: dict[str, int] | None = None
    """Further counters under the provider's own names."""

    def __post_init__(self) -> None:
        if (count := self.input_token_count) and not 0 < count <= _MOST:  # one by one: usages are made on the hot path
            self.input_token_count = None
        if (count := self.output_token_count) and not 0 < count <= _MOST:
            self.output_token_count = None
        if (count := self.total_token_count) and not 0 < count <= _MOST:
            self.total_token_count = None
        if (count := self.cached_input_token_count) and not 0 < count <= _MOST:
            self.cached_input_token_count = None
        if (count := self.reasoning_token_count) and not 0 < count <= _MOST:
            self.reasoning_token_count = None

    def __add__(self, other: UsageDetails) -> UsageDetails:
        """Add counter by counter, into a new object. A counter that neither side reported stays `None`."""
        if not isinstance(other, UsageDetails):  # pyright: ignore[reportUnnecessaryIsInstance]
            return NotImplemented
        total = object.__new__(UsageDetails)  # no second look: a sum may be any number
        total.input_token_count = _add(self.input_token_count, other.input_token_count)
        total.output_token_count = _add(self.output_token_count, other.output_token_count)
        total.total_token_count = _add(self.total_token_count, other.total_token_count)
        total.cached_input_token_count = _add(self.cached_input_token_count, other.cached_input_token_count)
        total.reasoning_token_count = _add(self.reasoning_token_count, other.reasoning_token_count)
        total.additional_counts = _add_counts(self.additional_counts, other.additional_counts)
        return total


def _add(a: int | None, b: int | None) -> int | None:
    if a is None:
        return b
    return a if b is None else a + b


def _add_counts(a: dict[str, int] | None, b: dict[str, int] | None) -> dict[str, int] | None:
    if a is None or b is None:
        return dict(a or b or {}) or None
    return a | {name: a.get(name, 0) + count for name, count in b.items()}


def sum_usage(usages: Iterable[UsageDetails | None]) -> UsageDetails | None:
    """The sum of all that was reported, as a new object; `None` when nothing was."""
    total: UsageDetails | None = None
    for usage in usages:
        if usage is not None:
            total = (total or UsageDetails()) + usage
    return total


@dataclass(slots=True)
class TextContent:
    """Text that a reader sees."""

    text: str


@dataclass(slots=True)
class TextReasoningContent:
    """A model's reasoning, as far as the provider shows it. It is no part of a message's text."""

    text: str


@dataclass(slots=True)
class DataContent:
    """Bytes of a media type, such as an image or a file."""

    data: bytes
    media_type: str


@dataclass(slots=True)
class UriContent:
    """A reference to a resource of a media type."""

    uri: str
    media_type: str


@dataclass(slots=True)
class FunctionCallContent:
    """A model's wish that a function be called."""

    call_id: str
    name: str
    arguments: dict[str, JsonValue] | str | None = None
    """The arguments by name; a str holds what the model wrote when it was not a JSON object."""


@dataclass(slots=True)
class FunctionResultContent:
    """What a function call gave."""

    call_id: str
    result: JsonValue = None


@dataclass(slots=True)
class ToolApprovalRequestContent:
    """A tool call that waits for a person's word."""

    request_id: str
    tool_call: FunctionCallContent


@dataclass(slots=True)
class ToolApprovalResponseContent:
    """A person's word on a tool call."""

    request_id: str
    approved: bool
    tool_call: FunctionCallContent


@dataclass(slots=True)
class UsageContent:
    """Usage inside a stream. It is summed into the response's usage and is no part of a message."""

    details: UsageDetails


@dataclass(slots=True)
class ErrorContent:
    """What went wrong on the provider's side, as it said it: a refusal, say."""

    message: str
    code: str | None = field(default=None, kw_only=True)


Content: TypeAlias = (
    TextContent
    | TextReasoningContent
    | DataContent
    | UriContent
    | FunctionCallContent
    | FunctionResultContent
    | ToolApprovalRequestContent
    | ToolApprovalResponseContent
    | UsageContent
    | ErrorContent
)
"""Any one piece of a message."""

CONTENT_TYPES: tuple[type[Content], ...] = (
    TextContent,
    TextReasoningContent,
    DataContent,
    UriContent,
    FunctionCallContent,
    FunctionResultContent,
    ToolApprovalRequestContent,
    ToolApprovalResponseContent,
    UsageContent,
    ErrorContent,
)


_new = object.__new__


@dataclass(slots=True, init=False)
class ChatMessage:
    """One message of a conversation. It compares by what it says: `message_id` is where it is filed.

    Args:
        role: A `ChatRole` or any other string.
        contents: A str, one content, or a sequence of str and contents; kept as a list of contents.
        author_name: The name of who wrote it, where a role is not enough.
        message_id: An id that is unique within the conversation.
        additional_properties: JSON values that travel with the message.
    """

    role: str
    contents: list[Content]
    author_name: str | None
    message_id: str | None = field(compare=False)
    additional_properties: dict[str, JsonValue] | None

    def __init__(
        self,
        role: str,
        contents: str | Content | Sequence[str | Content],
        *,
        author_name: str | None = None,
        message_id: str | None = None,
        additional_properties: dict[str, JsonValue] | None = None,
    ) -> None:
        self.role = role
        if type(contents) is str:
            text = _new(TextContent)  # as `TextContent(contents)`, at half of its cost
            text.text = contents
            self.contents = [text]
        else:
            self.contents = as_contents(contents)
        self.author_name = author_name
        self.message_id = message_id
        self.additional_properties = additional_properties

    @property
    def text(self) -> str:
        """The `TextContent` parts joined; nothing else."""
        contents = self.contents
        if len(contents) == 1 and type(only := contents[0]) is TextContent:
            return only.text
        return "".join([content.text for content in contents if isinstance(content, TextContent)])


def as_contents(contents: str | Content | Sequence[str | Content]) -> list[Content]:
    """A list of contents from a str, one content, or a sequence of both; always a new list.

    Raises:
        TypeError: It is, or holds, something else.
    """
    if isinstance(contents, str):
        return [TextContent(contents)]
    if type(contents) is not list:
        if isinstance(contents, CONTENT_TYPES):
            return [contents]
        if not _is_listing(contents):
            raise TypeError(f"contents must be a str, a content, or a sequence of these, not {contents!r}")
    return [_as_content(piece) for piece in cast("Sequence[str | Content]", contents)]


def _is_listing(value: object) -> bool:
    """Whether a value lists things: neither bytes nor a mapping, whose keys would pass for texts."""
    return isinstance(value, Iterable) and not isinstance(value, Mapping | bytes | bytearray)


def _as_content(piece: str | Content) -> Content:
    if isinstance(piece, CONTENT_TYPES):
        return piece
    if isinstance(piece, str):  # pyright: ignore[reportUnnecessaryIsInstance]
        return TextContent(piece)
    raise TypeError(f"a message holds str and contents, not {type(piece).__name__}: {piece!r}")


def as_messages(
    messages: str | ChatMessage | Sequence[str | ChatMessage] | None, role: str = ChatRole.USER
) -> list[ChatMessage]:
    """A new list of messages from what callers pass: `None`, a str, a message, or several; a str speaks as `role`.

    Raises:
        TypeError: It is, or holds, something else.
    """
    if type(messages) is list or type(messages) is tuple:
        known = cast("Sequence[ChatMessage]", messages)
        for message in known:
            if type(message) is not ChatMessage:
                break
        else:
            return list(known)
    else:
        if messages is None:
            return []
        if isinstance(messages, str | ChatMessage):
            return [_as_message(messages, role)]
        if not _is_listing(messages):
            raise TypeError(f"messages must be a str, a ChatMessage or a sequence of these, not {messages!r}")
    listed = cast("Sequence[str | ChatMessage]", messages)
    return [message if type(message) is ChatMessage else _as_message(message, role) for message in listed]


def _as_message(message: str | ChatMessage, role: str) -> ChatMessage:
    if isinstance(message, str):
        return ChatMessage(role, message)
    if isinstance(message, ChatMessage):  # pyright: ignore[reportUnnecessaryIsInstance]
        return message
    raise TypeError(f"messages must hold str and ChatMessage, not {type(message).__name__}: {message!r}")


def error_text(messages: Sequence[ChatMessage]) -> str:
    """What the errors within messages say, joined; empty without one."""
    contents = [content for message in messages for content in message.contents]
    return "; ".join([content.message for content in contents if isinstance(content, ErrorContent)])


def only_text(messages: Sequence[ChatMessage]) -> str | None:
    """The text of what is one message with one text, as most answers are; else `None`."""
    if len(messages) == 1 and len(contents := messages[0].contents) == 1 and type(only := contents[0]) is TextContent:
        return only.text
    return None


def join_text(messages: Sequence[ChatMessage]) -> str:
    """The text of several messages: the texts that are not empty, a line break between them."""
    if len(messages) == 1:
        return messages[0].text
    return "\n".join([text for message in messages if (text := message.text)])
