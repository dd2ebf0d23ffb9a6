"""An evaluation: a loop file, questions, several at once, and what has come of them."""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

from agents_loop.chat_client import ChatClient
from agents_loop.evals.asking import Asked, QuestionRun, digest_of
from agents_loop.evals.caching import CallCache, answerer
from agents_loop.evals.choosing import (
    chosen_questions,
    has_rubric,
    require_inputs,
    require_question_input,
    review_sample,
)
from agents_loop.evals.options import EvalOptions
from agents_loop.evals.questions import Question, load_questions
from agents_loop.evals.record import QuestionRecord
from agents_loop.evals.result import EvalResult
from agents_loop.evals.spending import EvalBudget
from agents_loop.evals.summary import summarize
from agents_loop.files.inputs import InputValue
from agents_loop.files.loop_file import LoopFile
from agents_loop.files.opening import load_loop_file
from agents_loop.metering.prices import PriceList


class Evaluation:
    """An evaluation that is run once. `result` gives what has come of it at any time, also after an interrupt.

    Args:
        loop_file: The file.
        questions: The questions.
        client_for: Gives the client of a model's name; asked once for each.
        inputs: Inputs of every question.
        options: How it is run.
        questions_file: Where the questions stand, for the record.
        backends: By the file's names of models, who answers for them, for the record.
        is_stub: Whether replies are scripted.

    Raises:
        ConfigurationError: There is no question to run; nothing in the file uses the question; an input is missing.
    """

    def __init__(
        self,
        loop_file: LoopFile,
        questions: Sequence[Question],
        client_for: Callable[[str], ChatClient],
        *,
        inputs: Mapping[str, InputValue] | None = None,
        options: EvalOptions | None = None,
        questions_file: str | None = None,
        backends: Mapping[str, str] | None = None,
        is_stub: bool = False,
    ) -> None:
        given = options or EvalOptions()
        self.options = replace(given, settings=replace(given.settings, outputs_dir=None, run_folder=None))
        self.loop_file = loop_file
        self.questions = chosen_questions(questions, self.options)
        require_question_input(loop_file, self.options.question_input)
        self._client_for = client_for
        self._clients: dict[str, ChatClient] = {}
        self._questions_file = questions_file
        self._backends = dict(backends or {})
        self._is_stub = is_stub
        self._prices = PriceList(self.options.settings.prices)
        self._budget = EvalBudget(self.options.max_tokens, self.options.max_cost_usd, self._prices)
        self._records: dict[str, QuestionRecord] = {}
        self._has_warned = False
        self._started_at = datetime.now(UTC)
        self._started = time.monotonic()
        self._grader = self.options.grader or next(iter(loop_file.models), "grader")
        folder = self.options.cache_dir
        cache = None if folder is None else CallCache(folder, self.options.on_warning)
        self._asked = Asked(
            loop_file,
            dict(inputs or {}),
            self._client,
            self._grader,
            self._budget,
            cache,
            self._prices,
            self.options,
        )
        for name in self.models:
            self._client(name)
            self._budget.require_price((self._model_id(name), name))
            if cache is not None:
                cache.of(answerer(self._client(name), name))  # what is damaged is said now
        given = {question.id: self._asked.inputs_of(question) for question in self.questions}
        require_inputs(given, lambda inputs: loop_file.build(inputs, self._client, self.options.settings))

    @property
    def models(self) -> list[str]:
        """The names of the models that may be called: the file's, and the grader's where a question needs one."""
        graders = [self._grader] if has_rubric(self.questions) else []
        return list(dict.fromkeys([*self.loop_file.models, *graders]))

    async def run(self) -> EvalResult:
        """Ask the questions, in order, several at once, until all are done or the budget is used up.

        A question whose run raises has failed, and the others go on. When this is cancelled, what is under way is
        dropped; `result` has what is done.

        Raises:
            ConfigurationError: A run can't be made as the file wants it, or money can't be counted.
            Exception: What `on_record` or `on_warning` raised; `result` has what is done.
        """
        waiting = iter(self.questions)
        workers = [self._work(waiting) for _ in range(min(self.options.concurrency, len(self.questions)))]
        try:
            async with asyncio.TaskGroup() as group:
                for worker in workers:
                    group.create_task(worker)
        except* Exception as errors:  # noqa: BLE001 - it is raised as it was raised, without the group
            raise _first(errors) from None
        return self.result()

    def result(self, *, interrupted: bool = False) -> EvalResult:
        """What has come of it so far.

        Args:
            interrupted: Whether a person ended it.
        """
        records = [self._records[question.id] for question in self.questions if question.id in self._records]
        spent, options = self._budget.spent, self.options
        is_partial = len(records) < len(self.questions) or any(not record.is_finished for record in records)
        why = self._budget.why_exhausted() if is_partial else None
        return EvalResult(
            name=self.loop_file.name,
            file=self.loop_file.source,
            file_sha256=_file_digest(self.loop_file.source),
            questions_file=self._questions_file,
            questions_sha256=digest_of(*self.questions),
            models={name: self._model_id(name) for name in self._clients},
            backends=self._backends,
            grader=self._grader if has_rubric(self.questions) else None,
            options=self._stored_options(options),
            stub=self._is_stub,
            partial=is_partial,
            ended_by="interrupt" if interrupted else "budget" if why is not None else None,
            end_detail=why,
            questions_total=len(self.questions),
            started_at=self._started_at.isoformat(timespec="seconds"),
            wall_time_s=round(time.monotonic() - self._started, 3),
            spent_tokens=spent.tokens,
            spent_usd=spent.cost_usd,
            summary=summarize(records),
            review=review_sample([record.id for record in records if record.is_finished], options.review_seed),
            records=records,
        )

    async def _work(self, waiting: Any) -> None:
        """Take questions while there are any, and budget for them."""
        for question in waiting:
            if self._budget.why_exhausted() is not None:
                return
            run = QuestionRun(self._asked, question)
            record = await run.record()
            self._records[question.id] = record
            if run.is_unheard:
                self._warn_of_unheard(question)
            if self.options.on_record is not None:
                self.options.on_record(record, len(self.questions))

    def _warn_of_unheard(self, question: Question) -> None:
        """Once: a file may name an input, and make nothing of it."""
        if not self._has_warned and self.options.on_warning is not None:
            said = f"warning: question {question.id!r}: no model was shown it"
            self.options.on_warning(f"{said}: is it the input that the file makes prompts of (--question-input)?")
        self._has_warned = True

    def _client(self, name: str) -> ChatClient:
        if name not in self._clients:
            self._clients[name] = self._client_for(name)
        return self._clients[name]

    def _model_id(self, name: str) -> str:
        """The model that stands for a name of the file."""
        return str(getattr(self._client(name), "model_id", None) or name)

    def _stored_options(self, options: EvalOptions) -> dict[str, Any]:
        return {
            "question_input": options.question_input,
            "inputs": dict(self._asked.inputs),
            "concurrency": options.concurrency,
            "limit": options.limit,
            "kinds": list(options.kinds),
            "max_tokens": options.max_tokens,
            "max_cost_usd": options.max_cost_usd,
            "max_iterations": options.settings.max_iterations,
            "return_best": options.settings.return_best,
            "grader_max_output_tokens": options.grader_max_output_tokens,
            "review_seed": options.review_seed,
        }


async def evaluate_file(
    file: str | Path | LoopFile,
    questions: str | Path | Sequence[Question],
    client_for: Callable[[str], ChatClient],
    *,
    inputs: Mapping[str, InputValue] | None = None,
    options: EvalOptions | None = None,
) -> EvalResult:
    """Run a loop file over questions, and grade the first drafts and the answers.

    Args:
        file: The loop file, or its path.
        questions: The questions, or the path of a file of them.
        client_for: Gives the client of a model's name in the file; asked once for each. It stays open.
        inputs: Inputs of every question.
        options: How it is run.

    Raises:
        LoopFileError: The loop file is not valid.
        QuestionsError: The file of questions is not valid.
        ConfigurationError: There is no question to run, nothing in the file uses the question, or an input is missing.
    """
    loop_file = file if isinstance(file, LoopFile) else load_loop_file(file)
    from_file = isinstance(questions, str | Path)
    read = load_questions(questions) if from_file else questions
    source = str(questions) if from_file else None
    evaluation = Evaluation(loop_file, read, client_for, inputs=inputs, options=options, questions_file=source)
    return await evaluation.run()


def _file_digest(source: str) -> str | None:
    try:
        return hashlib.sha256(Path(source).read_bytes()).hexdigest()
    except OSError:
        return None


def _first(errors: ExceptionGroup[Exception]) -> Exception:
    first = errors.exceptions[0]
    return _first(cast("ExceptionGroup[Exception]", first)) if isinstance(first, ExceptionGroup) else first
