"""The budget matrix, and the budget that it is asked with."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents_loop import ConfigurationError
from agents_loop.strategy import IterationBudget, MatrixAction, matrix_action

HIGH, MEDIUM, LOW = 0.4, 0.2, 0.05


@pytest.mark.parametrize(
    ("remaining", "tokens", "gap", "action"),
    [
        (3, 0.51, HIGH, "iterate"),
        (3, 0.51, MEDIUM, "refine"),
        (3, 0.51, LOW, "accept"),
        (9, 1.0, 0.3, "refine"),
        (9, 1.0, 0.1, "refine"),
        (9, 1.0, 0.95 - 0.85, "refine"),
        (9, 1.0, 0.85 - 0.55, "refine"),
        (9, 1.0, 0.0999, "accept"),
        (9, 1.0, 0.3001, "iterate"),
        (9, 1.0, -0.2, "accept"),
        (2, 0.26, HIGH, "final_attempt"),
        (1, 0.26, HIGH, "final_attempt"),
        (2, 1.0, MEDIUM, "accept"),
        (2, 1.0, 0.3, "accept"),
        (1, 1.0, LOW, "accept"),
        (1, 0.25, HIGH, "final_attempt"),
        (1, 0.25, MEDIUM, "accept"),
        (3, 0.5, HIGH, "final_attempt"),
        (3, 0.25, MEDIUM, "accept"),
        (0, 1.0, LOW, "escalate"),
        (0, 0.1, HIGH, "escalate"),
        (9, 0.2499, LOW, "escalate"),
        (1, 0.0, MEDIUM, "escalate"),
        (3, None, MEDIUM, "refine"),
        (2, None, MEDIUM, "accept"),
        (0, None, None, "escalate"),
        (5, 0.2, None, "escalate"),
        (5, 0.9, None, "iterate"),
        (1, 0.3, None, "iterate"),
    ],
)
def test_each_cell(remaining, tokens, gap, action):
    """Strategy: the cells of the matrix, its gaps and its borders, as the page says."""
    assert matrix_action(remaining, tokens, gap) == action


@given(
    st.integers(0, 20),
    st.none() | st.floats(0, 1),
    st.none() | st.floats(-1, 1),
)
def test_every_combination_has_one_action(remaining, tokens, gap):
    """Strategy: every combination has exactly one action, and without iterations or tokens it is to escalate."""
    action = matrix_action(remaining, tokens, gap)
    assert action in MatrixAction
    is_spent = remaining == 0 or (tokens is not None and tokens < 0.25)
    assert (action == MatrixAction.ESCALATE) == is_spent


def test_what_is_left():
    """Strategy: the cap less the iteration; the limit less what was used, never below 0; unknown is not 0."""
    budget = IterationBudget(iteration=2, max_iterations=5, max_tokens=1000, tokens_used=1200)
    assert (budget.remaining_iterations, budget.remaining_tokens, budget.tokens_left) == (3, 0, 0.0)
    assert IterationBudget(iteration=7, max_iterations=5).remaining_iterations == 0
    assert IterationBudget(iteration=1, max_iterations=5, max_tokens=1000).tokens_left is None
    assert IterationBudget(iteration=1, max_iterations=5, tokens_used=10).tokens_left is None


@pytest.mark.parametrize(
    ("given", "shortage"),
    [
        ({}, None),
        ({"max_tokens": 100, "tokens_used": 60, "next_tokens": 40}, None),
        ({"max_tokens": 100, "tokens_used": 60, "next_tokens": 41}, "40 tokens are left, and"),
        ({"max_s": 10, "elapsed_s": 6}, None),
        ({"max_s": 10, "elapsed_s": 6, "next_s": 4}, None),
        ({"max_s": 10, "elapsed_s": 6, "next_s": 5}, "4 of 10 s are left, and"),
        ({"max_s": 10, "elapsed_s": 12}, "0 of 10 s are left"),
        ({"max_s": 0}, "0 of 0 s are left"),
    ],
)
def test_what_is_too_little_for_one_more(given, shortage):
    """Strategy: attempts, tokens and time must suffice for the next iteration."""
    found = IterationBudget(iteration=1, max_iterations=5, **given).shortage
    assert found is None if shortage is None else found.startswith(shortage)


@pytest.mark.parametrize(
    ("given", "error"),
    [
        ({"iteration": 0}, ConfigurationError),
        ({"iteration": True}, TypeError),
        ({"max_iterations": None}, TypeError),
        ({"max_tokens": 0}, ConfigurationError),
        ({"tokens_used": -1}, ConfigurationError),
        ({"next_tokens": 1.5}, TypeError),
        ({"max_s": -1}, ConfigurationError),
        ({"elapsed_s": "1"}, TypeError),
    ],
)
def test_a_budget_checks_itself(given, error):
    """Strategy: a budget that can't be is an error that names the field."""
    with pytest.raises(error, match=next(iter(given))):
        IterationBudget(**{"iteration": 1, "max_iterations": 3, **given})
