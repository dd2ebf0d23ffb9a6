"""V10: a verdict whose parts don't go together is noticed."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents_loop.judging.contradictions import contradiction_in, pointed_out, says_nothing_missing

NOTHING = [
    "",
    "  \n",
    "None.",
    "nothing",
    "N/A",
    "n/a.",
    "-",
    "[]",
    "No gaps.",
    "**None**",
    "Nothing is missing.",
    "No issues found",
    "There are no missing items.",
    "No gaps were found.",
    "All requirements are met.",
    "Everything that was asked for is present.",
    "The response fully addresses the request.",
    "It covers everything.",
    "The agent\u2019s latest response is complete. Nothing is missing!",
    "<unknown>",
]
GAPS = [
    "No cost estimate.",
    "None of the dates are given.",
    "Nothing about the cost.",
    "Nothing is missing but the date.",
    "Nothing is missing, except the date.",
    "Nothing is missing. No date.",
    "The response is complete except for the date",
    "The response is incomplete",
    "It is not complete.",
    "The response has nothing",
    "All parts are missing.",
    "no date",
    "None? The date.",
    "Nothing is missing. " * 20,
]


@pytest.mark.parametrize("gap", NOTHING)
def test_what_says_that_nothing_is_missing(gap):
    """V10: a judge's ways to say "nothing" are no gap."""
    assert says_nothing_missing(gap)
    assert contradiction_in(True, {"gapanalysis": gap}) is None


@pytest.mark.parametrize("gap", GAPS)
def test_what_names_a_gap(gap):
    """V10: one word more than "nothing" may be what is missing."""
    assert not says_nothing_missing(gap)
    assert "gapAnalysis" in contradiction_in(True, {"gapanalysis": gap})
    assert contradiction_in(False, {"gapanalysis": gap}) is None


@given(st.text(max_size=400), st.sampled_from(NOTHING))
def test_a_text_that_names_something_is_never_nothing(text, nothing):
    """V10: whatever stands beside "nothing" in words of its own is a gap."""
    assert not says_nothing_missing(f"{nothing}. {text} the date")


@pytest.mark.parametrize(
    ("answered", "fields", "score", "impossible", "named"),
    [
        (True, {}, None, False, []),
        (True, {"gapanalysis": None}, 1.0, False, []),
        (True, {"gapanalysis": []}, 0.5, False, []),
        (True, {"gapanalysis": ["no date"]}, None, False, ["gapAnalysis"]),
        (True, {"gapanalysis": (("date", "none"),)}, None, False, ["gapAnalysis"]),
        (True, {"gapanalysis": ""}, 0.49, False, ["score"]),
        (True, {"gapanalysis": ""}, None, True, ["impossible"]),
        (True, {"gapanalysis": "no date"}, 0.0, True, ["gapAnalysis", "impossible", "score"]),
        (True, {"feedback": "Well done."}, None, False, []),
        (False, {"gapanalysis": ""}, 0.99, False, []),
        (False, {"gapanalysis": "no date"}, 1.0, False, ["score"]),
        (False, {"gapanalysis": "Nothing is missing."}, None, False, ["gapAnalysis"]),
        (False, {"gapanalysis": "no date"}, 0.0, True, []),
    ],
)
def test_what_contradicts(answered, fields, score, impossible, named):
    """V10: the boolean against the gap, the score and "impossible"; what was left out contradicts nothing."""
    said = contradiction_in(answered, fields, score, impossible=impossible)
    assert [name for name in ("gapAnalysis", "impossible", "score") if said and f'"{name}"' in said] == named
    assert (said is None) == (not named)


def test_it_is_told_with_the_judges_own_words():
    """V10: the judge hears its reply and what is wrong with it, in messages of their own; no half characters."""
    own, told = pointed_out('{"answered": "\ud800"}', '"answered" is true, but "score" says that most is missing')
    assert (own.role, own.text) == ("assistant", '{"answered": "?"}')
    assert told.role == "user"
    assert told.text == (
        'Your reply contradicts itself: "answered" is true, but "score" says that most is missing. Look at the '
        "response once more, and reply with the whole JSON object again."
    )
