"""How votes are counted."""

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from agents_loop.judging.voting import mean_score, median_score, passes_by_weight, reaches

VOTES = st.lists(st.tuples(st.booleans(), st.floats(0.01, 100)), min_size=1, max_size=9)
SCORES = st.lists(st.floats(0, 1), min_size=1, max_size=9)


@given(VOTES)
def test_a_vote_and_its_opposite(pairs):
    """Votes: but for a tie, exactly one of a question and its opposite passes."""
    votes, weights = [vote for vote, _ in pairs], [weight for _, weight in pairs]
    opposite = [not vote for vote in votes]
    if passes_by_weight(votes, weights, "continue"):
        assert not passes_by_weight(opposite, weights, "stop")
    is_tie = passes_by_weight(votes, weights, "stop") and passes_by_weight(opposite, weights, "stop")
    assert is_tie == (passes_by_weight(votes, weights, "stop") != passes_by_weight(votes, weights, "continue"))


@given(VOTES, st.data())
def test_one_more_in_favour_never_hurts(pairs, data):
    """Votes: who changes from no to yes never turns a pass into none; the order does not matter."""
    votes, weights = [vote for vote, _ in pairs], [weight for _, weight in pairs]
    changed = data.draw(st.integers(0, len(votes) - 1))
    better = [vote or number == changed for number, vote in enumerate(votes)]
    assert passes_by_weight(votes, weights, "continue") <= passes_by_weight(better, weights, "continue")
    shuffled = data.draw(st.permutations(pairs))
    again = passes_by_weight([vote for vote, _ in shuffled], [weight for _, weight in shuffled], "continue")
    assert again == passes_by_weight(votes, weights, "continue")


@given(st.lists(st.booleans(), min_size=1, max_size=15))
def test_equal_weights_are_a_majority(votes):
    """Votes: with equal weights more than half decide, and half is a tie."""
    weights = [0.1] * len(votes)
    assert passes_by_weight(votes, weights, "continue") == (2 * sum(votes) > len(votes))
    assert passes_by_weight(votes, weights, "stop") == (2 * sum(votes) >= len(votes))


def test_a_tie_of_decimals():
    """Votes: 0.1 + 0.2 against 0.3 is a tie."""
    assert not passes_by_weight([True, True, False], [0.1, 0.2, 0.3], "continue")
    assert passes_by_weight([True, True, False], [0.1, 0.2, 0.3], "stop")


@given(SCORES)
def test_means_lie_between(scores):
    """Scores: mean and median lie between the lowest and the highest, so from 0 to 1."""
    for score in (mean_score(scores, [1] * len(scores)), median_score(scores)):
        assert reaches(score, min(scores))
        assert reaches(max(scores), score)
        assert 0 <= score <= 1


@given(SCORES, st.floats(0, 1), st.data())
def test_a_better_score_never_hurts(scores, higher, data):
    """Scores: if one member's score rises, neither the mean nor the median falls."""
    place = data.draw(st.integers(0, len(scores) - 1))
    assume(higher > scores[place])
    better = [*scores[:place], higher, *scores[place + 1 :]]
    ones = [1.0] * len(scores)
    assert reaches(mean_score(better, ones), mean_score(scores, ones))
    assert median_score(better) >= median_score(scores)


@pytest.mark.parametrize(
    ("scores", "median"), [([0.2], 0.2), ([1, 0, 0.4], 0.4), ([0, 1], 0.5), ([0, 0.2, 0.4, 1], 0.3)]
)
def test_medians(scores, median):
    """Scores: the one in the middle, or the mean of the two there."""
    assert median_score(scores) == pytest.approx(median)


@given(st.integers(1, 50), st.decimals("0.01", "1", places=2))
def test_a_threshold_is_reached_by_itself(count, threshold):
    """Scores: the mean of equal scores reaches a threshold of that number."""
    assert reaches(mean_score([float(threshold)] * count, [0.1] * count), float(threshold))
