"""A judge whose verdict holds more, and that is asked again where it is unsure."""

from __future__ import annotations

import asyncio
import json
import math

import pytest
from fakes import RecordingAgent
from hypothesis import given, settings
from hypothesis import strategies as st

from agents_loop import (
    AgentResponse,
    AgentSession,
    AIJudgeLoopEvaluator,
    AIJudgeLoopEvaluatorOptions,
    ChatMessage,
    ChatOptions,
    ChatResponse,
    ConfigurationError,
    EvidenceLoopEvaluator,
    FinishReason,
    JudgeFailedError,
    JudgeFailurePolicy,
    JudgeVerdict,
    LoopAgent,
    LoopContext,
    LoopResult,
    PanelLoopEvaluator,
    UsageDetails,
    check,
)
from agents_loop.judging.verdict import VERDICT_FORMAT
from agents_loop.testing import ScriptedChatClient, ScriptedJudge, ScriptedVerdict, assert_evaluator_is_stateless

ALL = ("reasoning", "score", "impossible")
TORN = ScriptedVerdict(True, "no dates")


def context(answer="A plan."):
    return LoopContext(RecordingAgent(), AgentSession(), "Plan it.", AgentResponse([ChatMessage("assistant", answer)]))


def verdict(answered, gap="", **more):
    return ScriptedVerdict(answered, gap, more=more)


def judge(*verdicts, **options):
    client = ScriptedJudge(verdicts)
    options.setdefault("feedback_message_template", "{gap_analysis}")
    return AIJudgeLoopEvaluator(client, AIJudgeLoopEvaluatorOptions(**options)), client


def sure(answered, share, gap=""):
    """A reply whose boolean has this probability of being true."""
    text = json.dumps({"gapAnalysis": gap, "answered": answered})
    before, word = text[: text.rindex(" ")], f" {str(answered).lower()}"
    top = [{"token": " true", "logprob": math.log(share)}, {"token": " false", "logprob": math.log(1 - share)}]
    logprobs = [{"token": before, "logprob": 0.0}, {"token": word, "logprob": -0.1, "top_logprobs": top}]
    return ChatResponse(
        [ChatMessage("assistant", text)], usage=UsageDetails(100, 1), additional_properties={"logprobs": logprobs}
    )


# --- without options, nothing changes


async def test_without_options_the_boolean_decides_and_a_contradiction_is_recorded():
    """Law 23, V10: one call; a pass that names a gap is a pass, and the record says what does not go together."""
    evaluator, client = judge(TORN)
    word = await evaluator.evaluate(context())
    assert (word.decision, word.score, len(client.calls)) == ("stop", None, 1)
    assert word.details == {
        "answered": True,
        "gapAnalysis": "no dates",
        "readable": True,
        "contradiction": '"answered" is true, but "gapAnalysis" names something that is missing',
    }


async def test_without_options_further_fields_are_nothing():
    """Law 23: "impossible" and a score that nobody asked for neither end the run nor are recorded."""
    word = await judge(verdict(False, "no dates", impossible=True, score=0.5))[0].evaluate(context())
    assert (word.decision, word.score) == ("continue", None)
    assert word.details == {"answered": False, "gapAnalysis": "no dates", "readable": True}


async def test_without_options_what_is_sent_is_what_it_was():
    """Law 21: no log probabilities, the constant schema, two messages."""
    evaluator, client = judge(True)
    await evaluator.evaluate(context())
    assert client.calls[0].options == ChatOptions(response_format=VERDICT_FORMAT)
    assert [message.role for message in client.calls[0].messages] == ["system", "user"]


# --- a verdict with more in it


@pytest.mark.parametrize("fields", [["score"], ["impossible"], ALL], ids="-".join)
def test_the_prompt_with_more_in_it(fields, snapshot):
    """Law 22: the default instructions and the last words say what each further field means."""
    evaluator, _ = judge(verdict_fields=fields, new_nonce=lambda: "NONCE")
    system, user = evaluator.build_messages(context())
    assert system.text.partition("When in doubt, it is not complete.\n\n")[2] == snapshot
    assert user.text.partition("</latest_response_NONCE>\n\n")[2] == snapshot
    assert system.text.count("VERDICT: DONE") == system.text.count("VERDICT: MORE") == 1


def test_instructions_of_ones_own_stay():
    """Law 22: the system message is exactly the rendered instructions; the last words tell the fields."""
    system, user = judge(verdict_fields=ALL, instructions="Judge.")[0].build_messages(context())
    assert system.text == "Judge."
    assert '"impossible": false' in user.text


async def test_score_and_reasoning():
    """Verdicts: the score is the evaluation's; the reasoning is recorded and never sent to the agent."""
    evaluator, client = judge(verdict(False, "no dates", reasoning="I looked.", score=0.75), verdict_fields=ALL)
    word = await evaluator.evaluate(context())
    assert (word.decision, word.feedback, word.score, word.note) == ("continue", "no dates", 0.75, None)
    assert word.details == {
        "answered": False,
        "gapAnalysis": "no dates",
        "readable": True,
        "reasoning": "I looked.",
        "score": 0.75,
        "impossible": False,
        "calls": 1,
    }
    sent = client.calls[0].options.response_format.schema
    assert sent["required"] == ["reasoning", "gapAnalysis", "score", "impossible", "answered"]


async def test_a_pass_has_its_score():
    """Verdicts: a pass is recorded with its score, so that answers can be compared."""
    word = await judge(verdict(True, score=0.9), verdict_fields=["score"])[0].evaluate(context())
    assert (word.decision, word.score) == ("stop", 0.9)


@pytest.mark.parametrize("score", ["high", 80, -1, None, True])
async def test_what_is_no_score(score):
    """Verdicts: a score outside of 0 to 1 is none, and no error."""
    word = await judge(verdict(False, "g", score=score), verdict_fields=["score"])[0].evaluate(context())
    assert (word.decision, word.score) == ("continue", None)


async def test_impossible_ends_the_run():
    """E8: the loop ends with the judge's reason, and the work is in the result."""
    evaluator, _ = judge(verdict(False, "A square\x1b[31m circle can't be drawn.", impossible=True), verdict_fields=ALL)
    result = LoopResult.of(await LoopAgent(RecordingAgent("draft"), evaluator).run("Draw a square circle."))
    assert (result.stop_reason, result.stop_detail) == ("aborted", "A square circle can't be drawn.")
    assert result.output == "draft"


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"reasoning": "It can't be."}, "It can't be."),
        ({}, "the judge says that the request can't be met"),
        ({"reasoning": "\x00"}, "the judge says that the request can't be met"),
    ],
)
async def test_impossible_without_a_gap_has_a_reason(fields, reason):
    """E8: an end always has a reason: the gap, the reasoning, or that the judge says so."""
    word = await judge(verdict(False, "", impossible=True, **fields), verdict_fields=ALL)[0].evaluate(context())
    assert (word.decision, word.reason) == ("abort", reason)


async def test_an_honest_impossible_outranks_a_failed_check():
    """E9: the check wins over "done", and an honest "impossible" still ends the loop."""
    evaluator, client = judge(verdict(False, "It can't be.", impossible=True), verdict_fields=["impossible"])
    word = await EvidenceLoopEvaluator(evaluator, [check("compiles", lambda text: False)]).evaluate(context())
    assert (word.decision, word.reason) == ("abort", "It can't be.")
    assert "FAILED: compiles" in client.calls[0].messages[1].text


async def test_a_verdict_class_of_ones_own():
    """Options: a `JudgeVerdict` with further fields is sent as the schema, and what it has of them is read."""

    class Verdict(JudgeVerdict):
        score: float
        impossible: bool

    evaluator, client = judge(
        verdict(False, "no dates", score=0.5, impossible=False),
        verdict(False, "never", score=0, impossible=True),
        chat_options=ChatOptions(response_format=Verdict),
    )
    assert (await evaluator.evaluate(context())).score == 0.5
    assert (await evaluator.evaluate(context())).decision == "abort"
    assert client.calls[0].options.response_format is Verdict
    assert '"score": 1, "impossible": false' in client.calls[0].messages[1].text


async def test_markers_still_do():
    """V6: a judge that can't write JSON is read by its marker, and has no score."""
    evaluator, client = judge("All is there.\nVERDICT: DONE", "No dates.\nVERDICT: MORE", verdict_fields=ALL)
    assert (await evaluator.evaluate(context())).decision == "stop"
    word = await evaluator.evaluate(context())
    assert (word.decision, word.feedback, word.score, len(client.calls)) == ("continue", "No dates.", None, 2)


# --- contradictions


async def test_a_contradiction_is_judged_again_once():
    """V10: the judge hears what does not go together, outside of the fences, and its second word stands."""
    evaluator, client = judge(TORN, verdict(False, "no dates"), ask_again_on_contradiction=True)
    word = await evaluator.evaluate(context())
    assert (word.decision, word.feedback, word.details["calls"]) == ("continue", "no dates", 2)
    assert "contradiction" not in word.details
    first, second = client.calls
    assert second.messages[:1] == first.messages[:1]
    assert [message.role for message in second.messages] == ["system", "user", "assistant", "user"]
    assert json.loads(second.messages[2].text) == {"gapAnalysis": "no dates", "answered": True}
    assert 'contradicts itself: "answered" is true, but "gapAnalysis"' in second.messages[3].text


@pytest.mark.parametrize(
    "torn",
    [
        verdict(True, "no dates"),
        verdict(True, score=0.1),
        verdict(True, impossible=True),
        verdict(False, "Nothing is missing."),
        verdict(False, "no dates", score=1),
        verdict(False, "no dates", score=1, impossible=True),
    ],
)
async def test_what_stays_a_contradiction_neither_passes_nor_ends(torn):
    """V10: asked again once and no more; then it is no pass, no end, and has no score."""
    evaluator, client = judge(torn, torn, verdict_fields=ALL)
    word = await evaluator.evaluate(context())
    assert (word.decision, word.score, len(client.calls)) == ("continue", None, 2)
    assert word.details["contradiction"].startswith('"answered" is ')
    assert word.feedback in ("no dates", "<unknown>")


async def test_a_contradiction_that_is_cleared_up_passes():
    """V10: a pass whose gap was a slip is one after all."""
    evaluator, _ = judge(TORN, True, verdict_fields=["score"])
    assert (await evaluator.evaluate(context())).decision == "stop"


@pytest.mark.parametrize("second", ["Hmm.", ChatResponse([], finish_reason="refusal")])
async def test_no_second_word_is_no_pass(second):
    """V10, F2: where the second reply says nothing, the first one stands, and does not pass."""
    policy = JudgeFailurePolicy(unreadable="continue", refusal="continue")
    evaluator, _ = judge(TORN, second, ask_again_on_contradiction=True, on_failure=policy)
    word = await evaluator.evaluate(context())
    assert (word.decision, word.feedback, word.details["calls"]) == ("continue", "no dates", 2)
    assert word.details["readable"] is True


async def test_a_failure_at_the_second_asking_is_raised():
    """Law 25: an outage is no verdict at any call; the work is kept."""
    evaluator, _ = judge(TORN, ConnectionError("gone"), verdict_fields=ALL)
    with pytest.raises(ConnectionError) as caught:
        await LoopAgent(RecordingAgent("draft"), evaluator).run("Plan it.")
    assert LoopResult.of(caught.value).output == "draft"


# --- confidence


async def test_a_probability_below_the_threshold_is_no_pass():
    """Confidence: the boolean is not enough; the agent hears the gap, or that it is unknown; the score is recorded."""
    evaluator, client = judge(sure(True, 0.6), sure(True, 0.95), confidence_threshold=0.9, confidence_margin=0)
    word = await evaluator.evaluate(context())
    assert (word.decision, word.feedback) == ("continue", "<unknown>")
    assert word.score == pytest.approx(0.6)
    assert word.details["probability"] == pytest.approx(0.6)
    word = await evaluator.evaluate(context())
    assert (word.decision, len(client.calls)) == ("stop", 2)
    assert client.calls[0].options.top_logprobs == 20


async def test_a_probability_passes_nothing_by_itself():
    """Law 23: a boolean that is false stays no pass, whatever the threshold."""
    evaluator, _ = judge(sure(False, 0.8, "no dates"), confidence_threshold=0.1)
    assert (await evaluator.evaluate(context())).feedback == "no dates"


@pytest.mark.parametrize(("answered", "decision"), [(True, "stop"), (False, "continue")])
async def test_without_log_probabilities_the_boolean_decides(answered, decision):
    """Confidence: a client that gives none is judged by its boolean, and the record says that there was none."""
    evaluator, client = judge(answered, confidence_threshold=0.9, samples=3)
    word = await evaluator.evaluate(context())
    assert (word.decision, word.score, word.details["probability"], len(client.calls)) == (decision, None, None, 1)


async def test_its_own_score_comes_first():
    """Confidence: the verdict's own score is the score; the probability still decides."""
    evaluator, _ = judge(sure(True, 0.6), confidence_threshold=0.9, verdict_fields=["score"])
    assert (await evaluator.evaluate(context())).score == pytest.approx(0.6)
    own, _ = judge(verdict(True, score=0.7), confidence_threshold=0.9, verdict_fields=["score"])
    assert (await own.evaluate(context())).score == 0.7


async def test_near_the_threshold_it_is_asked_again():
    """Confidence: until the mean is no longer near, at most as often as was said; the costs are in the result."""
    replies = [sure(True, 0.85), sure(True, 0.99), sure(True, 0.99)]
    evaluator, client = judge(*replies, confidence_threshold=0.8, samples=3, chat_options=ChatOptions(seed=7))
    result = LoopResult.of(await LoopAgent(RecordingAgent("draft"), evaluator).run("Plan it."))
    assert result.stop_reason == "satisfied"
    (word,) = result.iterations[0].evaluations
    assert word.score == pytest.approx(0.92)
    assert (word.details["calls"], len(word.details["samples"])) == (2, 2)
    assert [call.options.seed for call in client.calls] == [7, 8]
    assert [len(call.messages) for call in client.calls] == [2, 2]
    assert result.usage.input_token_count == 200


async def test_samples_are_bounded_and_a_tie_does_not_pass():
    """Confidence: two of four in favour are no pass."""
    replies = [sure(True, 0.8), sure(False, 0.7, "no dates"), sure(True, 0.8), sure(False, 0.7, "no map")]
    evaluator, client = judge(*replies, confidence_threshold=0.7, samples=4)
    word = await evaluator.evaluate(context())
    assert (word.decision, word.feedback, len(client.calls)) == ("continue", "no dates", 4)


async def test_samples_without_probabilities_are_a_majority():
    """Confidence: after a contradiction that stays, more than half must pass."""
    evaluator, client = judge(TORN, TORN, True, True, samples=3)
    word = await evaluator.evaluate(context())
    assert (word.decision, word.details["calls"], len(client.calls)) == ("stop", 4, 4)
    evaluator, client = judge(TORN, TORN, True, verdict(False, "no map"), samples=3)
    word = await evaluator.evaluate(context())
    assert (word.decision, word.feedback, len(client.calls)) == ("continue", "no map", 4)


async def test_one_of_two_ends_nothing():
    """E8: an "impossible" near the threshold is asked about again, and one of two does not end the run."""

    def reply(share, *, impossible):
        given = sure(False, share, "why")
        fields = {"gapAnalysis": "why", "impossible": impossible, "answered": False}
        given.messages = [ChatMessage("assistant", json.dumps(fields))]
        return given

    options = {"confidence_threshold": 0.5, "samples": 2, "verdict_fields": ["impossible"]}
    evaluator, _ = judge(reply(0.45, impossible=True), reply(0.45, impossible=False), **options)
    assert (await evaluator.evaluate(context())).decision == "continue"
    evaluator, _ = judge(reply(0.45, impossible=True), reply(0.45, impossible=True), **options)
    assert (await evaluator.evaluate(context())).decision == "abort"


async def test_a_failure_while_sampling():
    """F1: where the policy goes on, an outage ends the asking; it is neither a vote nor a pass."""
    policy = JudgeFailurePolicy(error="continue", retries=0)
    replies = [sure(True, 0.75), ConnectionError("gone")]
    evaluator, client = judge(*replies, confidence_threshold=0.8, samples=3, on_failure=policy)
    word = await evaluator.evaluate(context())
    assert (word.decision, len(client.calls), "samples" in word.details) == ("continue", 2, False)


# --- a stronger judge


async def test_a_stronger_judge_decides_where_the_first_is_unsure():
    """Confidence: it gets the same messages, not the first one's model nor its probabilities, and its word stands."""
    strong = ScriptedJudge([verdict(False, "no map"), True])
    options = ChatOptions(model_id="small", temperature=0)
    evaluator, client = judge(
        sure(True, 0.85), sure(True, 0.75), sure(True, 0.99), sure(False, 0.01, "no dates"),
        confidence_threshold=0.8, escalate_to=strong, chat_options=options,
    )  # fmt: skip
    word = await evaluator.evaluate(context())
    assert (word.decision, word.feedback, word.score) == ("continue", "no map", 0.8)
    assert (word.details["escalated"], word.details["calls"]) == ("judged", 2)
    assert word.details["probability"] == pytest.approx(0.85)
    assert (await evaluator.evaluate(context())).decision == "stop"
    asked = strong.calls[0].options
    assert (asked.model_id, asked.temperature, asked.top_logprobs) == (None, 0, None)
    assert [message.role for message in strong.calls[0].messages] == ["system", "user"]
    word = await evaluator.evaluate(context())
    assert (word.decision, word.details["calls"], "escalated" in word.details) == ("stop", 1, False)
    assert (await evaluator.evaluate(context())).feedback == "no dates"
    assert (len(client.calls), len(strong.calls)) == (4, 2)


async def test_samples_come_before_the_stronger_judge():
    """Confidence: the dear one is asked only where the cheap one's samples leave it unsure."""
    strong = ScriptedJudge([True])
    replies = [sure(True, 0.75), sure(True, 0.99), sure(True, 0.75), sure(True, 0.76)]
    evaluator, _ = judge(*replies, confidence_threshold=0.7, samples=2, escalate_to=strong)
    assert (await evaluator.evaluate(context())).details["calls"] == 2
    word = await evaluator.evaluate(context())
    assert (word.details["calls"], word.details["escalated"], len(word.details["samples"])) == (3, "judged", 2)


async def test_a_stronger_judge_may_contradict_itself_once_too():
    """V10: it is told so once; if it stays so, nothing passes."""
    strong = ScriptedJudge([TORN, TORN])
    evaluator, _ = judge(TORN, TORN, escalate_to=strong)
    word = await evaluator.evaluate(context())
    assert (word.decision, word.feedback, word.details["calls"]) == ("continue", "no dates", 4)


async def test_a_stronger_judge_that_is_down_passes_nothing():
    """F1: by default its error is raised; where the policy goes on, what was unsure is no pass."""
    options = {"confidence_threshold": 0.8, "feedback_message_template": "{gap_analysis}"}
    evaluator, _ = judge(sure(True, 0.85), escalate_to=ScriptedJudge([ConnectionError("gone")]), **options)
    with pytest.raises(ConnectionError):
        await evaluator.evaluate(context())
    down = ScriptedJudge([ConnectionError("gone"), "Hmm."])
    policy = JudgeFailurePolicy(error="continue", retries=0)
    evaluator, _ = judge(sure(True, 0.85), sure(True, 0.85), escalate_to=down, on_failure=policy, **options)
    for _ in range(2):
        word = await evaluator.evaluate(context())
        assert (word.decision, word.feedback, word.details["escalated"]) == ("continue", "<unknown>", "failed")


# --- failures of the first call


async def test_an_unreadable_reply_is_counted_as_such():
    """F2: its prose is the gap, it is not asked about again, and a panel knows that it is no vote."""
    evaluator, client = judge("Hmm.", verdict_fields=ALL, samples=3)
    word = await evaluator.evaluate(context())
    assert (word.decision, word.feedback, len(client.calls)) == ("continue", "Hmm.", 1)
    assert word.details["readable"] is False
    passed_over = judge("Hmm.", verdict_fields=ALL)[0]
    panel = PanelLoopEvaluator([passed_over, check("fine", lambda text: True)])
    assert (await panel.evaluate(context())).decision in ("stop", "continue")


async def test_a_failed_first_call():
    """Law 25: a refusal is raised, or the run goes on and the agent hears nothing of it."""
    refusal = ChatResponse([], finish_reason="refusal")
    with pytest.raises(JudgeFailedError, match="refusal"):
        await judge(refusal, verdict_fields=ALL)[0].evaluate(context())
    policy = JudgeFailurePolicy(refusal="continue")
    word = await judge(refusal, verdict_fields=ALL, on_failure=policy)[0].evaluate(context())
    assert (word.decision, word.feedback, word.details) == ("continue", None, {"no_verdict": "refusal"})


async def test_a_full_context_is_trimmed_at_the_second_asking_too():
    """Law 25: where the second prompt does not fit, the answer is cut, and what was pointed out stays."""

    class Overflow(Exception):  # noqa: N818 - as an SDK names it
        code = "context_length_exceeded"

    evaluator, client = judge(TORN, Overflow("too long"), True, verdict_fields=["score"])
    assert (await evaluator.evaluate(context("word " * 400))).decision == "stop"
    _, second, third = [[len(message.text) for message in call.messages] for call in client.calls]
    assert third[1] < second[1] - 1000
    assert third[2:] == second[2:]


# --- options


@pytest.mark.parametrize(
    ("options", "error", "match"),
    [
        ({"verdict_fields": "score"}, TypeError, "verdict_fields"),
        ({"verdict_fields": ["tone"]}, ConfigurationError, "tone"),
        ({"confidence_threshold": 1.1}, ConfigurationError, "confidence_threshold"),
        ({"confidence_threshold": "0.9"}, TypeError, "confidence_threshold"),
        ({"confidence_threshold": True}, TypeError, "confidence_threshold"),
        ({"confidence_threshold": float("nan")}, ConfigurationError, "confidence_threshold"),
        ({"confidence_margin": -0.1}, ConfigurationError, "confidence_margin"),
        ({"confidence_margin": None}, TypeError, "confidence_margin"),
        ({"samples": 0}, ConfigurationError, "samples"),
        ({"samples": 1.5}, TypeError, "samples"),
        ({"samples": True}, TypeError, "samples"),
        ({"design": "requirements", "samples": 2}, ConfigurationError, "verdict"),
        ({"design": "requirements", "verdict_fields": ["score"]}, ConfigurationError, "verdict"),
        ({"design": "requirements", "ask_again_on_contradiction": True}, ConfigurationError, "verdict"),
    ],
)
def test_wrong_options_are_told(options, error, match):
    """Design: wrong use is found before anything runs."""
    with pytest.raises(error, match=match):
        AIJudgeLoopEvaluatorOptions(**options)


def test_who_is_escalated_to_must_be_a_client():
    """Design: a TypeError names the parameter."""
    with pytest.raises(TypeError, match="escalate_to"):
        AIJudgeLoopEvaluator(ScriptedChatClient([]), AIJudgeLoopEvaluatorOptions(escalate_to=object()))


# --- laws


REPLIES = st.one_of(
    st.builds(
        verdict,
        st.booleans(),
        st.sampled_from(["", "None.", "no dates"]),
        score=st.none() | st.floats(-1, 2),
        impossible=st.sampled_from([True, False, "true", None, 1]),
    ),
    st.builds(sure, st.booleans(), st.floats(0.01, 0.99), st.sampled_from(["", "no dates"])),
    st.sampled_from(["Hmm.", "VERDICT: DONE", "VERDICT: MORE", FinishReason.REFUSAL, FinishReason.LENGTH]),
    st.builds(lambda number: ConnectionError(str(number)), st.integers()),
)


@settings(max_examples=500, deadline=None)
@given(
    st.lists(REPLIES, min_size=8, max_size=8),
    st.sets(st.sampled_from(ALL)),
    st.none() | st.floats(0, 1),
    st.integers(1, 4),
    st.none() | st.lists(REPLIES, min_size=2, max_size=2),
)
def test_whatever_the_replies(replies, fields, threshold, samples, stronger):
    """Laws 23 and 25, E8: no pass and no end that no reply gave, no outage in either, and the calls are bounded."""
    policy = JudgeFailurePolicy(
        error="continue", length="continue", refusal="continue", retries=0, unreadable_limit=None, outage_limit=None
    )
    strong = None if stronger is None else ScriptedJudge(stronger)
    evaluator, client = judge(
        *replies,
        verdict_fields=sorted(fields),
        confidence_threshold=threshold,
        samples=samples,
        escalate_to=strong,
        on_failure=policy,
    )
    word = asyncio.run(evaluator.evaluate(context()))
    asked_strong = 0 if strong is None else len(strong.calls)
    assert len(client.calls) <= samples + 1
    assert asked_strong <= 2
    used = [*replies[: len(client.calls)], *(stronger or [])[:asked_strong]]
    if word.decision == "stop":
        assert any(says(reply, answered=True) for reply in used)
    if word.decision == "abort":
        assert "impossible" in fields
        assert any(
            isinstance(reply, ScriptedVerdict) and reply.more["impossible"] is True and not reply.answered
            for reply in used
        )
    assert word.score is None or 0 <= word.score <= 1
    json.dumps(word.details, allow_nan=False)


def says(reply, *, answered) -> bool:
    if isinstance(reply, ScriptedVerdict):
        return reply.answered == answered
    if isinstance(reply, ChatResponse):
        return json.loads(reply.text)["answered"] == answered
    return reply == "VERDICT: DONE"


async def test_it_keeps_nothing_between_runs():
    """Law 20: one instance serves any number of runs at once."""

    def make():
        strong = ScriptedJudge(lambda messages, options: verdict(False, "no map", score=0.2))

        def answer(messages, options):
            return sure(True, 0.85) if len(messages) == 2 else TORN

        options = AIJudgeLoopEvaluatorOptions(confidence_threshold=0.8, samples=2, escalate_to=strong)
        return AIJudgeLoopEvaluator(ScriptedJudge(answer), options)

    await assert_evaluator_is_stateless(make())
