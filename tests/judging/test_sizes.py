"""S1: what is too long is cut in the middle, with a note; nothing that readers see as one character is cut in two."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agents_loop.errors import ConfigurationError
from agents_loop.judging.sizes import LEAST_CHARS, cut, cut_across

FAMILY = "\U0001f468\u200d\U0001f469\u200d\U0001f467"
CLUSTERS = [
    "e\u0301",
    FAMILY,
    "\U0001f44d\U0001f3fd",
    "\U0001f1eb\U0001f1f7",
    "\u1112\u1161\u11ab",
    "\r\n",
    "\ud83d\ude00",
    "\u2764\ufe0f",
    "\u0915\u094d\u0937",
]


def left_out(text):
    """How many characters the notes say are left out, and what stands before and after."""
    head, count, tail = re.fullmatch(
        r"(?s)(.*)\n\[\.\.\. (\d+) characters are left out here \.\.\.\]\n(.*)", text
    ).groups()
    return head, int(count), tail


def test_what_is_short_enough_is_not_altered():
    """Law 24: a text within the limit is what it was."""
    text = "x" * LEAST_CHARS
    assert cut(text, LEAST_CHARS) is text


def test_head_and_tail_stay_and_a_note_says_how_much_is_left_out():
    """S1: the result holds the beginning, the end and the count, and is as long as it may be."""
    text = "".join([f"{number} " for number in range(2000)])
    shown = cut(text, 500)
    head, count, tail = left_out(shown)
    assert len(shown) == 500
    assert text.startswith(head)
    assert text.endswith(tail)
    assert len(head) > len(tail) > 100
    assert len(head) + count + len(tail) == len(text)


@pytest.mark.parametrize("cluster", CLUSTERS, ids=ascii)
@pytest.mark.parametrize("offset", range(9))
def test_no_character_that_readers_see_is_cut_in_two(cluster, offset):
    """S1: whatever place the cut falls on, whole characters are left on both sides."""
    text = "x" * offset + cluster * 400
    head, count, tail = left_out(cut(text, 300 + offset))
    assert head[offset:] == cluster * ((len(head) - offset) // len(cluster))
    assert tail == cluster * (len(tail) // len(cluster))
    assert len(head) + count + len(tail) == len(text)


def test_marks_without_end_are_cut_all_the_same():
    """S1: a character that never ends does not do away with the limit, or with the rest."""
    head, _, tail = left_out(cut("a" + "\u0301" * 10_000, 400))
    assert len(head) > 200
    assert len(tail) > 100


def test_several_texts_are_cut_as_one():
    """S1: texts that follow each other keep their places; one that falls into the cut is empty."""
    first, second, third, fourth = cut_across(["a" * 150, "b" * 400, "c" * 300, "d" * 120], 300)
    assert first == "a" * 150
    head, count, tail = left_out(second)
    assert (set(head), tail, third, set(fourth)) == ({"b"}, "", "", {"d"})
    assert len(first) + len(head) + count + len(fourth) == 970
    assert len(first + second + third + fourth) <= 300


def test_a_note_of_ones_own():
    """S1: the caller may say it in other words."""
    assert re.fullmatch(r"x+<cut \d{4}>x+", cut("x" * 2000, 200, lambda count: f"<cut {count}>"))


def test_a_limit_without_room_is_wrong_use():
    """Design: a limit that the note alone would fill is told."""
    with pytest.raises(ConfigurationError, match="200"):
        cut("x", 199)


@settings(max_examples=300, deadline=None)
@given(
    st.lists(st.text(max_size=400) | st.sampled_from([cluster * 90 for cluster in CLUSTERS]), max_size=6),
    st.integers(200, 900),
)
def test_the_limit_holds_and_the_count_is_right(texts, most):
    """S1: for any texts and any limit the result fits, and what is left out is what the note says."""
    counts = []
    shown = cut_across(texts, most, lambda count: counts.append(count) or "\0NOTE\0")
    whole, joined = "".join(texts), "".join(shown)
    assert len(joined) <= max(most, 0)
    if len(whole) <= most:
        assert shown == texts
        return
    head, tail = joined.split("\0NOTE\0")
    assert whole.startswith(head)
    assert whole.endswith(tail)
    assert len(head) + counts[-1] + len(tail) == len(whole)
