"""Our messages as Semantic Kernel's, and back.

Reasoning, usage, errors and requests for approval are not sent: the services behind Semantic Kernel have no place for
them. An answer to such a request is a message of its own.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, cast

from semantic_kernel.contents.audio_content import AudioContent
from semantic_kernel.contents.binary_content import BinaryContent
from semantic_kernel.contents.chat_message_content import ChatMessageContent
from semantic_kernel.contents.function_call_content import FunctionCallContent as KernelFunctionCall
from semantic_kernel.contents.function_result_content import FunctionResultContent as KernelFunctionResult
from semantic_kernel.contents.image_content import ImageContent
from semantic_kernel.contents.reasoning_content import ReasoningContent
from semantic_kernel.contents.text_content import TextContent as KernelText
from semantic_kernel.contents.utils.author_role import AuthorRole

from agents_loop.call_json import json_text, read_arguments
from agents_loop.errors import ConfigurationError
from agents_loop.ids import new_id
from agents_loop.integrations.semantic_kernel.approvals import (
    approval_responses,
    is_response_sentence,
    response_message,
)
from agents_loop.messages import (
    ChatMessage,
    ChatRole,
    Content,
    DataContent,
    ErrorContent,
    FunctionCallContent,
    FunctionResultContent,
    JsonValue,
    TextContent,
    TextReasoningContent,
    ToolApprovalRequestContent,
    ToolApprovalResponseContent,
    UriContent,
    UsageContent,
)

_NOT_SENT = (
    TextReasoningContent,
    UsageContent,
    ErrorContent,
    ToolApprovalRequestContent,
    ToolApprovalResponseContent,
)
_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_UNKNOWN_IMAGE = "image/*"


def kernel_messages(messages: Iterable[ChatMessage]) -> list[ChatMessageContent]:
    """All messages, in order, as new objects. One without anything to send is left out.

    Raises:
        ConfigurationError: A role that Semantic Kernel does not have.
    """
    return [written for message in messages for written in _kernel_message(message)]


def _kernel_message(message: ChatMessage) -> list[ChatMessageContent]:
    """One message; each function result is one of its own, for the services take one a message."""
    role, name = _role(message), _name(message)
    groups: list[list[Content]] = [[]]
    answers = [content for content in message.contents if isinstance(content, ToolApprovalResponseContent)]
    for content in message.contents:
        if isinstance(content, FunctionResultContent):
            groups.append([content])
            groups.append([])
        elif not isinstance(content, _NOT_SENT):
            groups[-1].append(content)
    written = [ChatMessageContent(role=role, items=kernel_items(group), name=name) for group in groups if group]
    return [response_message(answers), *written] if answers else written


def _role(message: ChatMessage) -> AuthorRole:
    try:
        return AuthorRole(str(message.role))
    except ValueError:
        known = ", ".join(role.value for role in AuthorRole)
        raise ConfigurationError(f"Semantic Kernel has no role {message.role!r}; it has {known}") from None


def _name(message: ChatMessage) -> str | None:
    """The author, where the services would take the name."""
    name = message.author_name
    return name if name and _NAME.fullmatch(name) else None


def kernel_items(contents: Sequence[Content]) -> list[Any]:
    """Contents as items. Where all are text they are one item: that is all that `ChatMessageContent.content` reads."""
    sent = [content for content in contents if not isinstance(content, _NOT_SENT)]
    texts = [content.text for content in sent if isinstance(content, TextContent)]
    if texts and len(texts) == len(sent):
        return [KernelText(text="".join(texts))]
    return [_item(content) for content in sent]


def _item(content: Content) -> Any:
    match content:
        case TextContent(text):
            return KernelText(text=text)
        case DataContent(data, media_type):
            return _binary(data, media_type)
        case UriContent(uri, media_type):
            return (ImageContent if media_type.lower().startswith("image/") else BinaryContent)(uri=uri)
        case FunctionCallContent(call_id, name, arguments):
            written = json_text({} if arguments is None else arguments)
            return KernelFunctionCall(id=call_id, call_id=call_id, name=name, arguments=written)
        case FunctionResultContent(call_id, result):
            return KernelFunctionResult(id=call_id, call_id=call_id, name="", result=json_text(result))
        case _:
            raise ConfigurationError(f"Semantic Kernel can't be sent a {type(content).__name__}")


def _binary(data: bytes, media_type: str) -> BinaryContent:
    kind = media_type.lower().partition("/")[0]
    made = {"image": ImageContent, "audio": AudioContent}.get(kind, BinaryContent)
    return made(data=data, data_format="base64", mime_type=media_type)


def our_message(message: str | ChatMessageContent, *, is_past: bool = False) -> ChatMessage:
    """One message of Semantic Kernel as ours. Of an approval that was given in the past there is the sentence alone."""
    if isinstance(message, str):
        return ChatMessage(ChatRole.USER, message)
    answers = [] if is_past else approval_responses(message)
    items = [item for item in message.items if not is_response_sentence(item)] if answers else message.items
    return ChatMessage(message.role.value, [*answers, *our_contents(items)], author_name=message.name)


def our_contents(items: Sequence[Any]) -> list[Content]:
    """Items as contents, the function calls last: connectors list them first, and the model wrote them last.

    Annotations and file references have no place among our contents; they are left out.
    """
    if len(items) == 1:  # so is each chunk of a stream
        content = _content(items[0])
        return [] if content is None else [content]
    contents = [content for item in items if (content := _content(item)) is not None]
    calls = [content for content in contents if isinstance(content, FunctionCallContent)]
    if not calls:
        return contents
    return [content for content in contents if not isinstance(content, FunctionCallContent)] + calls


def _content(item: Any) -> Content | None:
    match item:
        case KernelText():
            return TextContent(item.text) if item.text else None
        case ReasoningContent():
            return TextReasoningContent(item.text) if item.text else None
        case KernelFunctionCall():
            return FunctionCallContent(item.call_id or item.id or new_id(), item.name or "", _arguments(item.arguments))
        case KernelFunctionResult():
            return FunctionResultContent(item.call_id or item.id or "", _result(item.result))
        case BinaryContent():
            return _data(item)
        case _:
            return None


def _arguments(written: Any) -> dict[str, JsonValue] | str | None:
    if not isinstance(written, str):
        return None if written is None else dict(cast("Mapping[str, JsonValue]", written))
    return read_arguments(written) if written.strip() else None


def _result(result: Any) -> JsonValue:
    """The result if it is a JSON value; otherwise its text, which is what the model is sent."""
    try:
        return json.loads(json.dumps(result, allow_nan=False))
    except (TypeError, ValueError):
        return str(result)


def _data(item: BinaryContent) -> Content | None:
    data = item.data
    if data:
        return DataContent(bytes(data), item.mime_type)
    if item.uri is None:
        return None
    known = item.mime_type if item.data_uri else None
    return UriContent(str(item.uri), known or (_UNKNOWN_IMAGE if isinstance(item, ImageContent) else "*/*"))
