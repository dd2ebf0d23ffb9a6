from __future__ import annotations

import sys
from pathlib import Path

import pytest
from evaluating import FILE, Models, ask, loop_file

from agents_loop.cli.eval_text import comparison_text
from agents_loop.errors import MissingExtraError
from agents_loop.evals import EvalOptions, EvalResult, Question, compare_results, evaluate_file
from agents_loop.evals.comparing import EvalComparison, NotCompared, mcnemar_p
from agents_loop.files import RunSettings


async def result_of(tmp_path: Path, right: set[str], questions: list[Question], text: str = FILE) -> EvalResult:
    models = Models({each.id: ["right" if each.id in right else "wrong"] for each in questions})
    return await evaluate_file(
        loop_file(tmp_path, text),
        questions,
        models.client_for,
        options=EvalOptions(),
    )


async def test_two_results_are_compared_question_by_question(tmp_path: Path):
    """The difference on the questions of both, which changed how, and McNemar's exact p-value."""
    questions = [ask(f"q{number}") for number in range(10)]
    old = await result_of(tmp_path, {"q0", "q1"}, questions)
    new = await result_of(tmp_path, {"q1", "q2", "q3", "q4", "q5", "q6", "q7"}, questions)

    found = compare_results(old, new)

    assert (found.n, found.old_score, found.new_score, found.difference) == (10, 0.2, 0.7, 0.5)
    assert (found.better, found.worse) == (["q2", "q3", "q4", "q5", "q6", "q7"], ["q0"])
    assert found.p_value == pytest.approx(2 * (1 + 7) / 2**7)
    assert found.notes == []


async def test_what_cannot_be_compared_is_said(tmp_path: Path):
    """Questions of one result alone, changed ones and ungraded ones are left out, and named; so is another file."""
    old = await result_of(tmp_path, {"same", "changed"}, [ask("gone"), ask("same"), ask("changed"), ask("vague")])
    new = await result_of(
        tmp_path,
        {"same"},
        [
            ask("same"),
            ask("changed", accept=["right", "correct"]),
            ask("vague", accept=[], grading="rubric", answer="x"),
            ask("new"),
        ],
        FILE.replace("Check:", "Check this:"),
    )

    found = compare_results(old, new)

    assert (found.n, found.p_value) == (1, 1.0)
    left_out = found.not_compared
    assert (left_out.only_in_old, left_out.only_in_new) == (["gone"], ["new"])
    assert left_out.changed == ["changed", "vague"]
    assert any("loop files are different" in note for note in found.notes)


async def test_nothing_in_common_is_no_p_value(tmp_path: Path):
    """Where no question is graded in both there is no difference either."""
    old = await result_of(tmp_path, set(), [ask("a")])
    new = await result_of(tmp_path, set(), [ask("b")])

    found = compare_results(old, new)

    assert (found.n, found.difference, found.p_value) == (0, None, None)


async def test_an_unfinished_question_is_left_out(tmp_path: Path):
    """A partial result is compared on what it has, and called partial."""
    questions = [ask("a"), ask("b")]
    whole = await result_of(tmp_path, {"a", "b"}, questions)
    models = Models({"a": ["right"], "b": ["right"]})
    options = EvalOptions(concurrency=1, max_tokens=40)
    partial = await evaluate_file(loop_file(tmp_path), questions, models.client_for, options=options)

    found = compare_results(whole, partial)

    assert (found.n, found.not_compared.ungraded) == (1, ["b"])
    assert any("the new result is partial: 1 of 2 questions" in note for note in found.notes)


@pytest.mark.parametrize(
    ("better", "worse", "p"), [(0, 0, 1.0), (1, 0, 1.0), (5, 0, 0.0625), (8, 2, 0.109375), (3, 3, 1.0)]
)
def test_the_p_value_is_mcnemars(better: int, worse: int, p: float):
    """The two-sided exact binomial test on the pairs that changed."""
    assert mcnemar_p(better, worse) == pytest.approx(p)
    assert mcnemar_p(worse, better) == pytest.approx(p)


def test_the_test_needs_the_extra(monkeypatch: pytest.MonkeyPatch):
    """Without scipy the error says what to install."""
    monkeypatch.setitem(sys.modules, "scipy", None)

    with pytest.raises(MissingExtraError, match=r"agents-loop\[eval\]"):
        mcnemar_p(2, 1)


async def test_options_that_decide_answers_are_named_where_they_differ(tmp_path: Path):
    """Results of one file are not of one loop if its cap was another."""
    models = Models({"a": ["wrong", "right"]})
    old, new = [
        await evaluate_file(
            loop_file(tmp_path),
            [ask("a")],
            models.client_for,
            options=EvalOptions(settings=RunSettings(max_iterations=cap)),
        )
        for cap in (None, 1)
    ]

    assert compare_results(old, new).notes == ["max_iterations is different: not set and 1"]


def test_a_p_value_is_never_shown_as_0():
    """What four digits can't show is below the least of them."""
    nothing = NotCompared(only_in_old=[], only_in_new=[], changed=[], ungraded=[])
    compared = EvalComparison(
        n=40,
        old_score=0.0,
        new_score=1.0,
        difference=1.0,
        better=["a"],
        worse=[],
        p_value=1e-9,
        not_compared=nothing,
        notes=[],
    )
    assert "p < 0.0001 (McNemar, exact)" in comparison_text(compared)
