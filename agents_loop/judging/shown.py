"""What a judge is shown of messages: texts, images and files, and that there are calls, results and errors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeAlias

from agents_loop.agent import AgentResponse
from agents_loop.judging.sizes import cut_across, cut_note
from agents_loop.loop.answer import answer_messages
from agents_loop.loop.context import LoopContext
from agents_loop.messages import (
    ChatMessage,
    ChatRole,
    Content,
    DataContent,
    ErrorContent,
    FunctionCallContent,
    FunctionResultContent,
    TextContent,
    UriContent,
)

Piece: TypeAlias = str | Content
"""A text, or an image or a file as it is."""


class ShownMessage(NamedTuple):
    """One message as a judge sees it."""

    role: str
    pieces: list[Piece]


def pieces_of(messages: Sequence[ChatMessage]) -> list[Piece]:
    """What is shown of messages, one piece a content, whoever said it."""
    pieces: list[Piece] = []
    for message in messages:
        for content in message.contents:
            piece = content.text if type(content) is TextContent else _shown(content)
            if piece is not None:
                pieces.append(piece)
    return pieces


def shown_messages(messages: Sequence[ChatMessage]) -> list[ShownMessage]:
    """What is shown of each message; those of which nothing is shown are left out."""
    shown = [ShownMessage(message.role, pieces_of([message])) for message in messages]
    return [message for message in shown if message.pieces]


def request_text(messages: Sequence[ChatMessage]) -> str:
    """What the caller's messages ask for: what the user said since the last answer in them."""
    said: list[str] = []
    for message in messages:
        if message.role == ChatRole.ASSISTANT:
            said.clear()
        elif message.role == ChatRole.USER and message.text.strip():
            said.append(message.text)
    return "\n\n".join(said or [message.text for message in messages if message.text.strip()])


def answer_pieces(response: AgentResponse, *, all_messages: bool, most: int | None) -> list[Piece]:
    """The answer, or all of the response's messages, with at most `most` characters of text."""
    messages = response.messages if all_messages else judged_messages(response)
    shown = ShownMessage(ChatRole.ASSISTANT, pieces_of(messages))
    if most is not None and count_chars([shown]) > most:
        return [piece for message in cut_messages([shown], most, cut_note) for piece in message.pieces]
    return shown.pieces


def judged_messages(response: AgentResponse) -> Sequence[ChatMessage]:
    """The answer's messages; with the tools' results, where the response ends with them."""
    messages = response.messages
    if not messages or messages[-1].role != "tool":
        return answer_messages(response)
    return [*answer_messages(response), *[message for message in messages if message.role == "tool"]]


def earlier_messages(context: LoopContext) -> list[ChatMessage]:
    """What was said between the caller's messages and the latest response: answers, and what the loop sent."""
    earlier: list[ChatMessage] = []
    for record in context.iterations:
        earlier += record.on_behalf_of
        if record.number != context.iteration:
            earlier += record.response.messages
    return earlier


def is_blank(pieces: Sequence[Piece]) -> bool:
    """Whether there is no image, no file, and no text that is not blank."""
    for piece in pieces:  # noqa: SIM110 - no generator on the hot path
        if not isinstance(piece, str) or (piece and not piece.isspace()):
            return False
    return True


def count_chars(messages: Sequence[ShownMessage]) -> int:
    """How many characters of text are shown."""
    return sum([len(piece) for message in messages for piece in message.pieces if isinstance(piece, str)])


def cut_messages(messages: Sequence[ShownMessage], most: int, note: Callable[[int], str]) -> list[ShownMessage]:
    """The messages with at most `most` characters of text, without those of which nothing is left; images stay."""
    texts = [piece for message in messages for piece in message.pieces if isinstance(piece, str)]
    left = iter(cut_across(texts, most, note))
    cut = [
        ShownMessage(role, [kept for piece in pieces if (kept := next(left) if isinstance(piece, str) else piece)])
        for role, pieces in messages
    ]
    return [message for message in cut if message.pieces]


def _shown(content: Content) -> Piece | None:
    """Images and files as they are; of a tool call, that it exists; `None` for what is not to be judged."""
    match content:
        case TextContent():
            return content.text
        case DataContent() | UriContent():
            return content
        case FunctionCallContent():
            return f"[a call of the tool {content.name!r} with {content.arguments!r}]"
        case FunctionResultContent():
            return f"[a tool's result: {content.result!r}]"
        case ErrorContent():
            return f"[an error: {content.message}]"
        case _:
            return None
