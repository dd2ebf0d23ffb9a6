"""Asking the person at the terminal."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Final, TypeAlias

from agents_loop.cli.streams import is_person_there, say_error, write_err
from agents_loop.cli.text import as_utf8, printable
from agents_loop.errors import ConfigurationError
from agents_loop.loop.questions import accept_answer
from agents_loop.messages import ChatMessage, ChatRole

AskPerson: TypeAlias = Callable[[str], ChatMessage | None]
"""From a question: the person's answer, or `None` where there is none."""

ACCEPT: Final = "/accept"
_HOW: Final = f"(your answer; {ACCEPT} takes the last draft as it is; nothing leaves the question open) > "


def person_at_terminal() -> AskPerson | None:
    """Who can be asked; `None` where nobody sits there."""
    return _ask if is_person_there() else None


def _ask(question: str) -> ChatMessage | None:
    write_err(f"{printable(question)}\n")
    while True:
        write_err(_HOW)
        try:
            said = as_utf8(_line(), "the answer").strip()
            break
        except ConfigurationError as error:  # what cannot be read costs the person a line, and not the run
            say_error(str(error))
    if not said:
        return None
    return accept_answer() if said.lower() == ACCEPT else ChatMessage(ChatRole.USER, said)


def _line() -> str:
    line = ""
    try:
        line = sys.stdin.readline()
    finally:
        if not line.endswith("\n"):  # Ctrl-D or Ctrl-C: what follows begins a line of its own
            write_err("\n")
    return line
