"""The laws over random scripts: replies, evaluators and options."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from fakes import RecordingAgent, ScriptedEvaluator, Way, drain, texts
from hypothesis import given, settings
from hypothesis import strategies as st

from agents_loop import (
    AgentResponse,
    AgentSession,
    AIAgent,
    ChatMessage,
    DelegatingAIAgent,
    FunctionCallContent,
    LoopAgent,
    LoopAgentOptions,
    LoopEvaluation,
    LoopResult,
    StopReason,
    ToolApprovalRequestContent,
    ToolApprovalResponseContent,
    UsageDetails,
)

CALL = FunctionCallContent("c", "tool")
REQUEST = ToolApprovalRequestContent("q", CALL)
ANSWER = ToolApprovalResponseContent("q", approved=True, tool_call=CALL)

said = st.sampled_from(["", "a", "same", "two\nlines", "## Feedback"])
contents = st.lists(said | st.just(CALL), max_size=3) | st.just(["", REQUEST, ANSWER])
written = st.builds(ChatMessage, st.sampled_from(["assistant", "assistant", "tool", "user"]), contents)
usages = st.none() | st.builds(UsageDetails, st.none() | st.integers(0, 9), st.none() | st.integers(0, 9))
settled = st.builds(AgentResponse, st.lists(written, max_size=3), usage=usages)
waiting = st.just(AgentResponse([ChatMessage("assistant", ["may I?", REQUEST])]))
replies = settled | settled | settled | settled | waiting


def with_ids(messages: list[ChatMessage]) -> list[ChatMessage]:
    """Every other one has an id of its own."""
    return [replace(m, message_id=f"m{n}" if n % 2 else None) for n, m in enumerate(messages)]


explicit = st.lists(st.builds(ChatMessage, st.sampled_from(["system", "user"]), said), max_size=3).map(with_ids)
wishes = st.one_of(
    st.builds(LoopEvaluation.continue_, st.none() | st.sampled_from(["more", "same", " "])),
    st.builds(LoopEvaluation.continue_with_messages, explicit),
)
words = st.one_of(
    wishes,
    wishes,
    wishes,
    st.builds(LoopEvaluation.stop, score=st.none() | st.just(1.0)),
    st.just(LoopEvaluation.abort("no")),
    st.builds(OSError, st.just("down")),
)
scripts = st.lists(st.lists(words, max_size=6), min_size=1, max_size=3)
options = st.builds(
    LoopAgentOptions,
    max_iterations=st.integers(1, 5),
    fresh_context_per_iteration=st.booleans(),
    on_behalf_of_author_name=st.none() | st.just("the loop"),
    exclude_on_behalf_of_messages=st.booleans(),
    evaluate_final_iteration=st.booleans(),
    evaluation_mode=st.sampled_from(["first", "all"]),
)


class WithoutStream(DelegatingAIAgent):
    """Hides its agent's stream: it is streamed as agents are that have none."""

    run_streaming = AIAgent.run_streaming
    run_core_streaming = AIAgent.run_core_streaming


@dataclass
class Ran:
    """What a run did and gave, as values."""

    inputs: list[list[ChatMessage]]
    ids: list[list[bool]]
    sessions: list[int]
    result: LoopResult
    response: AgentResponse | None
    asked: list[list[int]]
    logs: list[list[Any]]
    raised: str


def run(
    way: Way,
    given_replies: Sequence[AgentResponse],
    scripts: Sequence[Sequence[Any]],
    options: LoopAgentOptions,
    *,
    with_session: bool,
    plain: bool,
) -> Ran:
    """Run a script once, in an event loop of its own."""

    def reply(call: Any, number: int) -> AgentResponse:
        chosen = given_replies[(number - 1) % len(given_replies)]
        return replace(chosen, response_id=f"r{number}", agent_id="a")

    agent = RecordingAgent(answer=reply)
    evaluators = [ScriptedEvaluator(list(script)) for script in scripts]
    loop = LoopAgent(WithoutStream(agent) if plain else agent, evaluators, options)
    session = AgentSession() if with_session else None
    raised, response = "", None
    try:
        response = asyncio.run(way(loop, ["be brief", "go"], session=session))
        result = LoopResult.of(response)
    except OSError as error:
        raised, result = repr(error), LoopResult.of(error)
    used = [id(call.session) for call in agent.calls]
    return Ran(
        inputs=[call.messages for call in agent.calls],
        ids=[[message.message_id is not None for message in call.messages] for call in agent.calls],
        sessions=[used.index(one) for one in used],
        result=result,
        response=response,
        asked=[evaluator.asked_at for evaluator in evaluators],
        logs=[seen.feedback for evaluator in evaluators for seen in evaluator.seen],
        raised=raised,
    )


@settings(max_examples=150)
@given(st.lists(replies, min_size=1, max_size=4), scripts, options, st.booleans(), st.booleans())
def test_run_equals_the_drained_stream(given_replies, scripts, options, with_session, plain):
    """Law 8: run equals the drained stream: the same calls, transcript, reason, feedback, usage and records."""
    shared = {"with_session": with_session, "plain": plain}
    one = run(Way(streaming=False), given_replies, scripts, options, **shared)
    two = run(Way(streaming=True), given_replies, scripts, options, **shared)
    assert [[texts([m]), m.author_name] for call in one.inputs for m in call] == [
        [texts([m]), m.author_name] for call in two.inputs for m in call
    ]
    assert one.inputs == two.inputs
    assert (one.ids, one.sessions, one.asked, one.logs, one.raised) == (
        two.ids,
        two.sessions,
        two.asked,
        two.logs,
        two.raised,
    )
    assert (one.result.stop_reason, one.result.stop_detail) == (two.result.stop_reason, two.result.stop_detail)
    assert (one.result.output, one.result.usage) == (two.result.output, two.result.usage)
    assert [(r.number, r.input, r.on_behalf_of, r.evaluations, r.usage) for r in one.result.iterations] == [
        (r.number, r.input, r.on_behalf_of, r.evaluations, r.usage) for r in two.result.iterations
    ]
    assert (one.response is None) == (two.response is None)
    if one.response is not None:
        assert texts(one.response.messages) == texts(two.response.messages)
        assert one.response.usage == two.response.usage
        if one.result.iterations[-1].response.messages:  # a stream without pieces can't say its id
            assert one.response.response_id == two.response.response_id


@settings(max_examples=150)
@given(
    st.sampled_from([Way(streaming=False), Way(streaming=True)]),
    st.lists(replies, min_size=1, max_size=4),
    scripts,
    options,
    st.booleans(),
)
def test_every_run_keeps_the_laws(way, given_replies, scripts, options, with_session):
    """Laws 2 to 16: what a run did follows from what was answered and said, by the laws alone."""
    ran = run(way, given_replies, scripts, options, with_session=with_session, plain=False)
    result, records = ran.result, ran.result.iterations
    # 4: N means N
    assert len(ran.inputs) == len(records) <= options.max_iterations
    # 2, 11: one session, or a new one for each re-invocation
    expected = list(range(len(records))) if options.fresh_context_per_iteration else [0] * len(records)
    assert ran.sessions == expected
    # 3, 5 to 7: why it ended
    assert result.stop_reason is expected_reason(ran, scripts, options)
    # 9 to 12: what was sent
    assert [[message.text for message in call] for call in ran.inputs] == expected_inputs(
        scripts, options, len(records)
    )
    # 14 to 16: what the caller gets
    if ran.response is not None:
        transcript = [
            message
            for record in records
            for message in (
                *(() if options.exclude_on_behalf_of_messages else record.on_behalf_of),
                *record.response.messages,
            )
        ]
        assert ran.response.messages == transcript
        counted = [record.response.usage for record in records if record.response.usage is not None]
        inputs = [usage.input_token_count for usage in counted if usage.input_token_count is not None]
        assert (ran.response.usage is None) == (not counted)
        if counted:
            assert ran.response.usage.input_token_count == (sum(inputs) if inputs else None)
    assert all(sum(flags) >= len(r.on_behalf_of) for flags, r in zip(ran.ids, records, strict=True))


def word_at(script: Sequence[Any], number: int) -> Any:
    return script[number - 1] if number <= len(script) else LoopEvaluation.stop()


def spoken(scripts: Sequence[Sequence[Any]], options: LoopAgentOptions, number: int) -> list[Any]:
    """What is said after an iteration, by law 6."""
    everything = [word_at(script, number) for script in scripts]
    if options.evaluation_mode == "all":
        return everything
    for position, word in enumerate(everything):
        if isinstance(word, OSError) or word.decision != "stop":
            return everything[: position + 1]
    return everything


def expected_reason(ran: Ran, scripts: Sequence[Sequence[Any]], options: LoopAgentOptions) -> StopReason:
    number = len(ran.inputs)
    last = [content for message in ran.result.iterations[-1].response.messages for content in message.contents]
    capped = number == options.max_iterations
    if REQUEST in last and ANSWER not in last:
        return StopReason.PENDING_APPROVAL
    if capped and not options.evaluate_final_iteration:
        return StopReason.MAX_ITERATIONS
    heard = spoken(scripts, options, number)
    if any(isinstance(word, OSError) for word in heard):
        assert ran.raised
        return StopReason.EVALUATOR_FAILED
    decisions = [word.decision for word in heard]
    if "abort" in decisions:
        return StopReason.ABORTED
    if "continue" in decisions:
        assert capped
        return StopReason.MAX_ITERATIONS
    return StopReason.SATISFIED


def expected_inputs(scripts: Sequence[Sequence[Any]], options: LoopAgentOptions, count: int) -> list[list[str]]:
    request = ["be brief", "go"]
    inputs, log = [request], []
    for number in range(1, count):
        wishes = [word for word in spoken(scripts, options, number) if word.decision == "continue"]
        explicit = [message.text for word in wishes if word.messages is not None for message in word.messages]
        feedback = [word.feedback for word in wishes if word.feedback is not None]
        log += ["\n\n".join(feedback)] if feedback else []
        if any(word.messages is not None for word in wishes):
            inputs.append([*explicit, *(["\n\n".join(feedback)] if feedback else [])])
        elif not options.fresh_context_per_iteration:
            inputs.append(log[-1:] if feedback else [])
        else:
            bullets = "\n".join(f"- {entry}" for entry in log)
            inputs.append([*request, *([f"## Feedback\n\n{bullets}"] if log else [])])
    return inputs


@settings(max_examples=60)
@given(st.lists(settled, min_size=1, max_size=4), st.lists(wishes, max_size=4), st.booleans())
def test_the_pieces_amount_to_the_response(given_replies, wishes, exclude):
    """Law 17: the pieces that were streamed amount to the final response: messages, usage, each once and in order."""

    def reply(call: Any, number: int) -> AgentResponse:
        chosen = given_replies[(number - 1) % len(given_replies)]
        return replace(chosen, response_id=f"r{number}", agent_id="a")

    async def streamed() -> tuple[AgentResponse, AgentResponse]:
        options = LoopAgentOptions(exclude_on_behalf_of_messages=exclude)
        loop = LoopAgent(RecordingAgent(answer=reply), ScriptedEvaluator(wishes), options)
        stream = loop.run_streaming("go")
        updates = await drain(stream)
        return AgentResponse.from_updates(updates), await stream.final_response()

    merged, final = asyncio.run(streamed())
    assert texts(merged.messages) == texts(final.messages)
    assert merged.usage == final.usage
