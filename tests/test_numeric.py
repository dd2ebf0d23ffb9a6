from __future__ import annotations

import math

import pytest

from agents_loop.errors import ConfigurationError
from agents_loop.numeric import check_count, is_int, is_number


@pytest.mark.parametrize("given", [True, False, None, "1", [1]])
def test_a_bool_is_no_number(given: object):
    """Neither a bool nor a text is a number, whatever Python makes of it."""
    assert not is_int(given)
    assert not is_number(given)
    with pytest.raises(TypeError, match="n must be an int, not "):
        check_count("n", given)


def test_what_a_number_is():
    """An int is a whole number; a float is a number, also one that is not finite."""
    assert is_int(0)
    assert not is_int(1.0)
    assert all(map(is_number, [0, -1, 0.5, math.inf, math.nan]))


def test_what_a_count_is():
    """A count is at least 1, or what is said to be the least; the message ends with the reason, if there is one."""
    check_count("n", 1)
    check_count("n", 0, least=0)
    with pytest.raises(ConfigurationError, match=r"^n must be at least 1, not 0$"):
        check_count("n", 0)
    with pytest.raises(ConfigurationError, match=r"^n must be at least 2, not 1: one repeats nothing$"):
        check_count("n", 1, least=2, why="one repeats nothing")
