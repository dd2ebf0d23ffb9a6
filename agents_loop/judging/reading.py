"""How a judge's reply is read. A pure function; nothing unclear is a pass."""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Callable
from typing import Any, NamedTuple, NoReturn, TypeAlias, cast

from agents_loop.judging.verdict import UNKNOWN_GAP

_Object: TypeAlias = tuple[tuple[str, Any], ...]


class VerdictReading(NamedTuple):
    """What a judge's reply says."""

    answered: bool
    gap: str
    """What is missing, in the judge's words; `<unknown>` when it names nothing."""
    readable: bool
    """Whether there was a boolean or a marker at all."""


def read_reply(reply: str) -> VerdictReading:
    """Read a judge's reply.

    It passes in two ways: the reply is one JSON object whose `answered` is true; or there is no object with an
    `answered`, no `VERDICT: MORE` anywhere, and its first or last line is `VERDICT: DONE`. A byte order mark, closed
    thinking blocks, and a code fence around all of the rest are removed first.
    """
    text = reply.removeprefix("\ufeff")
    rest = _without_thinking(text)
    if rest is None:
        verdict = _object_of(text.strip()) or ()
        return VerdictReading(answered=False, gap=_gap_of(_fields(verdict)) or UNKNOWN_GAP, readable=False)
    rest = _without_fence(rest.strip())
    verdict = _object_of(rest)
    if verdict is not None:
        return _read_object(verdict)
    return _read_prose(rest)


# --- what is removed first

_THINKING_TAG = re.compile(r"<(/?)(think|thinking)\s*>", re.IGNORECASE)


def _without_thinking(text: str) -> str | None:
    """The text outside thinking blocks, from the last lone closing tag on; `None` if a block is not closed."""
    if "<" not in text:
        return text
    kept: list[str] = []
    open_tags: list[str] = []
    position = 0
    for tag in _THINKING_TAG.finditer(text):
        closes, name = bool(tag[1]), tag[2].lower()
        if not open_tags:
            if closes:
                kept.clear()
            else:
                kept.append(text[position : tag.start()])
        if not closes:
            open_tags.append(name)
        elif open_tags and open_tags.pop() != name:
            return None
        position = tag.end()
    if open_tags:
        return None
    return "".join([*kept, text[position:]])


_FENCE_OPENING = re.compile(r"`{3,}|~{3,}")
_FENCE_LANGUAGE = re.compile(r"[ \t]*[\w+.-]*[ \t]*\r?\n|[ \t]*json(?=[\s{])", re.IGNORECASE)
"""A language on the opening line, or before the content where all stands on one line."""


def _without_fence(text: str) -> str:
    """What stands in a code fence, if one fence encloses all of the text."""
    opening = _FENCE_OPENING.match(text)
    if opening is None:
        return text
    fence = opening[0]
    if len(text) < 2 * len(fence) or not text.endswith(fence):
        return text
    body = text[len(fence) : -len(fence)]
    language = _FENCE_LANGUAGE.match(body)
    inner = body[language.end() :].strip() if language else body.strip()
    closes_early = any(line.lstrip().startswith(fence) for line in inner.splitlines())
    return text if closes_early else inner


# --- one JSON object


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


_DECODER = json.JSONDecoder(object_pairs_hook=tuple, parse_constant=_no_constant)
"""Objects become tuples of their pairs, so that a key given twice is seen."""
_scan_once = cast("Callable[[str, int], tuple[Any, int]]", vars(_DECODER)["scan_once"])

_OTHER_GAP_KEYS = ("gap", "missing", "feedback", "reasoning", "reason")
"""What judges call the gap when they don't keep to the schema."""


def _object_of(text: str) -> _Object | None:
    """The object that the whole of a stripped text is, or `None`."""
    if not text.startswith("{"):
        return None
    try:
        value, end = _scan_once(text, 0)
    except (ValueError, RecursionError, StopIteration):
        return None
    return cast("_Object", value) if end == len(text) else None


def _fields(verdict: _Object) -> dict[str, Any]:
    """The fields by key without case and `_`; of a key given twice, the last value that says something."""
    fields: dict[str, Any] = {}
    for key, value in verdict:
        name = key.replace("_", "").lower()
        if value or name not in fields:
            fields[name] = value
    return fields


def _read_object(verdict: _Object) -> VerdictReading:
    fields = _fields(verdict)
    answered = _boolean(fields.get("answered")) if len(fields) == len(verdict) else None
    return VerdictReading(answered is True, _gap_of(fields) or UNKNOWN_GAP, answered is not None)


def _boolean(value: Any) -> bool | None:
    if isinstance(value, bool):
        return value
    if isinstance(value, str):
        return {"true": True, "false": False}.get(value.strip().lower())
    return None


def _gap_of(fields: dict[str, Any]) -> str | None:
    """An object's text about what is missing, or `None`."""
    if "gapanalysis" in fields:
        return _as_text(fields["gapanalysis"])
    return next((text for name in _OTHER_GAP_KEYS if (text := _as_text(fields.get(name)))), None)


def _as_text(value: Any) -> str | None:
    if isinstance(value, list):
        value = "\n".join([f"- {item.strip()}" for item in value if isinstance(item, str) and item.strip()])  # pyright: ignore[reportUnknownVariableType, reportUnknownMemberType]
    return _clean(value) if isinstance(value, str) and value.strip() else None


def _clean(text: str) -> str:
    """The text without lone surrogates, which no wire can carry."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8")


# --- prose and markers

_DONE_LINE = re.compile(r"(?:(?:[-+*•]|\d{1,3}[.)])\s+)?[*_`]*\s*verdict\s*:\s*done[*_`.!\s]*", re.IGNORECASE)
_DONE = re.compile(r"verdict\s*:\s*done", re.IGNORECASE)
_MORE = re.compile(r"verdict[\s*_`]*:[\s*_`\"']*more", re.IGNORECASE)
_MARKER = re.compile(r"[*_`\"']{0,4}verdict[\s*_`]*:[\s*_`\"']*(?:done|more)\b[*_`\"']*[.!]?", re.IGNORECASE)
_ANSWERED_KEY = re.compile(r"[{,]\s*\"_*a_*n_*s_*w_*e_*r_*e_*d_*\"\s*:", re.IGNORECASE)
_INVISIBLE = re.compile("[\u00ad\u200b-\u200f\u2060\ufeff]")
_MOST_OBJECTS = 32
"""How many places of a reply are tried as the start of an object: a bound on the work, not on what is a pass."""


def _read_prose(text: str) -> VerdictReading:
    says_more = _MORE.search(_plain(text)) is not None
    verdicts = _objects_in(text)
    has_object = bool(verdicts) or _ANSWERED_KEY.search(text) is not None
    lines = [line for line in re.split(r"\r\n|\n|\r", text) if line.strip()]
    done_line = bool(lines) and any(_DONE_LINE.fullmatch(line.strip()) for line in (lines[0], lines[-1]))
    answered = done_line and not says_more and not has_object
    readable = (
        says_more
        or _DONE.search(text) is not None
        or any(_boolean(verdict["answered"]) is False for verdict in verdicts)
    )
    gap = next((gap for verdict in reversed(verdicts) if (gap := _gap_of(verdict))), None)
    return VerdictReading(answered, gap or _prose_without_marker(lines) or UNKNOWN_GAP, readable)


def _plain(text: str) -> str:
    """The text in which a marker that asks for more is looked for: look-alike forms count as the marker."""
    return text if text.isascii() else _INVISIBLE.sub("", unicodedata.normalize("NFKC", text))


def _objects_in(text: str) -> list[dict[str, Any]]:
    """The fields of the JSON objects within prose that have an `answered`."""
    found: list[dict[str, Any]] = []
    start = text.find("{")
    for _ in range(_MOST_OBJECTS):
        if start < 0:
            break
        try:
            value, end = _DECODER.raw_decode(text, start)
        except (ValueError, RecursionError):
            end = start + 1
        else:
            fields = _fields(value)
            if "answered" in fields:
                found.append(fields)
        start = text.find("{", end)
    return found


def _prose_without_marker(lines: list[str]) -> str | None:
    kept: list[str] = []
    for line in lines:
        without = _MARKER.sub("", line).rstrip()
        if without == line.rstrip() or any(character.isalpha() for character in without):
            kept.append(without)
    return _clean("\n".join(kept).strip()) or None
