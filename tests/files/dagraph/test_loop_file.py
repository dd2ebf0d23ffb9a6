from __future__ import annotations

import asyncio
import pickle
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from limerick import DATA, Models, verdict

from agents_loop import (
    ChatMessage,
    ChatOptions,
    ChatResponse,
    ChatResponseUpdate,
    ConfigurationError,
    JudgeFailedError,
    LoopResult,
    ModelPrice,
    StopReason,
    UsageContent,
    UsageDetails,
)
from agents_loop.files import InputError, LoopFileError, PromptError, RunSettings, load_loop_file
from agents_loop.files.prompted.generator import NoCandidateError
from agents_loop.loop.events import AgentUpdated
from agents_loop.messages import ErrorContent
from agents_loop.testing import ScriptedChatClient

Changed = Callable[..., Path]


async def run(models: Models, **options: Any) -> LoopResult:
    built = models.build(**options)
    result = LoopResult.of(await built.agent.run(built.message))
    assert result is not None
    return result


def used(text: str, tokens: int, **more: Any) -> ChatResponse:
    return ChatResponse(text, usage=UsageDetails(tokens // 2, tokens - tokens // 2), **more)


def test_a_dagraph_example_loads_unchanged_in_one_wave():
    """The file loads as it is: one node, one wave."""
    loop_file = load_loop_file(DATA / "limerick.yaml")

    assert loop_file.name == "limerick_with_critic"
    assert loop_file.waves == [["limerick"]]
    assert loop_file.node.max_iterations == 3


@pytest.mark.parametrize("streaming", [False, True])
@pytest.mark.parametrize(
    ("words", "calls", "output", "reason"),
    [
        ([verdict(True)], 2, "d1", StopReason.SATISFIED),
        ([verdict(False), verdict(True)], 4, "d2", StopReason.SATISFIED),
        ([verdict(False), verdict(False), verdict(True)], 6, "d3", StopReason.SATISFIED),
        ([verdict(False)] * 3, 6, "d3", StopReason.MAX_ITERATIONS),
    ],
)
async def test_two_calls_an_iteration_and_the_last_candidate_is_the_artifact(
    words: list[str], calls: int, output: str, reason: StopReason, *, streaming: bool
):
    """Approved at k is 2k calls; never approved is 2N; the evaluator is asked about the last one too."""
    models = Models(["d1", "d2", "d3"], words)
    built = models.build()

    if streaming:
        stream = built.agent.run_streaming(built.message)
        response = await stream.final_response()
    else:
        response = await built.agent.run(built.message)

    result = LoopResult.of(response)
    assert result is not None
    assert len(models.poet.calls) + len(models.critic.calls) == len(result.ledger) == calls
    assert (result.output, result.stop_reason) == (output, reason)


async def test_each_call_holds_one_rendered_prompt():
    """The first prompt has no previous attempt; a later one has the draft and the feedback; there is no history."""
    models = Models(["d1", "d2"], [verdict(False, "too short"), verdict(True)])

    result = await run(models)

    first, second = models.prompts()
    assert first == "Write a limerick about Delft.\n\n"
    assert "Your last one (round 2):\nd1\nWhat the critic said:\ntoo short\n" in second
    assert [len(call.messages) for call in models.poet.calls + models.critic.calls] == [1] * 4
    assert models.critic.calls[1].messages[0].text.startswith("Round 2. Is this a limerick about Delft?\nd2\n")
    assert result.iterations[0].input == (ChatMessage("user", first),)
    assert result.iterations[1].input == (ChatMessage("user", "too short"),)


async def test_max_output_tokens_reach_the_calls():
    """Each part's `max_output_tokens` is asked of its model, and nothing else is."""
    models = Models(["d1"], [verdict(True)])

    await run(models)

    assert models.poet.calls[0].options is not None
    assert models.poet.calls[0].options.max_output_tokens == 200
    assert models.critic.calls[0].options is not None
    assert models.critic.calls[0].options.max_output_tokens == 300
    assert models.critic.calls[0].options.temperature is None


async def test_fenced_json_goes_back_as_it_stands():
    """A fenced reply is not approved, and the next prompt holds its raw text."""
    fenced = '```json\n{"approved": true, "feedback": "ok"}\n```'
    models = Models(["d1", "d2"], [fenced, verdict(True)])

    result = await run(models)

    assert f"What the critic said:\n{fenced}\n" in models.prompts()[1]
    assert result.iterations[0].evaluations[0].feedback == fenced


async def test_score_and_the_feedback_of_an_approval_are_in_the_record():
    """What the evaluator says is recorded: the score, the note, and the whole object."""
    models = Models(["d1", "d2"], [verdict(False, "no", score=0.25), verdict(True, "neat", score=1, extra="x")])

    result = await run(models)

    first, last = (record.evaluations[0] for record in result.iterations)
    assert (first.score, first.feedback, first.note) == (0.25, "no", None)
    assert (last.score, last.feedback, last.note) == (1, None, "neat")
    assert last.details == {"approved": True, "feedback": "neat", "score": 1, "extra": "x"}


async def test_what_a_model_wrote_is_never_a_template():
    """Jinja in a candidate or in feedback stays text."""
    models = Models(["{{ 7*7 }}{% endif %}", "d2"], [verdict(False, "{{ place }}"), verdict(True)])

    await run(models)

    assert "{{ 7*7 }}{% endif %}\nWhat the critic said:\n{{ place }}" in models.prompts()[1]
    assert "{{ 7*7 }}{% endif %}" in models.critic.calls[0].messages[0].text


async def test_blank_feedback_is_empty_in_the_next_prompt():
    """An evaluator that says nothing is heard saying nothing."""
    models = Models(["d1", "d2"], [verdict(False, ""), verdict(True)])

    await run(models)

    assert models.prompts()[1].endswith("What the critic said:\n\n\n")


async def test_drafts_are_streamed():
    """A streaming run shows the candidate as it comes; the evaluator is not streamed."""
    built = Models(["d1"], [verdict(True)]).build()

    async with built.agent.events(built.message, streaming=True) as events:
        updates = [event.update.text async for event in events if isinstance(event, AgentUpdated)]

    assert "".join(updates) == "d1"


async def test_one_agent_serves_many_runs_at_once():
    """What a run remembers is in its session."""
    models = Models(["same"] * 20, [verdict(False, "more"), verdict(True)] * 10)
    built = models.build()

    responses = await asyncio.gather(*[built.agent.run(built.message) for _ in range(5)])

    assert all(LoopResult.of(response) is not None for response in responses)


async def test_tokens_of_both_models_are_in_the_result():
    """The record counts the generator's and the evaluator's tokens."""
    models = Models([used("d1", 100)], [used(verdict(True), 40)])

    result = await run(models)

    assert result.usage == UsageDetails(70, 70)


# --- budgets


async def test_a_node_budget_stops_mid_loop(changed: Changed):
    """The node's budget covers all calls of all iterations; it is checked before each call."""
    path = changed(("max_iterations: 3 ", "budget: {max_tokens: 5000}\n    max_iterations: 3 "))
    models = Models([used("d1", 2400), used("d2", 2400)], [used(verdict(False), 200), used(verdict(True), 1)])
    built = models.build(load_loop_file(path))

    result = LoopResult.of(await built.agent.run(built.message))

    assert result is not None
    assert (result.stop_reason, result.output, len(result.ledger)) == (StopReason.BUDGET_EXCEEDED, "d2", 3)
    assert result.stop_detail is not None
    assert result.stop_detail.startswith("nodes[0].budget.max_tokens is 5,000, and the run has used 5,000 tokens in 3 ")


async def test_the_files_budget_holds_too():
    """The file's 20,000 tokens bound the run; the call in flight may go over."""
    models = Models([used("d1", 19_999), used("d2", 5)], [used(verdict(False), 9_000)])
    built = models.build()

    result = LoopResult.of(await built.agent.run(built.message))

    assert result is not None
    assert (result.stop_reason, result.output) == (StopReason.BUDGET_EXCEEDED, "d1")
    assert result.stop_detail is not None
    assert result.stop_detail.startswith("budget.max_tokens is 20,000, and the run has used 28,999 tokens in 2 calls: ")


async def test_the_files_money_holds_at_the_prices_of_its_models():
    """`max_usd`: 19,000 tokens of $1 and $100 a million are more than $1.50."""
    models = Models([used("d1", 19_000)], [used(verdict(False), 2)])
    price = ModelPrice(input_usd_per_million=100, output_usd_per_million=100)

    result = await run(models, prices={"poet-*": price, "critic-large-1": price})

    assert (result.stop_reason, result.output) == (StopReason.BUDGET_EXCEEDED, "d1")
    assert result.stop_detail == "budget allows $1.5, and the run has spent $1.900000: the next call was not made"
    assert [(entry.model_id, entry.cost_usd) for entry in result.ledger] == [("poet-small-1", 1.9)]


async def test_money_that_cant_be_counted_is_an_error_before_the_first_call():
    """A file with `max_usd` and a model of which no price is known is not run."""
    models = Models(["d1"], [verdict(True)])

    with pytest.raises(ConfigurationError, match="-1' is not known"):
        await run(models, prices={})

    assert models.poet.calls == models.critic.calls == []


async def test_what_is_asked_for_stands_in_for_the_files_budgets(changed: Changed):
    """`max_tokens` and `max_cost_usd` replace the file's and the node's."""
    path = changed(("max_iterations: 3 ", "budget: {max_tokens: 10, max_usd: 0.01}\n    max_iterations: 3 "))
    models = Models([used("d1", 30_000)], [used(verdict(True), 200)])
    built = models.build(load_loop_file(path), max_tokens=40_000, max_cost_usd=9)

    result = LoopResult.of(await built.agent.run(built.message))

    assert result is not None
    assert result.stop_reason == StopReason.SATISFIED


async def test_an_approval_that_goes_over_the_budget_is_an_approval():
    """A budget stops the next call, not the answer that is there."""
    models = Models([used("d1", 19_000)], [used(verdict(True), 9_000)])

    assert (await run(models)).stop_reason == StopReason.SATISFIED


async def test_tokens_are_estimated_where_none_are_reported():
    """Without usage a token is counted for every 4 characters, and that is said once."""
    notices: list[str] = []
    models = Models(["x" * 9, "y"], [verdict(False), verdict(True)])
    built = models.build(on_notice=notices.append)

    result = LoopResult.of(await built.agent.run(built.message))

    assert len(notices) == 1
    assert "'poet-small-1' reports no token usage" in notices[0]
    sent = [len(call.messages[0].text) for call in models.poet.calls + models.critic.calls]
    answered = [9, 1, len(verdict(False)), len(verdict(True))]
    estimated = sum(-(-length // 4) for length in sent + answered)
    assert result is not None
    assert result.usage is None
    again = Models(["x" * 9, "y"], [verdict(False), verdict(True)]).build(max_tokens=estimated - 40)
    stopped = LoopResult.of(await again.agent.run(again.message))
    assert stopped is not None
    assert stopped.stop_detail is not None
    assert stopped.stop_reason == StopReason.BUDGET_EXCEEDED


class Torn(ScriptedChatClient):
    """A model whose stream breaks after a piece and its usage."""

    async def get_streaming_response(
        self, messages: Sequence[ChatMessage], options: ChatOptions | None = None
    ) -> AsyncIterator[ChatResponseUpdate]:
        yield ChatResponseUpdate("assistant", ["half", UsageContent(UsageDetails(8, 4))])
        raise ConnectionError("torn")


async def test_a_call_that_fails_midway_is_counted():
    """What a broken stream used is in the usage of the whole run."""
    models = Models([], [])
    models.poet = Torn([])
    built = models.build()

    with pytest.raises(ConnectionError, match="torn") as caught:
        await built.agent.run_streaming(built.message).final_response()

    result = LoopResult.of(caught.value)
    assert result is not None
    assert result.usage == UsageDetails(8, 4)
    assert [(entry.outcome, entry.usage) for entry in result.ledger] == [("network", UsageDetails(8, 4))]


async def test_what_comes_from_the_cache_is_not_counted_against_the_budget():
    """Billable is input plus output, without what the provider read from its cache."""
    usage = UsageDetails(100, 10, 110, cached_input_token_count=80)
    models = Models([ChatResponse("d1", usage=usage)], [used(verdict(True), 2)])
    assert (await run(models, max_tokens=31)).stop_reason == StopReason.SATISFIED
    models = Models([ChatResponse("d1", usage=usage)], [used(verdict(True), 2)])
    assert (await run(models, max_tokens=30)).stop_reason == StopReason.BUDGET_EXCEEDED


# --- endings of a call


@pytest.mark.parametrize("streaming", [False, True])
@pytest.mark.parametrize(
    ("draft", "cause"),
    [
        (ChatResponse([ChatMessage("assistant", [ErrorContent("I won't")])], finish_reason="refusal"), "refusal"),
        (ChatResponse([ChatMessage("assistant", [])], finish_reason="content_filter"), "content_filter"),
        (ChatResponse("", finish_reason="length"), "length"),
        (ChatResponse("  ", finish_reason="stop"), "empty"),
        (ChatResponse(""), "empty"),
    ],
)
async def test_a_refusal_or_nothing_is_no_candidate(draft: ChatResponse, cause: str, *, streaming: bool):
    """A refused, withheld or empty answer is not judged; the run fails and says which it was."""
    models = Models(["d1", draft], [verdict(False)])
    built = models.build()

    with pytest.raises(NoCandidateError) as caught:
        await (
            built.agent.run_streaming(built.message).final_response() if streaming else built.agent.run(built.message)
        )

    assert caught.value.cause == cause
    result = LoopResult.of(caught.value)
    assert result is not None
    assert (result.stop_reason, result.output, len(models.critic.calls)) == (StopReason.FAILED, "d1", 1)
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)  # noqa: S301 - our own


@pytest.mark.parametrize("streaming", [False, True])
async def test_an_empty_reply_is_asked_for_once_more(*, streaming: bool):
    """F4: by the same prompt, within the iteration; nothing of the empty reply stays but what it cost."""
    models = Models([ChatResponse(" ", usage=UsageDetails(1, 1)), used("d1", 10)], [verdict(True)])
    built = models.build()

    response = await (
        built.agent.run_streaming(built.message).final_response() if streaming else built.agent.run(built.message)
    )

    result = LoopResult.of(response)
    assert result is not None
    assert (result.stop_reason, result.output, len(result.iterations)) == (StopReason.SATISFIED, "d1", 1)
    first, second = models.poet.calls
    assert first.messages == second.messages
    assert len(result.ledger) == 3
    assert response.usage is not None
    assert response.usage.output_token_count == 6


@pytest.mark.parametrize("streaming", [False, True])
async def test_an_empty_reply_is_asked_for_no_third_time(*, streaming: bool):
    """F4: once more, then the run ends; an outage meanwhile is told as what it is."""
    models = Models([ChatResponse(" "), ChatResponse(""), "d1"], [])
    built = models.build()
    with pytest.raises(NoCandidateError, match="empty"):
        await (
            built.agent.run_streaming(built.message).final_response() if streaming else built.agent.run(built.message)
        )
    built = Models([ChatResponse(" "), ConnectionError("down")], []).build()
    with pytest.raises(ConnectionError):
        await built.agent.run(built.message)


async def test_a_cut_off_text_is_a_candidate():
    """A draft that was cut off is judged as it is."""
    result = await run(Models([ChatResponse("half a d", finish_reason="length")], [verdict(True)]))

    assert result.output == "half a d"


async def test_a_cut_off_evaluator_never_approves():
    """A reply that was cut off is malformed, even if it reads as an approval; the record says why."""
    models = Models(["d1", "d2"], [ChatResponse(verdict(True), finish_reason="length"), verdict(True)])

    result = await run(models)

    assert len(result.iterations) == 2
    evaluation = result.iterations[0].evaluations[0]
    assert evaluation.feedback == verdict(True)
    assert "cut off" in (evaluation.note or "")


@pytest.mark.parametrize("cause", ["refusal", "content_filter"])
async def test_an_evaluator_that_refuses_is_no_verdict(cause: str):
    """A refusal is not feedback: the run ends, with the work so far."""
    refusal = ChatResponse([ChatMessage("assistant", [ErrorContent("I won't")])], finish_reason=cause)
    built = Models(["d1"], [refusal]).build()

    with pytest.raises(JudgeFailedError, match="I won't") as caught:
        await built.agent.run(built.message)

    result = LoopResult.of(caught.value)
    assert result is not None
    assert (result.stop_reason, result.output) == (StopReason.EVALUATOR_FAILED, "d1")


# --- inputs

_INPUTS = """
inputs:
  place: {description: where it plays}
  lines: {type: integer, default: 5, required: false}
  funny: {type: boolean, default: true}
  ratio: {type: number, required: false}
nodes:"""


def _typed(changed: Changed, prompt: str = "{{ place }} {{ lines }} {{ funny }}") -> Path:
    return changed(("\nnodes:", _INPUTS), ("Write a limerick about {{ place }}.", prompt))


def test_values_of_the_types_themselves_are_taken(changed: Changed):
    """From Python, an input may be given as a value of its type."""
    loop_file = load_loop_file(_typed(changed, "{{ place }} {{ lines }} {{ funny }} {{ ratio }}"))

    built = loop_file.build(
        {"place": "x", "lines": 3, "funny": False, "ratio": 0.5},
        Models([], []).client_for,
        RunSettings(max_iterations=9),
    )
    from_text = loop_file.build({"place": "x", "ratio": "1e3"}, Models([], []).client_for)

    assert built.message.text.startswith("x 3 False 0.5")
    assert from_text.message.text.startswith("x 5 True 1000.0")
    assert built.agent.max_iterations == 9


async def test_inputs_are_read_as_their_types(changed: Changed):
    """A command line's strings become the declared types before the first call."""
    models = Models(["d"], [verdict(True)])
    loop_file = load_loop_file(_typed(changed, "{{ place }} {{ lines + 1 }} {{ 'ha' if funny else 'hm' }}"))
    given = {"place": "Delft", "lines": "7", "funny": "no"}

    built = loop_file.build(given, models.client_for)

    assert built.message.text.startswith("Delft 8 hm")


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({}, r"the input 'place' \(where it plays\) is missing: give it with -i place="),
        ({"place": "x", "lines": "five"}, "the input 'lines' must be an integer, not 'five'"),
        ({"place": "x", "lines": "5.5"}, "must be an integer"),
        ({"place": "x", "lines": True}, "must be an integer, not True"),
        ({"place": "x", "funny": "maybe"}, "must be true or false, not 'maybe'"),
        ({"place": "x", "ratio": "nan"}, "must be a number, not 'nan'"),
        ({"place": "x", "plaec": "y"}, "unknown input 'plaec'; did you mean 'place'"),
        ({"place": "x", "candidate": "y"}, "'candidate' is a variable of the loop itself"),
        ({"place": "x", "a b": "y"}, "'a b' is no name for an input"),
        ({"place": "x", "": "y"}, "'' is no name"),
    ],
)
def test_wrong_inputs_are_an_error_before_any_call(changed: Changed, given: dict[str, Any], said: str):
    """A missing, unknown or unreadable input is one clear line, and no model is called."""
    models = Models([], [])

    with pytest.raises(InputError, match=said):
        load_loop_file(_typed(changed)).build(given, models.client_for)

    assert not models.poet.calls


def test_without_declarations_any_input_may_be_given():
    """A file without `inputs` takes what is given; what its prompts use must be among it."""
    loop_file = load_loop_file(DATA / "limerick.yaml")
    models = Models([], [])

    assert loop_file.build({"place": "x", "other": "y"}, models.client_for)
    assert loop_file.unused_inputs({"place": "x", "other": "y"}) == ["other"]
    with pytest.raises(InputError, match="'place' is missing: the generator's prompt uses it"):
        loop_file.build({"other": "y"}, models.client_for)


def test_what_a_prompt_can_do_without_need_not_be_given(changed: Changed):
    """`default` and `is defined` make a variable optional."""
    prompt = "{{ place }} {{ mood | default('merry') }} {% if form is defined %}{{ form }}{% endif %}"
    loop_file = load_loop_file(changed(("Write a limerick about {{ place }}.", prompt)))

    built = loop_file.build({"place": "x"}, Models([], []).client_for)

    assert built.message.text.startswith("x merry")


# --- prompts that go wrong while it runs


async def test_a_prompt_that_fails_later_ends_the_run_with_its_place(changed: Changed):
    """A template error in a later round is one line with the file's line; the work so far is kept."""
    path = changed(("{{ previous_output }}", "{{ previous_output.nothing }}"))
    built = Models(["d1"], [verdict(False)]).build(load_loop_file(path))

    with pytest.raises(
        PromptError, match=r"loop\.yaml:21:1: nodes\[0\]\.generator\.prompt: can't be rendered"
    ) as caught:
        await built.agent.run(built.message)

    result = LoopResult.of(caught.value)
    assert result is not None
    assert (result.stop_reason, result.output) == (StopReason.FAILED, "d1")
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)  # noqa: S301 - our own


def test_a_first_prompt_that_fails_is_found_before_any_call(changed: Changed):
    """The first prompt is rendered before a model is asked."""
    path = changed(("Write a limerick about {{ place }}.", "{{ ''.__class__ }}{{ place }}"))

    with pytest.raises(LoopFileError, match=r":18:1: nodes\[0\]\.generator\.prompt: .*unsafe"):
        load_loop_file(path).build({"place": "x"}, Models([], []).client_for)
