"""How a judge's reply is read. A pure function; nothing unclear is a pass."""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, NoReturn, TypeAlias, cast

from agents_loop.judging.verdict import UNKNOWN_GAP

Pairs: TypeAlias = tuple[tuple[str, Any], ...]
"""A JSON object as its pairs, so that a key given twice is seen."""


class VerdictReading(NamedTuple):
    """What a judge's reply says."""

    answered: bool
    gap: str
    """What is missing, in the judge's words; `<unknown>` when it names nothing."""
    readable: bool
    """Whether there was a boolean or a marker at all."""
    fields: Mapping[str, Any] | None = None
    """By lower-case name without `_`, where the reply is one object that says nothing twice."""


class FoundObject(NamedTuple):
    """The JSON object that a reply is."""

    pairs: Pairs | None
    """Its keys and values, objects within it as well; `None` where the reply is no object."""
    rest: str | None
    """The reply without what is removed first; `None` where a thinking block is not closed."""
    is_sure: bool
    """Whether a pass in it counts: not where thinking tags stand in its strings."""


def read_reply(reply: str) -> VerdictReading:
    """Read a judge's reply.

    It passes in two ways: the reply is one JSON object whose `answered` is true; or there is no object that speaks of a
    verdict, no `VERDICT: MORE` anywhere, and its first or last line is `VERDICT: DONE`. A byte order mark, closed
    thinking blocks, and a code fence around all of the rest are removed first.
    """
    if "<" not in reply and (plain := _object_of(reply.strip())) is not None:  # what most judges reply
        return _read_object(plain)
    found = find_object(reply)
    if found.rest is None:
        return VerdictReading(answered=False, gap=UNKNOWN_GAP, readable=False)
    if found.pairs is None:
        return _read_prose(found.rest)
    reading = _read_object(found.pairs)
    if found.is_sure:
        return reading
    return reading._replace(answered=False, readable=reading.readable and not reading.answered, fields=None)


def find_object(reply: str) -> FoundObject:
    """The JSON object that a reply is, without a byte order mark, closed thinking blocks, and a fence around it."""
    text = reply.removeprefix("\ufeff").strip()
    rest = text
    if "<" in text:
        removed = _without_thinking(text)
        if removed is None or removed != text:
            whole = _object_of(text)
            if whole is not None:  # the tags stand in its strings
                return FoundObject(whole, text, is_sure=False)
        if removed is None:
            return FoundObject(None, None, is_sure=False)
        rest = removed.strip()
    if rest.startswith(("```", "~~~")):
        rest = _without_fence(rest)
    return FoundObject(_object_of(rest), rest, is_sure=True)


# --- what is removed first

_THINKING_TAG = re.compile(r"<(/?)(think|thinking)\s*>", re.IGNORECASE)


def _without_thinking(text: str) -> str | None:
    """The text outside thinking blocks, from the last lone closing tag on; `None` if a block is not closed."""
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


_FENCE = re.compile(r"`{3,}|~{3,}")
_FENCE_INFO = re.compile(r"[\w+.-]*(?:\s[^`]*)?")
"""What may follow an opening fence on its line: a language, and attributes after a space."""


def _without_fence(text: str) -> str:
    """What stands in a code fence, if one fence encloses all of the text."""
    opening = _FENCE.match(text)
    if opening is None:
        return text
    fence = opening[0]
    closing = len(text) - len(text.rstrip(fence[0]))
    if closing < len(fence) or len(text) < len(fence) + closing:
        return text
    body = text[len(fence) : -closing]
    first, line_break, others = body.partition("\n")
    inner = (others if line_break and _FENCE_INFO.fullmatch(first.strip()) else _without_language(body)).strip()
    closes_early = any(line.lstrip().startswith(fence) for line in inner.splitlines())
    return text if closes_early else inner


def _without_language(body: str) -> str:
    """The content of a fence that stands on one line, without a `json` before it."""
    content = body.lstrip()
    return content[4:] if content[:4].lower() == "json" and content[4:5] in ("{", " ") else content


# --- one JSON object


def refuse_constant(name: str) -> NoReturn:
    """For `json`'s decoder: `NaN` and its like are no JSON."""
    raise ValueError(f"{name} is not JSON")


_DECODER = json.JSONDecoder(object_pairs_hook=tuple, parse_constant=refuse_constant)
"""Objects become tuples of their pairs, so that a key given twice is seen."""
_scan_once = cast("Callable[[str, int], tuple[Any, int]]", vars(_DECODER)["scan_once"])

_NAMES = {"gapAnalysis": "gapanalysis", "answered": "answered"}
"""The names of the schema's keys, which most replies keep to."""
_OTHER_GAP_KEYS = ("gap", "missing", "feedback", "reasoning", "reason")
"""What judges call the gap when they don't keep to the schema; an argument is no gap where the schema's is there."""


def _object_of(text: str) -> Pairs | None:
    """The object that the whole of a stripped text is, or `None`."""
    if not text.startswith("{"):
        return None
    try:
        value, end = _scan_once(text, 0)
    except (ValueError, RecursionError, StopIteration):
        return None
    return value if end == len(text) else None


def _fields(verdict: Pairs) -> dict[str, Any]:
    """The fields by key without case and `_`; of a key given twice, the last value that says something."""
    fields: dict[str, Any] = {}
    for key, value in verdict:
        name = _NAMES.get(key) or key.replace("_", "").lower()
        if value or name not in fields:
            fields[name] = value
    return fields


def _read_object(verdict: Pairs) -> VerdictReading:
    if len(verdict) == 2:  # noqa: PLR2004 - the schema's two keys, in its order: what most judges reply
        (first, gap), (second, answered) = verdict
        if first == "gapAnalysis" and second == "answered" and type(gap) is str and type(answered) is bool:
            named = UNKNOWN_GAP if not gap or gap.isspace() else gap if gap.isascii() else clean_text(gap)
            return VerdictReading(answered, named, True, {"gapanalysis": gap, "answered": answered})  # noqa: FBT003
    fields = _fields(verdict)
    answered = fields.get("answered")
    if type(answered) is not bool:
        answered = as_boolean(answered)
    gap = _gap_of(fields) or UNKNOWN_GAP
    if len(fields) != len(verdict):
        return VerdictReading(answered=False, gap=gap, readable=False)
    return VerdictReading(answered is True, gap, answered is not None, fields)


def as_boolean(value: Any) -> bool | None:
    """A boolean, or a text that is one; `None` for whatever else, never truthiness."""
    if isinstance(value, bool):
        return value
    if isinstance(value, str):
        return {"true": True, "false": False}.get(value.strip().lower())
    return None


def _gap_of(fields: dict[str, Any]) -> str | None:
    """An object's text about what is missing, or `None`."""
    gap = _as_text(fields.get("gapanalysis"))
    if gap is not None:
        return gap
    names = _OTHER_GAP_KEYS[:3] if "gapanalysis" in fields else _OTHER_GAP_KEYS
    return next((text for name in names if (text := _as_text(fields.get(name)))), None)


def _as_text(value: Any) -> str | None:
    if isinstance(value, str):
        return clean_text(value) if value and not value.isspace() else None
    if isinstance(value, list):
        items = [_as_text(item) for item in cast("list[Any]", value)]
        return "\n".join([f"- {item}" for item in items if item]) or None
    if isinstance(value, tuple):
        pairs = [(key, _as_text(item)) for key, item in cast("Pairs", value)]
        return "\n".join([f"- {key}: {item}" for key, item in pairs if item]) or None
    return None


def clean_text(text: str) -> str:
    """The text without lone surrogates, which no wire can carry."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8")


# --- prose and markers

_LIST_MARKER = re.compile(r"(?:[-+*•]|[0-9]{1,3}[.)])(?=\s)")
_DONE = re.compile(r"verdict\s*:\s*done", re.IGNORECASE | re.ASCII)
_BETWEEN = r"(?:[^\w:=\u2013\u2014-]|_|<[^<>\n]{0,20}>){0,8}[:=\u2013\u2014-](?:\W|_|<[^<>\n]{0,20}>){0,24}?"
_MORE = re.compile(rf"verdict{_BETWEEN}more", re.IGNORECASE)
_MARKER = re.compile(
    rf"[*_`\"']{{0,4}}verdict{_BETWEEN}(?:done|more)\b[*_`\"'\u201d\u2019)\]]{{0,4}}[.!]?", re.IGNORECASE
)
"""Markers in any dress, quoted or marked up: any such MORE is one; a pass needs the plain DONE on a line of its own."""
_VERDICT_KEY = re.compile(r"[{,]\s*[\"'][a-z_]*[\"']\s*:", re.IGNORECASE)
_VERDICT_KEYS = frozenset({"answered", "gapanalysis"})
_INVISIBLE = re.compile("[\u00ad\u200b-\u200f\u2060\ufeff]")
_LOOK_ALIKES = str.maketrans("АВЕІМОРСТѴаеіорсѕıİΕΙΜΟΡΤϹ", "ABEIMOPCTVaeiopcsiIEIMOPTC")
"""Cyrillic, Greek and Turkish letters that pass for the markers' (Unicode's confusables), for finding MORE alone."""
_MOST_OBJECTS = 1000
"""How many places of a reply are tried as the start of an object; with more, the reply is unclear."""


def _read_prose(text: str) -> VerdictReading:
    plain = text if text.isascii() else _INVISIBLE.sub("", unicodedata.normalize("NFKC", text)).translate(_LOOK_ALIKES)
    says_more = _MORE.search(plain) is not None
    verdicts = _objects_in(text)
    lines = [line for line in re.split(r"\r\n|\n|\r", text) if line.strip()]
    answered = bool(lines) and not says_more and (_is_done(lines[0]) or _is_done(lines[-1]))
    if answered and (verdicts or _speaks_of_a_verdict(text)):
        answered = False
    has_false = any(as_boolean(verdict.get("answered")) is False for verdict in verdicts)
    readable = says_more or has_false or _MARKER.search(plain) is not None
    gap = next((gap for verdict in reversed(verdicts) if (gap := _gap_of(verdict))), None)
    return VerdictReading(answered, gap or _prose_without_marker(lines) or UNKNOWN_GAP, readable)


def _is_done(line: str) -> bool:
    """Whether a line is the marker, with nothing around it but list, bold, code or end punctuation."""
    text = line.strip()
    marker = _LIST_MARKER.match(text)
    if marker is not None:
        text = text[marker.end() :].lstrip()
    return _DONE.fullmatch(text.lstrip("*_`").lstrip().rstrip("*_`.! \t")) is not None


def _speaks_of_a_verdict(text: str) -> bool:
    """Whether there is a verdict's key as in an object, also in one that is cut off, or more objects than are read."""
    keys = [found.group().strip("{,: \t\r\n\"'").replace("_", "").lower() for found in _VERDICT_KEY.finditer(text)]
    return not _VERDICT_KEYS.isdisjoint(keys) or text.count("{") > _MOST_OBJECTS


def _objects_in(text: str) -> list[dict[str, Any]]:
    """The fields of the JSON objects within prose that speak of a verdict."""
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
            if not _VERDICT_KEYS.isdisjoint(fields):
                found.append(fields)
        start = text.find("{", end)
    return found


def _prose_without_marker(lines: list[str]) -> str | None:
    kept: list[str] = []
    for line in lines:
        without = _MARKER.sub("", line).rstrip()
        if without == line.rstrip() or any(character.isalpha() for character in without):
            kept.append(without)
    return clean_text("\n".join(kept).strip()) or None
