"""What an evaluation would come to at most, found without a model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from agents_loop.evals.choosing import chosen_questions, require_inputs, require_question_input
from agents_loop.evals.grading import grader_messages
from agents_loop.evals.options import EvalOptions
from agents_loop.evals.questions import Question
from agents_loop.files.inputs import InputValue
from agents_loop.files.loop_file import LoopFile
from agents_loop.files.projection.answers import projected_text
from agents_loop.files.projection.client import CallCounter, ProjectingChatClient
from agents_loop.files.projection.projecting import project
from agents_loop.files.projection.result import ProjectedCall, Projection
from agents_loop.files.projection.tokens import tokens_of_messages
from agents_loop.messages import JsonValue, UsageDetails
from agents_loop.metering.prices import PriceList

_GRADED_TWICE = "questions graded by a rubric are counted with two gradings: of the first draft, and of the answer"


@dataclass(frozen=True, slots=True)
class EvalProjection:
    """The projections of all questions, the grader's calls included."""

    name: str
    questions: tuple[tuple[str, Projection], ...]
    """By the questions' ids."""
    notes: tuple[str, ...]

    @property
    def total(self) -> Projection:
        """All calls of all questions."""
        calls = tuple(call for _, projection in self.questions for call in projection.calls)
        return Projection(self.name, calls, "", self.notes)

    def to_json(self) -> dict[str, JsonValue]:
        """The projection as a JSON value."""
        total = self.total.to_json()
        rows: list[JsonValue] = [{"id": name, **_total(projection)} for name, projection in self.questions]
        return {
            "projection": True,
            "name": self.name,
            "questions": rows,
            "total": total["total"],
            "notes": list(self.notes),
        }


async def project_evaluation(
    loop_file: LoopFile,
    questions: Sequence[Question],
    *,
    inputs: Mapping[str, InputValue] | None = None,
    options: EvalOptions | None = None,
    model_ids: Mapping[str, str] | None = None,
) -> EvalProjection:
    """What an evaluation would use, if no answer satisfied and its cache were empty. No model is called.

    Args:
        loop_file: The file.
        questions: The questions.
        inputs: Inputs of every question.
        options: As for the evaluation.
        model_ids: The model that stands for a name of the file, for its price.

    Raises:
        ConfigurationError: There is no question to run, nothing in the file uses the question, or an input is missing.
    """
    options = options or EvalOptions()
    chosen = chosen_questions(questions, options)
    require_question_input(loop_file, options.question_input)
    found: list[tuple[str, Projection]] = []
    given = {each.id: {**(inputs or {}), **each.inputs, options.question_input: each.question} for each in chosen}
    nobody = CallCounter()
    require_inputs(
        given,
        lambda values: loop_file.build(values, lambda name: ProjectingChatClient(name, nobody), options.settings),
    )
    for question in chosen:
        projection = await project(loop_file, given[question.id], options.settings, model_ids=model_ids)
        grading = _grading(question, projection, loop_file, options, model_ids or {})
        calls = (*projection.calls, *grading)
        found.append((question.id, Projection(projection.name, calls, projection.ended, projection.notes)))
    notes = dict.fromkeys([note for _, projection in found for note in projection.notes])
    if any(question.grading == "rubric" for question in chosen):
        notes[_GRADED_TWICE] = None
    return EvalProjection(loop_file.name, tuple(found), tuple(notes))


def _grading(
    question: Question,
    projection: Projection,
    loop_file: LoopFile,
    options: EvalOptions,
    model_ids: Mapping[str, str],
) -> list[ProjectedCall]:
    if question.grading != "rubric":
        return []
    grader = options.grader or next(iter(loop_file.models), "grader")
    longest = max([call.tokens_out or 0 for call in projection.calls if call.who == "agent"], default=0)
    tokens_in = tokens_of_messages(grader_messages(question, projected_text(0, longest)))
    tokens_out = options.grader_max_output_tokens
    cost_of = PriceList(options.settings.prices).cost_of((model_ids.get(grader), grader))
    cost = None if cost_of is None else cost_of(UsageDetails(tokens_in, tokens_out))
    return [ProjectedCall("grader", None, None, grader, tokens_in, tokens_out, cost)] * 2


def _total(projection: Projection) -> dict[str, JsonValue]:
    return {
        "calls": len(projection.calls),
        "tokens_in": projection.tokens_in,
        "tokens_out": projection.tokens_out,
        "cost_usd": projection.cost_usd,
    }
