from __future__ import annotations

from pathlib import Path

import pytest
from evaluating import ask, loop_file

from agents_loop.errors import ConfigurationError
from agents_loop.evals import EvalOptions
from agents_loop.evals.projecting import project_evaluation
from agents_loop.files import RunSettings
from agents_loop.metering.prices import ModelPrice


async def test_each_question_is_projected_to_the_cap_with_its_gradings(tmp_path: Path):
    """All questions at their cap; one that is graded by a rubric with two gradings more."""
    questions = [ask("a"), ask("b", accept=[], grading="rubric", rubric=["It is good."])]

    found = await project_evaluation(loop_file(tmp_path), questions, options=EvalOptions(grader="judge"))

    assert [(name, len(each.calls)) for name, each in found.questions] == [("a", 6), ("b", 8)]
    assert [call.who for call in found.questions[1][1].calls[6:]] == ["grader", "grader"]
    assert found.total.tokens_out == 2 * 3 * (50 + 20) + 2 * 10
    assert found.total.cost_usd is None
    assert any("counted with two gradings" in note for note in found.notes)


async def test_it_is_money_where_all_prices_are_known(tmp_path: Path):
    """The sum over all questions; the JSON has a row for each."""
    prices = {"*": ModelPrice(input_usd_per_million=0, output_usd_per_million=1_000_000)}
    options = EvalOptions(settings=RunSettings(prices=prices, max_iterations=1))

    found = await project_evaluation(loop_file(tmp_path), [ask("a"), ask("b")], options=options)

    assert found.total.cost_usd == pytest.approx(2 * 70)
    rows = found.to_json()["questions"]
    assert isinstance(rows, list)
    assert len(rows) == 2


async def test_wrong_use_is_found_as_in_an_evaluation(tmp_path: Path):
    """A kind that is none's, and an input that is none."""
    with pytest.raises(ConfigurationError):
        await project_evaluation(loop_file(tmp_path), [ask("a")], options=EvalOptions(kinds=["x"]))
    with pytest.raises(ConfigurationError):
        await project_evaluation(loop_file(tmp_path), [ask("a")], options=EvalOptions(question_input="x"))
