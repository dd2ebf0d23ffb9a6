"""`agents-loop eval`: a loop file over a file of questions, its result, and what two results say of each other."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from agents_loop.chat_client import ChatClient
from agents_loop.cli.eval_progress import EvalProgress, choose_progress
from agents_loop.cli.eval_text import comparison_text, projection_table, result_text
from agents_loop.cli.exit_codes import ExitCode
from agents_loop.cli.explaining import explain
from agents_loop.cli.file_request import FileRequest
from agents_loop.cli.interrupts import KeptWork
from agents_loop.cli.option_values import parse_inputs
from agents_loop.cli.streams import say_error, write_out
from agents_loop.cli.text import one_line, redact
from agents_loop.errors import ConfigurationError
from agents_loop.evals.choosing import chosen_questions, has_rubric
from agents_loop.evals.comparing import compare_results
from agents_loop.evals.grading import Grade
from agents_loop.evals.options import DEFAULT_CONCURRENCY, EvalOptions
from agents_loop.evals.projecting import project_evaluation
from agents_loop.evals.questions import load_questions
from agents_loop.evals.result import EvalResult, is_result, load_result
from agents_loop.evals.running import Evaluation
from agents_loop.files import RunSettings, load_loop_file
from agents_loop.metering.prices import ModelPrice

_ONE_AT_A_TIME = ("local", "scripted")
"""Backends that answer one call at a time, or in order."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EvalRequest(FileRequest):
    """What the command line asks for, to evaluate a file or to show a result."""

    questions: Path | None = None
    question_input: str = "question"
    grader: str | None = None
    grader_max_output_tokens: int | None = None
    kinds: Sequence[str] = ()
    limit: int | None = None
    concurrency: int | None = None
    budget_tokens: int | None = None
    cache_dir: Path | None = None
    review_seed: int = 0
    allow_stub: bool = False
    against: Path | None = None
    out: Path | None = None
    dry: bool = False

    def options(
        self, prices: dict[str, ModelPrice], progress: EvalProgress | None = None, concurrency: int = 1
    ) -> EvalOptions:
        """What it says of the evaluation."""
        settings = RunSettings(
            max_iterations=self.max_iterations,
            return_best=self.return_best,
            allow_imports=self.allow_imports,
            prices=prices,
        )
        more = (
            {} if self.grader_max_output_tokens is None else {"grader_max_output_tokens": self.grader_max_output_tokens}
        )
        return EvalOptions(
            question_input=self.question_input,
            concurrency=concurrency,
            limit=self.limit,
            kinds=self.kinds,
            max_tokens=self.budget_tokens,
            max_cost_usd=self.max_cost_usd,
            cache_dir=self.cache_dir,
            grader=self.grader,
            review_seed=self.review_seed,
            settings=settings,
            on_record=None if progress is None else progress.on_record,
            on_warning=None if progress is None else progress.notice,
            **more,
        )


def evaluate(request: EvalRequest) -> int:
    """Evaluate a file, project that, or compare two results, and give the exit code.

    Raises:
        ConfigurationError: Wrong use, found before any call.
    """
    old = None if request.against is None else load_result(request.against)
    if is_result(request.file):
        if request.out is not None or request.questions is not None or request.dry:
            said = f"{request.file} is the result of an evaluation, which is shown, not run"
            raise ConfigurationError(f"{said}: leave out --questions, --out and --dry")
        return _show(request, load_result(request.file), old)
    if request.questions is None:
        raise ConfigurationError("--questions FILE.jsonl is missing: the questions to run the file on")
    if request.dry:
        return _project(request, request.questions)
    _require_result(request.out)
    return _run(request, request.questions, old)


def _run(request: EvalRequest, questions_file: Path, old: EvalResult | None) -> int:
    loop_file = load_loop_file(request.file)
    questions = load_questions(questions_file)
    progress = choose_progress(quiet=request.quiet)
    backends = request.backends(progress.notice)
    chosen = chosen_questions(questions, request.options({}))
    graders = [request.grader or next(iter(loop_file.models), "grader")] if has_rubric(chosen) else []
    clients: dict[str, ChatClient] = {name: backends.client_for(name) for name in [*loop_file.models, *graders]}
    kinds = {name: backends.kind_of(name) or "?" for name in clients}
    is_stub = "scripted" in kinds.values()
    if is_stub and not request.allow_stub:
        raise ConfigurationError(
            "scripted replies say nothing of a model: --allow-stub evaluates them, marked as a stub"
        )
    at_once = request.concurrency or (1 if set(kinds.values()) & set(_ONE_AT_A_TIME) else DEFAULT_CONCURRENCY)
    evaluation = Evaluation(
        loop_file,
        questions,
        lambda name: clients[name] if name in clients else backends.client_for(name),
        inputs=parse_inputs(request.inputs),
        options=request.options(backends.prices, progress, at_once),
        questions_file=str(questions_file),
        backends=kinds,
        is_stub=is_stub,
    )
    for text in backends.notices():
        progress.notice(text)
    with KeptWork() as kept:
        progress.begin(len(evaluation.questions))
        try:
            kept.run(evaluation.run, backends.aclose)
        finally:
            progress.close()
        result = _without_secrets(evaluation.result(interrupted=kept.is_interrupted))
        is_saved = _save(result, request.out)
        code = _show(request, result, old)
    _say_what_is_wrong(result)
    return ExitCode.FAILED if not is_saved and code == ExitCode.SATISFIED else code


def _show(request: EvalRequest, result: EvalResult, old: EvalResult | None) -> int:
    comparison = None if old is None else compare_results(old, result)
    if request.as_json:
        fields = result.model_dump()
        if comparison is not None:
            fields["comparison"] = comparison.model_dump()
        write_out(f"{json.dumps(fields, ensure_ascii=False)}\n")
    else:
        write_out(result_text(result))
        if comparison is not None:
            write_out(f"\n{comparison_text(comparison)}")
    return _code_of(result)


def _code_of(result: EvalResult) -> int:
    if result.ended_by == "interrupt":
        return ExitCode.INTERRUPTED
    if result.ended_by == "budget":
        return ExitCode.LIMIT
    figures = result.summary
    gradings = [record.grade for record in result.records if record.grade is not None and record.grade.by == "rubric"]
    has_no_grader = bool(gradings) and all(grade.grader_failed for grade in gradings)
    return ExitCode.FAILED if (figures.n and figures.failed == figures.n) or has_no_grader else ExitCode.SATISFIED


def _without_secrets(result: EvalResult) -> EvalResult:
    """The result with what was raised as it may be shown and written."""
    records = [
        record.model_copy(
            update={
                "error": None if record.error is None else redact(record.error),
                "stop_detail": None if record.stop_detail is None else redact(record.stop_detail),
                "grade": _shown(record.grade),
                "first_draft_grade": _shown(record.first_draft_grade),
            }
        )
        for record in result.records
    ]
    return result.model_copy(update={"records": records})


def _shown(grade: Grade | None) -> Grade | None:
    return grade if grade is None or grade.reason is None else grade.model_copy(update={"reason": redact(grade.reason)})


def _say_what_is_wrong(result: EvalResult) -> None:
    if result.ended_by == "budget":
        say_error(f"{result.end_detail}: {result.summary.n} of {result.questions_total} questions are done")
    failed = [record for record in result.records if record.status == "failed"]
    if failed:
        say_error(
            one_line(redact(f"{len(failed)} of {result.summary.n} questions failed; {failed[0].id}: {failed[0].error}"))
        )
    ungraded = [record for record in result.records if record.grade is not None and record.grade.grader_failed]
    if ungraded and ungraded[0].grade is not None:
        say_error(one_line(redact(f"{ungraded[0].id}: {ungraded[0].grade.reason}")))


def _project(request: EvalRequest, questions_file: Path) -> int:
    loop_file = load_loop_file(request.file)
    questions = load_questions(questions_file)
    pricing = request.pricing(loop_file)
    found = asyncio.run(
        project_evaluation(
            loop_file,
            questions,
            inputs=parse_inputs(request.inputs),
            options=request.options(pricing.prices),
            model_ids=pricing.model_ids,
        )
    )
    write_out(f"{json.dumps(found.to_json(), ensure_ascii=False)}\n" if request.as_json else projection_table(found))
    return ExitCode.SATISFIED


def _require_result(out: Path | None) -> None:
    """Let nobody lose a file of another kind, or an evaluation, to a slip of the command line."""
    if out is None:
        return
    if out.exists() and not is_result(out):
        raise ConfigurationError(f"--out {str(out)!r} is a file of another kind, and would be replaced")
    if not out.parent.is_dir():
        raise ConfigurationError(f"--out {str(out)!r}: there is no folder {str(out.parent)!r}")
    if not os.access(out.parent, os.W_OK):
        raise ConfigurationError(f"--out {str(out)!r}: the folder {str(out.parent)!r} can't be written to")


def _save(result: EvalResult, out: Path | None) -> bool:
    if out is None:
        return True
    if not result.summary.n and out.exists():
        say_error(f"--out {str(out)!r} is left as it was: no question is done")
        return True
    try:
        result.save(out)
    except OSError as error:
        say_error(f"--out {str(out)!r} can't be written: {explain(error)}")
        return False
    return True
