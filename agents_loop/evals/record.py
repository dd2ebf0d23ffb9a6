"""What an evaluation keeps of one question."""

from __future__ import annotations

import json
from typing import Any, Literal, TypeAlias, cast

from pydantic import BaseModel, ConfigDict

from agents_loop.evals.grading import Grade
from agents_loop.judging.reading import clean_text
from agents_loop.loop.result import LoopResult, StopReason, result_to_json
from agents_loop.metering.ledger import OK, Ledger, LedgerEntry

QuestionStatus: TypeAlias = Literal["done", "failed", "unfinished"]
"""`failed`: the run raised, or ended as one that failed. `unfinished`: the evaluation's budget, or an interrupt, ended
it: it counts nowhere."""


class Stored(BaseModel):
    """A part of a result that is written to a file, and read back."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)


class CallSum(Stored):
    """What calls came to."""

    calls: int
    tokens_in: int | None
    """`None`: a call that was answered did not report it."""
    tokens_out: int | None
    cost_usd: float | None
    """`None` where a price or the usage is not known; never 0 for want of knowing."""

    @property
    def tokens(self) -> int | None:
        """Input and output."""
        return None if self.tokens_in is None or self.tokens_out is None else self.tokens_in + self.tokens_out


class QuestionRecord(Stored):
    """A question, the loop's drafts and verdicts, and their grades."""

    id: str
    kind: str
    question_sha256: str
    """Of all that the file of questions says of it."""
    status: QuestionStatus
    error: str | None = None
    """What was raised, or why it is unfinished."""
    stop_reason: str | None = None
    stop_detail: str | None = None
    output: str = ""
    """The loop's answer."""
    first_draft: str | None = None
    """The answer of the first iteration; `None` where there is none."""
    iterations: list[dict[str, Any]] = []
    """Each draft, with what the evaluators said, verbatim."""
    grade: Grade | None = None
    """`None` for what is unfinished."""
    first_draft_grade: Grade | None = None
    citation_coverage: float | None = None
    """The share of the citations asked for that the answer has; `None` where none is asked for."""
    first_draft_citation_coverage: float | None = None
    usage: CallSum
    """Of all calls of the run, those included that the cache answered."""
    first_draft_usage: CallSum
    """Of the agent's calls in the first iteration alone."""
    grading_usage: CallSum
    """Of the grader's calls."""
    calls_made: int = 0
    """How many calls were made; the others the cache answered."""
    duration_s: float = 0.0

    @property
    def revisions(self) -> int:
        """Iterations after the first."""
        return max(0, len(self.iterations) - 1)

    @property
    def is_finished(self) -> bool:
        """Whether it counts."""
        return self.status != "unfinished"

    @property
    def hit_cap(self) -> bool:
        """Whether the loop ended at its cap, unsatisfied."""
        return self.stop_reason == StopReason.MAX_ITERATIONS


def stored_iterations(result: LoopResult | None) -> list[dict[str, Any]]:
    """The drafts and verdicts, without what the agent was sent. Of a graph: those of the loop that wrote its answer."""
    if result is None:
        return []
    stored = _of_the_last_loop(result) or result_to_json(result)["iterations"]
    without_input = [{name: value for name, value in iteration.items() if name != "input"} for iteration in stored]
    return json.loads(clean_text(json.dumps(without_input, ensure_ascii=False)))


def is_graph(result: LoopResult) -> bool:
    """Whether several nodes have made the answer: then no iteration of the run is a draft of it."""
    nodes: Any = result.report.get("nodes")
    return len(nodes or ()) > 1


def _of_the_last_loop(result: LoopResult) -> list[dict[str, Any]]:
    nodes = cast("dict[str, dict[str, Any]]", result.report.get("nodes") or {}) if is_graph(result) else {}
    loops = [node for node in nodes.values() if node.get("iterations") and node.get("output") == result.output]
    return loops[-1]["iterations"] if loops else []


def sum_of(entries: Ledger | list[LedgerEntry]) -> CallSum:
    """What calls of a ledger came to. Calls that failed, and reported nothing, used nothing."""
    counted = [entry.usage for entry in entries if entry.usage is not None or entry.outcome == OK]
    return CallSum(
        calls=len(entries),
        tokens_in=_sum_or_none([None if usage is None else usage.input_token_count for usage in counted]),
        tokens_out=_sum_or_none([None if usage is None else usage.output_token_count for usage in counted]),
        cost_usd=Ledger(entries).total.cost_usd if entries else 0.0,
    )


def _sum_or_none(counts: list[int | None]) -> int | None:
    """The sum, if all are known."""
    known = [count for count in counts if count is not None]
    return sum(known) if len(known) == len(counts) else None


def first_draft_sum(result: LoopResult | None) -> CallSum:
    """What the first draft took: the agent's calls of the first iteration; of a graph nobody knows."""
    if result is None:
        return sum_of([])
    if is_graph(result):
        return CallSum(calls=0, tokens_in=None, tokens_out=None, cost_usd=None)
    return sum_of([entry for entry in result.ledger if entry.role == "agent" and entry.iteration == 1])
