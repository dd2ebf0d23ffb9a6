"""The cases by which a judge is checked: drafts, with what is known of them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Literal, TypeAlias

from pydantic import Field

from agents_loop.files.fields import Closed, Text
from agents_loop.files.inputs import InputValue, check_name
from agents_loop.files.json_lines import parse_lines, read_lines
from agents_loop.files.problems import LoopFileError, path_text

CaseKind: TypeAlias = Literal["repeat", "blind_spot", "never_passes", "trivial", "serious"]
"""What a case is for:

- `repeat`: a draft that is judged several times, which should come to the same verdict;
- `blind_spot`: a draft that is wrong in a way which the criterion can't see;
- `never_passes`: a run in whose checks fault is always found; without a draft the file's agent writes;
- `trivial`, `serious`: a draft with a small fault, or with a real one, that is revised until it passes.
"""


class CasesError(LoopFileError):
    """A file of cases is not valid. The message has one line for each problem."""


class JudgeCase(Closed):
    """One case."""

    id: Text
    kind: CaseKind
    inputs: dict[str, InputValue] = Field(default_factory=dict[str, InputValue])
    """Of the file, over those that hold for all cases."""
    draft: Text | None = None
    """What stands in for the agent's first answer."""
    passes: bool | None = None
    """Whether the draft should pass, where that is known."""


def load_cases(path: str | Path) -> tuple[JudgeCase, ...]:
    """Read and check a file of cases: one JSON object a line; blank lines are left out.

    Raises:
        CasesError: It can't be read or is not valid; the error holds every problem, with its line.
    """
    text = read_lines(path, "case", CasesError)
    return parse_lines(text, str(path), JudgeCase, what="case", error=CasesError, further=problems_of)


def problems_of(case: JudgeCase) -> Iterator[tuple[str, str]]:
    """What is wrong with a case that is written well."""
    if case.draft is None and case.kind != "never_passes":
        yield "draft", f"is missing: a case of the kind {case.kind!r} is about one"
    if case.passes and case.kind == "blind_spot":
        yield "passes", "must be false: a blind spot is a draft that is wrong"
    for name in case.inputs:
        if wrong := check_name(name):
            yield path_text(["inputs", name]), wrong
