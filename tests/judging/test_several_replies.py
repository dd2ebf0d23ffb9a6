"""What several replies about one answer come to."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents_loop.judging.full_reading import FullReading
from agents_loop.judging.reading import VerdictReading
from agents_loop.judging.several import ends, gap_of, is_unsure, mean_probability, passes, score_of


def one(answered=True, probability=None, *, gap="<unknown>", score=None, impossible=False, contradiction=None):
    verdict = VerdictReading(answered, gap, readable=True, fields={})
    return FullReading(verdict, "", None, score, impossible, contradiction, probability)


YES, NO, TORN = one(), one(answered=False), one(contradiction="c")


@pytest.mark.parametrize(
    ("readings", "threshold", "passed"),
    [
        ([YES], None, True),
        ([NO], None, False),
        ([TORN], None, False),
        ([YES, NO], None, False),
        ([YES, TORN], None, False),
        ([YES, YES, NO], None, True),
        ([one(probability=0.7)], 0.7, True),
        ([one(probability=0.69)], 0.7, False),
        ([one(probability=0.7 - 1e-12)], 0.7, True),
        ([one(answered=False, probability=0.99)], 0.5, False),
        ([one(probability=0.9), one(probability=0.6)], 0.7, True),
        ([one(probability=0.9), one(probability=0.4)], 0.7, False),
        ([one(probability=0.9), one(answered=False, probability=0.9)], 0.7, False),
        ([YES], 0.9, True),
        ([one(probability=0.1)], None, True),
    ],
)
def test_when_several_pass(readings, threshold, passed):
    """Confidence: more than half must pass, and the mean probability reach the threshold; a tie does not pass."""
    assert passes(readings, threshold) == passed


@pytest.mark.parametrize(
    ("readings", "unsure"),
    [
        ([YES], False),
        ([NO], False),
        ([TORN], True),
        ([TORN, TORN], True),
        ([TORN, NO], False),
        ([TORN, YES], True),
        ([YES, NO], True),
        ([one(answered=False, impossible=True), NO], True),
        ([one(probability=0.8)], True),
        ([one(answered=False, probability=0.6)], True),
        ([one(probability=0.81)], False),
        ([one(probability=0.3)], False),
        ([one(probability=1.0), one(probability=0.4)], True),
    ],
)
def test_when_they_are_unsure(readings, unsure):
    """Confidence: a tie, a probability within 0.1 of 0.7, or nothing but contradictions."""
    assert is_unsure(readings, 0.7, 0.1) == unsure


def test_ends_by_more_than_half():
    """E8: one of two is not enough to end a run."""
    end = one(answered=False, impossible=True)
    assert ends([end])
    assert not ends([end, NO])
    assert ends([end, end, NO])
    assert not ends([one(answered=False, impossible=True, contradiction="c")])


def score(readings, *, of_judge=None, threshold=0.8, answered=True):
    return score_of(readings, of_judge or readings, threshold, answered=answered)


def test_scores():
    """Scores: their own, else the probability; a contradictory one has none."""
    assert score([one(score=0.2, probability=0.9), one(score=0.4)]) == pytest.approx(0.3)
    assert score([one(probability=0.9), one(probability=0.8)]) == pytest.approx(0.85)
    assert score([one(score=0.2, probability=0.9, contradiction="c")]) is None
    assert score([YES]) is None
    assert mean_probability([YES, one(probability=0.5)]) == 0.5


@pytest.mark.parametrize(
    ("share", "answered", "expected"), [(0.7, True, 0.8), (0.9, True, 0.9), (0.7, False, 0.7), (0.9, False, 0.8)]
)
def test_no_answer_that_did_not_pass_scores_above_one_that_did(share, answered, expected):
    """Scores: where another word than the probability decides, the probability is moved to the threshold."""
    assert score([one(answered=answered)], of_judge=[one(probability=share)], answered=answered) == expected


def test_the_gap():
    """V7: the gap of one that does not pass comes first; "nothing" is no gap; prose beside a pass is none."""
    assert gap_of([one(gap="a"), one(answered=False, gap="b")]) == "b"
    assert gap_of([one(answered=False, gap="Nothing is missing."), one(gap="a")]) == "a"
    assert gap_of([one(answered=False, gap="None.")]) == "<unknown>"
    prose = FullReading(VerdictReading(answered=True, gap="All is there.", readable=True), "")
    assert gap_of([prose]) == "<unknown>"


READINGS = st.lists(
    st.builds(one, st.booleans(), st.none() | st.floats(0, 1), contradiction=st.none() | st.just("c")), min_size=1
)


@given(READINGS, st.none() | st.floats(0, 1))
def test_no_false_pass(readings, threshold):
    """Law 23: whatever the probabilities, nothing passes without more than half of the booleans."""
    if passes(readings, threshold):
        assert sum(reading.verdict.answered and not reading.contradiction for reading in readings) * 2 > len(readings)
    for answered in (True, False):
        found = score(readings, threshold=0.5, answered=answered)
        assert found is None or 0 <= found <= 1
