"""Law 23 for a pass token: nothing but the token passes."""

import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents_loop.judging.pass_token import read_pass_token

TOKEN = "ALL CITATIONS SUPPORTED"  # noqa: S105 - no secret


@pytest.mark.parametrize(
    "reply",
    [
        TOKEN,
        "  all citations supported\n",
        "\ufeffAll Citations Supported",
        "**ALL CITATIONS SUPPORTED**",
        "- `ALL CITATIONS SUPPORTED`.",
        "1. ALL CITATIONS SUPPORTED!",
        "```\nALL CITATIONS SUPPORTED\n```",
        "```text\n**ALL CITATIONS SUPPORTED.**\n```",
        "<think>Is a#1 there? MISSING: a#1? No, it is.</think>\nALL CITATIONS SUPPORTED",
        "MISSING: a#1, or is it? </think> ALL CITATIONS SUPPORTED",
    ],
)
def test_the_token_passes(reply):
    """Law 23: the whole reply is the token, whatever its case, its list, bold or code marks, and its end punctuation."""
    assert read_pass_token(reply, TOKEN).passes


@pytest.mark.parametrize(
    "reply",
    [
        "NOT ALL CITATIONS SUPPORTED",
        "ALL CITATIONS SUPPORTED except a#1",
        "```\nALL CITATIONS SUPPORTED",
        "ALL CITATIONS SUPPORTED\n```",
        "ALL CITATIONS SUPPORTED\nMISSING: a#1",
        "MISSING: a#1\nALL CITATIONS SUPPORTED",
        "ALL CITATIONS SUPPORTED?",
        "ALL CITATIONS SUPPORTED, I think",
        '"ALL CITATIONS SUPPORTED"',
        "> ALL CITATIONS SUPPORTED",
        "# ALL CITATIONS SUPPORTED",
        "ALL CITATIONS SUPPORTED ALL CITATIONS SUPPORTED",
        "ALL CITATIONS",
        "ALL\nCITATIONS SUPPORTED",
        "PASS",
        "ALL CITATIONS \u017fUPPORTED",  # the long s, whose capital is S
        "\u0410LL CITATIONS SUPPORTED",  # a Cyrillic A
        "ALL CITATIONS\u200b SUPPORTED",
        "```\nALL CITATIONS SUPPORTED\n```\nMISSING: a#1",
        '{"verdict": "ALL CITATIONS SUPPORTED"}',
        "<think>ALL CITATIONS SUPPORTED</think>MISSING: a#1",
        "",
        " \n",
        "<think>ALL CITATIONS SUPPORTED</think>",
        "<think>ALL CITATIONS SUPPORTED",
    ],
)
def test_all_else_does_not(reply):
    """V5: a reply that merely holds the token, with a "not" before or an "except" after, is no pass."""
    reading = read_pass_token(reply, TOKEN)
    assert not reading.passes
    assert reading.readable == bool(reading.verdict)


@given(
    st.one_of(
        st.text(),
        st.tuples(st.text(), st.sampled_from([TOKEN, TOKEN.lower(), f"**{TOKEN}**"]), st.text()).map("".join),
        st.lists(st.sampled_from([*TOKEN.split(), " ", "NOT", "\n", "```", "*", "- ", "<think>", "</think>", "."])).map(
            "".join
        ),
    )
)
def test_nothing_but_the_token_passes(reply):
    """Law 23: what passes is, without thinking and a fence, the token's letters in their order and no other."""
    if read_pass_token(reply, TOKEN).passes:
        said = reply.rpartition("</think>")[2].removeprefix("\ufeff")
        fence = said.strip().startswith(("```", "~~~"))
        said = said.strip().strip("`~").partition("\n")[2] if fence and "\n" in said.strip() else said
        words = "".join(letter for letter in said.upper() if letter.isalnum() or letter == " ").strip()
        assert words.lstrip(string.digits).strip() == TOKEN


@given(st.text(alphabet=string.ascii_letters + string.digits + " .!*_`-", min_size=1), st.text(min_size=1))
def test_the_token_and_a_word_more_is_no_pass(before, after):
    """Law 23: with a letter or a digit beside the token nothing passes, but for the number of a list."""
    for reply in (f"{before} {TOKEN}", f"{TOKEN} {after}"):
        rest = reply.replace(TOKEN, "", 1)
        if any(letter.isalnum() for letter in rest) and not rest.strip().rstrip(".)").isdigit():
            assert "<" in rest or not read_pass_token(reply, TOKEN).passes


def test_the_verdict_is_what_the_checker_said():
    """Write and check: without the thinking and the fence, verbatim."""
    reading = read_pass_token("\ufeff<think>hm</think>\n```\nMISSING: a#1\n\nMISSING: b#2\n```", TOKEN)
    assert reading.verdict == "MISSING: a#1\n\nMISSING: b#2"


@pytest.mark.parametrize(
    ("token", "reply"),
    [("PASS!", "PASS"), ("1. fine", "fine"), ("*ok*", "ok"), ("OK.", "ok"), ("Gepr\u00fcft", "geprueft")],
)
def test_a_token_is_not_undressed(token, reply):
    """Law 23: the marks that are the token's own must be there."""
    assert not read_pass_token(reply, token).passes
    assert read_pass_token(token.upper(), token).passes
