"""Laws 14 to 20: the transcript, the stream, usage, results, cancellation and sharing."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, field

import pytest
from fakes import RecordingAgent, ScriptedEvaluator, Updates, Way, always, drain, leaving_nothing, says, texts

from agents_loop import (
    AgentResponse,
    AgentResponseStream,
    AgentResponseUpdate,
    AgentSession,
    AIAgent,
    AIJudgeLoopEvaluator,
    ChatMessage,
    ChatResponse,
    DelegateLoopEvaluator,
    DelegatingAIAgent,
    LoopAgent,
    LoopAgentOptions,
    LoopContext,
    LoopEvaluation,
    LoopResult,
    StopReason,
    UsageContent,
    UsageDetails,
)
from agents_loop.testing import ScriptedChatClient

MORE = LoopEvaluation.continue_()


def explicit(*messages: str | ChatMessage) -> LoopEvaluation:
    return LoopEvaluation.continue_with_messages(list(messages))


# Law 14


async def test_the_transcript(agent: RecordingAgent, invoke: Way):
    """Law 14: for each iteration the messages that drove it, then its response; the caller's own are not echoed."""
    response = await invoke(LoopAgent(agent, says("more", None, explicit("x", "y"))))
    assert texts(response.messages) == [
        ("assistant", "reply 1"),
        ("user", "more"),
        ("assistant", "reply 2"),
        ("assistant", "reply 3"),
        ("user", "x"),
        ("user", "y"),
        ("assistant", "reply 4"),
    ]


async def test_replayed_messages_are_not_echoed(agent: RecordingAgent, invoke: Way):
    """Law 14: in fresh context the replayed messages are not echoed."""
    options = LoopAgentOptions(fresh_context_per_iteration=True)
    response = await invoke(LoopAgent(agent, says(None, "more"), options))
    assert texts(response.messages) == [
        ("assistant", "reply 1"),
        ("assistant", "reply 2"),
        ("user", "## Feedback\n\n- more"),
        ("assistant", "reply 3"),
    ]


async def test_identical_replies_are_both_kept(invoke: Way):
    """Law 14: identical replies are both in the transcript (C5)."""
    same = AgentResponse([ChatMessage("assistant", "same")])
    response = await invoke(LoopAgent(RecordingAgent(same, same, same), says(None, None)))
    assert texts(response.messages) == [("assistant", "same")] * 3


@pytest.mark.parametrize("exclude", [False, True])
async def test_the_last_response_only(agent: RecordingAgent, exclude: bool):
    """Law 14: `non_streaming_returns_last_response_only` gives the last iteration's messages alone."""
    options = LoopAgentOptions(non_streaming_returns_last_response_only=True, exclude_on_behalf_of_messages=exclude)
    loop = LoopAgent(agent, says("more", "more"), options)
    response = await loop.run("the request")
    assert texts(response.messages) == [("assistant", "reply 3")]
    assert len(LoopResult.of(response).iterations) == 3


@pytest.mark.parametrize("exclude", [False, True])
async def test_the_last_response_only_is_for_run(agent: RecordingAgent, exclude: bool):
    """Law 14: ... and has nothing to do with streaming, where `exclude_on_behalf_of_messages` counts as ever."""
    options = LoopAgentOptions(non_streaming_returns_last_response_only=True, exclude_on_behalf_of_messages=exclude)
    response = await LoopAgent(agent, says("more"), options).run_streaming("the request").final_response()
    drove = [] if exclude else [("user", "more")]
    assert texts(response.messages) == [("assistant", "reply 1"), *drove, ("assistant", "reply 2")]


async def test_the_last_answer_at_the_cap(agent: RecordingAgent, invoke: Way):
    """Law 14: at the cap the last answer is given, no notice in its place (E3)."""
    response = await invoke(LoopAgent(agent, always(MORE), LoopAgentOptions(max_iterations=2)))
    assert texts(response.messages) == [("assistant", "reply 1"), ("assistant", "reply 2")]


# Law 15


@pytest.mark.parametrize("fresh", [False, True])
async def test_the_author_name(agent: RecordingAgent, invoke: Way, fresh: bool):
    """Law 15: the author name is stamped on what the loop wrote, never on explicit messages nor on the caller's."""
    options = LoopAgentOptions(on_behalf_of_author_name="the loop", fresh_context_per_iteration=fresh)
    given = [ChatMessage("user", "the request")]
    response = await invoke(LoopAgent(agent, says("a", explicit("x"), "b"), options), given)
    signed = {message.text: message.author_name for call in agent.calls for message in call.messages}
    wrote = ["## Feedback\n\n- a", "## Feedback\n\n- a\n- b"] if fresh else ["a", "b"]
    assert signed == {"the request": None, "x": None, wrote[0]: "the loop", wrote[1]: "the loop"}
    authors = {message.text: message.author_name for message in response.messages if message.role == "user"}
    assert authors == {"x": None, wrote[0]: "the loop", wrote[1]: "the loop"}
    assert given[0].author_name is None


async def test_the_author_of_joined_feedback(agent: RecordingAgent, invoke: Way):
    """Law 15: beside explicit messages, the joined feedback alone is what the loop wrote."""
    options = LoopAgentOptions(on_behalf_of_author_name="the loop", evaluation_mode="all")
    await invoke(LoopAgent(agent, [says(explicit("x")), says("a")], options))
    assert [(message.text, message.author_name) for message in agent.calls[1].messages] == [
        ("x", None),
        ("a", "the loop"),
    ]


async def test_they_can_be_left_out(agent: RecordingAgent, invoke: Way):
    """Law 15: excluded on-behalf-of messages are left out of what is returned, and still sent."""
    options = LoopAgentOptions(exclude_on_behalf_of_messages=True)
    response = await invoke(LoopAgent(agent, says("more", explicit("x")), options))
    assert agent.inputs == [["the request"], ["more"], ["x"]]
    assert texts(response.messages) == [("assistant", f"reply {n}") for n in (1, 2, 3)]


async def test_they_can_be_left_out_of_the_stream(agent: RecordingAgent):
    """Law 15: excluded on-behalf-of messages are left out of what is streamed, and still sent."""
    options = LoopAgentOptions(exclude_on_behalf_of_messages=True)
    updates = await drain(LoopAgent(agent, says("more"), options).run_streaming("the request"))
    assert [update.role for update in updates] == ["assistant"] * 4
    assert agent.inputs == [["the request"], ["more"]]


# Law 16


@dataclass(slots=True)
class RichResponse(AgentResponse):
    confidence: float = field(default=0.0, kw_only=True)


class Plain(AIAgent):
    """An agent without a stream of its own."""

    def __init__(self, *responses: AgentResponse) -> None:
        self.responses = list(responses)

    async def run_core(self, messages, *, session, options) -> AgentResponse:
        return self.responses.pop(0)


async def test_the_last_responses_type_and_fields(invoke: Way):
    """Law 16: the response keeps the runtime type and the fields of the last inner response."""
    fields = {"response_id": "r2", "agent_id": "a", "finish_reason": "stop", "created_at": 12.5}
    last = RichResponse([ChatMessage("assistant", "2")], confidence=0.9, additional_properties={"k": 1}, **fields)
    response = await invoke(LoopAgent(Plain(RichResponse([ChatMessage("assistant", "1")]), last), says("more")))
    assert type(response) is RichResponse
    assert response is not last
    assert response.confidence == 0.9
    assert response.additional_properties == {"k": 1}
    assert {name: getattr(response, name) for name in fields} == fields
    assert texts(response.messages) == [("assistant", "1"), ("user", "more"), ("assistant", "2")]


async def test_a_streams_own_response_type():
    """Law 16: an agent whose stream has a final response of its own type keeps it."""

    class StreamsRich(AIAgent):
        async def run_core(self, messages, *, session, options):
            raise AssertionError

        def run_streaming(self, messages=None, *, session=None, options=None):
            async def updates() -> AsyncIterator[AgentResponseUpdate]:
                yield AgentResponseUpdate("assistant", "hi")

            return AgentResponseStream(updates(), lambda: RichResponse([ChatMessage("assistant", "hi")], confidence=1))

    response = await LoopAgent(StreamsRich(), says("more")).run_streaming().final_response()
    assert type(response) is RichResponse
    assert response.confidence == 1


USAGES = [
    UsageDetails(10, 1, None, None, 3, {"audio": 1}),
    UsageDetails(20, None, None, 5, None, {"audio": 2, "text": 1}),
    None,
]


async def test_usage_is_summed(invoke: Way):
    """Law 16: usage is the sum over all iterations, every counter; one that nobody reported stays None."""
    replies = [
        AgentResponse([ChatMessage("assistant", "x")], response_id=f"r{n}", usage=usage)
        for n, usage in enumerate(USAGES)
    ]
    agent = RecordingAgent(*replies)
    response = await invoke(LoopAgent(agent, says("a", "b")))
    expected = UsageDetails(30, 1, None, 5, 3, {"audio": 3, "text": 1})
    assert response.usage == expected
    result = LoopResult.of(response)
    assert result.usage == expected
    assert [record.usage for record in result.iterations] == USAGES
    contents = [content for message in response.messages for content in message.contents]
    assert not any(isinstance(content, UsageContent) for content in contents)


@pytest.mark.parametrize("only_last", [False, True])
@pytest.mark.parametrize(("usage", "expected"), [(None, None), (UsageDetails(0), UsageDetails(0))])
async def test_nothing_reported_is_not_zero(
    invoke: Way, usage: UsageDetails | None, expected: UsageDetails | None, only_last: bool
):
    """Law 16: nothing reported is None, and a reported zero is zero."""
    options = LoopAgentOptions(non_streaming_returns_last_response_only=only_last)
    response = await invoke(LoopAgent(RecordingAgent(usage=usage), says("more"), options))
    assert response.usage == expected


async def test_usage_of_all_iterations_with_the_last_response_only(agent: RecordingAgent):
    """Law 16: usage is that of all iterations, also where only the last response is returned (U1)."""
    options = LoopAgentOptions(non_streaming_returns_last_response_only=True)
    response = await LoopAgent(RecordingAgent(usage=UsageDetails(1, 2, 3)), says("a", "b"), options).run("go")
    assert response.usage == UsageDetails(3, 6, 9)


async def test_usage_in_the_stream_is_counted_once():
    """Law 16: the pieces of a stream amount to the usage of its final response (U1)."""
    stream = LoopAgent(RecordingAgent(usage=UsageDetails(1, 2, 3)), says("a", "b")).run_streaming("go")
    updates = await drain(stream)
    assert AgentResponse.from_updates(updates).usage == UsageDetails(3, 6, 9)
    assert (await stream.final_response()).usage == UsageDetails(3, 6, 9)


@pytest.mark.parametrize("only_last", [False, True])
async def test_inner_responses_are_never_changed(invoke: Way, only_last: bool):
    """Law 16: the inner responses are never changed, usage and messages included."""
    inner = [
        AgentResponse([ChatMessage("assistant", f"{n}")], response_id=f"r{n}", usage=UsageDetails(1)) for n in (1, 2)
    ]
    options = LoopAgentOptions(non_streaming_returns_last_response_only=only_last)
    response = await invoke(LoopAgent(RecordingAgent(*inner), says("more"), options))
    for n, given in enumerate(inner, 1):
        assert texts(given.messages) == [("assistant", f"{n}")]
        assert given.usage == UsageDetails(1)
        assert given.loop_result is None
    response.messages.clear()
    assert [len(record.response.messages) for record in LoopResult.of(response).iterations] == [1, 1]


async def test_the_judges_usage_is_apart(invoke: Way):
    """Law 16: the response's usage is the agent's; the judge's is in the result (U1)."""
    verdicts = [
        ChatResponse(f'{{"gapAnalysis": "x", "answered": {said}}}', usage=UsageDetails(100))
        for said in ("false", "true")
    ]
    loop = LoopAgent(RecordingAgent(usage=UsageDetails(1)), AIJudgeLoopEvaluator(ScriptedChatClient(verdicts)))
    response = await invoke(loop)
    assert response.usage == UsageDetails(2)
    assert LoopResult.of(response).usage == UsageDetails(202)
    assert [record.usage for record in LoopResult.of(response).iterations] == [UsageDetails(101)] * 2


async def test_the_judges_usage_alone(invoke: Way):
    """Law 16: what the judge used is in the result also where the agent reports nothing."""
    verdict = ChatResponse('{"gapAnalysis": "", "answered": true}', usage=UsageDetails(100))
    response = await invoke(LoopAgent(RecordingAgent(), AIJudgeLoopEvaluator(ScriptedChatClient([verdict]))))
    assert response.usage is None
    assert LoopResult.of(response).usage == LoopResult.of(response).iterations[0].usage == UsageDetails(100)


async def test_the_judges_usage_in_an_inner_loop(invoke: Way):
    """Law 16: the result of a loop around a loop counts what the inner loop's judges used, once (U1)."""
    verdict = ChatResponse('{"gapAnalysis": "", "answered": true}', usage=UsageDetails(100))
    judge = AIJudgeLoopEvaluator(ScriptedChatClient([verdict, verdict]))
    inner = LoopAgent(RecordingAgent(usage=UsageDetails(1)), judge)
    response = await invoke(LoopAgent(inner, says("again")))
    assert response.usage == UsageDetails(2)
    assert LoopResult.of(response).usage == UsageDetails(202)


# Law 17


async def test_updates_come_as_they_are(invoke: Way):
    """Law 17: streaming yields each inner update as it comes, unchanged."""
    pieces = Updates(
        [
            AgentResponseUpdate("assistant", "a", response_id="r", message_id="m", agent_id="x"),
            AgentResponseUpdate(contents="b", additional_properties={"k": 1}),
            AgentResponseUpdate(contents=UsageContent(UsageDetails(1)), finish_reason="stop"),
        ]
    )
    updates = await drain(LoopAgent(RecordingAgent(pieces), says()).run_streaming("go"))
    assert all(given is piece for given, piece in zip(updates, pieces, strict=True))


async def test_an_update_is_not_waited_for():
    """Law 17: an update is there before the next one is made."""
    agent = RecordingAgent("hello", hang_at=1)
    async with leaving_nothing():
        stream = LoopAgent(agent, says()).run_streaming("go")
        async with asyncio.timeout(60), stream:
            first = await anext(stream)
        assert first.text == "he"
        assert not agent.reached.is_set()


async def test_what_drove_an_iteration_comes_first(agent: RecordingAgent):
    """Law 17: on-behalf-of messages come before the iteration's first update, with its response id and no agent id."""
    loop = LoopAgent(agent, says("more", explicit("x", ChatMessage("system", "y", message_id="mine"))))
    updates = await drain(loop.run_streaming("go"))
    assert [(update.role, update.text, update.response_id) for update in updates] == [
        ("assistant", "rep", "response-1"),
        ("assistant", "ly 1", "response-1"),
        ("user", "more", "response-2"),
        ("assistant", "rep", "response-2"),
        ("assistant", "ly 2", "response-2"),
        ("user", "x", "response-3"),
        ("system", "y", "response-3"),
        ("assistant", "rep", "response-3"),
        ("assistant", "ly 3", "response-3"),
    ]
    drove = [update for update in updates if update.role != "assistant"]
    assert [update.agent_id for update in drove] == [None] * 3
    assert [update.agent_id for update in updates if update.role == "assistant"] == ["the-agent"] * 6
    sent = [message.message_id for call in agent.calls[1:] for message in call.messages]
    assert [update.message_id for update in drove] == sent
    assert sent[2] == "mine"
    assert None not in sent
    assert len(set(sent)) == 3


async def test_the_ids_in_the_transcript(agent: RecordingAgent, invoke: Way):
    """Law 17: the transcript's on-behalf-of messages have the ids that the agent was sent."""
    response = await invoke(LoopAgent(agent, says("more", explicit("x"))))
    kept = [message.message_id for message in response.messages if message.role == "user"]
    assert kept == [message.message_id for call in agent.calls[1:] for message in call.messages]
    assert None not in kept


async def test_an_iteration_that_yields_nothing():
    """Law 17: if an iteration yields nothing they come all the same, with a generated response id."""
    agent = RecordingAgent("draft", Updates())
    stream = LoopAgent(agent, says("more", LoopEvaluation.stop())).run_streaming("go")
    updates = await drain(stream)
    assert [(update.role, update.text) for update in updates][2:] == [("user", "more")]
    assert updates[-1].response_id not in (None, "", "response-1")
    assert updates[-1].message_id == agent.calls[1].messages[0].message_id
    assert texts((await stream.final_response()).messages) == [("assistant", "draft"), ("user", "more")]


@pytest.mark.parametrize("later", [None, "r2"])
async def test_a_first_update_without_a_response_id(later: str | None):
    """Law 17: a first update without a response id holds nothing up, and the pieces still make the same messages."""
    first = Updates([AgentResponseUpdate("assistant", "dra"), AgentResponseUpdate(contents="ft")])
    second = Updates([AgentResponseUpdate("assistant", "an"), AgentResponseUpdate(contents="swer", response_id=later)])
    stream = LoopAgent(RecordingAgent(first, second), says("more")).run_streaming("go")
    updates = await drain(stream)
    assert [update.text for update in updates] == ["dra", "ft", "more", "an", "swer"]
    assert updates[2].message_id is not None
    expected = [("assistant", "draft"), ("user", "more"), ("assistant", "answer")]
    assert texts(AgentResponse.from_updates(updates).messages) == expected
    assert texts((await stream.final_response()).messages) == expected


async def test_no_updates_of_messages_that_were_not_sent(agent: RecordingAgent):
    """Law 17: replayed messages and the caller's are no updates."""
    options = LoopAgentOptions(fresh_context_per_iteration=True)
    updates = await drain(LoopAgent(agent, says("more"), options).run_streaming("the request"))
    assert [update.text for update in updates if update.role == "user"] == ["## Feedback\n\n- more"]


async def test_the_pieces_make_the_transcript(agent: RecordingAgent):
    """Law 17: the pieces that were streamed amount to the transcript of the final response."""
    stream = LoopAgent(agent, says("more", None, explicit("x", "y"))).run_streaming("go")
    updates = await drain(stream)
    assert AgentResponse.from_updates(updates).messages == (await stream.final_response()).messages


# Law 18: further tests are in test_result.py


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ((), StopReason.SATISFIED),
        ((MORE, MORE), StopReason.MAX_ITERATIONS),
        ((LoopEvaluation.abort("no"),), StopReason.ABORTED),
    ],
)
async def test_every_response_has_a_reason(agent: RecordingAgent, invoke: Way, words, expected: StopReason):
    """Law 18: every run has a stop reason, and the response has the result."""
    response = await invoke(LoopAgent(agent, says(*words), LoopAgentOptions(max_iterations=2)))
    assert LoopResult.of(response).stop_reason is expected


async def test_the_answer_of_a_loop_in_a_loop(agent: RecordingAgent, invoke: Way):
    """Law 18: the output of an outer loop is the inner loop's last answer, with the drafts that led to it left out."""
    inner = LoopAgent(agent, says("more"))
    assert LoopResult.of(await invoke(LoopAgent(inner, says()))).output == "reply 2"


@pytest.mark.parametrize(("word", "exclude"), [("more", True), (None, False)], ids=["excluded messages", "no feedback"])
async def test_drafts_without_a_message_between(agent: RecordingAgent, invoke: Way, word: str | None, exclude: bool):
    """Law 18: ... also where nothing stands between the drafts: excluded messages, or no feedback (C3)."""
    inner = LoopAgent(agent, says(word), LoopAgentOptions(exclude_on_behalf_of_messages=exclude))
    judge = ScriptedChatClient(['{"gapAnalysis": "", "answered": true}'])
    response = await invoke(LoopAgent(inner, AIJudgeLoopEvaluator(judge)))
    assert LoopResult.of(response).output == "reply 2"
    assert "reply 1" not in judge.calls[0].messages[1].text


async def test_a_last_draft_without_messages(invoke: Way):
    """Law 18: an inner loop whose last iteration gave nothing has no answer; an older draft is not put in its place."""
    inner = LoopAgent(RecordingAgent("a draft", Updates()), says(None))
    result = LoopResult.of(await invoke(LoopAgent(inner, says())))
    assert (result.output, LoopResult.of(result.iterations[0].response).output) == ("", "")


async def test_the_answer_of_three_nested_loops(agent: RecordingAgent, invoke: Way):
    """Law 18: the last answer is found through any number of loops."""
    nested = LoopAgent(LoopAgent(LoopAgent(agent, says(None)), says(None)), says(None))
    assert LoopResult.of(await invoke(nested)).output == f"reply {len(agent.calls)}" == "reply 8"


# Law 19: further tests are in test_concurrency.py


async def test_closing_early(agent: RecordingAgent):
    """Law 19: closing a stream early closes the inner agent's stream; nothing more is run or judged."""
    evaluator = says("more")
    async with leaving_nothing():
        stream = LoopAgent(agent, evaluator).run_streaming("go")
        async with stream:
            await anext(stream)
            assert agent.closed == []
        assert agent.closed == [1]
    assert len(agent.calls) == 1
    assert evaluator.seen == []
    assert LoopResult.of(stream).stop_reason is StopReason.CANCELLED
    assert await drain(stream) == []


# Law 20


async def test_no_state_is_kept(invoke: Way):
    """Law 20: one loop and its evaluators, used again, begin anew (U4)."""
    agent, evaluator = RecordingAgent(), says("more", "more")
    loop = LoopAgent(agent, evaluator)
    before = {name: id(value) for name, value in vars(loop).items()}
    first, second = await invoke(loop), await invoke(loop)
    assert {name: id(value) for name, value in vars(loop).items()} == before
    assert [seen.iteration for seen in evaluator.seen] == [1, 2, 3] * 2
    assert [seen.feedback for seen in evaluator.seen][3] == []
    assert len({id(seen.context) for seen in evaluator.seen}) == 2
    assert len(first.messages) == len(second.messages) == 5
    assert LoopResult.of(first).run_id != LoopResult.of(second).run_id


async def test_a_shared_evaluation(agent: RecordingAgent, invoke: Way):
    """Law 20: evaluators may share one evaluation object; each record still names who said it."""

    class Other(ScriptedEvaluator):
        pass

    shared = LoopEvaluation.stop()
    response = await invoke(LoopAgent(agent, [ScriptedEvaluator([shared]), Other([shared])]))
    said = LoopResult.of(response).iterations[0].evaluations
    assert [evaluation.evaluator for evaluation in said] == ["ScriptedEvaluator", "Other"]


# The doors around a loop


async def test_a_wrapper_around_a_loop(agent: RecordingAgent, invoke: Way):
    """Law 18: a plain `DelegatingAIAgent` around a loop passes its result and its stream on."""
    loop = LoopAgent(agent, says("more"))
    wrapper = DelegatingAIAgent(loop)
    response = await invoke(wrapper)
    assert LoopResult.of(response).stop_reason is StopReason.SATISFIED
    assert [call.streaming for call in agent.calls] == [invoke.streaming] * 2
    assert wrapper.get_service(LoopAgent) is loop
    stream = wrapper.run_streaming("go")
    assert LoopResult.of(stream) is None
    await drain(stream)
    assert LoopResult.of(stream).stop_reason is StopReason.SATISFIED


async def test_the_core_of_a_loops_stream(agent: RecordingAgent):
    """Law 17: `run_core_streaming` gives the pieces of `run_streaming`; closing it closes the agent (law 19)."""
    loop, request = LoopAgent(agent, says("more")), [ChatMessage("user", "go")]
    pieces = [update.text async for update in loop.run_core_streaming(request, session=None, options=None)]
    assert pieces == ["rep", "ly 1", "more", "rep", "ly 2"]
    async with leaving_nothing():
        stream = loop.run_core_streaming(request, session=None, options=None)
        await anext(stream)
        await stream.aclose()
    assert agent.closed == [1, 2, 3]


async def test_a_wrapper_that_streams_itself(agent: RecordingAgent):
    """Law 19: a wrapper with a stream of its own closes the loop, and through it the agent."""

    class Shouting(DelegatingAIAgent):
        async def run_core_streaming(self, messages, *, session, options):
            async for update in super().run_core_streaming(messages, session=session, options=options):
                yield AgentResponseUpdate(update.role, update.text.upper(), response_id=update.response_id)

    stream = Shouting(LoopAgent(agent, says("more"))).run_streaming("go")
    assert [update.text for update in await drain(stream)] == ["REP", "LY 1", "MORE", "REP", "LY 2"]


def test_run_sync():
    """Law 18: `run_sync` gives the same response, with its result."""
    agent = RecordingAgent()
    response = LoopAgent(agent, says("more")).run_sync("go")
    assert LoopResult.of(response).stop_reason is StopReason.SATISFIED
    assert len(agent.calls) == 2


async def test_run_sync_in_a_running_loop(agent: RecordingAgent):
    """Law 18: `run_sync` inside a running event loop is an error, and runs nothing."""
    with pytest.raises(ValueError, match="await run"):
        LoopAgent(agent, says()).run_sync("go")
    assert agent.calls == []


async def test_a_loop_has_its_agents_identity(agent: RecordingAgent):
    """Law 13: a loop's id, name, sessions and services are the inner agent's; it finds itself first."""
    loop = LoopAgent(agent, says())
    assert (loop.id, loop.name) == (agent.id, "recorder")
    assert await loop.create_session() is agent.created[0]
    assert loop.get_service(LoopAgent) is loop
    assert loop.get_service(AIAgent) is loop
    assert loop.get_service(RecordingAgent) is agent
    assert loop.get_service(ScriptedChatClient) is None
    session: AgentSession = agent.created[0]
    clone = await loop.deserialize_session(await loop.serialize_session(session))
    assert clone is agent.deserialized[0]


@pytest.mark.parametrize(
    ("evaluator", "expected"),
    [(DelegateLoopEvaluator(lambda context: True), 10), (DelegateLoopEvaluator(lambda context: None), 1)],
)
async def test_one_evaluator_needs_no_list(agent: RecordingAgent, evaluator: DelegateLoopEvaluator, expected: int):
    """Law 4: one evaluator may be passed as it is."""
    await LoopAgent(agent, evaluator).run("go")
    assert len(agent.calls) == expected


@pytest.mark.parametrize(
    ("make", "error", "named"),
    [
        (lambda: LoopAgent(None, says()), TypeError, "inner_agent"),
        (lambda: LoopAgent("agent", says()), TypeError, "inner_agent"),
        (lambda: LoopAgent(RecordingAgent(), None), TypeError, "evaluators"),
        (lambda: LoopAgent(RecordingAgent(), [says(), None]), TypeError, "evaluator"),
        (lambda: LoopAgent(RecordingAgent(), lambda context: True), TypeError, "evaluator"),
        (lambda: LoopAgent(RecordingAgent(), 7), TypeError, "evaluator"),
        (lambda: LoopAgent(RecordingAgent(), []), ValueError, "evaluator"),
        (lambda: LoopAgent(RecordingAgent(), says(), {"max_iterations": 3}), TypeError, "options"),
        (lambda: LoopAgentOptions(evaluation_mode="some"), ValueError, "evaluation_mode"),
        (lambda: LoopContext(None, AgentSession(), "go", AgentResponse("a")), TypeError, "agent"),
        (lambda: LoopContext(RecordingAgent(), None, "go", AgentResponse("a")), TypeError, "session"),
        (
            lambda: LoopContext(RecordingAgent(), AgentSession(), None, AgentResponse("a")),
            TypeError,
            "initial_messages",
        ),
        (lambda: LoopContext(RecordingAgent(), AgentSession(), "go", None), TypeError, "last_response"),
        (lambda: LoopEvaluation.continue_(7), TypeError, "feedback"),
        (lambda: LoopEvaluation.continue_with_messages(None), TypeError, "messages"),
        (lambda: LoopEvaluation.continue_with_messages([7]), TypeError, "messages"),
        (lambda: LoopEvaluation.abort(None), TypeError, "reason"),
        (lambda: LoopEvaluation.abort(" "), ValueError, "reason"),
        (lambda: LoopEvaluation.stop(score=1.1), ValueError, "score"),
        (lambda: LoopEvaluation.stop(score=float("nan")), ValueError, "score"),
        (lambda: LoopEvaluation.stop(score="high"), ValueError, "score"),
    ],
)
def test_wrong_use(make, error: type[Exception], named: str):
    """Law 4: wrong use is an error that names the parameter, before anything runs."""
    with pytest.raises(error, match=rf"\b{named}"):
        make()


@pytest.mark.parametrize("score", [0, 0.5, 1])
def test_an_evaluation(score: float):
    """Law 9: an evaluation has a decision, and what goes with it; score, note and details go with any."""
    shared = {"score": score, "note": "n", "details": {"k": 1}}
    made = [
        LoopEvaluation.stop(**shared),
        LoopEvaluation.continue_("f", **shared),
        LoopEvaluation.continue_with_messages("m", **shared),
        LoopEvaluation.abort("r", **shared),
    ]
    assert [said.decision for said in made] == ["stop", "continue", "continue", "abort"]
    assert [said.should_reinvoke for said in made] == [False, True, True, False]
    assert [said.feedback for said in made] == [None, "f", None, None]
    assert [said.messages and texts(said.messages) for said in made] == [None, None, [("user", "m")], None]
    assert [said.reason for said in made] == [None, None, None, "r"]
    assert {(said.score, said.note, str(said.details)) for said in made} == {(score, "n", "{'k': 1}")}


@pytest.mark.parametrize("mode", ["first", "all"])
@pytest.mark.parametrize("given", [None, True, "more"])
async def test_an_evaluator_that_gives_no_evaluation(agent: RecordingAgent, invoke: Way, mode: str, given: object):
    """Law 18: an evaluator that gives no evaluation is a TypeError that names it; the run is `evaluator_failed`."""

    class Careless(ScriptedEvaluator):
        async def evaluate(self, context: LoopContext):
            return given

    loop = LoopAgent(agent, [Careless(), says()], LoopAgentOptions(evaluation_mode=mode))
    with pytest.raises(TypeError, match=r"Careless.*LoopEvaluation") as raised:
        await invoke(loop)
    assert LoopResult.of(raised.value).stop_reason is StopReason.EVALUATOR_FAILED


@pytest.mark.parametrize("mode", ["first", "all"])
@pytest.mark.parametrize("given", [LoopEvaluation.stop(), None, True])
async def test_an_evaluator_that_is_not_async(agent: RecordingAgent, invoke: Way, mode: str, given: object):
    """Law 6: an `evaluate` that is not async is taken at its word; a wrong return is the same TypeError."""

    class NotAsync(ScriptedEvaluator):
        def evaluate(self, context: LoopContext):
            return given

    loop = LoopAgent(agent, [NotAsync(), says()], LoopAgentOptions(evaluation_mode=mode))
    if isinstance(given, LoopEvaluation):
        assert LoopResult.of(await invoke(loop)).stop_reason is StopReason.SATISFIED
    else:
        with pytest.raises(TypeError, match=r"NotAsync.*LoopEvaluation"):
            await invoke(loop)
