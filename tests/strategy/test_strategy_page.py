"""The page about the strategy says what the rules do."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import agents_loop.strategy as strategy_package
from agents_loop.strategy import (
    IterationBudget,
    IterationSignals,
    IterationStrategy,
    decide_strategy,
    matrix_action,
    rules,
    tree,
)
from agents_loop.strategy.wording import _ASKED, _TOLD, DEFAULT_FEEDBACK_MESSAGE_TEMPLATES

PAGE = (Path(__file__).parents[2] / "docs" / "iteration-strategy.md").read_text("utf-8")


def table(first_column: str) -> list[list[str]]:
    """The rows of the tables whose first column has this name, without code marks."""
    found = re.findall(rf"^\| {first_column} \|.*\n\|[ -|]*\n((?:\|.*\n)+)", PAGE, flags=re.MULTILINE)
    return [[cell.strip().strip("`") for cell in row[1:-1].split(" | ")] for row in "".join(found).splitlines()]


def test_the_strategies_are_these():
    """Docs: the table of strategies has each one, in order."""
    assert [row[0] for row in table("strategy")] == [strategy.value for strategy in IterationStrategy]


def test_the_rules_are_these():
    """Docs: the table of rules has each one, in the order in which they decide, and then the tree's."""
    first = [rule.__name__.removeprefix("_") for rule in rules.RULES]
    of_tree = set(re.findall(r'"([a-z_]+)", reason', Path(tree.__file__).read_text("utf-8"))) - {"vague_feedback"}
    shown = [row[0] for row in table("rule")]
    assert shown[: len(first)] == first
    assert set(shown[len(first) :]) == of_tree
    named = set(re.findall(r'(?:_escalated|Plan)\([^"]*"([a-z_]+)"', Path(rules.__file__).read_text("utf-8")))
    assert named | {"vague_feedback"} == set(first)


@pytest.mark.parametrize("row", table("iterations left"), ids=" ".join)
def test_the_matrix_is_this(row):
    """Docs: each row of the matrix is what the function gives."""
    iterations = {"3 or more": (3, 8), "none": (0,), "any": (1, 4)}.get(row[0], (1, 2))
    tokens = {"over 50 %": (0.51, 1.0), "25 % or more": (0.25, 1.0), "any": (0.3, 1.0), "below 25 %": (0.0, 0.249)}
    gaps = {"over 0.3": (0.31, 1.0), "0.1 to 0.3": (0.1, 0.3), "below 0.1": (-0.1, 0.09), "up to 0.3": (0.0, 0.3)}
    cells = [(i, t, g) for i in iterations for t in tokens[row[1]] for g in gaps.get(row[2], (0.0, 0.9))]
    if "25 to 50 %" in row[0]:
        cells += [(5, t, g) for t in (0.25, 0.5) for g in gaps[row[2]]]
    assert {matrix_action(*cell).value for cell in cells} == {row[3]}


def test_the_numbers_are_these():
    """Docs: the table of numbers has each one that is recorded, in order."""
    decision = decide_strategy(IterationSignals(), IterationBudget(iteration=1, max_iterations=2))
    assert [name.strip("`") for row in table("number") for name in row[0].split(", ")] == list(decision.numbers)
    assert set(decision.to_json()) == set(
        re.findall(r"`(\w+)`", PAGE.split("`details` hold ")[1].split(" (each")[0])
    ) | {"numbers"}


def test_everything_has_words():
    """Strategy: each strategy that goes on has a template, each modification and each flag a sentence."""
    assert set(DEFAULT_FEEDBACK_MESSAGE_TEMPLATES) == {each for each in IterationStrategy if each.goes_on}
    assert set(_ASKED) == set(strategy_package.Modification)
    assert set(_TOLD) == set(strategy_package.Flag)
