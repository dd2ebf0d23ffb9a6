"""F4: an answer that is refused, filtered, cut off or empty is named, and is handled as the caller says."""

from __future__ import annotations

import json

import pytest
from fakes import WAYS, RecordingAgent, always, says

from agents_loop import (
    AgentResponse,
    ChatMessage,
    ConfigurationError,
    DataContent,
    ErrorContent,
    FunctionCallContent,
    FunctionResultContent,
    LoopAgent,
    LoopAgentOptions,
    LoopEvaluation,
    LoopResult,
    StopReason,
    TextContent,
    TextReasoningContent,
    UriContent,
    UsageDetails,
)

GOOD = "an answer"


def ended(reason: str, text: str = "half") -> AgentResponse:
    return AgentResponse([ChatMessage("assistant", text)], finish_reason=reason)


def holding(*contents, role="assistant") -> AgentResponse:
    return AgentResponse([ChatMessage(role, list(contents))])


BAD = {
    "refusal": ended("refusal"),
    "content_filter": ended("content_filter"),
    "length": ended("length"),
    "empty": ended("stop", "  \n"),
}


def loop(*replies, says_what=None, **options) -> tuple[LoopAgent, RecordingAgent]:
    agent = RecordingAgent(*replies, usage=UsageDetails(1, 1))
    return LoopAgent(agent, says_what or always(LoopEvaluation.stop()), LoopAgentOptions(**options)), agent


@pytest.mark.parametrize("way", WAYS, ids=["run", "streamed"])
@pytest.mark.parametrize("name", BAD)
async def test_by_default_it_is_judged_and_named(name, way):
    """F4: as in the ancestor the evaluators are asked; the result, in JSON too, names what was wrong."""
    agent, _ = loop(BAD[name])
    result = LoopResult.of(await way(agent))
    assert (result.stop_reason, len(result.iterations)) == (StopReason.SATISFIED, 1)
    assert result.iterations[0].bad_response == name
    assert json.loads(result.to_json())["iterations"][0]["bad_response"] == name


@pytest.mark.parametrize("way", WAYS, ids=["run", "streamed"])
@pytest.mark.parametrize("name", BAD)
async def test_stop_ends_the_run_at_once(name, way):
    """F4: nothing is judged, the run ends as failed and says why; the response is returned."""
    agent, inner = loop(GOOD, BAD[name], says_what=(evaluator := says("more")), on_bad_response="stop")
    response = await way(agent)
    result = LoopResult.of(response)
    assert (result.stop_reason, len(inner.calls)) == (StopReason.FAILED, 2)
    assert result.stop_detail == f"the agent's answer is no answer: {name}"
    assert len(evaluator.seen) == 1
    assert GOOD in response.text


@pytest.mark.parametrize("way", WAYS, ids=["run", "streamed"])
@pytest.mark.parametrize("name", ["refusal", "length", "empty"])
async def test_it_is_asked_again_with_a_neutral_word(name, way):
    """F4: the agent is run again, in the same session and as an iteration of its own; then its answer is judged."""
    agent, inner = loop(BAD[name], GOOD, on_bad_response="retry", on_behalf_of_author_name="loop")
    result = LoopResult.of(await way(agent))
    assert (result.stop_reason, result.output) == (StopReason.SATISFIED, GOOD)
    assert [record.number for record in result.iterations] == [1, 2]
    assert [record.bad_response for record in result.iterations] == [name, None]
    (nudge,) = inner.calls[1].messages
    assert (nudge.role, nudge.author_name) == ("user", "loop")
    assert nudge.text.endswith(".")
    assert inner.sessions[0] is inner.sessions[1]
    assert result.iterations[0].evaluations == ()


@pytest.mark.parametrize("way", WAYS, ids=["run", "streamed"])
async def test_it_is_asked_again_so_often_and_then_it_ends(way):
    """F4: bounded in a row; a good answer in between begins anew."""
    agent, inner = loop(BAD["empty"], BAD["refusal"], GOOD, on_bad_response="retry")
    result = LoopResult.of(await way(agent))
    assert (result.stop_reason, len(inner.calls)) == (StopReason.FAILED, 2)
    assert result.stop_detail.endswith("refusal")
    agent, inner = loop(BAD["empty"], GOOD, BAD["empty"], GOOD, says_what=says("more", LoopEvaluation.stop()),
                        on_bad_response="retry")  # fmt: skip
    assert LoopResult.of(await way(agent)).stop_reason == StopReason.SATISFIED
    agent, inner = loop(*[BAD["empty"]] * 9, on_bad_response="retry", bad_response_retries=3)
    assert LoopResult.of(await way(agent)).stop_reason == StopReason.FAILED
    assert len(inner.calls) == 4


async def test_what_a_filter_stopped_is_not_sent_again():
    """P6: the same prompt is not sent again blindly."""
    agent, inner = loop(BAD["content_filter"], GOOD, on_bad_response="retry")
    assert LoopResult.of(await agent.run("x")).stop_reason == StopReason.FAILED
    assert len(inner.calls) == 1


@pytest.mark.parametrize("final", [False, True])
async def test_asking_again_counts_as_an_iteration(final):
    """Law 4: N means N: at the cap the agent is not run once more, and its bad answer is not judged."""
    evaluator = says()
    agent, inner = loop(
        BAD["empty"],
        GOOD,
        says_what=evaluator,
        max_iterations=1,
        on_bad_response="retry",
        evaluate_final_iteration=final,
    )
    result = LoopResult.of(await agent.run("x"))
    assert (result.stop_reason, len(inner.calls)) == (StopReason.FAILED, 1)
    assert evaluator.seen == []


async def test_the_feedback_log_has_an_entry_for_it_without_words():
    """Law 9: a re-invocation without feedback is `None` in the log."""
    evaluator = says("more", LoopEvaluation.stop())
    agent, _ = loop(GOOD, BAD["empty"], GOOD, says_what=evaluator, on_bad_response="retry")
    await agent.run("x")
    assert [list(seen.feedback) for seen in evaluator.seen] == [[], ["more", None]]


async def test_in_a_fresh_context_the_request_is_sent_again_too():
    """Law 11: a new session, the caller's messages, all feedback so far, and then the neutral word."""
    agent, inner = loop(GOOD, BAD["empty"], GOOD, says_what=says("more", LoopEvaluation.stop()),
                        on_bad_response="retry", fresh_context_per_iteration=True)  # fmt: skip
    await agent.run("the request")
    request, feedback, nudge = inner.inputs[2]
    assert (request, feedback) == ("the request", "## Feedback\n\n- more")
    assert nudge == "There was no answer. Please answer the request."
    assert len({id(session) for session in inner.sessions}) == 3


@pytest.mark.parametrize(
    ("response", "expected"),
    [
        (GOOD, None),
        (AgentResponse([]), "empty"),
        (holding(), "empty"),
        (holding(TextReasoningContent("I think")), "empty"),
        (holding(TextReasoningContent("I think"), TextContent(GOOD)), None),
        (holding(DataContent(b"x", "image/png")), None),
        (holding(UriContent("http://x/y.png", "image/png")), None),
        (holding(FunctionCallContent("1", "look", None)), None),
        (holding(FunctionResultContent("1", "seen"), role="tool"), None),
        (holding(ErrorContent("I won't", code="refusal")), "refusal"),
        (holding(ErrorContent("odd", code="odd")), "empty"),
        (AgentResponse([ChatMessage("assistant", GOOD)], finish_reason="tool_calls"), None),
        (
            AgentResponse([ChatMessage("assistant", "before"), ChatMessage("user", "x"), ChatMessage("assistant", "")]),
            "empty",
        ),
    ],
)
async def test_what_is_an_answer(response, expected):
    """F4: an image, a file or a tool call is an answer; reasoning alone is none."""
    agent, _ = loop(response)
    assert LoopResult.of(await agent.run("x")).iterations[0].bad_response == expected


async def test_a_good_answer_is_not_named_in_json():
    """Schema: `bad_response` stands only where there is one."""
    agent, _ = loop(GOOD)
    assert "bad_response" not in LoopResult.of(await agent.run("x")).to_json()


@pytest.mark.parametrize(
    ("given", "error"),
    [
        ({"on_bad_response": "ignore"}, ConfigurationError),
        ({"on_bad_response": None}, ConfigurationError),
        ({"bad_response_retries": 0}, ConfigurationError),
        ({"bad_response_retries": None}, TypeError),
        ({"bad_response_retries": True}, TypeError),
    ],
)
def test_wrong_options_are_told_by_name(given, error):
    """Design: wrong use is found before anything runs."""
    with pytest.raises(error, match=next(iter(given))):
        LoopAgentOptions(**given)
