"""The result of an evaluation, as it is written to a file and read back."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, Literal, cast

from pydantic import ValidationError

from agents_loop.errors import ConfigurationError
from agents_loop.evals.record import QuestionRecord, Stored
from agents_loop.evals.summary import Summary
from agents_loop.file_kinds import why_not_read
from agents_loop.files.atomic import write_whole

SCHEMA_VERSION: Final = 1
"""Of the file; another one is not read."""
_MARK: Final = "agents_loop_eval"


class EvalResult(Stored):
    """How a loop file did on a set of questions."""

    agents_loop_eval: Literal[1] = 1
    """The version of this form."""
    name: str
    """What the loop file calls itself."""
    file: str
    file_sha256: str | None
    questions_file: str | None
    questions_sha256: str
    models: dict[str, str]
    """By the names in the file: the model that stood for it."""
    backends: dict[str, str]
    """By the names in the file: who answered for it."""
    grader: str | None
    options: dict[str, Any]
    stub: bool
    """Whether scripted replies took part: then the figures say nothing of a model."""
    partial: bool
    """Whether questions are missing that were to be run."""
    ended_by: Literal["budget", "interrupt"] | None
    """What ended it before all questions were run."""
    end_detail: str | None = None
    questions_total: int
    """The questions that were to be run."""
    started_at: str
    """ISO 8601, UTC."""
    wall_time_s: float
    spent_tokens: int
    """Of calls that were made, the grader's included; estimated where a model reports none."""
    spent_usd: float | None
    summary: Summary
    review: list[str]
    """Ids of questions that a person should look at: drawn by a seed, the same each time."""
    records: list[QuestionRecord]

    def to_json(self) -> str:
        """The result as JSON, for people too."""
        return json.dumps(self.model_dump(), ensure_ascii=False, indent=2)

    def save(self, path: str | Path) -> None:
        """Write it: whole, or not at all.

        Raises:
            OSError: It can't be written.
        """
        write_whole(Path(path), f"{self.to_json()}\n".encode("utf-8", "replace"))


def load_result(path: str | Path) -> EvalResult:
    """Read the result of an evaluation.

    Raises:
        ConfigurationError: There is none in the file, or it is of another version.
    """
    fields = _fields(Path(path))
    if fields is None:
        raise ConfigurationError(f"{path} is no result of an evaluation (agents-loop eval --out writes one)")
    version = fields[_MARK]
    if version != SCHEMA_VERSION:
        said = f"{path} is a result of version {version!r}, and this agents-loop reads version {SCHEMA_VERSION}"
        raise ConfigurationError(f"{said}: run that evaluation again")
    try:
        return EvalResult.model_validate(fields)
    except ValidationError as error:
        details = error.errors(include_url=False, include_input=False)[0]
        place = ".".join(str(part) for part in details["loc"])
        raise ConfigurationError(f"{path} is a damaged result of an evaluation: {place}: {details['msg']}") from error


def is_result(path: str | Path) -> bool:
    """Whether there is a result of an evaluation in a file, of whatever version."""
    try:
        return _fields(Path(path)) is not None
    except ConfigurationError:
        return False


def _fields(path: Path) -> dict[str, Any] | None:
    if why := why_not_read(path):
        raise ConfigurationError(f"{path} can't be read: {why}")
    try:
        read: object = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigurationError(f"{path} can't be read: {error.strerror}") from error
    except (ValueError, RecursionError):
        return None
    return cast("dict[str, Any]", read) if isinstance(read, dict) and _MARK in read else None


def records_by_id(records: Sequence[QuestionRecord]) -> dict[str, QuestionRecord]:
    """The records by their questions' ids."""
    return {record.id: record for record in records}
