from __future__ import annotations

import pytest

from agents_loop.files.counting import counted


@pytest.mark.parametrize(
    ("number", "said"), [(0, "0 replies"), (1, "1 reply"), (2, "2 replies"), (20_000, "20,000 replies")]
)
def test_one_thing_is_not_called_several(number: int, said: str):
    """A number and its noun agree."""
    assert counted(number, "reply", "replies") == said
    assert counted(number, "call").startswith("1 call" if number == 1 else f"{number:,} calls")
