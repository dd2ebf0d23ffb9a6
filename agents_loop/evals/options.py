"""How an evaluation is run."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from pathlib import Path

from agents_loop.errors import ConfigurationError
from agents_loop.evals.grading import DEFAULT_GRADER_OUTPUT_TOKENS
from agents_loop.evals.record import QuestionRecord
from agents_loop.files.run_settings import RunSettings
from agents_loop.numeric import check_count, is_number

DEFAULT_CONCURRENCY = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class EvalOptions:
    """How an evaluation is run.

    Raises:
        TypeError: A number is none.
        ConfigurationError: A number is too small; `question_input` is blank.
    """

    question_input: str = "question"
    """The input of the file that gets the question."""
    concurrency: int = DEFAULT_CONCURRENCY
    """How many questions are run at once."""
    limit: int | None = None
    """How many questions are run at most, the first ones."""
    kinds: Collection[str] = ()
    """Only questions of these kinds; empty: of all."""
    max_tokens: int | None = None
    """Input and output tokens at most, of all questions together. Calls in flight may go over it."""
    max_cost_usd: float | None = None
    """US dollars at most, of all questions together."""
    cache_dir: Path | None = None
    """Where replies are kept by the exact call, and found again; `None`: nowhere."""
    grader: str | None = None
    """The model that grades by rubrics, by a name that `client_for` knows; `None`: the file's first."""
    grader_max_output_tokens: int = DEFAULT_GRADER_OUTPUT_TOKENS
    """More for a grader that thinks before it writes."""
    review_seed: int = 0
    """By which the questions are drawn that a person should look at."""
    settings: RunSettings = field(default_factory=RunSettings)
    """Of each run, its prices also of the budget here. What a run would write (`outputs_dir`, `run_folder`) it does
    not."""
    on_record: Callable[[QuestionRecord, int], None] | None = None
    """Hears of each question that is over, and how many there are."""
    on_warning: Callable[[str], None] | None = None
    """Hears what a person should know, such as a cache that can't be written."""

    def __post_init__(self) -> None:
        for name in ("concurrency", "limit", "max_tokens", "grader_max_output_tokens"):
            given = getattr(self, name)
            if given is not None or name not in ("limit", "max_tokens"):
                check_count(name, given)
        if self.max_cost_usd is not None:
            if not is_number(self.max_cost_usd):
                raise TypeError(f"max_cost_usd must be a number, not {self.max_cost_usd!r}")
            if not 0 < self.max_cost_usd < float("inf"):
                raise ConfigurationError(f"max_cost_usd must be more than 0, not {self.max_cost_usd!r}")
        if isinstance(self.kinds, str):
            raise TypeError("kinds must be a list of kinds, not one str")
        if not self.question_input.strip():
            raise ConfigurationError("question_input must not be blank")
