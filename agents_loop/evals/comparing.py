"""Two results on the same questions: which loop is better, and whether that may be chance."""

from __future__ import annotations

from typing import Any, Final, cast

from agents_loop.errors import MissingExtraError
from agents_loop.evals.record import QuestionRecord, Stored
from agents_loop.evals.result import EvalResult, records_by_id

_DECIDING: Final = ("question_input", "inputs", "max_iterations", "return_best", "grader_max_output_tokens")
"""Options that may change what is answered, or how it is graded."""


class NotCompared(Stored):
    """Questions that are left out, by why."""

    only_in_old: list[str]
    only_in_new: list[str]
    changed: list[str]
    """The question, or what it is graded by, is another one."""
    ungraded: list[str]
    """In one of the two, or in both; unfinished ones too."""


class EvalComparison(Stored):
    """A paired comparison of two results."""

    n: int
    """Questions that are graded in both."""
    old_score: float | None
    new_score: float | None
    difference: float | None
    better: list[str]
    """Ids of the questions that only the new result has right."""
    worse: list[str]
    """Those that only the old one has right."""
    p_value: float | None
    """Of McNemar's exact test: how likely so uneven a split of the questions that changed is by chance alone, if
    neither loop is better. 1 where none changed; `None` where nothing can be compared."""
    not_compared: NotCompared
    notes: list[str]
    """What else is different between the two."""


def compare_results(old: EvalResult, new: EvalResult) -> EvalComparison:
    """Compare two results, question by question.

    Only questions that changed from right to wrong, or back, say which is better. Whether their split may be chance is
    a two-sided binomial test (McNemar, exact; `scipy.stats.binomtest`).

    Raises:
        MissingExtraError: The extra `eval` is not installed.
    """
    before, after = records_by_id(old.records), records_by_id(new.records)
    common = [name for name in after if name in before]
    changed = [name for name in common if before[name].question_sha256 != after[name].question_sha256]
    same = [name for name in common if name not in changed]
    pairs = {name: (_passed(before[name]), _passed(after[name])) for name in same}
    graded = {name: pair for name, pair in pairs.items() if None not in pair}
    better = [name for name, pair in graded.items() if pair == (False, True)]
    worse = [name for name, pair in graded.items() if pair == (True, False)]
    n = len(graded)
    old_right, new_right = (
        sum(pair[0] is True for pair in graded.values()),
        sum(pair[1] is True for pair in graded.values()),
    )
    return EvalComparison(
        n=n,
        old_score=round(old_right / n, 4) if n else None,
        new_score=round(new_right / n, 4) if n else None,
        difference=round((new_right - old_right) / n, 4) if n else None,
        better=better,
        worse=worse,
        p_value=mcnemar_p(len(better), len(worse)) if n else None,
        not_compared=NotCompared(
            only_in_old=[name for name in before if name not in after],
            only_in_new=[name for name in after if name not in before],
            changed=changed,
            ungraded=[name for name in pairs if name not in graded],
        ),
        notes=_notes(old, new),
    )


def mcnemar_p(better: int, worse: int) -> float:
    """The two-sided p-value of McNemar's exact test.

    Args:
        better: How many pairs changed for the better.
        worse: How many for the worse.

    Raises:
        MissingExtraError: The extra `eval` is not installed.
    """
    if better + worse == 0:
        return 1.0
    try:
        from scipy import stats  # noqa: PLC0415 - an extra, and slow to import
    except ImportError as error:
        raise MissingExtraError("The comparison of two results", "eval") from error
    test = cast("Any", stats).binomtest(better, better + worse, 0.5)
    return float(test.pvalue)


def _passed(record: QuestionRecord) -> bool | None:
    return record.grade.passed if record.grade is not None and record.is_finished else None


def _notes(old: EvalResult, new: EvalResult) -> list[str]:
    notes: list[str] = []
    if old.file_sha256 != new.file_sha256:
        notes.append(f"the loop files are different: {old.file} and {new.file}")
    if old.models != new.models:
        notes.append(f"the models are different: {_named(old.models)} and {_named(new.models)}")
    if old.grader != new.grader:
        notes.append(f"the graders are different: {old.grader} and {new.grader}")
    for name in _DECIDING:
        before, after = old.options.get(name), new.options.get(name)
        if before != after:
            notes.append(f"{name} is different: {_said(before)} and {_said(after)}")
    for which, result in (("old", old), ("new", new)):
        if result.partial:
            notes.append(f"the {which} result is partial: {result.summary.n} of {result.questions_total} questions")
        if result.stub:
            notes.append(f"the {which} result is of scripted replies")
    return notes


def _named(models: dict[str, str]) -> str:
    return ", ".join(f"{name}={model}" if name != model else name for name, model in models.items()) or "none"


def _said(value: object) -> str:
    return "not set" if value is None else repr(value)
