"""What code can count in a text better than a model: words, sentences, items, columns, code blocks, its JSON.

Pure functions. A text that is one code fence marked `markdown` or `md` is what stands in it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

from agents_loop.judging.reading import refuse_constant
from agents_loop.judging.sentences import count_in_paragraph
from agents_loop.messages import JsonValue


class CodeBlock(NamedTuple):
    """A fenced block of code."""

    language: str
    """The first word after the opening fence, in lower case; empty where there is none."""
    code: str


def count_words(text: str) -> int:
    """How many words there are: what stands between spaces or dashes (—) and has a letter or a digit.

    So `well-known`, `3.14` and `and/or` are one word each. A Chinese or Japanese character is a word. Markers of lists
    and code fences don't count; code does.
    """
    return sum(_words_of(line.text) for line in _lines(text) if not line.is_fence)


def count_sentences(text: str) -> int:
    """How many sentences there are.

    A paragraph or a list's item with a word has at least one, however it ends. Headings, tables and code have none.
    The dots of decimals, initials and common English abbreviations end no sentence, unless what follows begins one.
    """
    return sum(count_in_paragraph(paragraph) for paragraph in _paragraphs(text))


def count_lines(text: str) -> int:
    """How many lines there are that are not blank."""
    return sum(1 for line in _lines(text) if line.text.strip())


def list_items(text: str) -> list[str]:
    """The items of the text's lists, without their markers: `-`, `*`, `+`, `•`, `1.`, `1)`, `(1)`, `a)`.

    Only items of the outermost level are items: an item's further lines and the items below it are part of its text.
    """
    items: list[list[str]] = []
    depth: int | None = None  # how far the list's outermost items are indented; outside a list there is none
    after_blank = False
    for line in _lines(text):
        if not line.text.strip():
            after_blank = True
            continue
        marker = None if line.is_code else _item_marker(line.text)
        indent = len(line.text) - len(line.text.lstrip())
        if marker is not None and (depth is None or indent < depth + 2):
            items.append([_without_marker(line.text, marker)])
            depth = indent
        elif depth is not None and (indent > depth or _goes_on(line, after_blank=after_blank)):
            items[-1].append(line.text.strip())
        else:
            depth = None
        after_blank = False
    return ["\n".join(item).strip() for item in items]


def json_value(text: str, *, bare: bool = False) -> JsonValue:
    """The JSON value that the whole text is, or, unless it must stand `bare`, that its only code block is.

    Raises:
        ValueError: There is none; the message says what is wrong. `NaN` and a key given twice are no JSON.
    """
    try:
        return _parsed(text.removeprefix("\ufeff").strip())
    except ValueError:
        blocks = () if bare else code_blocks(text)
        if len(blocks) != 1:
            raise
    return _parsed(blocks[0].code)


def table_columns(text: str) -> list[str] | None:
    """The headings of the first Markdown table, or `None` if there is no table."""
    lines = [line.text for line in _lines(text) if not line.is_code]
    for header, below in pairwise(lines):
        if "|" in header and _DELIMITER_ROW.fullmatch(below.strip()):
            cells = _cells(header)
            if len(cells) == len(_cells(below)):
                return cells
    return None


def code_blocks(text: str) -> list[CodeBlock]:
    """The fenced code blocks, in order. One that is not closed goes to the end of the text."""
    blocks: list[tuple[str, list[str]]] = []
    for line in _lines(text):
        if line.opens is not None:
            blocks.append((line.opens, []))
        elif line.is_code and not line.is_fence:
            blocks[-1][1].append(line.text)
    return [CodeBlock(language, "\n".join(lines)) for language, lines in blocks]


# --- lines, and which of them are code


class _Line(NamedTuple):
    text: str
    is_code: bool = False
    """It stands in a fenced block, or is one of its fences."""
    is_fence: bool = False
    opens: str | None = None
    """The language of the block that this line opens."""


_LINE_BREAK = re.compile(r"\r\n|\n|\r")
"""Not the rarer ones of `str.splitlines`, which may stand in a string of JSON."""
_FENCE = re.compile(r"\s*(?P<fence>`{3,}|~{3,})\s*(?P<language>[\w+#.-]*)(?P<rest>.*)")


def _lines(text: str) -> list[_Line]:
    """The lines; without the fences around them, where one Markdown fence is all of the text."""
    lines = list(_marked(text))
    whole = [number for number, line in enumerate(lines) if line.text.strip()]
    if not whole or lines[whole[0]].opens not in ("markdown", "md"):
        return lines
    first, last = whole[0], whole[-1]
    fences = [number for number, line in enumerate(lines) if line.is_fence]
    return list(_marked("\n".join(line.text for line in lines[first + 1 : last]))) if fences == [first, last] else lines


def _marked(text: str) -> Iterator[_Line]:
    open_fence, indent = "", 0
    for line in _LINE_BREAK.split(text.removeprefix("\ufeff")):
        found = _FENCE.fullmatch(line)
        fence = found["fence"] if found else ""
        if found and not open_fence and not (fence[0] == "`" and "`" in found["rest"]):
            open_fence, indent = fence, len(line) - len(line.lstrip())
            yield _Line(line, is_code=True, is_fence=True, opens=found["language"].lower())
        elif found and open_fence and fence.startswith(open_fence) and not found["language"] + found["rest"].strip():
            open_fence = ""
            yield _Line(line, is_code=True, is_fence=True)
        elif open_fence:
            own = len(line) - len(line.lstrip())
            yield _Line(line[min(indent, own) :], is_code=True)
        else:
            yield _Line(line)


# --- words and paragraphs

_EAST_ASIAN = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
_WORD = re.compile(f"[{_EAST_ASIAN}]|[^\\s\u2014{_EAST_ASIAN}]+")
_LETTER = re.compile(r"[^\W_]")
_HEADING = re.compile(r"\s{0,3}#{1,6}\s.*|\s*(\*\*|__)[^*_]+(?<![.!?])\1:?\s*")
"""A heading, or a line that is nothing but bold words."""
_RULE = re.compile(r"\s*(?:(?:-\s*){3,}|(?:\*\s*){3,}|(?:_\s*){3,}|={3,}\s*)")
_MARKER = re.compile(
    r"\s*(?:>\s?)*(?:[-*+•‣◦]|(?P<bold>\*\*|__)?\(?[0-9]{1,3}[.)](?P<closed>\*\*|__)?|\(?[A-Za-z]\))(?:\s+|$)"
)
"""What an item begins with. A number has at most three digits: with four it is a year."""
_QUOTE = re.compile(r"^\s*(?:>\s?)+")
_DELIMITER_ROW = re.compile(r"(?=.*\|)(?=.*-)[|:\s-]+")


def _item_marker(line: str) -> re.Match[str] | None:
    return None if _RULE.fullmatch(line) else _MARKER.match(line)


def _without_marker(line: str, marker: re.Match[str]) -> str:
    """An item's own text. Of `**1. Peel**` the number goes and the rest stays bold."""
    bold = marker["bold"] if marker["bold"] and not marker["closed"] else ""
    return bold + line[marker.end() :].strip()


def _goes_on(line: _Line, *, after_blank: bool) -> bool:
    """Whether a line belongs to the item before it though it is not indented."""
    if line.is_code:
        return line.opens is None
    return not after_blank and not _is_structure(line)


def _is_structure(line: _Line) -> bool:
    return _HEADING.fullmatch(line.text) is not None or _RULE.fullmatch(line.text) is not None


def _words_of(line: str) -> int:
    marker = _item_marker(line)
    words = _WORD.findall(line, marker.end() if marker else 0)
    return sum(1 for word in words if _LETTER.search(word))


def _paragraphs(text: str) -> Iterator[str]:
    """The text's paragraphs, list items among them; neither headings nor tables nor code."""
    paragraph: list[str] = []
    for line in _lines(text):
        is_rule = _RULE.fullmatch(line.text) is not None
        marker = _item_marker(line.text)
        is_prose = line.text.strip() and not line.is_code and not _is_structure(line)
        is_prose = is_prose and not line.text.lstrip().startswith("|")
        if is_prose and marker is None:
            paragraph.append(_QUOTE.sub("", line.text, count=1).strip())
            continue
        if paragraph and not (is_rule and not line.is_code):  # a line above a rule is a heading
            yield " ".join(paragraph)
        paragraph = [_without_marker(line.text, marker)] if is_prose and marker is not None else []
    yield " ".join(paragraph)


# --- JSON and tables


def _parsed(text: str) -> JsonValue:
    try:
        return json.loads(text, parse_constant=refuse_constant, object_pairs_hook=_without_twins)
    except RecursionError:
        raise ValueError("the JSON is nested too deeply to be read") from None


def _without_twins(pairs: list[tuple[str, JsonValue]]) -> dict[str, JsonValue]:
    value: dict[str, JsonValue] = {}
    for key, item in pairs:
        if key in value:
            raise ValueError(f"the key {key!r} stands twice in one object")
        value[key] = item
    return value


def _cells(row: str) -> list[str]:
    """A table row's cells; a pipe after a backslash is no border."""
    cells = re.split(r"(?<!\\)\|", row.strip())
    if cells[0] == "":
        del cells[0]
    if cells and cells[-1].strip() == "":
        del cells[-1]
    return [cell.strip().replace("\\|", "|") for cell in cells]
