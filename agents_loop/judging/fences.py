"""Fences: material of others stands between tags whose names hold a nonce that nobody can guess."""

from __future__ import annotations

import os
import re
import secrets
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeAlias

from agents_loop.errors import ConfigurationError
from agents_loop.judging.shown import Piece, ShownMessage
from agents_loop.messages import Content, TextContent

_MOST_DRAWS = 100
"""A drawn nonce is in a text once in 2**64 times; who injects a source that repeats itself hears of it."""
_NOT_IN_AN_ATTRIBUTE = re.compile(r"[^\w.-]")


Material: TypeAlias = tuple[str, str, Sequence[Piece]]
"""What a judge is shown: the heading above it, the name of its tags without the nonce, and the thing itself."""


_drawn: list[str] = []
"""Nonces that nobody has seen yet: one draw from the system gives several."""
_DRAWN_AT_ONCE = 32


def draw_nonce() -> str:
    """16 hex digits that nobody can guess."""
    try:
        return _drawn.pop()
    except IndexError:
        drawn = secrets.token_hex(8 * _DRAWN_AT_ONCE)
        _drawn.extend([drawn[start : start + 16] for start in range(16, len(drawn), 16)])
        return drawn[:16]


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_drawn.clear)  # a forked child must not use its parent's


def unused_nonce(pieces: Sequence[Piece], new_nonce: Callable[[], str]) -> str:
    """A nonce that stands in none of the texts.

    Raises:
        ConfigurationError: The source keeps giving what the texts contain.
    """
    for _ in range(_MOST_DRAWS):
        nonce = new_nonce()
        for piece in pieces:
            if isinstance(piece, str) and nonce in piece:
                break
        else:
            return nonce
    raise ConfigurationError(f"new_nonce gave what the request or the answer contains, {_MOST_DRAWS} times")


def fenced(preface: str, materials: Iterable[Material], nonce: str, closing: str) -> str | list[Content]:
    """All materials, each between its tags; a str where there is nothing but text."""
    pieces: list[Piece] = [preface]
    for heading, tag, inside in materials:
        name = f"{tag}_{nonce}>"
        pieces += [f"\n\n{heading}\n<{name}\n", *inside, f"\n</{name}"]
    pieces.append(f"\n\n{closing}")
    return joined(pieces)


def spaced(pieces: Sequence[Piece]) -> Sequence[Piece]:
    """The pieces with a blank line between one and the next."""
    if len(pieces) < 2:  # noqa: PLR2004 - nothing to separate
        return pieces
    return [part for piece in pieces for part in ("\n\n", piece)][1:]


def labelled(messages: Iterable[ShownMessage], nonce: str) -> list[Piece]:
    """Messages, each between tags that say who speaks: no text can pass for another's."""
    pieces: list[Piece] = []
    for role, said in messages:
        speaker = _NOT_IN_AN_ATTRIBUTE.sub("_", role)
        pieces += ["\n" if pieces else "", f'<message_{nonce} role="{speaker}">\n', *spaced(said)]
        pieces.append(f"\n</message_{nonce}>")
    return pieces


def joined(pieces: Sequence[Piece]) -> str | list[Content]:
    """Contents in which neighbouring texts are one; a str where there is nothing but text."""
    texts_alone: Any = pieces
    try:
        return "".join(texts_alone)
    except TypeError:  # there are images or files among them
        pass
    contents: list[Content] = []
    texts: list[str] = []
    for piece in pieces:
        if isinstance(piece, str):
            texts.append(piece)
        else:
            contents += [TextContent("".join(texts)), piece]
            texts.clear()
    contents.append(TextContent("".join(texts)))
    return contents
