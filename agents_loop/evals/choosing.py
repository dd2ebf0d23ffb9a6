"""Which questions are asked, whether a file can be asked them, and which of them a person should look at."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence

from agents_loop.errors import ConfigurationError
from agents_loop.evals.options import EvalOptions
from agents_loop.evals.questions import Question
from agents_loop.files.inputs import InputError, InputValue
from agents_loop.files.loop_file import LoopFile

_MOST_PROBLEMS = 20
"""How many questions are told whose inputs a file does not take."""
_REVIEWED = 0.1
"""The share of questions that a person should look at."""


def chosen_questions(questions: Sequence[Question], options: EvalOptions) -> tuple[Question, ...]:
    """The questions that the options choose.

    Raises:
        ConfigurationError: There are none, or a kind is none's.
    """
    kinds = {question.kind for question in questions}
    for kind in options.kinds:
        if kind not in kinds:
            raise ConfigurationError(f"no question is of the kind {kind!r}; there are: {', '.join(sorted(kinds))}")
    chosen = [question for question in questions if not options.kinds or question.kind in options.kinds]
    if not chosen:
        raise ConfigurationError("there is no question to run")
    return tuple(chosen[: options.limit])


def require_question_input(loop_file: LoopFile, name: str) -> None:
    """See that the file uses the question.

    Raises:
        ConfigurationError: It does not.
    """
    if loop_file.unused_inputs({name: ""}):
        said = f"nothing in {loop_file.source} uses the input {name!r}, so it would never hear the question"
        raise ConfigurationError(f"{said}: name the input that it goes to (--question-input)")


def require_inputs(
    given: Mapping[str, dict[str, InputValue]], build: Callable[[dict[str, InputValue]], object]
) -> None:
    """See, before any call, that a file takes what each question gives it.

    Args:
        given: The inputs, by the questions' ids.
        build: Builds the file with inputs.

    Raises:
        InputError: An input is missing, unknown, or not of its type; a line for each question, of which the first are
            told.
    """
    problems: list[str] = []
    for name, inputs in given.items():
        try:
            build(inputs)
        except InputError as error:
            problems.append(f"question {name!r}: {error}")
    if len(problems) > _MOST_PROBLEMS:
        problems[_MOST_PROBLEMS:] = [f"{len(problems) - _MOST_PROBLEMS} more questions are wrong in such a way"]
    if problems:
        raise InputError("\n".join(problems))


def review_sample(ids: Sequence[str], seed: int) -> list[str]:
    """A tenth of the questions, one at least: the same ones for the same seed."""
    if not ids:
        return []
    size = max(1, round(len(ids) * _REVIEWED))
    return random.Random(seed).sample(sorted(ids), size)  # noqa: S311 - it is to be the same each time


def has_rubric(questions: Sequence[Question]) -> bool:
    """Whether a grader is needed."""
    return any(question.grading == "rubric" for question in questions)
