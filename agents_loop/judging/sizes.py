"""How a text that is too long is cut: its head and its tail stay, and a note says how much is left out."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Sequence

from agents_loop.errors import ConfigurationError
from agents_loop.numeric import is_int

LEAST_CHARS = 200
"""The smallest limit: with less, the note would take the place of the text."""
_HEAD_SHARE = 2 / 3
"""Of what stays; an answer says first what it is, and at its end what it comes to."""
_LONGEST_CLUSTER = 32
"""A cut is moved back by at most so many characters: marks can be piled up without end."""
_JOINER = "\u200d"
_VIRAMA = 9
"""The combining class of the sign that joins two consonants of an Indic script."""


def check_limit(name: str, most: int | None) -> None:
    """Check an option that limits a text; `None` is no limit.

    Raises:
        TypeError: It is not an int.
        ConfigurationError: It is less than `LEAST_CHARS`.
    """
    if most is None:
        return
    if not is_int(most):
        raise TypeError(f"{name} must be an int, not {most!r}")
    if most < LEAST_CHARS:
        raise ConfigurationError(f"{name} must be at least {LEAST_CHARS} characters, not {most}")


def cut_note(count: int) -> str:
    """What stands where characters were cut."""
    return f"\n[... {count} characters are left out here ...]\n"


def cut(text: str, most: int, note: Callable[[int], str] = cut_note) -> str:
    """The text if it has at most `most` characters; else its head and its tail with a note between them.

    The result has at most `most` characters, the note included. What readers see as one character (an emoji with its
    modifiers, a letter with its accents, the halves of a surrogate pair, a line break of two) is not cut in two.

    Args:
        text: Any text.
        most: In characters (code points), at least `LEAST_CHARS`.
        note: Says how many characters are left out.

    Raises:
        ConfigurationError: `most` is less than `LEAST_CHARS`.
    """
    return cut_across([text], most, note)[0]


def cut_across(texts: Sequence[str], most: int, note: Callable[[int], str] = cut_note) -> list[str]:
    """As `cut`, for texts that follow each other: they are cut as if they were one, and each keeps its place.

    The note stands in the text where the cut begins; a text that is left out as a whole is empty.

    Raises:
        ConfigurationError: `most` is less than `LEAST_CHARS`.
    """
    if most < LEAST_CHARS:
        raise ConfigurationError(f"a text can be cut to {LEAST_CHARS} characters or more, not to {most}")
    total = sum([len(text) for text in texts])
    if total <= most:
        return list(texts)
    room = max(most - len(note(total)), 0)
    head_end = int(room * _HEAD_SHARE)
    tail_start = total - (room - head_end)
    kept: list[tuple[str, str]] = []
    noted_at, left_out, start = -1, 0, 0
    for index, text in enumerate(texts):
        end_of_head = _boundary_before(text, head_end - start)
        start_of_tail = max(end_of_head, _boundary_after(text, tail_start - start))
        if start_of_tail > end_of_head and noted_at < 0:
            noted_at = index
        left_out += start_of_tail - end_of_head
        kept.append((text[:end_of_head], text[start_of_tail:]))
        start += len(text)
    return [head + (note(left_out) if index == noted_at else "") + tail for index, (head, tail) in enumerate(kept)]


def _boundary_before(text: str, position: int) -> int:
    """The last place at or before `position` where the text may be cut."""
    wanted = min(max(position, 0), len(text))
    for place in range(wanted, max(wanted - _LONGEST_CLUSTER, 0) - 1, -1):
        if not _is_within_character(text, place):
            return place
    return wanted


def _boundary_after(text: str, position: int) -> int:
    """The first place at or after `position` where the text may be cut."""
    wanted = min(max(position, 0), len(text))
    for place in range(wanted, min(wanted + _LONGEST_CLUSTER, len(text)) + 1):
        if not _is_within_character(text, place):
            return place
    return wanted


def _is_within_character(text: str, position: int) -> bool:
    """Whether what stands before and after a place is seen as one character (the main rules of Unicode's UAX #29)."""
    if not 0 < position < len(text):
        return False
    before, after = text[position - 1], text[position]
    if before < "\u0300" and after < "\u0300":
        return before == "\r" and after == "\n"
    if _JOINER in (before, after) or unicodedata.category(after) in ("Mn", "Mc", "Me"):
        return True
    if (
        unicodedata.combining(before) == _VIRAMA
        or _is_modifier(after)
        or ("\ud800" <= before <= "\udbff" and "\udc00" <= after <= "\udfff")
    ):
        return True
    if "\u1100" <= after <= "\u11ff" and _is_hangul(before):
        return before <= "\u115f" or after > "\u115f"  # a syllable's first consonants, or what follows them
    return _is_flag_letter(before) and _is_flag_letter(after) and _flag_letters_before(text, position) % 2 == 1


def _is_modifier(character: str) -> bool:
    """A skin tone, or a tag of an emoji."""
    return "\U0001f3fb" <= character <= "\U0001f3ff" or "\U000e0020" <= character <= "\U000e007f"


def _is_hangul(character: str) -> bool:
    """A letter that is written as a part of a Korean syllable, or a whole one."""
    return "\u1100" <= character <= "\u11ff" or "\uac00" <= character <= "\ud7a3"


def _is_flag_letter(character: str) -> bool:
    return "\U0001f1e6" <= character <= "\U0001f1ff"


def _flag_letters_before(text: str, position: int) -> int:
    start = position
    while start > 0 and _is_flag_letter(text[start - 1]):
        start -= 1
    return position - start
