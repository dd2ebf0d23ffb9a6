"""Panels: several vote."""

import asyncio

import pytest
from fakes import HangingEvaluator, RecordingAgent, always, leaving_nothing, says
from hypothesis import given
from hypothesis import strategies as st

from agents_loop import (
    AgentResponse,
    AgentSession,
    AIJudgeLoopEvaluator,
    BudgetExceededError,
    ChatMessage,
    ChatResponse,
    ConfigurationError,
    FailureCause,
    LoopAgent,
    LoopAgentOptions,
    LoopContext,
    LoopEvaluation,
    LoopEvaluator,
    LoopResult,
    PanelLoopEvaluator,
    PanelLoopEvaluatorOptions,
    UsageDetails,
    check,
)
from agents_loop.judging.asking import NoVerdict
from agents_loop.loop.no_verdict import NO_VERDICT, is_without_verdict
from agents_loop.testing import ScriptedChatClient

STOP = LoopEvaluation.stop
GO_ON = LoopEvaluation.continue_
DOWN = GO_ON(details={NO_VERDICT: "network"})


def context():
    return LoopContext(RecordingAgent(), AgentSession(), "do it", AgentResponse("an answer"))


async def word_of(words, **options):
    """What a panel says whose members say these words."""
    members = [word if isinstance(word, LoopEvaluator) else says(word) for word in words]
    return await PanelLoopEvaluator(members, PanelLoopEvaluatorOptions(**options)).evaluate(context())


@pytest.mark.parametrize(
    ("vote", "words", "decision"),
    [
        ("majority", [STOP(), STOP(), GO_ON("a")], "stop"),
        ("majority", [STOP(), GO_ON("a"), GO_ON("b")], "continue"),
        ("majority", [STOP(), GO_ON("a")], "continue"),
        ("unanimous", [STOP(), STOP()], "stop"),
        ("unanimous", [STOP(), STOP(), GO_ON("a")], "continue"),
        ("mean", [STOP(score=0.9), GO_ON("a", score=0.1)], "stop"),
        ("mean", [STOP(score=0.8), GO_ON("a", score=0.1)], "continue"),
        ("mean", [STOP(), GO_ON()], "stop"),
        ("median", [STOP(score=0.9), STOP(score=0.6), GO_ON(score=0)], "stop"),
        ("median", [STOP(score=0.9), STOP(score=0.4), GO_ON(score=0)], "continue"),
    ],
)
async def test_votes(vote, words, decision):
    """Panel: the majority, all of them, the mean or the median of the scores."""
    assert (await word_of(words, vote=vote)).decision == decision


async def test_weights():
    """Panel: who weighs more decides; a weighted mean, too."""
    words = [STOP(score=1), GO_ON("a", score=0), GO_ON("b", score=0)]
    assert (await word_of(words, vote="weighted", weights=[3, 1, 1])).decision == "stop"
    assert (await word_of(words, vote="weighted", weights=[2, 1, 1])).decision == "continue"
    assert (await word_of(words, vote="mean", weights=[2, 1, 1])).score == 0.5


async def test_ties():
    """Panel: a tie goes on, unless the options say otherwise."""
    assert (await word_of([STOP(), GO_ON()])).decision == "continue"
    assert (await word_of([STOP(), GO_ON()], on_tie="stop")).decision == "stop"


async def test_scores():
    """Panel: its score is what was voted on, or the mean of the scores that were given."""
    words = [STOP(score=0.9), STOP(score=0.5), STOP()]
    assert (await word_of(words)).score == pytest.approx(0.7)
    assert (await word_of(words, vote="mean")).score == pytest.approx(0.8)
    assert (await word_of(words, vote="median")).score == 0.9
    assert (await word_of([STOP()])).score is None


async def test_the_threshold():
    """Panel: a score that equals the threshold is enough."""
    words = [STOP(score=0.7)] * 3
    assert (await word_of(words, vote="mean", threshold=0.7)).decision == "stop"
    assert (await word_of(words, vote="median", threshold=0.71)).decision == "continue"


async def test_feedback_of_those_that_want_more_without_repeats():
    """B3: the agent hears each member that wants more, in order, and what two say in the same words once."""
    word = await word_of([GO_ON("b"), STOP(note="fine"), GO_ON("a"), GO_ON(" b\n"), GO_ON()])
    assert word.feedback == "b\n\na"


async def test_explicit_messages_come_first():
    """Law 6: explicit messages, and then one message of feedback."""
    explicit = LoopEvaluation.continue_with_messages([ChatMessage("user", "do this")])
    word = await word_of([GO_ON("a"), explicit, GO_ON("b")])
    assert [(message.role, message.text) for message in word.messages] == [("user", "do this"), ("user", "a\n\nb")]
    alone = await word_of([explicit])
    assert [message.text for message in alone.messages] == ["do this"]


async def test_an_abort():
    """Law 7: any member's abort ends the run; or only one of more than half."""
    words = [STOP(), LoopEvaluation.abort("impossible"), LoopEvaluation.abort("no way")]
    assert (await word_of(words)).reason == "impossible"
    assert (await word_of(words, on_abort="majority")).reason == "impossible"
    assert (await word_of(words[:2], on_abort="majority")).decision == "continue"
    weighted = {"vote": "weighted", "on_abort": "majority", "on_tie": "stop"}
    assert (await word_of(words[:2], weights=[1, 2], **weighted)).decision == "abort"
    assert (await word_of(words[:2], weights=[1, 1], **weighted)).decision == "stop"


# --- failures


async def test_a_failed_member_is_raised_and_the_others_cancelled():
    """Law 6: by default the first exception is raised as it is, and the others are cancelled and awaited."""
    error = RuntimeError("down")
    hanging = HangingEvaluator()
    async with leaving_nothing():
        with pytest.raises(RuntimeError) as caught:
            await word_of([hanging, says(error)])
    assert caught.value is error
    assert isinstance(hanging.ended_by, asyncio.CancelledError)


async def test_cancelling_cancels_the_members():
    """F5: a cancelled panel leaves nothing running."""
    members = [HangingEvaluator(), HangingEvaluator()]
    async with leaving_nothing():
        options = PanelLoopEvaluatorOptions(on_failure="abstain")
        asking = asyncio.ensure_future(PanelLoopEvaluator(members, options).evaluate(context()))
        await asyncio.gather(*[member.asked.wait() for member in members])
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
    assert all(isinstance(member.ended_by, asyncio.CancelledError) for member in members)


async def test_a_failed_member_may_vote_to_go_on():
    """F1: as a vote to go on, it is neither feedback nor a score."""
    word = await word_of([says(RuntimeError("down")), STOP(score=0.5)], on_failure="continue")
    assert (word.decision, word.feedback, word.score) == ("continue", None, 0.5)
    assert word.details["tiers"][0][0] == {
        "evaluator": "ScriptedEvaluator",
        "failure": "RuntimeError: down",
        "counts_as": "continue",
    }
    two_to_one = [says(RuntimeError("down")), STOP(), STOP()]
    assert (await word_of(two_to_one, on_failure="continue")).decision == "stop"


async def test_a_failed_member_may_abstain():
    """F1: who abstains has no vote and no score."""
    word = await word_of([says(RuntimeError("down")), STOP(score=0.6)], on_failure="abstain", vote="mean")
    assert (word.decision, word.score) == ("stop", 0.6)


async def test_if_all_abstain_the_first_failure_is_raised():
    """F1: an outage of all members is no verdict."""
    with pytest.raises(RuntimeError, match="first"):
        await word_of([says(RuntimeError("first")), says(ValueError("second"))], on_failure="abstain")


async def test_a_spent_budget_is_no_vote():
    """U2: a spent budget ends the asking, whatever a failure counts as."""
    with pytest.raises(BudgetExceededError):
        await word_of([says(BudgetExceededError("spent")), STOP()], on_failure="abstain")


async def test_an_outage_is_never_a_score():
    """F1: a judge that goes on without a verdict votes to go on, and in a vote of scores it abstains."""
    unreadable = AIJudgeLoopEvaluator(ScriptedChatClient(["hm"] * 5))
    assert (await word_of([unreadable, STOP(score=0.6)], vote="mean")).score == 0.6
    assert (await word_of([unreadable, STOP(score=0.6)])).decision == "continue"
    assert (await word_of([unreadable, STOP(score=0.6)], on_failure="abstain")).decision == "stop"
    down = says(NoVerdict(FailureCause.NETWORK, "down").evaluation())
    assert (await word_of([down, STOP(score=0.6)], vote="mean")).score == 0.6
    alone = await word_of([unreadable], vote="mean", threshold=0)
    assert (alone.decision, alone.score, alone.note) == ("continue", None, "no member gave a verdict")


@pytest.mark.parametrize(
    ("members", "options", "is_without"),
    [
        ([DOWN], {}, True),
        ([DOWN, STOP()], {"vote": "unanimous"}, True),
        ([DOWN], {"vote": "mean", "threshold": 0}, True),
        ([RuntimeError("down"), STOP()], {"vote": "unanimous", "on_failure": "continue"}, True),
        ([DOWN, GO_ON("more")], {}, False),
        ([STOP(score=0.1)], {"vote": "mean", "threshold": 0.5}, False),
        ([DOWN, LoopEvaluation.ask("Which?")], {}, False),
        ([STOP()], {}, False),
    ],
)
async def test_a_panel_for_want_of_verdicts(members, options, is_without):
    """F1: a panel that goes on only since members gave no verdict is without one itself."""
    word = await word_of(members, **options)
    assert is_without_verdict(word) is is_without


# --- tiers


async def test_a_cheap_tier_that_rejects_saves_the_dear_one():
    """Panel: tiers are asked in order, and one that does not pass ends the asking."""
    dear = always(STOP())
    panel = PanelLoopEvaluator([[check("short", lambda text: "too long")], dear])
    word = await panel.evaluate(context())
    assert word.feedback == 'Your answer fails the check "short": too long'
    assert dear.seen == []
    assert len(word.details["tiers"]) == 1
    word = await PanelLoopEvaluator([[check("short", lambda text: True)], [dear]]).evaluate(context())
    assert word.decision == "stop"
    assert [len(tier) for tier in word.details["tiers"]] == [1, 1]
    assert len(dear.seen) == 1


async def test_an_abort_of_a_cheap_tier_ends_the_asking():
    """Law 7: in order, asking ends with an abort."""
    dear = always(STOP())
    word = await PanelLoopEvaluator([[says(LoopEvaluation.abort("no"))], [dear]]).evaluate(context())
    assert (word.decision, dear.seen) == ("abort", [])


async def test_weights_go_tier_by_tier():
    """Panel: there is one weight for each member, in order."""
    options = PanelLoopEvaluatorOptions(vote="weighted", weights=[1, 2, 1])
    panel = PanelLoopEvaluator([[says(GO_ON("a")), says(STOP())], [says(GO_ON("b"))]], options)
    assert (await panel.evaluate(context())).feedback == "b"


# --- in a loop


@pytest.mark.parametrize("mode", ["first", "all"])
@pytest.mark.parametrize("streaming", [False, True])
async def test_in_a_loop(mode, streaming):
    """Law 8: streamed or not, in either mode, a panel says the same; all its members' usage is counted."""
    usage = UsageDetails(input_token_count=10, output_token_count=1)

    def judge(*replies):
        return AIJudgeLoopEvaluator(ScriptedChatClient([ChatResponse(reply, usage=usage) for reply in replies]))

    no, yes = '{"gapAnalysis": "no dates", "answered": false}', '{"gapAnalysis": "", "answered": true}'
    panel = PanelLoopEvaluator([judge(no, yes), judge(yes, yes), judge(no, no)])
    loop = LoopAgent(RecordingAgent(), [panel, always(STOP())], LoopAgentOptions(evaluation_mode=mode))
    if streaming:
        stream = loop.run_streaming("go")
        result = LoopResult.of(await stream.final_response())
    else:
        result = LoopResult.of(await loop.run("go"))
    assert (result.stop_reason, len(result.iterations)) == ("satisfied", 2)
    assert result.usage.input_token_count == 60
    heard = result.iterations[1].input[-1].text
    assert heard.count("no dates") == 1
    first = result.iterations[0].evaluations[0]
    assert first.evaluator == "PanelLoopEvaluator"
    assert [each["decision"] for each in first.details["tiers"][0]] == ["continue", "stop", "continue"]
    result.to_json()


@given(st.lists(st.sampled_from(["stop", "continue"]), min_size=1, max_size=7), st.sampled_from(["majority", "mean"]))
def test_a_panel_of_equals(decisions, vote):
    """Votes: without scores the mean passes where the majority does, but for a tie."""
    words = [STOP() if decision == "stop" else GO_ON("x") for decision in decisions]
    word = asyncio.run(word_of(words, vote=vote, on_tie="stop"))
    assert (word.decision == "stop") == (2 * decisions.count("stop") >= len(decisions))


# --- wrong use


@pytest.mark.parametrize(
    ("members", "error"),
    [
        (None, TypeError),
        (says(), TypeError),
        ([], ConfigurationError),
        ([[]], ConfigurationError),
        ([[says()], []], ConfigurationError),
        ([None], TypeError),
        (["judge"], TypeError),
        ([[says(), None]], TypeError),
    ],
)
def test_members_are_checked(members, error):
    """Panel: a panel in which nobody has a vote is found before anything ran."""
    with pytest.raises(error, match="members"):
        PanelLoopEvaluator(members)


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"vote": "best"}, "vote"),
        ({"on_tie": "abort"}, "on_tie"),
        ({"on_failure": "stop"}, "on_failure"),
        ({"on_abort": "none"}, "on_abort"),
        ({"threshold": 1.1}, "threshold"),
        ({"threshold": True}, "threshold"),
        ({"threshold": float("nan")}, "threshold"),
        ({"vote": "weighted"}, "weights"),
        ({"weights": [1]}, "weights"),
        ({"vote": "median", "weights": [1]}, "weights"),
        ({"vote": "weighted", "weights": [0]}, "weights"),
        ({"vote": "weighted", "weights": ["1"]}, "weights"),
        ({"vote": "mean", "on_failure": "continue"}, "on_failure"),
    ],
)
def test_options_are_checked(options, named):
    """Options: a wrong value is named."""
    with pytest.raises(ConfigurationError, match=named):
        PanelLoopEvaluatorOptions(**options)


def test_weights_are_as_many_as_members():
    """Panel: a weight for each member."""
    with pytest.raises(ConfigurationError, match="2 for 1"):
        PanelLoopEvaluator([says()], PanelLoopEvaluatorOptions(vote="weighted", weights=[1, 2]))
