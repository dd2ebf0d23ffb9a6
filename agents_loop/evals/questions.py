"""The questions of an evaluation: one JSON object a line, each with what its answer is graded by."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final, Literal, cast

from pydantic import Field

from agents_loop.checks.citations import find_citations, normalized_citation
from agents_loop.evals.patterns import PatternError, compiled
from agents_loop.files.fields import Closed, Text
from agents_loop.files.inputs import check_name
from agents_loop.files.json_lines import parse_lines, read_lines
from agents_loop.files.problems import LoopFileError, path_text

UNANSWERABLE: Final = "unanswerable"
"""The kind of a question that the sources don't answer: the right answer says so."""
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
    return parse_questions(read_lines(path, "question", QuestionsError), str(path))


def parse_questions(text: str, source: str) -> tuple[Question, ...]:
    """`load_questions`, of a text.

    Args:
        text: What stands in the file.
        source: What messages call it.
    """
    return parse_lines(text, source, Question, what="question", error=QuestionsError, further=_contradictions)


def _contradictions(question: Question) -> Iterator[tuple[str, str]]:
    """What is wrong with a question that is written well."""
    yield from _never_found(question)
    for name in question.inputs:
        if wrong := check_name(name):
            yield path_text(["inputs", name]), wrong
    if question.kind != UNANSWERABLE and question.kind.strip().casefold() == UNANSWERABLE:
        yield "kind", f"must be written as {UNANSWERABLE!r}: it is graded in its own way"
    if question.kind == UNANSWERABLE:
        return
    if question.grading == "exact" and not question.accept:
        yield "accept", "is missing: a question that is graded exactly needs a pattern that its right answer has"
    if question.grading == "rubric" and not question.rubric and question.answer is None:
        yield "rubric", "is missing: a grader needs a rubric, or the right answer"


def _never_found(question: Question) -> Iterator[tuple[str, str]]:
    """Patterns that are none, and citations that no answer can have."""
    for name in _PATTERNS:
        for index, pattern in enumerate(cast("list[str]", getattr(question, name))):
            try:
                compiled(pattern)
            except PatternError as error:
                yield f"{name}[{index}]", str(error)
    for index, citation in enumerate(question.must_cite):
        wanted = normalized_citation(citation)
        if wanted not in find_citations(citation, names=[wanted.partition("#")[0]]):
            yield f"must_cite[{index}]", f"{citation!r} is never found in an answer: write it as name#3"
