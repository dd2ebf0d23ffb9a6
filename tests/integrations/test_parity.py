"""The laws of the loop over agents of others: a Semantic Kernel and an Agent Framework agent, over a real server."""

from __future__ import annotations

import asyncio
import json
import logging
import warnings
from collections.abc import Iterator
from typing import Any

import pytest
from fakes import WAYS, Way, always, drain, says, texts
from fault_server import (
    Completion,
    Failure,
    FaultServer,
    Raw,
    RecordedRequest,
    Reply,
    Silence,
    Stream,
    chunk,
    closed_later,
    usage,
)

from agents_loop import (
    AgentResponse,
    AgentRunOptions,
    AgentSession,
    AIAgent,
    AIJudgeLoopEvaluator,
    ChatMessage,
    ChatOptions,
    DataContent,
    IterationStarted,
    LoopAgent,
    LoopAgentOptions,
    LoopEvaluation,
    LoopResult,
    LoopStopped,
    StopReason,
    ToolApprovalRequestContent,
    ToolApprovalResponseContent,
    UsageContent,
    UsageDetails,
)
from agents_loop.adapting import as_agent
from agents_loop.testing import ScriptedChatClient

STOP, MORE = LoopEvaluation.stop(), LoopEvaluation.continue_()
FRESH = LoopAgentOptions(fresh_context_per_iteration=True)
FRAMEWORKS = ["semantic_kernel", "agent_framework"]
DELETE = {"id": "c1", "type": "function", "function": {"name": "delete", "arguments": '{"path": "a"}'}}
HALF = Stream((chunk({"role": "assistant", "content": ""}), chunk({"content": "half an "})), end="held")


class NumberedServer(FaultServer):
    """Answers `reply 1`, `reply 2`, ... where nothing else was said; each answer has an id of its own, as OpenAI's."""

    def reply_to(self, request: RecordedRequest) -> Reply:
        number = len(self.requests) + 1
        self.default = Completion(content=f"reply {number}")
        reply = super().reply_to(request)
        if not isinstance(reply, Completion):
            return reply
        own = {"id": f"id-{number}"}
        if request.body.get("stream"):
            return Stream(tuple([event | own for event in reply.chunks()]))
        return Raw(json.dumps(reply.whole() | own).encode())


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[NumberedServer]:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "OPENAI_ORG_ID"):
        monkeypatch.delenv(name, raising=False)
    with NumberedServer() as server:
        yield server


def delete(path: str) -> str:
    """Delete a file."""
    raise AssertionError(f"{path} was deleted, and nobody had agreed")


def make(framework: str, server: FaultServer) -> Any:
    """The framework's own agent `worker`, by its own means."""
    with warnings.catch_warnings():  # importing an SDK is not what is tested
        warnings.simplefilter("ignore")
        openai = pytest.importorskip("openai")
        pytest.importorskip(framework)
        client = closed_later(openai.AsyncOpenAI(api_key="k", base_url=server.base_url, max_retries=0))
        if framework == "semantic_kernel":
            from semantic_kernel.agents import ChatCompletionAgent
            from semantic_kernel.connectors.ai.open_ai import OpenAIChatCompletion

            service = OpenAIChatCompletion(ai_model_id="m", async_client=client)
            return ChatCompletionAgent(service=service, instructions="Be brief.", name="worker")
        from agent_framework import Agent, tool

        pytest.importorskip("agent_framework_openai")
        from agent_framework.openai import OpenAIChatCompletionClient

        tools = [tool(delete, approval_mode="always_require")]
        chat_client = OpenAIChatCompletionClient(model="m", async_client=client)
        return Agent(client=chat_client, instructions="Be brief.", name="worker", tools=tools)


class Sessions:
    """The sessions that an agent was asked for."""

    def __init__(self, agent: AIAgent, monkeypatch: pytest.MonkeyPatch) -> None:
        self.created: list[AgentSession] = []
        self.serialized: list[AgentSession] = []
        self.cloned: list[AgentSession] = []
        create, write, read = agent.create_session, agent.serialize_session, agent.deserialize_session

        async def create_session() -> AgentSession:
            self.created.append(await create())
            return self.created[-1]

        async def serialize_session(session: AgentSession) -> Any:
            self.serialized.append(session)
            return await write(session)

        async def deserialize_session(state: Any) -> AgentSession:
            self.cloned.append(await read(state))
            return self.cloned[-1]

        monkeypatch.setattr(agent, "create_session", create_session)
        monkeypatch.setattr(agent, "serialize_session", serialize_session)
        monkeypatch.setattr(agent, "deserialize_session", deserialize_session)


@pytest.fixture(params=FRAMEWORKS)
def framework(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture
def agent(framework: str, server: NumberedServer) -> AIAgent:
    return as_agent(make(framework, server))


@pytest.fixture
def approving(server: NumberedServer) -> AIAgent:
    """Semantic Kernel has no approvals: its filters decide within a run."""
    return as_agent(make("agent_framework", server))


@pytest.fixture
def sessions(agent: AIAgent, monkeypatch: pytest.MonkeyPatch) -> Sessions:
    return Sessions(agent, monkeypatch)


def heard(server: FaultServer, number: int = -1) -> list[tuple[str, str]]:
    """What a request held, after the instructions; Agent Framework sends a message for each part."""
    found: list[tuple[str, str]] = []
    for message in server.bodies[number]["messages"]:
        content = message.get("content") or ""
        parts = [content] if isinstance(content, str) else content
        said = [part if isinstance(part, str) else part.get("text") or part["image_url"]["url"] for part in parts]
        found += [(message["role"], text) for text in said]
    return [pair for pair in found if pair[0] not in ("system", "developer")]


def asked(server: FaultServer) -> list[list[str]]:
    """What the users said in each request."""
    return [[text for role, text in heard(server, n) if role == "user"] for n in range(len(server.requests))]


def result_of(found: Any) -> LoopResult:
    result = LoopResult.of(found)
    assert result is not None
    return result


def explicit(*messages: str) -> LoopEvaluation:
    return LoopEvaluation.continue_with_messages(list(messages))


# --- the run


async def test_the_messages_reach_the_agent_once(agent, server, invoke):
    """Law 1: the caller's messages reach the inner agent once, unchanged, an image included."""
    given = [
        ChatMessage("user", ["look", DataContent(b"\x89PNG", "image/png")], message_id="m1"),
        ChatMessage("user", "x"),
    ]
    await invoke(LoopAgent(agent, says("more")), given)
    request = [("user", "look"), ("user", "data:image/png;base64,iVBORw=="), ("user", "x")]
    assert heard(server, 0) == request
    assert heard(server) == [*request, ("assistant", "reply 1"), ("user", "more")]
    assert given[0].message_id == "m1"
    assert given[1].message_id is None


async def test_one_session_is_made_and_kept(agent, sessions, server, invoke):
    """Law 2: without a session the loop asks the inner agent for one, and uses it for every re-invocation."""
    evaluator = says("a", None, "b")
    response = await invoke(LoopAgent(agent, evaluator))
    assert len(sessions.created) == 1
    assert [seen.session for seen in evaluator.seen] == [sessions.created[0]] * 4
    assert result_of(response).session is sessions.created[0]
    assert [len(heard(server, n)) for n in range(4)] == [1, 3, 4, 6]


async def test_the_callers_session_is_used(agent, sessions, server, invoke):
    """Law 2: the caller's session is used, with what it holds, and none is made."""
    session = await agent.create_session()
    await invoke(agent, "before", session=session)
    response = await invoke(LoopAgent(agent, says("a")), session=session)
    assert len(sessions.created) == 1
    assert sessions.serialized == sessions.cloned == []
    assert result_of(response).session is session
    assert asked(server)[-1] == ["before", "the request", "a"]


@pytest.mark.parametrize("cap", [2, 5])
async def test_a_pending_approval_ends_the_run(approving, server, invoke, caplog, cap):
    """Law 3: a pending approval request ends the run at once, also at the cap: nobody is asked, no line is logged."""
    server.add(Completion(content="draft"), Completion(content="", tool_calls=(DELETE,), finish_reason="tool_calls"))
    evaluator = says("more", "never asked")
    with caplog.at_level(logging.INFO, "agents_loop"):
        response = await invoke(LoopAgent(approving, evaluator, LoopAgentOptions(max_iterations=cap)))
    assert result_of(response).stop_reason is StopReason.PENDING_APPROVAL
    assert "delete" in result_of(response).stop_detail
    assert evaluator.asked_at == [1]
    assert [record for record in caplog.records if record.name == "agents_loop"] == []


async def test_a_run_goes_on_after_an_answer(approving, server, invoke):
    """Law 3: the answer goes on with that run: under its count, with its request and its feedback log."""
    server.add(Completion(content="draft"), Completion(content="", tool_calls=(DELETE,), finish_reason="tool_calls"))
    evaluator = says("more", "never asked")
    loop = LoopAgent(approving, evaluator)
    first = await invoke(loop)
    requests = [c for m in first.messages for c in m.contents if isinstance(c, ToolApprovalRequestContent)]
    answer = ToolApprovalResponseContent(requests[0].request_id, approved=False, tool_call=requests[0].tool_call)
    second = await invoke(loop, ChatMessage("user", answer), session=result_of(first).session)
    assert result_of(second).stop_reason is StopReason.SATISFIED
    assert [record.number for record in result_of(second).iterations] == [3]
    seen = evaluator.seen[-1]
    assert (seen.iteration, seen.feedback) == (3, ["more"])
    assert texts(seen.context.initial_messages) == [("user", "the request")]
    assert [role for role, _ in heard(server)] == ["user", "assistant", "user", "assistant", "tool"]


@pytest.mark.parametrize("cap", [1, 3])
async def test_n_means_n(agent, server, invoke, caplog, cap):
    """Laws 3 and 4: N means N runs of the inner agent, then one INFO line, whatever the evaluators would say."""
    evaluator = always(MORE)
    with caplog.at_level(logging.INFO, "agents_loop"):
        response = await invoke(LoopAgent(agent, evaluator, LoopAgentOptions(max_iterations=cap)))
    result = result_of(response)
    assert len(server.requests) == len(result.iterations) == cap
    assert (result.stop_reason, result.output) == (StopReason.MAX_ITERATIONS, f"reply {cap}")
    assert evaluator.asked_at == list(range(1, cap))
    assert len([record for record in caplog.records if record.name == "agents_loop"]) == 1


async def test_ten_by_default(agent, server):
    """Law 4: the default cap is 10."""
    await LoopAgent(agent, always(MORE)).run("go")
    assert len(server.requests) == 10


async def test_the_first_that_wants_more_wins(agent, server, invoke):
    """Law 6: evaluators are asked in order; the first that wants to go on wins; the run ends when all say stop."""
    first, second = says(STOP, "from the first"), says("from the second")
    response = await invoke(LoopAgent(agent, [first, second]))
    assert asked(server)[-1] == ["the request", "from the second", "from the first"]
    assert (first.asked_at, second.asked_at) == ([1, 2, 3], [1, 3])
    assert result_of(response).stop_reason is StopReason.SATISFIED


async def test_all_are_heard_at_once(agent, server, invoke):
    """Law 6: "all": the explicit messages in evaluator order, then one message of the others' feedback."""
    evaluators = [says("one"), says(explicit("x", "y")), says(), says("two")]
    await invoke(LoopAgent(agent, evaluators, LoopAgentOptions(evaluation_mode="all")))
    assert asked(server)[-1] == ["the request", "x", "y", "one\n\ntwo"]
    assert evaluators[2].seen[1].feedback == ["one\n\ntwo"]


async def test_both_ways_ask_the_model_the_same(framework, server):
    """Law 8: run and streamed, the model is asked the same, and the run ends for the same reason."""
    reasons = []
    for way in WAYS:
        loop = LoopAgent(as_agent(make(framework, server)), says("a", None, explicit("x")))
        server.add(*[Completion(content=f"answer {n}") for n in range(4)])
        reasons.append(result_of(await way(loop)).stop_reason)
    assert reasons == [StopReason.SATISFIED] * 2
    assert [heard(server, n) for n in range(4)] == [heard(server, n) for n in range(4, 8)]
    assert [bool(body.get("stream")) for body in server.bodies] == [False] * 4 + [True] * 4


# --- what the agent hears


async def test_the_feedback_log(agent, invoke):
    """Law 9: one entry for each re-invocation, in order: the feedback, or `None`; evaluators see it read-only."""
    evaluator = says("first", None, " \n", explicit("x"), "last")
    await invoke(LoopAgent(agent, evaluator))
    assert evaluator.seen[-1].feedback == ["first", None, None, None, "last"]
    assert not hasattr(evaluator.seen[-1].context.feedback, "append")


async def test_the_feedback_is_verbatim_and_sent_once(agent, server, invoke):
    """Law 10: the next input is the latest feedback alone, verbatim, or nothing; the rejected answers are still there."""
    feedback = "  - keep *this*\n\n{gap_analysis} {{$x}} <b>&amp;  "
    await invoke(LoopAgent(agent, says(feedback, None, "second")))
    assert heard(server) == [
        ("user", "the request"),
        ("assistant", "reply 1"),
        ("user", feedback),
        ("assistant", "reply 2"),
        ("assistant", "reply 3"),
        ("user", "second"),
    ]


async def test_fresh_context(agent, sessions, server, invoke):
    """Law 11: the caller's messages again, then one message with all feedback, in a session that is made anew."""
    response = await invoke(LoopAgent(agent, says("first", None, "two\nlines"), FRESH))
    one = "## Feedback\n\n- first"
    assert [heard(server, n) for n in range(4)] == [
        [("user", "the request")],
        [("user", "the request"), ("user", one)],
        [("user", "the request"), ("user", one)],
        [("user", "the request"), ("user", f"{one}\n- two\nlines")],
    ]
    assert len(sessions.created) == 4
    assert sessions.serialized == sessions.cloned == []
    assert result_of(response).session is sessions.created[-1]


async def test_a_callers_session_is_cloned(agent, sessions, server, invoke):
    """Law 11: a caller's session is serialised once, before the first iteration, and each re-invocation gets a clone."""
    session = await agent.create_session()
    await invoke(agent, "before", session=session)
    evaluator = says("a", "b")
    await invoke(LoopAgent(agent, evaluator, FRESH), session=session)
    assert sessions.serialized == [session]
    assert len(sessions.created) == 1
    assert [seen.session for seen in evaluator.seen] == [session, *sessions.cloned]
    assert len(sessions.cloned) == 2
    said = ["before", "the request"]
    assert asked(server)[1:] == [said, [*said, "## Feedback\n\n- a"], [*said, "## Feedback\n\n- a\n- b"]]
    assert [role for role, _ in heard(server)] == ["user", "assistant", "user", "user"]
    await invoke(agent, "after", session=session)  # the first iteration ran on the caller's own session
    assert heard(server)[:4] == [
        ("user", "before"),
        ("assistant", "reply 1"),
        ("user", "the request"),
        ("assistant", "reply 2"),
    ]


@pytest.mark.parametrize("fresh", [False, True])
async def test_explicit_messages(agent, sessions, server, invoke, fresh):
    """Law 12: explicit messages are sent verbatim, in either mode; in fresh context the session is still replaced."""
    options = LoopAgentOptions(fresh_context_per_iteration=fresh, on_behalf_of_author_name="the-loop")
    await invoke(LoopAgent(agent, says(explicit("x", " y ")), options))
    sent = [("user", "x"), ("user", " y ")]
    assert heard(server) == (sent if fresh else [("user", "the request"), ("assistant", "reply 1"), *sent])
    assert len(sessions.created) == (2 if fresh else 1)


@pytest.mark.parametrize("given", [False, True], ids=["session made", "session given"])
async def test_the_callback_hears_of_sessions(agent, sessions, invoke, given):
    """Law 13: the callback hears of every session the loop makes or clones, and never of the caller's."""
    heard_of: list[AgentSession] = []
    session = await agent.create_session() if given else None
    options = LoopAgentOptions(fresh_context_per_iteration=True, session_created_callback=heard_of.append)
    await invoke(LoopAgent(agent, says("a", "b"), options), session=session)
    assert heard_of == (sessions.cloned if given else sessions.created)
    assert len(heard_of) == (2 if given else 3)


async def test_the_context(agent, server, invoke):
    """Law 13: the context has the inner agent, the request and the options, which reach every inner run."""
    evaluator = says("a")
    options = AgentRunOptions(chat_options=ChatOptions(temperature=0.25))
    await invoke(LoopAgent(agent, evaluator), options=options)
    assert [body["temperature"] for body in server.bodies] == [0.25, 0.25]
    assert [seen.response.text for seen in evaluator.seen] == ["reply 1", "reply 2"]
    for seen in evaluator.seen:
        assert seen.context.agent is agent
        assert seen.context.run_options is options
        assert texts(seen.context.initial_messages) == [("user", "the request")]


# --- what the caller gets


async def test_the_transcript(agent, invoke):
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


async def test_replayed_messages_are_not_echoed(agent, invoke):
    """Law 14: in fresh context the replayed messages are not echoed."""
    response = await invoke(LoopAgent(agent, says(None, "more"), FRESH))
    assert texts(response.messages) == [
        ("assistant", "reply 1"),
        ("assistant", "reply 2"),
        ("user", "## Feedback\n\n- more"),
        ("assistant", "reply 3"),
    ]


async def test_identical_replies_are_both_kept(agent, server, invoke):
    """Law 14: identical replies are both in the transcript, and both in the history (C5)."""
    server.add(*[Completion(content="same")] * 3)
    response = await invoke(LoopAgent(agent, says("more", "more")))
    assert texts(response.messages) == [("assistant", "same"), ("user", "more")] * 2 + [("assistant", "same")]
    assert heard(server)[1:] == [("assistant", "same"), ("user", "more")] * 2


async def test_the_last_response_only(agent):
    """Law 14: `non_streaming_returns_last_response_only` gives the last iteration's messages alone."""
    options = LoopAgentOptions(non_streaming_returns_last_response_only=True)
    response = await LoopAgent(agent, says("more"), options).run("go")
    assert texts(response.messages) == [("assistant", "reply 2")]
    assert len(result_of(response).iterations) == 2


async def test_usage_is_summed(agent, server, invoke):
    """Law 16: usage is the sum over all iterations, every counter, once; an inner response keeps its own."""
    details = {"completion_tokens_details": {"reasoning_tokens": 2}}
    server.add(
        Completion(content="1", usage=usage(10, 5, **details)),
        Completion(content="2", usage=usage(20, 6, **details)),
        Completion(content="3"),
    )
    response = await invoke(LoopAgent(agent, says("a", "b")))
    used = response.usage
    counted = (used.input_token_count, used.output_token_count, used.total_token_count, used.reasoning_token_count)
    assert counted == (30, 11, 41, 4)
    records = result_of(response).iterations
    assert [record.usage and record.usage.input_token_count for record in records] == [10, 20, None]
    assert [len(record.response.messages) for record in records] == [1, 1, 1]
    contents = [content for message in response.messages for content in message.contents]
    assert not any(isinstance(content, UsageContent) for content in contents)


async def test_nothing_reported_is_not_zero(agent, invoke):
    """Law 16: a counter nobody reported stays `None`."""
    assert (await invoke(LoopAgent(agent, says("more")))).usage is None


async def test_the_fields_of_the_last_response(agent, framework, server, invoke):
    """Law 16: the response keeps the fields of the last inner response, as far as the framework passes them on."""
    server.add(Completion(content="1"), Completion(content="2", finish_reason="length"))
    response = await invoke(LoopAgent(agent, says("more")))
    last = result_of(response).iterations[-1].response
    withheld = framework == "semantic_kernel" and invoke.streaming  # its agents drop the chunk that says the end
    assert response.finish_reason == last.finish_reason == (None if withheld else "length")
    assert (response.response_id, response.agent_id) == (last.response_id, last.agent_id)
    assert response.agent_id == agent.id


async def test_what_drove_an_iteration_comes_first(agent):
    """Law 17: on-behalf-of messages come before the first update, with its response id, an id and no agent id."""
    stream = LoopAgent(agent, says("more", explicit("x"))).run_streaming("go")
    updates = await drain(stream)
    said = [(update.role, update.text, update.response_id) for update in updates if update.text]
    roles = [role for role, _, _ in said]
    drove = [update for update in updates if update.role == "user"]
    assert [update.text for update in drove] == ["more", "x"]
    assert [update.agent_id for update in drove] == [None, None]
    assert len({update.message_id for update in drove} - {None}) == 2
    for update in drove:
        following = updates[updates.index(update) + 1]
        assert (following.role, following.response_id) == ("assistant", update.response_id)
        assert following.agent_id == agent.id
    assert len({response_id for _, _, response_id in said}) == 3
    assert roles.count("assistant") > 3  # the texts come in pieces
    assert AgentResponse.from_updates(updates).messages == (await stream.final_response()).messages


async def test_an_update_is_not_waited_for(agent, server):
    """Law 17: an update is there before the model has written the next one."""
    server.add(HALF)
    stream = LoopAgent(agent, says()).run_streaming("go")
    async with asyncio.timeout(60), stream:
        async for update in stream:
            if update.text:
                break
    assert update.text == "half an "


@pytest.mark.parametrize(
    ("words", "expected"),
    [((), "satisfied"), ((MORE, MORE), "max_iterations"), ((LoopEvaluation.abort("no"),), "aborted")],
)
async def test_every_run_has_a_reason(agent, invoke, words, expected):
    """Law 18: every run has a stop reason; the result is JSON."""
    response = await invoke(LoopAgent(agent, says(*words), LoopAgentOptions(max_iterations=2)))
    assert json.loads(result_of(response).to_json())["stop_reason"] == expected


@pytest.mark.parametrize("streaming", [False, True])
async def test_the_events_tell_the_result(agent, streaming):
    """Law 18: the result is in the events, which tell of each iteration."""
    loop = LoopAgent(agent, says("more"))
    async with loop.events("go", streaming=streaming) as events:
        told = [event async for event in events]
    assert [event.number for event in told if isinstance(event, IterationStarted)] == [1, 2]
    assert isinstance(told[-1], LoopStopped)
    assert told[-1].result.output == "reply 2"


async def test_an_error_has_the_result(agent, server, invoke):
    """Law 18: from the framework's own exception the result so far can be read, also through a cause chain."""
    server.add(Completion(content="a draft"), Failure(500, "broken"))
    with pytest.raises(Exception, match="broken") as raised:
        await invoke(LoopAgent(agent, says("more")))
    result = result_of(raised.value)
    assert type(raised.value).__module__.partition(".")[0] in FRAMEWORKS
    assert (result.stop_reason, result.output, len(result.iterations)) == (StopReason.FAILED, "a draft", 1)
    wrapper = RuntimeError("outer")
    wrapper.__cause__ = raised.value
    assert LoopResult.of(wrapper) is result


async def test_loops_nest(agent, invoke):
    """Law 18: the outer loop's result is the one found, and the inner ones are reachable from its iterations."""
    response = await invoke(LoopAgent(LoopAgent(agent, says("inner")), says("outer")))
    outer = result_of(response)
    assert outer.output == "reply 4"
    inner = [result_of(record.response) for record in outer.iterations]
    assert [len(result.iterations) for result in inner] == [2, 2]
    assert outer.run_id not in {result.run_id for result in inner}


async def test_a_judge_ends_the_run(agent, server, invoke):
    """Law 18: a judge's gap is the feedback, and its pass is the reason."""
    judge = ScriptedChatClient(
        ['{"gapAnalysis": "no cost", "answered": false}', '{"gapAnalysis": "", "answered": true}']
    )
    response = await invoke(LoopAgent(agent, AIJudgeLoopEvaluator(judge)))
    assert result_of(response).stop_reason is StopReason.SATISFIED
    assert "no cost" in heard(server)[-1][1]


async def end_of_others(before: set[asyncio.Task[Any]]) -> None:
    """Fails if a task that is not of `before` goes on; one that closes a generator may take its turn."""
    left = asyncio.all_tasks() - before
    if left:
        _, going_on = await asyncio.wait(left, timeout=60)
        assert going_on == set()


async def test_closing_early_leaves_nothing(agent, server):
    """Law 19: closing a stream early closes the connection to the model; nothing is judged, no task is left."""
    server.add(HALF)
    evaluator = says("more")
    before = asyncio.all_tasks()
    stream = LoopAgent(agent, evaluator).run_streaming("go")
    async with stream:
        async for update in stream:
            if update.text:
                break
    assert await asyncio.to_thread(server.client_left.wait, 30)
    await end_of_others(before)
    assert (len(server.requests), evaluator.seen) == (1, [])
    assert result_of(stream).stop_reason is StopReason.CANCELLED


async def test_cancelling_leaves_nothing(agent, server, invoke):
    """Law 19: cancelling a run cancels the framework's call and leaves no task behind; the result says so."""
    server.add(Silence())
    evaluator = says("more")
    before = asyncio.all_tasks()
    task = asyncio.create_task(invoke(LoopAgent(agent, evaluator)))
    assert await asyncio.to_thread(server.asked.wait, 60)
    task.cancel()
    with pytest.raises(asyncio.CancelledError) as raised:
        await task
    assert await asyncio.to_thread(server.client_left.wait, 30)
    await end_of_others(before)
    assert evaluator.seen == []
    assert result_of(raised.value).stop_reason is StopReason.CANCELLED


async def test_one_loop_serves_many_runs(agent, server, invoke: Way):
    """Law 20: one loop over one agent serves concurrent runs, each with its own conversation."""
    loop = LoopAgent(agent, always(LoopEvaluation.continue_("more")), LoopAgentOptions(max_iterations=3))
    responses = await asyncio.gather(*[invoke(loop, f"request {n}") for n in range(5)])
    assert [len(result_of(response).iterations) for response in responses] == [3] * 5
    longest = [heard(server, n) for n in range(15) if len(heard(server, n)) == 5]
    assert sorted(said[0][1] for said in longest) == [f"request {n}" for n in range(5)]
    said = sorted(message.text for response in responses for message in response.messages if message.role != "user")
    assert len(said) == len(set(said)) == 15
    assert all(UsageDetails() != response.usage for response in responses)
