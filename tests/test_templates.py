from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents_loop.templates import fill


def test_every_placeholder_is_filled():
    """Law 22: every placeholder is replaced, literally."""
    assert fill("{a} and {a}, {b}; {c} {{a}}", {"{a}": "1", "{b}": "2"}) == "1 and 1, 2; {c} {1}"
    assert fill("{a} and {a}", {"{a}": ""}) == " and "
    assert fill("nothing", {"{a}": "1", "{b}": "2"}) == "nothing"


@pytest.mark.parametrize("value", ["{b}", "{a}", r"\1 \g<0>", "$1", "{0} %s", "{", "a}{b"])
def test_a_value_is_never_a_template(value: str):
    """Law 22: substitution is single-pass: a value that holds a placeholder stays as it is."""
    assert fill("<{a}|{b}>", {"{a}": value, "{b}": value}) == f"<{value}|{value}>"
    assert fill("<{a}>", {"{a}": value}) == f"<{value}>"


def test_the_longest_placeholder_wins():
    """Law 22: where one placeholder begins another, the longer is meant."""
    assert fill("$tasks $task", {"$task": "1", "$tasks": "2"}) == "2 1"


@given(st.text("ab{}", max_size=20), st.text("ab{}", max_size=5), st.text("ab{}", max_size=5))
def test_like_splitting(template: str, one: str, two: str):
    """Law 22: what stands between the placeholders is untouched, whatever the values are."""
    filled = fill(template, {"{a}": one, "{b}": two})
    assert filled == two.join([one.join(part.split("{a}")) for part in template.split("{b}")])
