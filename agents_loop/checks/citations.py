"""A check of an answer's citations: a comparison of two sets, without a model."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Collection, Iterable
from dataclasses import dataclass
from inspect import isawaitable
from typing import Final, Literal, TypeAlias, cast

from agents_loop.checks.check import Check, Finding, check_maker
from agents_loop.errors import ConfigurationError
from agents_loop.loop.context import LoopContext
from agents_loop.numeric import is_int

Citations: TypeAlias = Collection[str]
AllowedCitations: TypeAlias = Citations | Callable[[LoopContext], Citations | Awaitable[Citations]] | Literal["request"]

CITATION_PATTERN: Final = re.compile(
    r"(?<![\w./\\-])(?P<name>[\w./\\-]{1,200}?)"
    r"(?P<mark>[^\S\r\n]{0,3}#[^\S\r\n]{0,3}|[,:]?\s{0,3}\(?§{1,2}\s{0,3}|[,:]?\s{1,3}\(?sections?\s{1,3})"
    r"(?P<number>\d{1,6})(?![^\W_])",
    re.IGNORECASE,
)
"""`manual#3`; and `docs/manual.md section 3`, `manual §3` and `manual #3`, which are other ways to write the same."""
_BETWEEN = r"[^\S\r\n]{0,3}(?:[,;/&+\u2010-\u2015-]|and\b|or\b|to\b){0,2}[^\S\r\n]{0,3}"
_NEXT_MARKED = re.compile(
    rf"{_BETWEEN}(?:and\b[^\S\r\n]{{0,3}})?[#§][^\S\r\n]{{0,3}}(\d{{1,6}})(?![^\W_])", re.IGNORECASE
)
"""The same source's next: `manual#1, #6`, `manual §1 and §6`."""
_NEXT_IN_RANGE = re.compile(r"[\u2010-\u2015-](\d{1,6})(?![^\W_])")
"""`manual#1-6`."""
_NEXT_IN_LIST = re.compile(
    r"\s{0,3}(?:[,;&\u2010-\u2015-]|and\b|or\b|to\b)\s{0,3}(?:(?:and|or)\b\s{0,3})?(\d{1,6})(?![^\W_])", re.IGNORECASE
)
"""`manual.md sections 1, 2 and 6`: after a plural alone, for "section 1, 6 litres" is no list."""
_SOURCES_LINE = re.compile(r"^[ \t>*_`#-]{0,12}sources?[*_`]{0,3}:", re.IGNORECASE | re.MULTILINE)
_WORDS = re.compile(r",?\s*(?:§\s*|\bsections?\s+)(?=\d)", re.IGNORECASE)
_MOST_NAMED = 20
"""How many sources, or faults, the agent hears of by name."""


def normalized_citation(citation: str) -> str:
    """A citation as it is compared: in lower case, without folder and `.md`, and `section 3` and `§3` as `#3`."""
    name = _WORDS.sub("#", citation.strip().lower(), count=1).replace("\\", "/").rpartition("/")[2]
    stem, mark, number = name.partition("#")
    return f"{stem.strip().strip('_').removesuffix('.md')}{mark}{number.strip()}"


def find_citations(
    text: str, pattern: re.Pattern[str] = CITATION_PATTERN, *, names: Collection[str] = ()
) -> tuple[str, ...]:
    """The citations of a text, normalised, each once, in order.

    Args:
        text: Any text.
        pattern: What a citation looks like: its group 1 if it has a group, or else all of it. The default's other
            ways to write one (`section 3`, ` #3`) count only after a name that ends in `.md` or is one of `names`, for
            most words before "section 3" are no name. Numbers that follow (`manual#1, #6`, `manual#1-6`) are of the
            same source.
        names: The names of known sources, normalised and without their numbers.
    """
    citations: list[str] = []
    if pattern is not CITATION_PATTERN:
        group = 1 if pattern.groups else 0
        citations += [normalized_citation(each[group] or "") for each in pattern.finditer(text)]
        return tuple(dict.fromkeys(citation for citation in citations if citation))
    for each in CITATION_PATTERN.finditer(text):
        name = normalized_citation(each["name"])
        if name and (each["mark"] == "#" or each["name"].lower().endswith(".md") or name in names):
            citations += [f"{name}#{number}" for number in _numbers(text, each)]
    return tuple(dict.fromkeys(citations))


def _numbers(text: str, citation: re.Match[str]) -> list[str]:
    """The numbers that a citation names: mostly one."""
    is_plural = citation["mark"].rstrip().lower().endswith(("sections", "§§"))
    ways = (_NEXT_MARKED, _NEXT_IN_LIST if is_plural else _NEXT_IN_RANGE)
    numbers, end = [citation["number"]], citation.end()
    while further := next((found for way in ways if (found := way.match(text, end))), None):
        numbers.append(further[1])
        end = further.end()
    return numbers


@check_maker
def citation_check(
    allowed: AllowedCitations,
    *,
    pattern: str | re.Pattern[str] = CITATION_PATTERN,
    at_least: int = 1,
    abstains: str | re.Pattern[str] | None = None,
    sources_line: bool = False,
    name: str = "cites its sources",
    required: bool = True,
) -> Check:
    """Each citation of the answer must be one of the sources that it was given.

    The model-free twin of `PassTokenLoopEvaluator`: the same fixed criterion, and always the same verdict. Citations
    are compared without case, folder and `.md`; `section 3` and `§3` are `#3`. That a source says what the answer says
    is not checked: a real source that is cited for a wrong fact passes.

    Args:
        allowed: The sources' citations; or a callable of the context that gives them, sync or async, where they were
            looked up for the request; or `"request"`: each citation that stands in the caller's messages, where these
            hold the sources, each under its name.
        pattern: What a citation looks like: its group 1 if it has a group, or else all of it. By default `name#3`.
        at_least: How many citations the answer must have.
        abstains: An answer in which it is found, in any case, says that the sources don't tell: it needs no
            citation, and no line of sources.
        sources_line: Whether the answer must have a line that begins with `Sources:`, with all that it cites in it or
            below.
        name: What the check is called in feedback, evidence and records.
        required: Whether an `EvidenceLoopEvaluator` may call nothing done while this fails.

    Raises:
        TypeError: `allowed` is another str, or `None`; a pattern is no str; `at_least` is no int.
        ConfigurationError: A pattern is no regular expression; `at_least` is below 0.
    """
    if allowed is None or (isinstance(allowed, str) and allowed != "request"):  # pyright: ignore[reportUnnecessaryComparison]
        raise TypeError(f"allowed must be a collection of citations, a callable, or 'request', not {allowed!r}")
    if not is_int(at_least):
        raise TypeError(f"at_least must be an int, not {at_least!r}")
    if at_least < 0:
        raise ConfigurationError(f"at_least must be 0 or more, not {at_least}")
    criterion = _Criterion(
        _compiled("pattern", pattern),
        at_least,
        None if abstains is None else _compiled("abstains", abstains, re.IGNORECASE),
        sources_line,
    )
    given = allowed if callable(allowed) or allowed == "request" else _checked(allowed)
    return _CitationCheck(name, given, criterion, required=required)


@dataclass(frozen=True, slots=True)
class _Criterion:
    """What an answer's citations must be."""

    pattern: re.Pattern[str]
    at_least: int
    abstains: re.Pattern[str] | None
    has_line: bool

    def problems(self, text: str, allowed: Collection[str]) -> list[str]:
        names = {citation.partition("#")[0] for citation in allowed}
        cited = find_citations(text, self.pattern, names=names)
        if not cited and self.abstains is not None and self.abstains.search(text):
            return []
        problems: list[str] = []
        strays = [citation for citation in cited if citation not in allowed]
        if strays:
            problems.append(f"it cites {_listed(strays)}, not among the sources that were given")
        if len(cited) < self.at_least:
            asked = "a source" if self.at_least == 1 else f"{self.at_least} sources"
            problems.append(f"it cites {_listed(cited) or 'nothing'}, and must cite {asked} at least")
        if self.has_line:
            problems += self._outside_of_line(text, cited, names)
        return problems

    def _outside_of_line(self, text: str, cited: Iterable[str], names: Collection[str]) -> list[str]:
        lines = list(_SOURCES_LINE.finditer(text))
        if not lines:
            return ['it has no line that begins with "Sources:"']
        listed = find_citations(text[lines[-1].end() :], self.pattern, names=names)
        outside = [citation for citation in cited if citation not in listed]
        return [f"it cites {_listed(outside)} without naming it in the line of sources"] if outside else []


class _CitationCheck(Check):
    """A check that sees for which request the sources were looked up."""

    def __init__(self, name: str, allowed: AllowedCitations, criterion: _Criterion, *, required: bool) -> None:
        super().__init__(name, lambda _: True, required=required)
        self._allowed = allowed
        self._criterion = criterion

    async def finding(self, text: str, context: LoopContext) -> Finding:
        allowed = await self._allowed_now(context)
        problems = self._criterion.problems(text, allowed)
        return f"{'; '.join(problems)}. {_told(allowed)}" if problems else None

    async def _allowed_now(self, context: LoopContext) -> Collection[str]:
        if self._allowed == "request":
            asked = "\n".join(message.text for message in context.initial_messages)
            return dict.fromkeys(find_citations(asked, self._criterion.pattern))
        given: object = self._allowed(context) if callable(self._allowed) else self._allowed
        return _checked(await cast("Awaitable[object]", given) if isawaitable(given) else given)


def _checked(given: object) -> dict[str, None]:
    """The citations, normalised, in order.

    Raises:
        TypeError: They are no collection of str.
    """
    if not isinstance(given, Iterable) or isinstance(given, str):
        raise TypeError(f"allowed must be, or give, a collection of citations, not {type(given).__name__}")
    citations = list(cast("Iterable[object]", given))
    for citation in citations:
        if not isinstance(citation, str):
            raise TypeError(f"allowed must hold str, not {type(citation).__name__}")
    return {normalized_citation(str(citation)): None for citation in citations}


def _compiled(name: str, pattern: object, flags: int = 0) -> re.Pattern[str]:
    try:
        if isinstance(pattern, str):
            return re.compile(pattern, flags)
        compiled = cast("re.Pattern[str]", pattern)
        if isinstance(pattern, re.Pattern) and isinstance(compiled.pattern, str):  # pyright: ignore[reportUnnecessaryIsInstance]
            return compiled
    except re.error as error:
        raise ConfigurationError(f"{name} {pattern!r} is no regular expression: {error}") from error
    raise TypeError(f"{name} must be a str or a compiled pattern of str, not {pattern!r}")


def _listed(citations: Iterable[str]) -> str:
    named = list(citations)
    more = f" and {len(named) - _MOST_NAMED} more" if len(named) > _MOST_NAMED else ""
    return ", ".join(named[:_MOST_NAMED]) + more


def _told(allowed: Iterable[str]) -> str:
    named = _listed(allowed)
    return f"The sources are: {named}" if named else "There are no sources"
