"""How sure a model was of a word."""

from __future__ import annotations

import math

import pytest

from agents_loop import ChatMessage, ChatOptions, ChatResponse
from agents_loop.judging.logprobs import probability, with_logprobs


def reply(*tokens):
    """A response with log probabilities; a token is its text, or its text and the alternatives' probabilities."""
    listed = []
    for token in tokens:
        text, alternatives = token if isinstance(token, tuple) else (token, {token: 1.0})
        top = [{"token": spelling, "logprob": math.log(share)} for spelling, share in alternatives.items()]
        listed.append({"token": text, "logprob": -0.1, "top_logprobs": top})
    return ChatResponse([ChatMessage("assistant", "x")], additional_properties={"logprobs": listed})


def test_spellings_are_summed_and_set_against_each_other():
    """All spellings of a word count, and what else might have been said does not."""
    response = reply(("Yes", {"Yes": 0.3, " yes": 0.3, "No": 0.2, "Maybe": 0.2}))
    assert probability(response, ["yes"], ["no"]) == pytest.approx(0.75)


def test_the_place_is_the_last_one_after_a_key():
    """A draft of the verdict before the last one is not looked at."""
    response = reply('{"', "answered", '":', (" true", {" true": 0.9, " false": 0.1}), ', "', "answered", '":',
                     (" false", {" true": 0.2, " false": 0.8}), "}")  # fmt: skip
    assert probability(response, ["true"], ["false"], after='"answered":') == pytest.approx(0.2)


@pytest.mark.parametrize(
    "properties",
    [
        None,
        {},
        {"logprobs": []},
        {"logprobs": ["x", None, 3]},
        {"logprobs": [{"token": "yes"}]},
        {"logprobs": [{"token": "yes", "logprob": 5}]},
        {"logprobs": [{"token": None, "top_logprobs": "x"}]},
    ],
)
def test_without_log_probabilities_there_is_none(properties):
    """What a client does not give is not made up, whatever it gives in its place."""
    response = ChatResponse([ChatMessage("assistant", "yes")], additional_properties=properties)
    assert probability(response, ["yes"], ["no"]) is None


def test_a_ratio_of_what_was_not_to_be_said_means_nothing():
    """Where neither word is likely, there is no probability."""
    assert probability(reply(("Well", {"Well": 0.97, "yes": 0.02, "no": 0.01})), ["yes"], ["no"]) is None


def test_asking_changes_nothing_else():
    """The other options stay."""
    asked = with_logprobs(ChatOptions(temperature=0, model_id="m"))
    assert (asked.temperature, asked.model_id, asked.top_logprobs) == (0, "m", 20)
