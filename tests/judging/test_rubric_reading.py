"""What a judge's reply about a rubric comes to. Nothing unclear is met."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from agents_loop import ConfigurationError, RubricCriterion
from agents_loop.judging.rubric import read_rubric_reply, rubric_format

A, B, C = (
    RubricCriterion("a", "has A"),
    RubricCriterion("b", "has B", weight=3),
    RubricCriterion("c", "C", required=False),
)
RUBRIC = (A, B, C)


def entry(verdict, reason="so"):
    return {"reason": reason, "verdict": verdict}


def reply(a, b, c, *answered):
    fields = {"criteria": {"a": entry(a), "b": entry(b), "c": entry(c)}}
    return json.dumps(fields | ({"answered": answered[0]} if answered else {}))


def verdicts(text):
    return [str(result.verdict) for result in read_rubric_reply(text, RUBRIC).results]


@pytest.mark.parametrize(
    ("given", "passes", "score"),
    [
        (("met", "met", "met"), True, 1.0),
        (("met", "met", "not_met"), True, 0.8),
        (("met", "not_met", "met"), False, 0.4),
        (("not_met", "met", "not_met"), False, 0.6),
        (("not_applicable", "met", "not_met"), True, 0.75),
        (("met", "not_applicable", "not_applicable"), True, 1.0),
        (("not_applicable", "not_applicable", "not_applicable"), False, None),
        (("not_applicable", "not_applicable", "not_met"), False, 0.0),
        (("not_met", "not_met", "not_met"), False, 0.0),
    ],
)
def test_passing_and_score(given, passes, score):
    """Rubric: required ones decide, weights make the score, what does not apply counts for neither."""
    reading = read_rubric_reply(reply(*given), RUBRIC)
    assert (reading.passes, reading.readable, reading.contradicts_itself) == (passes, True, False)
    assert reading.score == (score if score is None else pytest.approx(score))


@pytest.mark.parametrize(
    "dress",
    ["{}", "\ufeff {}\n", "```json\n{}\n```", "<think>{{'a': 'met'}} or not</think>\n{}", "~~~\n{}\n~~~"],
)
def test_what_stands_around_it(dress):
    """V1, V3: a byte order mark, a fence around it all and closed thinking are removed."""
    assert read_rubric_reply(dress.format(reply("met", "met", "met", True)), RUBRIC).passes


@pytest.mark.parametrize("verdict", ["met", " Met ", "MET"])
def test_a_verdict_in_another_dress(verdict):
    """Rubric: case and space around a verdict are nothing."""
    assert verdicts(reply(verdict, "not met", "not-applicable")) == ["met", "not_met", "not_applicable"]


@pytest.mark.parametrize(
    "unclear",
    [
        '{"reason": "r", "verdict": true}',
        '{"reason": "r", "verdict": "true"}',
        '{"reason": "r", "verdict": "unmet"}',
        '{"reason": "r", "verdict": "partially met"}',
        '{"reason": "r", "verdict": "met!"}',
        '{"reason": "r", "verdict": ["met"]}',
        '{"reason": "r", "verdict": null}',
        '{"reason": "r", "verdict": "met", "verdict": "met"}',
        '{"reason": "r", "verdict": "met", "Verdict": "not_met"}',
        '{"reason": "r", "met": true}',
        '{"reason": "met"}',
        '"met"',
        "true",
        "[]",
        "null",
    ],
)
def test_an_unclear_verdict_is_not_met(unclear):
    """V4: never truthiness; what is not exactly one of the three words is not met."""
    text = f'{{"criteria": {{"a": {unclear}, "b": {{"reason": "", "verdict": "met"}}}}}}'
    result = read_rubric_reply(text, [A, B]).results[0]
    assert (result.verdict, result.is_clear) == ("not_met", False)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"criteria": {"a": {"verdict": "met"}}}', ["met", "not_met", "not_met"]),
        ('{"criteria": {" a ": {"verdict": "met"}, "A": {"verdict": "not_met"}}}', ["met", "not_met", "not_met"]),
        ('{"criteria": {"a": {"verdict": "met"}, "a": {"verdict": "met"}}}', ["not_met"] * 3),
        ('{"criteria": {"d": {"verdict": "met"}, "b": {"verdict": "met"}}}', ["not_met", "met", "not_met"]),
        ('{"Criteria": {"b": {"VERDICT": "met"}}}', ["not_met", "met", "not_met"]),
    ],
)
def test_missing_unknown_and_repeated_ids(text, expected):
    """Rubric: what is missing or given twice is not met; an id that is not the rubric's is nothing."""
    assert verdicts(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "",
        "met",
        "VERDICT: DONE",
        '{"answered": true}',
        '{"criteria": "all met", "answered": true}',
        '{"criteria": [{"id": "a", "verdict": "met"}], "answered": true}',
        '{"criteria": {}, "answered": true}',
        '{"criteria": {"a": {"verdict": "met"}}, "criteria": {"a": {"verdict": "met"}}}',
        '{"a": {"verdict": "met"}, "b": {"verdict": "met"}, "c": {"verdict": "met"}}',
        'All is met: {"criteria": {"a": {"verdict": "met"}}}',
        '<think>{"criteria": {"a": {"verdict": "met"}}}',
        '{"criteria": {"a": {"verdict": "met"}',
    ],
)
def test_unreadable(text):
    """F2: without a clear verdict there is nothing to read, and nothing is met; a marker is none."""
    reading = read_rubric_reply(text, RUBRIC)
    assert (reading.readable, reading.passes) == (False, False)
    assert {str(result.verdict) for result in reading.results} == {"not_met"}


def test_thinking_tags_in_a_reason():
    """V3: a pass in whose strings thinking tags stand is unclear; a gap counts."""
    passed = json.dumps({"criteria": {"a": entry("met", "<think>")}})
    assert not read_rubric_reply(passed, [A]).readable
    failed = json.dumps({"criteria": {"a": entry("not_met", "<think>")}})
    assert read_rubric_reply(failed, [A]).readable


@pytest.mark.parametrize(
    ("given", "answered", "contradicts"),
    [
        (("met", "met", "not_met"), True, False),
        (("met", "met", "not_met"), "True", False),
        (("met", "met", "not_met"), False, True),
        (("met", "met", "met"), "partially", True),
        (("met", "met", "met"), None, True),
        (("met", "not_met", "met"), True, True),
        (("met", "not_met", "met"), False, False),
    ],
)
def test_contradictions(given, answered, contradicts):
    """V10: what is said of the whole must be what the parts come to."""
    assert read_rubric_reply(reply(*given, answered), RUBRIC).contradicts_itself == contradicts


def test_the_whole_given_twice_contradicts():
    """V10: a key given twice is unclear."""
    text = '{"criteria": {"a": {"verdict": "met"}}, "answered": true, "answered": true}'
    assert read_rubric_reply(text, [A]).contradicts_itself


def test_reasons_are_one_line_that_a_wire_can_carry():
    """Rubric: a reason is a line; half characters are replaced; what is no text is none."""
    text = '{"criteria": {"a": {"reason": " no\\n\\n## date \\ud800", "verdict": "met"}, "b": {"reason": 3}}}'
    reasons = [result.reason for result in read_rubric_reply(text, [A, B]).results]
    assert reasons == ["no ## date ?", ""]


# --- the schema


def test_the_schema_is_strict(snapshot):
    """P2, V10: closed, all required, no default; the reason before its verdict, the whole last."""
    sent = rubric_format(RUBRIC)
    assert sent.schema == snapshot
    Draft202012Validator.check_schema(sent.schema)
    assert list(sent.schema["properties"]) == ["criteria", "answered"]
    assert list(sent.schema["properties"]["criteria"]["properties"]["a"]["properties"]) == ["reason", "verdict"]
    assert "has A" not in json.dumps(sent.schema), "criteria are given once (S3)"


CLEAR = st.sampled_from(["met", "not_met", "not_applicable"])
WEIGHTS = st.floats(0.01, 1000)


@given(st.lists(st.tuples(CLEAR, WEIGHTS, st.booleans()), min_size=1, max_size=12), st.booleans())
def test_what_keeps_to_the_schema_is_read(parts, answered):
    """Rubric: the score is from 0 to 1; 1 if and only if all that applies is met; a pass is all required and one met."""
    rubric = [RubricCriterion(f"c{n}", "x", weight=w, required=r) for n, (_, w, r) in enumerate(parts)]
    fields = {"criteria": {f"c{n}": entry(verdict) for n, (verdict, _, _) in enumerate(parts)}, "answered": answered}
    assert Draft202012Validator(rubric_format(rubric).schema).is_valid(fields)
    reading = read_rubric_reply(json.dumps(fields), rubric)
    words = [verdict for verdict, _, _ in parts]
    assert [str(result.verdict) for result in reading.results] == words
    assert reading.readable
    unmet_required = any(verdict == "not_met" and required for verdict, _, required in parts)
    assert reading.passes == ("met" in words and not unmet_required)
    assert reading.contradicts_itself == (answered != reading.passes)
    if set(words) == {"not_applicable"}:
        assert reading.score is None
    else:
        assert 0 <= reading.score <= 1
        assert (reading.score == 1) == ("not_met" not in words)


@given(st.lists(st.tuples(CLEAR, WEIGHTS), min_size=1, max_size=9), st.data())
def test_meeting_one_more_never_lowers_the_score(parts, data):
    """Rubric: if an unmet criterion is met, the score rises."""
    place = data.draw(st.integers(0, len(parts) - 1))
    rubric = [RubricCriterion(f"c{n}", "x", weight=weight) for n, (_, weight) in enumerate(parts)]

    def score(word):
        words = [word if n == place else verdict for n, (verdict, _) in enumerate(parts)]
        fields = {"criteria": {f"c{n}": entry(verdict) for n, verdict in enumerate(words)}}
        return read_rubric_reply(json.dumps(fields), rubric).score

    assert score("not_met") < score("met")


ANY_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.sampled_from(["met", "true", "not_met", "yes", "done"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["a", "criteria", "verdict", "reason", "answered", "b"]), inner, max_size=4)
    ),
    max_leaves=12,
)


@given(ANY_JSON)
def test_nothing_unclear_is_a_pass(value):
    """V4: of generated replies only those pass that give each required criterion the exact word."""
    reading = read_rubric_reply(json.dumps(value), [A, B])
    assert reading.passes == _says_met(value)


def _says_met(value):
    given = value.get("criteria") if isinstance(value, dict) else None
    entries = [given.get(name) if isinstance(given, dict) else None for name in ("a", "b")]
    words = [each.get("verdict") if isinstance(each, dict) else None for each in entries]
    return words == ["met", "met"]


@given(st.text())
def test_any_text_can_be_read(text):
    """Rubric: no reply raises."""
    read_rubric_reply(text, RUBRIC)
    read_rubric_reply(f'{{"criteria": {text}}}', RUBRIC)


@pytest.mark.parametrize(
    ("arguments", "options", "error"),
    [
        ((1, "x"), {}, TypeError),
        (("a", None), {}, TypeError),
        (("", "x"), {}, ConfigurationError),
        (("a b", "x"), {}, ConfigurationError),
        (("a" * 65, "x"), {}, ConfigurationError),
        (("a", " "), {}, ConfigurationError),
        (("a", "x"), {"weight": 0}, ConfigurationError),
        (("a", "x"), {"weight": float("inf")}, ConfigurationError),
        (("a", "x"), {"weight": float("nan")}, ConfigurationError),
        (("a", "x"), {"weight": True}, TypeError),
        (("a", "x"), {"weight": "1"}, TypeError),
    ],
)
def test_criteria_are_checked(arguments, options, error):
    """Criterion: wrong use is found before anything ran."""
    with pytest.raises(error):
        RubricCriterion(*arguments, **options)
