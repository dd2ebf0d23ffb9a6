"""An evaluation's result, its comparison with another, and its projection, as tables."""

from __future__ import annotations

from collections.abc import Sequence

from agents_loop.cli.projecting import money
from agents_loop.cli.tables import render_table
from agents_loop.cli.text import one_line
from agents_loop.evals.comparing import EvalComparison
from agents_loop.evals.projecting import EvalProjection
from agents_loop.evals.result import EvalResult
from agents_loop.evals.summary import Lift, Side, Summary
from agents_loop.files.counting import counted

_MOST_IDS = 8
_LEAST_P = 0.0001


def result_text(result: EvalResult) -> str:
    """A result: the lift in one line, both sides, the kinds, and how the loop went."""
    figures = result.summary
    lines = [
        *_heading(result),
        "",
        lift_line(figures.lift),
        "",
        _sides(figures),
        "",
        _kinds(figures),
        "",
        _loop(figures),
    ]
    lines.append(_spent(result))
    if result.review:
        lines.append(one_line(f"to be read by a person: {', '.join(result.review)}"))
    return "\n".join(lines) + "\n"


def lift_line(lift: Lift) -> str:
    """What the loop adds to the first draft, and for how much."""
    if lift.difference is None:
        return "first draft -> loop: no question is graded"
    said = f"first draft {_score(lift.first_draft_score)} -> loop {_score(lift.loop_score)} ({lift.difference:+.2f})"
    times = "an unknown number of times" if lift.token_ratio is None else f"{lift.token_ratio:g}x"
    cost = "cost unknown" if lift.extra_cost_usd is None else f"{money(lift.extra_cost_usd)} more"
    return f"{said} for {times} the tokens, {cost} (n={lift.n})"


def comparison_text(comparison: EvalComparison) -> str:
    """Which of two results is better, and whether that may be chance."""
    left_out = comparison.not_compared
    lines = [f"against the old result: {counted(comparison.n, 'question')} graded in both"]
    if comparison.n:
        said = (
            f"old {_score(comparison.old_score)} -> new {_score(comparison.new_score)} ({comparison.difference:+.4f})"
        )
        lines.append(f"{said}, {_chance(comparison.p_value)} (McNemar, exact)")
        lines.append(f"better: {_ids(comparison.better)}")
        lines.append(f"worse: {_ids(comparison.worse)}")
    else:
        lines.append("nothing can be compared")
    for why, ids in (
        ("only in the old result", left_out.only_in_old),
        ("only in the new result", left_out.only_in_new),
        ("another question by the same id", left_out.changed),
        ("not graded in one of them", left_out.ungraded),
    ):
        if ids:
            lines.append(f"not compared, {why}: {_ids(ids)}")
    lines += [f"note: {note}" for note in comparison.notes]
    return "\n".join(map(one_line, lines)) + "\n"


def projection_table(projection: EvalProjection) -> str:
    """What an evaluation would come to."""
    total = projection.total
    rows = [
        (
            name,
            str(len(each.calls)),
            f"{each.tokens_in:,}",
            "unknown" if each.tokens_out is None else f"{each.tokens_out:,}",
            money(each.cost_usd),
        )
        for name, each in [*projection.questions, ("total", total)]
    ]
    header = ("question", "calls", "tokens in", "tokens out", "cost")
    first = f"{projection.name}: {counted(len(projection.questions), 'question')}, projected; no model was called"
    notes = [one_line(f"- {note}") for note in projection.notes]
    return "\n".join([one_line(first), "", render_table(header, rows, right=header[1:]), "", *notes]) + "\n"


def _heading(result: EvalResult) -> list[str]:
    figures = result.summary
    said = f"{result.name}: {figures.n} of {counted(result.questions_total, 'question')}"
    if figures.failed:
        said += f", {figures.failed} failed"
    lines = [one_line(said)]
    if result.partial:
        why = {"budget": "the budget is used up", "interrupt": "interrupted", None: "not all were run"}[result.ended_by]
        lines.append(f"PARTIAL: {why}; {figures.unfinished} unfinished, which count nowhere")
    if result.stub:
        lines.append("STUB: scripted replies, which say nothing of a model")
    return lines


def _sides(figures: Summary) -> str:
    def row(name: str, side: Side) -> tuple[str, ...]:
        return (
            name,
            _score(side.score),
            str(side.graded),
            str(side.ungraded),
            _score(side.citation_coverage),
            _score(side.citation_hit_rate),
            "unknown" if side.tokens_per_question is None else f"{side.tokens_per_question:,.0f}",
            money(side.cost_usd_per_question),
        )

    header = ("", "score", "graded", "ungraded", "citations", "all cited", "tokens/question", "cost/question")
    rows = [row("first draft", figures.first_draft), row("loop", figures.loop)]
    return render_table(header, rows, right=header[1:])


def _kinds(figures: Summary) -> str:
    header = ("kind", "n", "ungraded", "failed", "first draft", "loop")
    rows = [
        (kind, str(each.n), str(each.ungraded), str(each.failed), _score(each.first_draft_score), _score(each.score))
        for kind, each in figures.by_kind.items()
    ]
    return render_table(header, rows, right=header[1:])


def _loop(figures: Summary) -> str:
    shares = [
        f"mean revisions {_score(figures.mean_revisions)}",
        f"cap hit {_score(figures.cap_hit_rate)}",
        f"satisfied {_score(figures.satisfied_share)}",
        f"stalled {_score(figures.stalled_share)}",
    ]
    return ", ".join(shares)


def _spent(result: EvalResult) -> str:
    figures = result.summary
    made = f"{counted(figures.calls, 'call')} made, {figures.cached_calls:,} from the cache"
    return f"{made}; {result.spent_tokens:,} tokens, cost {money(result.spent_usd)}, {result.wall_time_s:.1f} s"


def _score(score: float | None) -> str:
    return "-" if score is None else f"{score:.2f}"


def _ids(ids: Sequence[str]) -> str:
    more = f" and {len(ids) - _MOST_IDS} more" if len(ids) > _MOST_IDS else ""
    return (", ".join(ids[:_MOST_IDS]) or "none") + more


def _chance(p_value: float | None) -> str:
    """A p-value, which is never 0."""
    if p_value is None:
        return "p unknown"
    return f"p = {p_value:.4f}" if p_value >= _LEAST_P else f"p < {_LEAST_P}"
