"""The questions of an evaluation: one JSON object a line, each with what its answer is graded by."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final, Literal, cast

from pydantic import Field, ValidationError

from agents_loop.evals.patterns import PatternError, compiled
from agents_loop.files.fields import Closed, Text
from agents_loop.files.inputs import check_name
from agents_loop.files.problems import LoopFileError, Problem, path_text

UNANSWERABLE: Final = "unanswerable"
"""The kind of a question that the sources don't answer: the right answer says so."""
_MOST_CHARACTERS: Final = 1_000_000
"""Of a line."""
_PATTERNS: Final = ("accept", "require", "reject", "abstain")


class QuestionsError(LoopFileError):
    """A file of questions is not valid. The message has one line for each problem."""


class Question(Closed):
    """A question, and what its answer is graded by. Patterns are regular expressions, searched in any case."""

    id: Text
    question: Text
    kind: Text = "question"
    """By which scores are divided. `unanswerable` is graded by its abstention."""
    answer: str | None = None
    """The right answer, for the grader of a rubric and for people."""
    accept: list[Text] = Field(default_factory=list[str])
    """One of these must be found."""
    require: list[Text] = Field(default_factory=list[str])
    """All of these must be found."""
    reject: list[Text] = Field(default_factory=list[str])
    """None of these may be found."""
    abstain: list[Text] = Field(default_factory=list[str])
    """One of these must be found in the answer to an unanswerable question, instead of `ABSTENTIONS`."""
    must_cite: list[Text] = Field(default_factory=list[str])
    """The citations that the answer should have. They are measured apart from the grade."""
    grading: Literal["exact", "rubric"] = "exact"
    """By patterns, or by a model that reads the rubric."""
    rubric: list[Text] = Field(default_factory=list[str])
    """What a right answer must do, for the grader."""
    inputs: dict[str, str | int | float | bool] = Field(default_factory=dict[str, str | int | float | bool])
    """Further inputs of the file."""


def load_questions(path: str | Path) -> tuple[Question, ...]:
    """Read and check a file of questions.

    Raises:
        QuestionsError: It can't be read or is not valid; the error holds every problem, with its line.
        MissingExtraError: It has patterns, and the extra `eval` is not installed.
    """
    source = str(path)
    try:
        text = Path(path).read_text(encoding="utf-8-sig")
    except (OSError, ValueError) as error:
        said = getattr(error, "strerror", None) or "it is not UTF-8"
        raise QuestionsError(source, [Problem(None, None, "", f"the questions can't be read: {said}")]) from error
    return parse_questions(text, source)


def parse_questions(text: str, source: str) -> tuple[Question, ...]:
    """`load_questions`, of a text.

    Args:
        text: What stands in the file.
        source: What messages call it.
    """
    questions: list[Question] = []
    problems: list[Problem] = []
    lines: dict[str, int] = {}
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        read = _read(line)
        if not isinstance(read, Question):
            problems += [Problem(number, 1, place, message) for place, message in read]
            continue
        problems += [Problem(number, 1, place, message) for place, message in _contradictions(read)]
        if read.id in lines:
            problems.append(Problem(number, 1, "id", f"{read.id!r} is the id of line {lines[read.id]} too"))
        lines.setdefault(read.id, number)
        questions.append(read)
    if not questions and not problems:
        problems.append(Problem(None, None, "", "there is no question in it: write one JSON object a line"))
    if problems:
        raise QuestionsError(source, problems)
    return tuple(questions)


def _read(line: str) -> Question | Sequence[tuple[str, str]]:
    """The question of a line, or what is wrong with it."""
    if len(line) > _MOST_CHARACTERS:
        return [("", f"has more than {_MOST_CHARACTERS:,} characters")]
    try:
        return Question.model_validate(json.loads(line, object_pairs_hook=_without_doubles))
    except ValidationError as error:
        return list(_problems(error))
    except (ValueError, RecursionError) as error:
        return [("", f"is no JSON object: {error}")]


def _problems(error: ValidationError) -> Iterator[tuple[str, str]]:
    seen: set[tuple[str, str]] = set()
    for details in error.errors(include_url=False, include_input=False):
        location = [part for part in details["loc"] if part not in ("str", "int", "float", "bool")]
        message = details["msg"].removeprefix("Value error, ")
        if details["type"] == "extra_forbidden":
            message = f"is unknown; known here: {', '.join(Question.model_fields)}"
        elif details["type"] == "missing":
            message = "is missing"
        elif details["type"].endswith("_type") and location[:1] == ["inputs"] and len(location) > 1:
            message = "must be a string, a number, or true or false"
        found = (path_text(location), message)
        if found not in seen:
            seen.add(found)
            yield found


def _contradictions(question: Question) -> Iterator[tuple[str, str]]:
    """What is wrong with a question that is written well."""
    for name in _PATTERNS:
        for index, pattern in enumerate(cast("list[str]", getattr(question, name))):
            try:
                compiled(pattern)
            except PatternError as error:
                yield f"{name}[{index}]", str(error)
    for name in question.inputs:
        if wrong := check_name(name):
            yield path_text(["inputs", name]), wrong
    if question.kind == UNANSWERABLE:
        return
    if question.grading == "exact" and not question.accept:
        yield "accept", "is missing: a question that is graded exactly needs a pattern that its right answer has"
    if question.grading == "rubric" and not question.rubric and question.answer is None:
        yield "rubric", "is missing: a grader needs a rubric, or the right answer"


def _without_doubles(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) < len(pairs):
        names = [name for name, _ in pairs]
        double = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"it has {double!r} twice")
    return fields
