"""Messages as a text for people: what a snapshot of a prompt holds."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable

from agents_loop.messages import (
    ChatMessage,
    Content,
    DataContent,
    ErrorContent,
    FunctionCallContent,
    FunctionResultContent,
    TextContent,
    TextReasoningContent,
    UriContent,
)

_OPENING = re.compile(r"^<([a-z]\w*)_([0-9a-f]{16})>$", re.MULTILINE)
"""The tag of a fence with a nonce as `draw_nonce` gives it; one of a test's own is the same in each run anyway."""
_NONCE = "NONCE"
_DIGEST_CHARS = 12


def render_messages(messages: Iterable[ChatMessage]) -> str:
    """The messages as a text that is the same in each run, with a line for each speaker.

    In the names of a prompt's fences `NONCE` stands for the nonce; texts are not altered otherwise. Of bytes there is
    the media type, the size and a digest; of calls, results and errors a line each.

    Raises:
        TypeError: It is something else than messages.
    """
    return "\n\n".join([_message(message) for message in messages])


def _message(message: ChatMessage) -> str:
    if not isinstance(message, ChatMessage):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise TypeError(f"messages must hold ChatMessage, not {type(message).__name__}")
    author = f" {message.author_name}" if message.author_name else ""
    text, ended_with_text = "", True
    for content in message.contents:
        is_text = isinstance(content, TextContent)
        shown = content.text if isinstance(content, TextContent) else _line(content)
        needs_break = text and not (is_text and ended_with_text) and not text.endswith("\n") and shown[:1] != "\n"
        text += f"\n{shown}" if needs_break else shown
        ended_with_text = is_text
    return f"[{message.role}{author}]\n{_with_stable_tags(text)}"


def _with_stable_tags(text: str) -> str:
    """The first fence of a prompt stands before all that others wrote, so its name holds the nonce."""
    for opening in _OPENING.finditer(text):
        name, nonce = opening.groups()
        if f"\n</{name}_{nonce}>" in text[opening.end() :]:
            return text.replace(nonce, _NONCE)
    return text


def _line(content: Content) -> str:  # noqa: PLR0911 - one for each kind
    match content:
        case DataContent():
            digest = hashlib.sha256(content.data).hexdigest()[:_DIGEST_CHARS]
            return f"[{content.media_type}, {len(content.data)} bytes, sha256 {digest}]"
        case UriContent():
            return f"[{content.media_type} at {content.uri}]"
        case FunctionCallContent():
            return f"[call of {content.name}: {content.arguments!r}]"
        case FunctionResultContent():
            return f"[result: {content.result!r}]"
        case ErrorContent():
            return f"[error: {content.message}]"
        case TextReasoningContent():
            return f"[reasoning: {content.text}]"
        case _:
            return f"[{type(content).__name__}]"
