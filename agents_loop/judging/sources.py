"""What an answer is checked against: sources, fixed or looked up for a run."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Iterable, Sequence
from inspect import iscoroutine
from typing import NamedTuple, TypeAlias, cast

from agents_loop.errors import ConfigurationError
from agents_loop.judging.shown import Piece
from agents_loop.loop.context import LoopContext

GivenSources: TypeAlias = str | Sequence[tuple[str, str]]
"""One text, or the passages: each the name that it is cited by, and its text."""
Sources: TypeAlias = GivenSources | Callable[[LoopContext], GivenSources | Awaitable[GivenSources]]

NO_SOURCES = "[there are no sources]"
_NOT_IN_A_NAME = re.compile(r'["<>\x00-\x1f\x7f\x85\u2028\u2029]')


class Source(NamedTuple):
    """One passage."""

    citation: str | None
    """What it is cited by; `None` for a text that holds whatever there is."""
    text: str


def check_sources(sources: object) -> None:
    """Check what is given as sources, unless it is a callable: what that gives is checked when it does.

    Raises:
        TypeError: It is neither a str, nor pairs of str, nor callable.
    """
    if sources is not None and not callable(sources):
        _listed(sources)


def sources_now(sources: Sources, context: LoopContext) -> list[Source]:
    """The sources of a run, where no lookup has to be awaited.

    Raises:
        ConfigurationError: They are looked up by an async callable.
        TypeError: What the callable gave is no sources.
    """
    given = sources(context) if callable(sources) else sources
    if isinstance(given, Awaitable):
        if iscoroutine(given):
            given.close()
        raise ConfigurationError("sources is async, so the messages can't be built without running the evaluator")
    return _listed(given)


async def find_sources(sources: Sources, context: LoopContext) -> list[Source]:
    """The sources of a run.

    Raises:
        TypeError: What a callable gave is no sources.
    """
    given: object = sources(context) if callable(sources) else sources
    return _listed(await cast("Awaitable[object]", given) if isinstance(given, Awaitable) else given)


def texts_of(sources: Iterable[Source]) -> list[Piece]:
    """All that is written in sources, their names too."""
    return [part for source in sources for part in source if part is not None]


def labelled_sources(sources: Iterable[Source], nonce: str) -> list[Piece]:
    """The passages, each between tags that name it: no passage can pass for another."""
    pieces: list[Piece] = []
    for citation, text in sources:
        pieces.append("\n" if pieces else "")
        if citation is None:
            pieces.append(text)
            continue
        name = _NOT_IN_A_NAME.sub("_", citation)
        pieces.append(f'<source_{nonce} name="{name}">\n{text}\n</source_{nonce}>')
    return pieces


def _listed(given: object) -> list[Source]:
    if isinstance(given, str):
        return [Source(None, given if given.strip() else NO_SOURCES)]
    if not isinstance(given, Sequence):
        raise TypeError(f"sources must be a str, or pairs of a citation and a text, not {type(given).__name__}")
    pairs = [_pair(each) for each in cast("Sequence[object]", given)]
    return pairs or [Source(None, NO_SOURCES)]


def _pair(each: object) -> Source:
    if isinstance(each, Sequence) and not isinstance(each, str):
        parts = list(cast("Sequence[object]", each))
        match parts:
            case [str(citation), str(text)]:
                return Source(citation, text)
            case _:
                pass
    raise TypeError(f"sources must hold pairs of a citation and a text, both str, not {each!r}")
