"""Write and check: drafts, checks and revisions, counted."""

import asyncio
import logging

import pytest
from fakes import WAYS, RecordingAgent, always, says

from agents_loop import (
    ChatClientAgent,
    ChatOptions,
    ConfigurationError,
    EvaluatorDecided,
    IterationStarted,
    LoopAgentOptions,
    LoopEvaluation,
    LoopResult,
    LoopStopped,
    PassTokenLoopEvaluator,
    PassTokenLoopEvaluatorOptions,
    citation_check,
    write_and_check,
)
from agents_loop.testing import ScriptedChatClient

TOKEN = "ALL CITATIONS SUPPORTED"  # noqa: S105 - no secret
MISSING = "MISSING: kettle#6"
SOURCES = [("kettle#1", "It holds 1.2 litres.")]
QUESTION = "How much does it hold?"


def one_model(replies):
    """A model that plays both parts, and the loop of it."""
    model = ScriptedChatClient(replies)
    writer = ChatClientAgent(model, instructions="Write.", options=ChatOptions(max_output_tokens=400))
    return model, writer, PassTokenLoopEvaluator(model, PassTokenLoopEvaluatorOptions(sources=SOURCES))


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    ("replies", "calls", "drafts", "reason"),
    [
        (["kettle#1", TOKEN], 2, 1, "satisfied"),
        (["kettle#6", MISSING, "kettle#1", TOKEN], 4, 2, "satisfied"),
        (["kettle#6", MISSING, "kettle#6", MISSING, "kettle#1", TOKEN], 6, 3, "satisfied"),
        (["kettle#6", MISSING] * 3, 6, 3, "max_iterations"),
        (["kettle#6", "NOT ALL CITATIONS SUPPORTED"] * 3, 6, 3, "max_iterations"),
    ],
)
async def test_calls_at_best_and_at_worst(way, replies, calls, drafts, reason):
    """Write and check: 2 calls where the first draft passes, 6 at the cap of two revisions, and none more."""
    model, writer, checker = one_model(replies)
    result = LoopResult.of(await way(write_and_check(writer, checker), QUESTION))
    assert (len(model.calls), len(result.ledger)) == (calls, calls)
    assert [call.options.max_output_tokens for call in model.calls] == [400, 200] * drafts
    assert (len(result.iterations), result.stop_reason) == (drafts, reason)
    assert result.output == replies[-2]


async def test_the_verdict_is_heard_verbatim():
    """Write and check: the revision is asked for with the checker's words, in the conversation with the draft."""
    model, writer, checker = one_model(["kettle#6", MISSING, "kettle#1", TOKEN])
    await write_and_check(writer, checker).run(QUESTION)
    heard = model.calls[2].messages
    assert [message.role for message in heard] == ["system", "user", "assistant", "user"]
    assert heard[2].text == "kettle#6"
    assert f"\n\n{MISSING}\n\n" in heard[3].text


@pytest.mark.parametrize(
    ("cap", "calls", "said"),
    [(0, 2, "0 revisions"), (1, 4, "1 revision"), (2, 6, "2 revisions"), (3, 8, "3 revisions")],
)
async def test_the_stop_is_recorded(cap, calls, said):
    """Write and check: at the cap the last draft is returned, and the result says that it still fails its check."""
    model, writer, checker = one_model(["kettle#6", MISSING] * (cap + 1))
    result = LoopResult.of(await write_and_check(writer, checker, max_revisions=cap).run(QUESTION))
    assert len(model.calls) == calls
    assert result.stop_reason == "max_iterations"
    assert result.stop_detail == (
        f"{cap + 1} of {cap + 1} iterations: after {said} the answer still does not pass its check"
    )
    assert result.output == "kettle#6"
    assert [record.evaluations[0].details["verdict"] for record in result.iterations] == [MISSING] * (cap + 1)


async def test_a_cap_without_a_check_says_nothing_of_one():
    """Law 5: where the last answer was not checked, the detail does not claim that it fails."""
    from agents_loop import LoopAgent

    loop = LoopAgent(RecordingAgent(), always(LoopEvaluation.continue_("more")), LoopAgentOptions(max_iterations=2))
    assert LoopResult.of(await loop.run("go")).stop_detail == "2 of 2 iterations"


async def test_every_step_is_an_event():
    """Write and check: every draft, every verdict, and the stop are events, in order."""
    _, writer, checker = one_model(["kettle#6", MISSING] * 3)
    steps = (IterationStarted, EvaluatorDecided, LoopStopped)
    async with write_and_check(writer, checker).events(QUESTION) as events:
        names = [type(event).__name__ async for event in events if isinstance(event, steps)]
    assert names == ["IterationStarted", "EvaluatorDecided"] * 3 + ["LoopStopped"]


async def test_the_cap_is_logged(caplog):
    """Law 3: the end at the cap is one INFO line."""
    with caplog.at_level(logging.INFO, "agents_loop"):
        await write_and_check(RecordingAgent(), says("a", "b"), max_revisions=1).run("go")
    assert len(caplog.records) == 1


async def test_the_model_free_twin():
    """Write and check: with the citation check in the checker's place a run costs the drafts alone."""
    model = ScriptedChatClient(["kettle#6", "kettle#1"])
    result = LoopResult.of(await write_and_check(ChatClientAgent(model), citation_check(["kettle#1"])).run(QUESTION))
    assert (result.stop_reason, len(model.calls)) == ("satisfied", 2)
    assert "it cites kettle#6" in model.calls[1].messages[-1].text


async def test_many_runs_at_once():
    """Law 20: one loop serves many questions at once."""

    def answer(messages, options):
        if options.max_output_tokens == 200:
            return TOKEN if "kettle#1\n</latest" in messages[-1].text else MISSING
        return "kettle#1" if len(messages) > 2 else "kettle#6"

    model, writer, checker = one_model([])
    model._answer = answer
    loop = write_and_check(writer, checker)
    results = [LoopResult.of(response) for response in await asyncio.gather(*[loop.run(QUESTION) for _ in range(20)])]
    assert {(result.stop_reason, len(result.iterations)) for result in results} == {("satisfied", 2)}


def test_wrong_use():
    """Design: what is wrong is named; the cap can't be given twice."""
    with pytest.raises(ConfigurationError, match="0 or more"):
        write_and_check(RecordingAgent(), says(), max_revisions=-1)
    for wrong in (None, "2", True, 1.5):
        with pytest.raises(TypeError, match="max_revisions"):
            write_and_check(RecordingAgent(), says(), max_revisions=wrong)
    with pytest.raises(ConfigurationError, match="max_iterations"):
        write_and_check(RecordingAgent(), says(), options=LoopAgentOptions(max_iterations=3))
    with pytest.raises(TypeError, match="inner_agent"):
        write_and_check(None, says())
    kept = write_and_check(RecordingAgent(), says(), options=LoopAgentOptions(return_best=True)).options
    assert (kept.return_best, kept.max_iterations, kept.evaluate_final_iteration) == (True, 3, True)
