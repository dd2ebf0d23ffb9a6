"""A verdict with more in it: nothing unclear is a pass, an end, or a score."""

from __future__ import annotations

import json
import math

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from agents_loop import ChatMessage, ChatResponse, JudgeVerdict
from agents_loop.judging.full_reading import read_fully
from agents_loop.judging.reading import read_reply
from agents_loop.judging.verdict import VERDICT_FORMAT, further_names, names_in_order, verdict_format

NAMES = ("reasoning", "score", "impossible")


def read(text: str, names=NAMES, logprobs=None, *, wants_probability=True):
    response = ChatResponse([ChatMessage("assistant", text)], additional_properties={"logprobs": logprobs})
    return read_fully(response, names, wants_probability=wants_probability)


def verdict(**fields) -> str:
    return json.dumps({"gapAnalysis": "", "answered": False, **fields})


@pytest.mark.parametrize(
    ("score", "read_as"),
    [(0, 0.0), (1, 1.0), (0.25, 0.25), (-0.1, None), (1.1, None), (80, None), ("0.8", None), (True, None)],
)
def test_a_score_is_a_number_from_0_to_1(score, read_as):
    """Scores: what is no number from 0 to 1 is no score."""
    assert read(verdict(score=score)).score == read_as


@pytest.mark.parametrize("score", [None, [0.5], {"a": 1}, 10**400, float("inf"), float("nan")])
def test_what_is_no_score(score):
    """Scores: whatever stands in its place is none, and no error."""
    assert read(verdict(score=score)).score is None


@pytest.mark.parametrize("value", ["true", "TRUE", 1, 1.0, None, [True], {"impossible": True}, "yes", False])
def test_only_a_strict_true_ends(value):
    """E8: an unclear "impossible" ends nothing."""
    assert not read(verdict(impossible=value)).ends


@pytest.mark.parametrize(
    "text",
    [
        'Here you are: {"gapAnalysis": "why", "impossible": true, "answered": false}',
        '{"gapAnalysis": "why", "impossible": true, "answered": false} VERDICT: MORE',
        '{"gapAnalysis": "why", "impossible": true}',
        '{"gapAnalysis": "why", "impossible": true, "answered": null}',
        '{"gapAnalysis": "why", "impossible": true, "IMPOSSIBLE": false, "answered": false}',
        '{"gapAnalysis": "why", "impossible": true, "answered": false, "answered": false}',
        '{"gapAnalysis": "<think>why", "impossible": true, "answered": false}',
        '{"verdict": {"impossible": true, "answered": false}}',
        '<think>{"gapAnalysis": "why", "impossible": true, "answered": false}',
        '{"gapAnalysis": "why", "impossible": true, "answered": true}',
        '{"gapAnalysis": "Nothing is missing.", "impossible": true, "answered": false}',
        "IMPOSSIBLE: true\nVERDICT: MORE",
    ],
)
def test_an_unclear_reply_ends_nothing(text):
    """E8: only a reply that is one JSON object, says nothing twice and does not contradict itself ends a run."""
    reading = read(text)
    assert not reading.ends
    assert not reading.passes


def test_a_clear_one_ends():
    """E8: a reply in a fence, after thinking, with keys in another case is still clear."""
    reading = read('<think>Hm.</think>```json\n{"gap_analysis": "why", "Impossible": true, "answered": false}\n```')
    assert reading.ends
    assert reading.verdict.gap == "why"


def test_what_was_not_asked_for_is_not_looked_at():
    """Law 23: without the option, other fields are nothing, however they read."""
    reading = read(verdict(score=0.1, impossible=True, reasoning="r", answered=True), names=())
    assert (reading.score, reading.impossible, reading.reasoning) == (None, False, None)
    assert reading.passes


def test_the_record():
    """Results: what was asked for stands in the record, a contradiction where there is one."""
    reading = read(verdict(reasoning="Looked.", score=0.2, answered=True))
    assert reading.to_json(["reasoning", "score"]) == {
        "answered": True,
        "gapAnalysis": "<unknown>",
        "readable": True,
        "reasoning": "Looked.",
        "score": 0.2,
        "contradiction": '"answered" is true, but "score" says that most is missing',
    }


# --- probabilities


def tokens(*parts):
    listed = []
    for part in parts:
        text, shares = part if isinstance(part, tuple) else (part, {part: 1.0})
        top = [{"token": token, "logprob": math.log(share)} for token, share in shares.items()]
        listed.append({"token": text, "logprob": -0.1, "top_logprobs": top})
    return listed


def test_the_spellings_of_true_and_false_are_summed():
    """Confidence: any case and spacing, and first letters where a vocabulary splits the word; set against each other."""
    shares = {" true": 0.3, "true": 0.1, "True": 0.1, "t": 0.1, " false": 0.15, "fal": 0.05, "null": 0.2}
    given = tokens('{"gapAnalysis":"",', '"answered"', ": ", (" true", shares), "}")
    assert read('{"gapAnalysis":"","answered": true}', logprobs=given).probability == pytest.approx(0.75)
    assert read(verdict(), logprobs=given, wants_probability=False).probability is None


def test_a_verdict_within_a_string_has_no_say():
    """Law 24: what the judge quotes is escaped, so the quoted key is not the key."""
    text = '{"gapAnalysis":"it says {\\"answered\\":true}","answered":false}'
    given = tokens('{"gapAnalysis":"it says {\\"answered\\":', ("true", {"true": 1.0}), '}","answered":',
                   ("false", {"true": 0.1, "false": 0.9}), "}")  # fmt: skip
    assert read(text, logprobs=given).probability == pytest.approx(0.1)


# --- properties

VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-2, 2),
    st.floats(),
    st.sampled_from(["true", "false", "", "none", "no date", "VERDICT: DONE", "<think>", '{"answered": true}']),
    st.lists(st.booleans(), max_size=2),
)
KEYS = st.sampled_from(
    ["answered", "Answered", "gapAnalysis", "gap_analysis", "score", "impossible", "im_possible", "reasoning", "x"]
)
PAIRS = st.lists(st.tuples(KEYS, VALUES), max_size=7)
AROUND = st.sampled_from(["", " ", "```", "Here:", "VERDICT: MORE", "VERDICT: DONE", "<think>", "</think>", "}", "{}"])


@settings(max_examples=1000)
@given(PAIRS, AROUND, AROUND)
@example([("gapAnalysis", ""), ("impossible", True), ("answered", False)], "", "")
def test_random_verdicts(pairs, before, after):
    """Laws 23 and E8: no false pass, no false end, no false score, and the same pass as without the further fields."""
    body = ", ".join(f"{json.dumps(key)}: {json.dumps(value)}" for key, value in pairs)
    text = f"{before}{{{body}}}{after}"
    reading = read(text)
    assert reading.verdict == read_reply(text)
    fields = [(key.replace("_", "").lower(), value) for key, value in pairs]
    given = {name: [value for key, value in fields if key == name] for name in ("answered", "impossible", "score")}
    if reading.passes and "DONE" not in before + after:
        assert given["answered"] in ([True], ["true"])
        assert given["impossible"] != [True]
    if reading.ends:
        assert given["impossible"] == [True]
        assert given["answered"] in ([False], ["false"])
        assert len({key for key, _ in fields}) == len(fields)
        assert before.strip() in ("", "```", "</think>")
        assert after.strip() in ("", "```")
    if reading.score is not None:
        assert given["score"] == [reading.score]
        assert 0 <= reading.score <= 1
    assert not (reading.passes and reading.ends)


@settings(max_examples=1000)
@given(st.text(max_size=200))
def test_random_prose(text):
    """E8: prose ends nothing and has no score."""
    reading = read(text)
    assert not reading.ends
    assert reading.score is None


# --- the schema


def test_the_schema_with_more_in_it():
    """V10, P2: closed, all required, the reasoning first and the boolean last; without fields it is the very constant."""
    schema = verdict_format(["score", "impossible", "reasoning"]).schema
    names = ["reasoning", "gapAnalysis", "score", "impossible", "answered"]
    assert list(schema["properties"]) == schema["required"] == names
    assert schema["additionalProperties"] is False
    assert verdict_format([]) is VERDICT_FORMAT
    assert names_in_order(["score"]) == ["gapAnalysis", "score", "answered"]


def test_a_model_of_ones_own_tells_its_fields():
    """Options: the fields of a `JudgeVerdict` of one's own are read, others of it are not."""

    class Verdict(JudgeVerdict):
        score: float
        tone: str

    assert further_names((), Verdict) == {"score"}
    assert further_names(["reasoning"], Verdict) == {"score", "reasoning"}
    assert further_names((), JudgeVerdict) == further_names((), "json_object") == frozenset()
