from __future__ import annotations

import pytest

from agents_loop.judging.strict_json import MOST_DEPTH, strict_json


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('{"a": [1, 2.5, -1e-3, true, null, "x"]}', {"a": [1, 2.5, -1e-3, True, None, "x"]}),
        (" 5 ", 5),
        ('"\\ud83d\\ude00"', "\U0001f600"),
        ('{"\\ud83d": "a\\udc00"}', {"?": "a?"}),
        ("[" * MOST_DEPTH + "]" * MOST_DEPTH, None),
    ],
)
def test_what_a_text_says_can_be_written_again(text: str, value: object):
    """JSON is read as its values, and half of a surrogate pair is replaced."""
    read = strict_json(text)
    assert value is None or read == value


@pytest.mark.parametrize(
    "text",
    [
        "",
        "x",
        "{'a': 1}",
        "NaN",
        "[-Infinity]",
        '{"a": 1e999}',
        "9" * 5_000,
        "[" * (MOST_DEPTH + 2) + "]" * (MOST_DEPTH + 2),
        "[" * 100_000,
        "1 2",
    ],
)
def test_what_could_not_be_written_again_is_refused(text: str):
    """`NaN`, what is infinite, too big or nested too deep is no JSON, as is all else that is none."""
    with pytest.raises(ValueError, match=r"\w"):
        strict_json(text)
