"""The cases by which a judge is checked: drafts, with what is known of them."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias, cast, get_args

from pydantic import Field, StrictBool, StrictFloat, StrictInt, StrictStr, ValidationError, model_validator

from agents_loop.errors import ConfigurationError
from agents_loop.files.fields import Closed, Text

CaseKind: TypeAlias = Literal["repeat", "blind_spot", "never_passes", "trivial", "serious"]
"""What a case is for:

- `repeat`: a draft that is judged several times, which should come to the same verdict;
- `blind_spot`: a draft that is wrong in a way which the criterion can't see;
- `never_passes`: a run in whose checks fault is always found; without a draft the file's agent writes;
- `trivial`, `serious`: a draft with a small fault, or with a real one, that is revised until it passes.
"""
CASE_KINDS: Final[tuple[str, ...]] = get_args(CaseKind)
_SHOWN = 60


class CasesError(ConfigurationError):
    """A file of cases is not valid. The message has one line for each problem.

    Args:
        lines: The problems.
    """

    def __init__(self, lines: Iterable[str]) -> None:
        self.lines = tuple(lines)
        super().__init__("\n".join(self.lines))

    def __reduce__(self) -> tuple[type[CasesError], tuple[tuple[str, ...]]]:
        return type(self), (self.lines,)


class JudgeCase(Closed):
    """One case."""

    id: Text
    kind: CaseKind
    inputs: dict[str, StrictStr | StrictBool | StrictInt | StrictFloat] = Field(default_factory=dict)
    """Of the file, over those that hold for all cases."""
    draft: Text | None = None
    """What stands in for the agent's first answer."""
    passes: bool | None = None
    """Whether the draft should pass, where that is known."""

    @model_validator(mode="after")
    def _check(self) -> JudgeCase:
        if self.draft is None and self.kind != "never_passes":
            raise ValueError(f"draft is missing: a case of the kind {self.kind!r} is about one")
        if self.passes and self.kind == "blind_spot":
            raise ValueError("passes must be false: a blind spot is a draft that is wrong")
        return self


def load_cases(path: str | Path) -> list[JudgeCase]:
    """Read a file of cases: one JSON object a line; blank lines are left out.

    Raises:
        CasesError: It can't be read, a line is no case, an id is given twice, or there is no case.
    """
    try:
        text = Path(path).read_text("utf-8-sig")
    except (OSError, ValueError) as error:
        said = getattr(error, "strerror", None) or str(error)
        raise CasesError([f"{path}: the cases can't be read: {said}"]) from error
    cases: dict[str, JudgeCase] = {}
    problems: list[str] = []
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip():
            continue
        found = _read(line)
        if isinstance(found, str):
            problems.append(f"{path}:{number}: {found}")
        elif found.id in cases:
            problems.append(f"{path}:{number}: id {found.id!r} is given twice")
        else:
            cases[found.id] = found
    if not cases and not problems:
        problems.append(f"{path}: there is no case: write one JSON object a line, with id, kind and draft")
    if problems:
        raise CasesError(problems)
    return list(cases.values())


def _read(line: str) -> JudgeCase | str:
    try:
        value: object = json.loads(line)
    except (ValueError, RecursionError) as error:
        return f"it is no JSON: {error}"
    if not isinstance(value, dict):
        return "a case must be a JSON object"
    try:
        return JudgeCase.model_validate(value)
    except ValidationError as error:
        details = error.errors(include_url=False)[0]
        place = ".".join(str(part) for part in details["loc"][:2])
        return _told(place, details["type"], cast("dict[str, Any]", details))


def _told(place: str, kind: str, details: dict[str, Any]) -> str:
    given = repr(details["input"])
    given = given if len(given) <= _SHOWN else f"{given[: _SHOWN - 3]}..."
    match kind:
        case "extra_forbidden":
            return f"unknown key {place!r}; known here: {', '.join(JudgeCase.model_fields)}"
        case "missing":
            return f"{place} is missing"
        case "literal_error":
            return f"{place} must be one of {', '.join(CASE_KINDS)}, not {given}"
        case "value_error":
            said = str(details["ctx"]["error"])
            return f"{place} {said}" if place else said
        case _:
            return f"{place}: {details['msg'][:1].lower()}{details['msg'][1:]}, not {given}"
