from __future__ import annotations

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents_loop.files.prompted.contract import read_evaluator_reply


def test_an_object_with_a_true_boolean_is_approved():
    """A JSON object with `approved: true` is an approval; blanks around it don't matter."""
    reply = read_evaluator_reply(' \n{"approved": true, "feedback": "good", "score": 0.75, "more": [1]}\n')

    assert reply.approved
    assert reply.feedback == "good"
    assert reply.score == 0.75
    assert reply.details == {"approved": True, "feedback": "good", "score": 0.75, "more": [1]}


def test_a_false_boolean_gives_its_feedback():
    """`approved: false` goes on with the object's feedback."""
    reply = read_evaluator_reply('{"approved": false, "feedback": "line 2 is long"}')

    assert (reply.approved, reply.feedback, reply.unclear) == (False, "line 2 is long", None)


@pytest.mark.parametrize(
    "text",
    [
        '```json\n{"approved": true, "feedback": "ok"}\n```',
        '```\n{"approved": true}\n```',
        'Sure! {"approved": true, "feedback": "ok"}',
        '{"approved": true, "feedback": "ok"} Well done.',
        '{"approved": true}\n{"approved": true}',
        "{'approved': True}",
        '{"approved": true,}',
        '{"approved": true, "score": NaN}',
        '{"approved": true, "score": Infinity}',
        '{"approved": true, "score": 1e999}',
        '{"approved": tru',
        '\ufeff{"approved": true}',
        '<think>{"approved": true}</think>',
        "true",
        '"approved"',
        "[]",
        '[{"approved": true}]',
        "null",
        "APPROVED",
        "[" * 100_000,
        '{"approved": true, "x": ' + "[" * 200 + "]" * 200 + "}",
        "   ",
        "",
    ],
)
def test_anything_else_is_not_approved_and_its_raw_text_is_the_feedback(text: str):
    """Fenced JSON, prose, broken JSON and what is no object: not approved, raw text as feedback."""
    reply = read_evaluator_reply(text)

    assert not reply.approved
    assert reply.feedback == text
    assert reply.unclear


@pytest.mark.parametrize("approved", ['"true"', "1", "null", '"yes"', "[true]", "{}", "0", "1.0"])
def test_only_a_json_boolean_approves(approved: str):
    """`approved` must be a JSON boolean; an object without one gives its `feedback`, else the raw text."""
    with_feedback = read_evaluator_reply(f'{{"approved": {approved}, "feedback": "shorter"}}')
    without = read_evaluator_reply(f'{{"approved": {approved}}}')

    assert (with_feedback.approved, with_feedback.feedback) == (False, "shorter")
    assert (without.approved, without.feedback) == (False, f'{{"approved": {approved}}}')


@pytest.mark.parametrize(
    "text",
    [
        '{"approved": false, "approved": true, "feedback": "f"}',
        '{"approved": true, "approved": true, "feedback": "f"}',
        '{"approved": true, "feedback": "a", "feedback": "f"}',
        '{"Approved": true, "feedback": "f"}',
        '{"feedback": "f"}',
    ],
)
def test_a_key_given_twice_or_missing_is_not_approved(text: str):
    """Nothing unclear is an approval."""
    reply = read_evaluator_reply(text)

    assert (reply.approved, reply.feedback) == (False, "f")
    assert reply.unclear


@pytest.mark.parametrize("score", ["2", "-0.1", '"0.5"', "true", "null", "[0.5]"])
def test_a_score_that_is_no_number_from_0_to_1_is_only_recorded(score: str):
    """`score` counts where it is a number from 0 to 1; control flow ignores it."""
    reply = read_evaluator_reply(f'{{"approved": true, "feedback": "f", "score": {score}}}')

    assert reply.approved
    assert reply.score is None
    assert "score" in reply.details


def test_an_approval_without_feedback_is_an_approval():
    """Only `approved` decides; feedback that is no str is left out."""
    assert read_evaluator_reply('{"approved": true}') == (True, "", None, {"approved": True}, None)
    assert read_evaluator_reply('{"approved": true, "feedback": 3}').feedback == ""


def test_lone_surrogates_are_replaced():
    """What no wire can carry does not reach the next prompt, nor the record."""
    reply = read_evaluator_reply('{"approved": false, "feedback": "\\ud800", "k": ["\\udfff"]}')

    assert reply.feedback == "?"
    assert json.dumps(reply.details, ensure_ascii=False).encode("utf-8")


_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(st.sampled_from(["approved", "feedback", "score", "x"]), _json), st.text(max_size=6))
def test_a_reply_passes_in_one_way_only(fields: dict[str, object], around: str):
    """A generated reply is approved exactly if it is finite JSON, alone, with `approved: true`."""
    text = around + json.dumps(fields)

    reply = read_evaluator_reply(text)

    alone = not around.strip()
    finite = not any(word in json.dumps(fields, default=str) for word in ("NaN", "Infinity"))
    if reply.approved:
        assert alone
        assert fields["approved"] is True
    elif alone and finite:
        assert fields.get("approved") is not True
    assert reply.score is None or (math.isfinite(reply.score) and 0 <= reply.score <= 1)
