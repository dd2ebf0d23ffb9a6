"""The detector that is a model: what it is asked, and how its reply is read."""

from __future__ import annotations

import json

import pytest
from fakes import RecordingAgent
from hypothesis import given
from hypothesis import strategies as st

from agents_loop import (
    AgentResponse,
    AgentSession,
    ChatOptions,
    Confidence,
    ConfigurationError,
    FunctionTool,
    HallucinationFinding,
    HallucinationReport,
    IterationSignals,
    IterationStrategyLoopEvaluator,
    JudgeFailedError,
    JudgeFailurePolicy,
    LoopAgent,
    LoopContext,
    LoopResult,
    ReviewSignalDetector,
    ReviewSignalDetectorOptions,
    UnmetRequirement,
)
from agents_loop.strategy.review_reading import read_review, review_format
from agents_loop.testing import ScriptedChatClient

FINE = {"unmetRequirements": [], "unsupportedClaims": [], "lacking": "nothing", "confidence": 0.9}


def reply(**changed):
    return json.dumps({**FINE, **changed})


def context(answer="The concert is in 1987."):
    return LoopContext(RecordingAgent(), AgentSession(), "Announce the concert.", AgentResponse(answer))


def test_a_whole_review_is_read():
    """Strategy: a review is requirements, claims, and a confidence with its cause."""
    said = reply(
        unmetRequirements=["no price"],
        unsupportedClaims=[{"claim": "in 1987", "certain": True}, {"claim": "the best", "certain": False}],
        lacking="certainty",
        confidence=0.4,
    )
    assert read_review(f"<think>hm</think>\n```json\n{said}\n```").signals == IterationSignals(
        confidence=Confidence(0.4, "factual_uncertainty"),
        hallucination=HallucinationReport(
            [HallucinationFinding("in 1987", "confirmed"), HallucinationFinding("the best", "likely")]
        ),
        unmet_requirements=[UnmetRequirement("no price")],
    )
    assert read_review(reply(lacking="evidence", confidence=0)).signals.confidence == Confidence(0, "missing_evidence")


@pytest.mark.parametrize(
    "changed",
    [
        {"confidence": "0.9"},
        {"confidence": True},
        {"confidence": 1.1},
        {"confidence": None},
        {"confidence": 1e999},
        {"lacking": "hope"},
        {"lacking": []},
        {"lacking": {"a": []}},
        {"unmetRequirements": "none"},
        {"unmetRequirements": [""]},
        {"unmetRequirements": [3]},
        {"unsupportedClaims": None},
        {"unsupportedClaims": ["in 1987"]},
        {"unsupportedClaims": [{"claim": "in 1987"}]},
        {"unsupportedClaims": [{"claim": " ", "certain": True}]},
        {"unsupportedClaims": [{"claim": "in 1987", "certain": "true"}]},
        {"Confidence": 0.1},
    ],
)
def test_an_unclear_part_makes_it_unreadable(changed):
    """V4: nothing unclear is a pass: a review of which a part is not what it should be says nothing."""
    assert not read_review(reply(**changed)).readable


@pytest.mark.parametrize("missing", FINE)
def test_a_missing_part_makes_it_unreadable(missing):
    """V4: each field must be there."""
    assert not read_review(json.dumps({name: value for name, value in FINE.items() if name != missing})).readable


@given(st.text() | st.recursive(st.none() | st.booleans() | st.floats() | st.text(), st.lists).map(json.dumps))
def test_nothing_else_is_a_review(text):
    """V4: prose, and JSON of another shape, is no review, and no error."""
    assert not read_review(text).readable


async def test_what_the_reviewer_sees():
    """Law 21, 24: a system message with the criteria, and the material between fences; the schema is closed."""
    client = ScriptedChatClient([reply()])
    options = ReviewSignalDetectorOptions(criteria=["It is friendly."], new_nonce=lambda: "n0nce")
    detector = ReviewSignalDetector(client, options)
    assert await detector.detect(context()) == read_review(reply()).signals
    assert client.calls[0].messages == detector.build_messages(context())
    system, user = client.calls[0].messages
    assert "- It is friendly." in system.text
    assert "The concert is in 1987." in user.text
    assert "latest_response_n0nce" in user.text
    assert client.calls[0].options.response_format == review_format()
    assert client.calls[0].options.response_format.schema["additionalProperties"] is False


async def test_claims_drive_the_strategy():
    """Strategy: a loop with a reviewer names the claims, and is satisfied when none is left."""
    bad = reply(unsupportedClaims=[{"claim": "in 1987", "certain": True}], confidence=0.5)
    evaluator = IterationStrategyLoopEvaluator([ReviewSignalDetector(ScriptedChatClient([bad, reply()]))])
    agent = RecordingAgent()
    result = LoopResult.of(await LoopAgent(agent, evaluator).run("go"))
    assert [record.evaluations[0].details["rule"] for record in result.iterations] == [
        "specific_claims",
        "nothing_wrong",
    ]
    assert "- nothing supports this: in 1987" in agent.inputs[1][0]


async def test_a_reviewer_that_fails():
    """Law 25: a reviewer that fails or is unreadable is no signal; what happens is the policy's."""
    unreadable = ReviewSignalDetector(ScriptedChatClient(["Looks fine to me."]))
    assert (await unreadable.detect(context())).unclear == "the reviewer gave no review: unreadable"
    options = ReviewSignalDetectorOptions(on_failure=JudgeFailurePolicy(unreadable="raise"))
    strict = ReviewSignalDetector(ScriptedChatClient(["Looks fine to me."]), options)
    with pytest.raises(JudgeFailedError, match="unreadable"):
        await strict.detect(context())
    options = ReviewSignalDetectorOptions(on_failure=JudgeFailurePolicy(error="continue"))
    down = ReviewSignalDetector(ScriptedChatClient([ConnectionError("down")]), options)
    assert "the reviewer gave no review" in (await down.detect(context())).unclear


async def test_a_full_context_is_trimmed():
    """S1: an answer that does not fit is shown cut, with a note; the request is not."""

    class Overflow(Exception):  # noqa: N818 - as an SDK names it
        code = "context_length_exceeded"

    client = ScriptedChatClient([Overflow("too long"), reply()])
    await ReviewSignalDetector(client).detect(context("word " * 400))
    first, second = [call.messages[1].text for call in client.calls]
    assert len(second) < len(first) - 1000
    assert "characters are left out here" in second
    assert "Announce the concert." in second


def test_options_check_themselves():
    """Strategy: options that can't be are an error that names them."""
    with pytest.raises(TypeError, match="criteria"):
        ReviewSignalDetectorOptions(criteria="friendly")
    with pytest.raises(ConfigurationError, match="judge_sees"):
        ReviewSignalDetectorOptions(judge_sees="all")
    tools = [FunctionTool(lambda: None, name="f", description="d")]
    with pytest.raises(ConfigurationError, match="chat_options"):
        ReviewSignalDetectorOptions(chat_options=ChatOptions(tools=tools))
    with pytest.raises(TypeError, match="review_client"):
        ReviewSignalDetector(None)
