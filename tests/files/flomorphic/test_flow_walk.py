from __future__ import annotations

import asyncio
import json
import pickle
from collections.abc import AsyncIterator, Sequence
from typing import Any

import pytest
from flow_files import call, calls, flow_file, js, llm, run, run_events

from agents_loop import (
    AgentSession,
    ChatClient,
    ChatMessage,
    ChatOptions,
    ChatResponse,
    ChatResponseUpdate,
    ConfigurationError,
    LoopBudget,
    LoopResult,
    ModelPrice,
    StopReason,
    UsageDetails,
)
from agents_loop.files import FlowNodeError, RunSettings
from agents_loop.files.flomorphic.file import FloMorphicFile
from agents_loop.files.flomorphic.flow import Flow
from agents_loop.files.flomorphic.js import JsLimits
from agents_loop.files.flomorphic.options import FlowOptions
from agents_loop.loop.events import AgentResponded, AgentUpdated, EvaluatorDecided, LoopStopped, NodeChanged
from agents_loop.loop.options import LoopAgentOptions
from agents_loop.messages import FunctionCallContent
from agents_loop.testing import ScriptedChatClient


def written(name: str, arguments: str) -> ChatMessage:
    """A call whose arguments are what the model wrote."""
    return ChatMessage("assistant", [FunctionCallContent("call-1", name, arguments)])


MARK_A, MARK_B = js("a", "1", key="a"), js("b", "2", key="b")


def judged(*replies: Any, exception: bool = False) -> tuple[FloMorphicFile, ScriptedChatClient]:
    """A worker and a judge with the ports `again` (back to the worker) and `done`."""
    nodes = [
        llm("w", "work", key="w"),
        llm("j", "judge", "again", "done", key="j", clear=True),
        js("end", "1", key="end"),
    ]
    edges = [("start", "w"), ("w", "j"), ("j", "w", "again"), ("j", "end", "done")]
    if exception:
        nodes.append(js("rescue", "_get('$.j').code", key="rescued"))
        edges.append(("j", "rescue", "_exception"))
    return flow_file(nodes, *edges), ScriptedChatClient(list(replies))


async def test_the_called_function_picks_the_edge():
    """Only the edges of the called function fire."""
    nodes = [llm("j", "judge", "left", "right", key="j"), MARK_A, MARK_B]
    loop_file = flow_file(nodes, ("start", "j"), ("j", "a", "left"), ("j", "b", "right"))
    result = await run(loop_file, ScriptedChatClient([call("right")]))

    assert result.report["visits"] == ["start", "j", "b"]
    assert result.stop_reason == StopReason.SATISFIED


async def test_several_calls_fire_several_edges():
    """Several calls fire all their edges, and of one function called twice each edge once."""
    nodes = [llm("j", "judge", "left", "right", "none", key="j"), MARK_A, MARK_B]
    loop_file = flow_file(nodes, ("start", "j"), ("j", "a", "left"), ("j", "b", "right"))
    reply = calls(("right", {}), ("left", {}), ("right", {}))
    result = await run(loop_file, ScriptedChatClient([reply]))

    assert sorted(result.report["visits"]) == ["a", "b", "j", "start"]
    assert result.report["context"]["j"]["routed"] == ["right", "left"]
    assert len(result.report["context"]["j"]["tool_calls"]) == 3


async def test_a_function_without_an_edge_is_the_end():
    """A function whose port has no edge ends its branch."""
    nodes = [llm("j", "judge", "left", "stop", key="j"), MARK_A]
    result = await run(flow_file(nodes, ("start", "j"), ("j", "a", "left")), ScriptedChatClient([call("stop")]))

    assert (result.report["visits"], result.stop_reason) == (["start", "j"], StopReason.SATISFIED)


@pytest.mark.parametrize(
    ("reply", "code"),
    [
        ("I can't decide.", "no_function_selected"),
        (call("burn"), "unbound_function"),
        (calls(("done", {}), ("burn", {})), "unbound_function"),
        (written("done", '{"reason": "no", "reason": "yes"}'), "unclear_arguments"),
        (written("done", '{"all": [{"a": 1}, {"a": 1, "b": {"c": 1, "c": 1}}]}'), "unclear_arguments"),
        (written("again", '{"question": "a?", "question": "b?"}'), "unclear_arguments"),
        (ChatResponse(call("done"), finish_reason="length"), "provider_error"),
        (ChatResponse("no", finish_reason="refusal"), "provider_error"),
        (ConnectionError("down"), "provider_error"),
    ],
)
async def test_what_is_no_choice_goes_to_the_exception_port(reply: Any, code: str):
    """No call, an unknown function, a key given twice, a reply that ended early and a failing model fire `_exception`."""
    loop_file, client = judged("draft", reply, exception=True)
    result = await run(loop_file, client)

    assert result.report["visits"][-2:] == ["j", "rescue"]
    assert result.report["context"]["rescued"] == code
    assert "routed" not in result.report["context"]["j"]
    assert result.stop_reason == StopReason.EVALUATOR_FAILED
    (evaluation,) = result.iterations[0].evaluations
    assert (evaluation.decision, evaluation.feedback) == ("continue", None)
    assert evaluation.note is not None
    assert evaluation.note.startswith(code)


async def test_a_later_verdict_makes_up_for_a_missing_one():
    """A branch that gets its verdict after all is satisfied."""
    nodes = [llm("w", "work", key="w"), llm("j", "judge", "done", key="j", clear=True)]
    loop_file = flow_file(nodes, ("start", "w"), ("w", "j"), ("j", "w", "_exception"))
    result = await run(loop_file, ScriptedChatClient(["draft", "well", "again", call("done")]))

    assert result.stop_reason == StopReason.SATISFIED
    assert [each.decision for record in result.iterations for each in record.evaluations] == ["continue", "stop"]


@pytest.mark.parametrize("reply", ["I can't decide.", call("burn")])
async def test_without_an_exception_edge_the_run_fails(reply: Any):
    """Where nothing is chosen and no edge is drawn for it the run ends as failed, with its result and no exception."""
    loop_file, client = judged("draft", reply)
    result = await run(loop_file, client)

    assert result.stop_reason == StopReason.EVALUATOR_FAILED
    assert result.stop_detail is not None
    assert "the node 'j' chose no port" in result.stop_detail
    assert result.output == "draft"


@pytest.mark.parametrize(
    ("replies", "reason"),
    [
        ([ConnectionError("down")], StopReason.FAILED),
        (["draft", ConnectionError("down")], StopReason.EVALUATOR_FAILED),
    ],
)
async def test_a_model_that_fails_raises(replies: Sequence[Any], reason: StopReason):
    """What a model's client raised reaches the caller as it was raised, with the result so far."""
    loop_file, client = judged(*replies)
    built = loop_file.build({}, lambda name: client)
    events: list[Any] = []

    async def drain() -> None:
        async with built.agent.events() as running:
            events.append(running)
            async for event in running:
                events.append(event)  # noqa: PERF401 - what came before the exception is the point

    with pytest.raises(ConnectionError) as caught:
        await drain()

    result = LoopResult.of(caught.value)
    assert result is not None
    assert result is events[0].result
    assert (result.stop_reason, len(result.iterations)) == (reason, len(replies) - 1)
    assert isinstance(events[-1], LoopStopped)


async def test_edges_that_fan_out_run_at_once():
    """Several edges of a node run in parallel: two models are asked at the same time."""
    meeting = asyncio.Barrier(2)

    async def answer(messages: Sequence[ChatMessage], options: ChatOptions | None) -> str:
        await meeting.wait()  # nobody answers before both are asked
        return messages[-1].text

    loop_file = flow_file([llm("a", "A", key="a"), llm("b", "B", key="b")], ("start", "a"), ("start", "b"))
    result = await run(loop_file, ScriptedChatClient(answer))

    assert {result.report["context"][name]["messages"][-1]["content"] for name in "ab"} == {"A", "B"}
    assert sorted(entry.iteration for entry in result.ledger) == [1, 2]
    assert [record.number for record in result.iterations] == [1, 2]


async def test_inbound_edges_do_not_wait_for_each_other():
    """A node that several branches lead to is visited by each."""
    count = js("c", "(input.n || 0) + 1", key="n")
    loop_file = flow_file([MARK_A, MARK_B, count], ("start", "a"), ("start", "b"), ("a", "c"), ("b", "c"))
    result = await run(loop_file, ScriptedChatClient([]))

    assert result.report["visits"].count("c") == 2
    assert sorted(result.report["context"]) == ["a", "b", "n"]


async def test_one_branch_that_fails_ends_all():
    """A branch that fails ends the others, and nothing of them is left."""
    cancelled = asyncio.Event()

    async def answer(messages: Sequence[ChatMessage], options: ChatOptions | None) -> str:
        if messages[-1].text == "B":
            raise ConnectionError("down")
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()
        return "never"

    loop_file = flow_file([llm("a", "A", key="a"), llm("b", "B", key="b")], ("start", "a"), ("start", "b"))
    with pytest.raises(ConnectionError):
        await run(loop_file, ScriptedChatClient(answer))
    assert cancelled.is_set()
    assert asyncio.all_tasks() == {asyncio.current_task()}


async def test_a_routing_node_on_many_stops_at_the_first():
    """A node that decides, on a scope of many, asks for the first element that picks."""
    nodes = [llm("j", "{{$this.n}}?", "go", scope="$.items[*]", key="j"), MARK_A]
    loop_file = flow_file(nodes, ("start", "j"), ("j", "a", "go"))
    client = ScriptedChatClient(["well", call("go")])
    result = await run(loop_file, client, inputs={"items": '[{"n": 1}, {"n": 2}, {"n": 3}]'})

    assert [each.messages[-1].text for each in client.calls] == ["1?", "2?"]
    assert result.report["visits"] == ["start", "j", "a"]
    assert result.stop_reason == StopReason.SATISFIED


async def test_a_routing_node_on_nothing_ends_its_branch():
    """A node that decides and has nothing to decide on picks nothing; a verdict that was never given is no pass."""
    nodes = [llm("j", "?", "go", scope="$.items[*]", key="j"), MARK_A]
    result = await run(flow_file(nodes, ("start", "j"), ("j", "a", "go")), ScriptedChatClient([]))

    assert (result.report["visits"], result.stop_reason) == (["start", "j"], StopReason.EVALUATOR_FAILED)
    assert result.stop_detail == "j: there was nothing to decide on: $.items[*] leads to nothing"


async def test_decisions_are_capped_as_visits_are():
    """A node that decides on each of many asks no more often than nodes are visited at most."""
    loop_file = flow_file([llm("j", "{{$this}}?", "go", scope="$.items[*]"), MARK_A], ("start", "j"), ("j", "a", "go"))
    loop_file.max_node_visits = 3
    client = ScriptedChatClient(["well"] * 9)
    result = await run(loop_file, client, inputs={"items": json.dumps([{}] * 9)})

    assert (len(client.calls), result.stop_reason) == (3, StopReason.MAX_ITERATIONS)
    assert result.stop_detail == "3 decisions, which is the most for a run"


async def test_a_decision_before_any_answer_is_an_iteration_of_its_own():
    """A node that decides first is an iteration whose answer is its call; the output is that of a node that answers."""
    nodes = [llm("j", "which?", "go", key="j"), llm("w", "work", key="w")]
    loop_file = flow_file(nodes, ("start", "j"), ("j", "w", "go"))
    events, result = await run_events(loop_file, ScriptedChatClient([call("go", to="w"), "worked"]))

    assert [len(record.evaluations) for record in result.iterations] == [1, 0]
    assert isinstance(result.iterations[0].response.messages[0].contents[0], FunctionCallContent)
    assert result.output == "worked"
    numbers = [event.number for event in events if isinstance(event, AgentResponded | EvaluatorDecided)]
    assert numbers == [1, 1, 2]


async def test_calls_of_the_past_have_results():
    """A conversation that holds calls is sent with a result for each, as providers demand."""
    nodes = [llm("j", "?", "again", "done", key="j"), js("n", "({ n: 1 })")]
    loop_file = flow_file(nodes, ("start", "j"), ("j", "j", "again"), ("j", "n", "done"))
    client = ScriptedChatClient([call("again"), calls(("again", {}), ("again", {"x": 1})), call("done")])
    await run(loop_file, client)

    assert [message.role for message in client.calls[2].messages] == [
        "user",
        "assistant",
        "tool",
        "assistant",
        "tool",
        "tool",
    ]
    called = [c for m in client.calls[2].messages for c in m.contents if isinstance(c, FunctionCallContent)]
    results = [c.call_id for m in client.calls[2].messages if m.role == "tool" for c in m.contents]
    assert [c.call_id for c in called] == results


async def test_a_flow_without_an_end_stops_at_the_cap_on_visits():
    """A flow that goes round for ever ends at the cap on node visits, and says so."""
    loop_file = flow_file([MARK_A], ("start", "a"), ("a", "a"))
    loop_file.max_node_visits = 20
    result = await run(loop_file, ScriptedChatClient([]))

    assert result.stop_reason == StopReason.MAX_ITERATIONS
    assert result.stop_detail == "20 node visits, which is the most for a run"
    assert len(result.report["visits"]) == 20
    assert FlowOptions().max_node_visits == 500


async def test_the_cap_counts_answers():
    """N iterations are N answers, and the last one is judged."""
    loop_file, client = judged(*["draft", call("again", question="more?")] * 3)
    result = await run(loop_file, client, RunSettings(max_iterations=2))

    assert (result.stop_reason, result.stop_detail) == (StopReason.MAX_ITERATIONS, "2 of 2 iterations")
    assert len(client.calls) == 4
    assert [record.evaluations[0].feedback for record in result.iterations] == ["more?", "more?"]


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        (RunSettings(max_tokens=150), StopReason.BUDGET_EXCEEDED),
        (
            RunSettings(
                max_cost_usd=0.00015, prices={"*": ModelPrice(input_usd_per_million=1, output_usd_per_million=1)}
            ),
            StopReason.BUDGET_EXCEEDED,
        ),
    ],
)
async def test_budgets_hold(settings: RunSettings, reason: StopReason):
    """A budget ends a flow with its answer so far."""
    reply = ChatResponse("draft", usage=UsageDetails(50, 50))
    verdict = ChatResponse(call("again"), usage=UsageDetails(50, 50))
    loop_file, client = judged(reply, verdict, reply, verdict)
    result = await run(loop_file, client, settings)

    assert (result.stop_reason, result.output, len(client.calls)) == (reason, "draft", 2)
    assert result.usage is not None
    assert result.usage.input_token_count == 100


async def test_money_needs_prices():
    """With a money budget, a model without a price is refused before any call."""
    loop_file, client = judged("draft")
    settings = RunSettings(
        max_cost_usd=1, prices={"other": ModelPrice(input_usd_per_million=1, output_usd_per_million=1)}
    )
    with pytest.raises(ConfigurationError, match="default"):
        await run(loop_file, client, settings)
    assert client.calls == []


class Clock:
    """A clock that a test moves."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def flow_with(loop_file: FloMorphicFile, client: ChatClient, options: LoopAgentOptions) -> Flow:
    return Flow(loop_file.graph, {"default": client}, FlowOptions(loop=options))


async def test_a_deadline_holds_between_calls():
    """A deadline ends a flow with its answer so far."""
    clock = Clock()

    def answer(messages: Sequence[ChatMessage], options: ChatOptions | None) -> str:
        clock.now += 10
        return "draft"

    loop_file, _ = judged()
    options = LoopAgentOptions(budget=LoopBudget(deadline_s=5), clock=clock)
    async with flow_with(loop_file, ScriptedChatClient(answer), options).events() as events:
        _ = [event async for event in events]

    assert events.result is not None
    assert (events.result.stop_reason, events.result.output) == (StopReason.DEADLINE, "draft")


async def test_a_call_under_way_is_cancelled_at_the_deadline():
    """A call that is under way at the deadline is cancelled."""

    async def answer(messages: Sequence[ChatMessage], options: ChatOptions | None) -> str:
        await asyncio.Event().wait()
        return "never"

    loop_file, _ = judged()
    result = await run(loop_file, ScriptedChatClient(answer), RunSettings(deadline_s=0.01))

    assert result.stop_reason == StopReason.DEADLINE
    assert [entry.outcome for entry in result.ledger] == ["cancelled"]


async def test_a_script_under_way_does_not_hold_up_the_deadline():
    """A slow script runs beside the event loop: the deadline ends the run while it is under way."""
    loop_file = flow_file([js("a", "for (;;) {}")])
    loop_file.js_limits = JsLimits(time_s=0.3)
    result = await run(loop_file, ScriptedChatClient([]), RunSettings(deadline_s=0.01))

    assert result.stop_reason == StopReason.DEADLINE
    assert result.report["context"] == {}


async def test_leaving_early_leaves_nothing_running():
    """Leaving the events early cancels what is under way; the result says so."""
    loop_file, client = judged("draft", call("again"), "draft")
    async with loop_file.build({}, lambda name: client).agent.events() as events:
        async for event in events:
            if isinstance(event, AgentResponded):
                break

    assert events.result is not None
    assert (events.result.stop_reason, len(client.calls)) == (StopReason.CANCELLED, 1)
    assert asyncio.all_tasks() == {asyncio.current_task()}


class Streaming(ChatClient):
    """Streams without an end, and knows whether its stream was closed."""

    def __init__(self) -> None:
        self.closed = False

    async def get_response(self, messages: Sequence[ChatMessage], options: ChatOptions | None = None) -> ChatResponse:
        raise AssertionError

    async def get_streaming_response(
        self, messages: Sequence[ChatMessage], options: ChatOptions | None = None
    ) -> AsyncIterator[ChatResponseUpdate]:
        try:
            while True:
                yield ChatResponseUpdate("assistant", "more ")
        finally:
            self.closed = True


async def test_leaving_early_closes_the_stream():
    """Leaving a streaming run early closes the stream of the model that is answering."""
    client = Streaming()
    async with judged()[0].build({}, lambda name: client).agent.events(streaming=True) as events:
        async for event in events:
            if isinstance(event, AgentUpdated):
                break

    assert client.closed
    assert asyncio.all_tasks() == {asyncio.current_task()}


async def test_cancelling_ends_what_is_under_way():
    """A cancelled run ends its calls, and carries its result."""
    asked = asyncio.Event()

    async def answer(messages: Sequence[ChatMessage], options: ChatOptions | None) -> str:
        asked.set()
        await asyncio.Event().wait()
        return "never"

    loop_file, _ = judged()
    task = asyncio.create_task(run(loop_file, ScriptedChatClient(answer)))
    await asked.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError) as caught:
        await task

    result = LoopResult.of(caught.value)
    assert result is not None
    assert result.stop_reason == StopReason.CANCELLED
    assert asyncio.all_tasks() == {asyncio.current_task()}


async def test_no_node_goes_on_before_its_event_is_taken():
    """Events and the run go in step: nothing is asked before the event before it has been taken."""
    loop_file, client = judged("draft", call("done"))
    async with loop_file.build({}, lambda name: client).agent.events() as events:
        async for event in events:
            if isinstance(event, NodeChanged) and (event.node, event.status) == ("w", "started"):
                assert client.calls == []
            if isinstance(event, AgentResponded):
                assert len(client.calls) == 1


async def test_a_flow_serves_many_runs_at_once():
    """A flow holds no state of a run: runs at once don't see each other's context."""
    nodes = [js("a", "(input.n || 0) + 1", key="n"), llm("w", "{{$.n}}", key="w")]
    agent = flow_file(nodes).build({}, lambda name: ScriptedChatClient(lambda m, o: m[-1].text)).agent

    async def one() -> Any:
        async with agent.events() as events:
            _ = [event async for event in events]
        return events.result.report["context"]["n"], events.result.output

    assert await asyncio.gather(*[one() for _ in range(5)]) == [(1, "1")] * 5


async def test_arguments_that_are_no_json_still_route():
    """The name of the called function picks the edge, also where its arguments are no JSON; they are kept as they are."""
    loop_file, client = judged("draft", calls(("done", '{"summary": "x')))
    result = await run(loop_file, client)

    assert result.report["context"]["j"]["tool_calls"][0]["arguments"] == '{"summary": "x'
    assert result.iterations[0].evaluations[0].details == {"calls": [{"name": "done", "arguments": '{"summary": "x'}]}


async def test_only_the_assistant_calls():
    """A call that stands in a message of another role is no choice."""
    loop_file, client = judged("draft", ChatMessage("tool", call("done").contents))
    result = await run(loop_file, client)

    assert result.stop_reason == StopReason.EVALUATOR_FAILED
    assert "no_function_selected" in (result.stop_detail or "")


@pytest.mark.parametrize("arguments", ['{"n": NaN}', '{"n": 1e999}', "[" * 900 + "]" * 900, {"n": float("nan")}])
async def test_a_result_is_json_whatever_was_called(arguments: Any):
    """Arguments that can't be written as JSON again stand in the records as a text: a result is always JSON."""
    loop_file, client = judged("draft", calls(("done", arguments)))
    written = (await run(loop_file, client)).to_json()

    def refuse(name: str) -> None:
        raise AssertionError(name)

    kept = json.loads(written, parse_constant=refuse)["iterations"][0]["evaluations"][0]["details"]["calls"]
    assert isinstance(kept[0]["arguments"], str)


def test_an_error_of_a_node_can_be_pickled():
    """A node's error survives a process's border."""
    error = pickle.loads(pickle.dumps(FlowNodeError("a", "it broke")))  # noqa: S301 - our own
    assert (error.ref, str(error)) == ("a", "the node 'a' failed: it broke")


async def test_a_flow_takes_no_session():
    """A session has nothing to do in a flow."""
    loop_file, client = judged()
    with pytest.raises(ConfigurationError, match="no session"):
        async with loop_file.build({}, lambda name: client).agent.events(session=AgentSession()):
            pass


async def test_what_scripts_log_is_reported():
    """`_log` lines stand in the result, with the node that wrote them."""
    result = await run(flow_file([js("a", "_log('seen'); 1")]), ScriptedChatClient([]))

    assert result.report["log"] == [{"node": "a", "text": "seen"}]


async def test_logs_are_kept_within_bounds():
    """Of what scripts log, so many lines are kept, and so much of each."""
    result = await run(
        flow_file([js("a", "for (let i = 0; i < 1500; i++) _log('x'.repeat(i * 2)); 1")]), ScriptedChatClient([])
    )

    lines = [entry["text"] for entry in result.report["log"]]
    assert (len(lines), max(map(len, lines))) == (1000, 1998)


async def test_a_script_that_fails_after_a_missing_verdict_is_no_judge():
    """A script that fails behind the exception port ends the run as failed, not as the evaluator's failure."""
    nodes = [llm("j", "?", "go", key="j"), js("broken", "missing.thing")]
    with pytest.raises(FlowNodeError) as caught:
        await run(
            flow_file(nodes, ("start", "j"), ("j", "broken", "_exception")), ScriptedChatClient([ConnectionError()])
        )

    result = LoopResult.of(caught.value)
    assert result is not None
    assert result.stop_reason == StopReason.FAILED


async def test_models_are_asked_by_profile():
    """Each node asks the model of its settings profile."""
    asked: list[str] = []

    def client_for(name: str) -> ChatClient:
        return ScriptedChatClient(lambda messages, options: asked.append(name) or "ok")

    await run(
        flow_file([llm("a", settings="small", key="a"), llm("b", key="b"), llm("c", settings="small", key="c")]),
        client_for,
    )
    assert asked == ["small", "default", "small"]


@pytest.mark.parametrize(
    ("edges", "decision"),
    [
        ([("start", "w"), ("w", "j"), ("j", "w", "pick")], "continue"),
        ([("start", "w"), ("w", "j"), ("j", "x", "pick"), ("x", "w")], "continue"),
        ([("start", "w"), ("w", "j"), ("j", "x", "pick")], "stop"),
        ([("start", "w"), ("w", "j"), ("j", "k", "pick"), ("k", "w", "pick")], "stop"),
        ([("start", "j"), ("j", "j", "pick")], "continue"),
    ],
    ids=["back", "back through another", "onwards", "another decides first", "to itself"],
)
def test_a_decision_goes_on_where_it_leads_back(edges: list[Any], decision: str):
    """A port goes on where it closes a loop before another node decides; elsewhere it stops."""
    nodes = [llm("w"), llm("j", "?", "pick"), llm("k", "?", "pick"), js("x", "1")]
    graph = flow_file(nodes, *edges).graph

    assert graph.leads_back("j", ["pick"]) is (decision == "continue")


def test_options_are_checked():
    """A cap on visits is at least 1."""
    with pytest.raises(ConfigurationError, match="max_node_visits"):
        FlowOptions(max_node_visits=0)
    with pytest.raises(TypeError, match="max_node_visits must be an int, not 'x'"):
        FlowOptions(max_node_visits="x")  # pyright: ignore[reportArgumentType]
    assert FlowOptions(loop=LoopAgentOptions(max_iterations=3)).max_iterations == 3
    assert FlowOptions(max_node_visits=7).max_iterations == 7
