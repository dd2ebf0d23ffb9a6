"""Law 18: every run has a stop reason, and its result can be read from wherever the run surfaced."""

from __future__ import annotations

import asyncio
import itertools
import json
import pickle
import threading

import pytest
from fakes import HangingEvaluator, RecordingAgent, Updates, Way, always, drain, says, time_runs_out
from syrupy.assertion import SnapshotAssertion

from agents_loop import (
    AgentResponse,
    AgentSession,
    AgentsLoopError,
    BudgetExceededError,
    ChatMessage,
    ConfigurationError,
    DelegateLoopEvaluator,
    DelegatingAIAgent,
    FunctionCallContent,
    JudgeFailedError,
    LoopAgent,
    LoopAgentOptions,
    LoopContext,
    LoopEvaluation,
    LoopResult,
    LoopStopped,
    MissingExtraError,
    ServiceNotFoundError,
    SessionStateError,
    StopReason,
    ToolApprovalRequestContent,
    UsageDetails,
)
from agents_loop.testing import ScriptExhaustedError


class RateLimitError(Exception):
    """Stands for what an SDK raises."""


def test_the_reasons_are_schema():
    """Law 18: the stop reasons are exactly these."""
    assert {reason.name: reason.value for reason in StopReason} == {
        "SATISFIED": "satisfied",
        "MAX_ITERATIONS": "max_iterations",
        "PENDING_APPROVAL": "pending_approval",
        "PENDING_INPUT": "pending_input",
        "ABORTED": "aborted",
        "STALLED": "stalled",
        "BUDGET_EXCEEDED": "budget_exceeded",
        "DEADLINE": "deadline",
        "EVALUATOR_FAILED": "evaluator_failed",
        "FAILED": "failed",
        "CANCELLED": "cancelled",
    }


# From a response, a stream and the events


async def test_from_a_response(agent: RecordingAgent, invoke: Way):
    """Law 18: the result can be read from the response."""
    session = AgentSession()
    result = LoopResult.of(await invoke(LoopAgent(agent, says("more")), session=session))
    assert (result.stop_reason, result.stop_detail, result.output) == (StopReason.SATISFIED, None, "reply 2")
    assert result.session is session
    assert result.duration_s >= sum(record.duration_s for record in result.iterations) >= 0
    first, second = result.iterations
    assert [message.text for message in first.input] == ["the request"]
    assert first.on_behalf_of == ()
    assert [message.text for message in second.input] == ["more"]
    assert second.on_behalf_of == second.input
    assert [record.response.text for record in result.iterations] == ["reply 1", "reply 2"]
    assert [said.decision for record in result.iterations for said in record.evaluations] == ["continue", "stop"]
    assert first.evaluations[0].evaluator == "ScriptedEvaluator"


async def test_from_a_stream(agent: RecordingAgent):
    """Law 18: the result can be read from the stream: none while it goes on, then the response's."""
    stream = LoopAgent(agent, says("more")).run_streaming("go")
    assert LoopResult.of(stream) is None
    await anext(stream)
    assert LoopResult.of(stream) is None
    response = await stream.final_response()
    assert LoopResult.of(stream) is LoopResult.of(response)
    assert LoopResult.of(stream).stop_reason is StopReason.SATISFIED


async def test_from_the_events(agent: RecordingAgent):
    """Law 18: the result can be read from the events, and from the last of them."""
    async with LoopAgent(agent, says()).events("go") as events:
        listed = [event async for event in events]
    assert isinstance(listed[-1], LoopStopped)
    assert LoopResult.of(listed[-1]) is LoopResult.of(events) is listed[-1].result
    assert LoopResult.of(listed[-1].response) is listed[-1].result


async def test_events_that_are_left_early(agent: RecordingAgent):
    """Law 18: a run whose events are left early was cancelled."""
    async with LoopAgent(agent, says("more")).events("go", streaming=True) as events:
        async for event in events:
            if type(event).__name__ == "AgentUpdated":
                break
    assert events.result.stop_reason is StopReason.CANCELLED
    assert agent.closed == [1]


async def test_events_that_are_left_after_the_last(agent: RecordingAgent):
    """Law 18: who leaves after the last event doesn't change the result."""
    async with LoopAgent(agent, says()).events("go") as events:
        async for event in events:
            if isinstance(event, LoopStopped):
                break
    assert events.result.stop_reason is StopReason.SATISFIED


async def test_a_stream_that_never_began(agent: RecordingAgent):
    """Law 18: a stream closed before it was iterated never ran, so it has no result."""
    stream = LoopAgent(agent, says()).run_streaming("go")
    await stream.aclose()
    assert LoopResult.of(stream) is None
    assert await drain(stream) == []
    assert agent.calls == agent.created == []


@pytest.mark.parametrize(
    "source", [None, 7, "x", ValueError("x"), AgentResponse("x"), RecordingAgent().run_streaming()]
)
def test_where_there_is_no_result(source: object):
    """Law 18: what comes from no loop has no result."""
    assert LoopResult.of(source) is None


async def test_the_stream_of_an_agent_has_no_result(agent: RecordingAgent):
    """Law 18: an agent alone has no result."""
    assert LoopResult.of(await agent.run("go")) is None


# From an exception


@pytest.mark.parametrize("mode", ["first", "all"])
async def test_when_the_agent_raises(invoke: Way, mode: str):
    """Law 18: what the agent raised reaches the caller as it was raised, with the result so far (F4)."""
    error = RateLimitError("slow down")
    agent, evaluators = RecordingAgent("draft", error), [says("more"), says("more")]
    with pytest.raises(RateLimitError) as raised:
        await invoke(LoopAgent(agent, evaluators, LoopAgentOptions(evaluation_mode=mode)))
    assert raised.value is error
    result = LoopResult.of(error)
    assert (result.stop_reason, result.stop_detail) == (StopReason.FAILED, "RateLimitError: slow down")
    assert (len(result.iterations), result.output, result.session) == (1, "draft", agent.created[0])
    assert evaluators[0].asked_at == [1]


@pytest.mark.parametrize("mode", ["first", "all"])
async def test_when_an_evaluator_raises(agent: RecordingAgent, invoke: Way, mode: str):
    """Law 18: what an evaluator raised reaches the caller as it was raised; the answer so far is in the result."""
    error = RateLimitError("slow down")
    loop = LoopAgent(agent, [says(), says("more", error)], LoopAgentOptions(evaluation_mode=mode))
    with pytest.raises(RateLimitError) as raised:
        await invoke(loop)
    assert raised.value is error
    result = LoopResult.of(error)
    assert (result.stop_reason, result.output, len(result.iterations)) == (
        StopReason.EVALUATOR_FAILED,
        "reply 2",
        2,
    )


async def test_the_events_of_a_failure():
    """Law 18: the events of a failed run end with the result, then comes the exception."""
    error, listed = RateLimitError(), []
    with pytest.raises(RateLimitError):  # noqa: PT012 - a block is what raises
        async with LoopAgent(RecordingAgent(error), says()).events("go") as events:
            async for event in events:
                listed.append(event)  # noqa: PERF401 - what came before the exception counts
    assert isinstance(listed[-1], LoopStopped)
    assert listed[-1].response is None
    assert listed[-1].result is LoopResult.of(error) is events.result


async def test_a_budget_error(invoke: Way):
    """Law 18: a budget that runs out is named as the reason."""
    error = BudgetExceededError("0 of 10 tokens left")
    with pytest.raises(BudgetExceededError):
        await invoke(LoopAgent(RecordingAgent("draft", error), says("more")))
    result = LoopResult.of(error)
    assert (result.stop_reason, result.stop_detail) == (StopReason.BUDGET_EXCEEDED, "0 of 10 tokens left")
    assert result.output == "draft"


async def test_through_the_cause_chain(agent: RecordingAgent):
    """Law 18: the result is found through an exception's causes and contexts."""
    loop = LoopAgent(RecordingAgent(RateLimitError()), says())

    async def explained() -> None:
        try:
            await loop.run("go")
        except RateLimitError as error:
            raise RuntimeError("the pipeline failed") from error

    async def while_handling() -> None:
        try:
            await explained()
        except RuntimeError:
            raise KeyError("cleanup")  # noqa: B904 - the context is what is tested

    with pytest.raises(KeyError) as raised:
        await while_handling()
    assert LoopResult.of(raised.value).stop_reason is StopReason.FAILED


async def test_a_chain_that_was_cut():
    """Law 18: `raise ... from None` cuts the chain; a chain that bites its tail ends."""
    with pytest.raises(KeyError) as raised:  # noqa: PT012 - a handler is what raises
        try:
            await LoopAgent(RecordingAgent(RateLimitError()), says()).run("go")
        except RateLimitError:
            raise KeyError from None
    assert LoopResult.of(raised.value) is None
    one, two = ValueError(), ValueError()
    one.__cause__, two.__cause__ = two, one
    assert LoopResult.of(one) is None


async def by_timeout(run) -> None:
    async with asyncio.timeout(1000):
        await run


async def by_wait_for(run) -> None:
    await asyncio.wait_for(run, 1000)


@pytest.mark.parametrize("limit", [by_timeout, by_wait_for])
async def test_a_timeout_around_a_run(invoke: Way, limit):
    """Law 18: the TimeoutError of a timeout around a run has the result so far."""
    agent = RecordingAgent("draft", "never", hang_at=2)
    async with time_runs_out(agent.reached.wait()):
        with pytest.raises(TimeoutError) as raised:
            await limit(invoke(LoopAgent(agent, says("more"))))
    result = LoopResult.of(raised.value)
    assert (result.stop_reason, result.output, len(result.iterations)) == (StopReason.CANCELLED, "draft", 1)
    assert agent.closed == [1, 2]


async def test_a_timeout_around_the_reading_of_a_stream(agent: RecordingAgent):
    """Law 18: ... also where the time ran out while the caller was busy with a piece."""
    busy = asyncio.Event()
    with pytest.raises(TimeoutError) as raised:  # noqa: PT012 - a block is what raises
        async with (
            time_runs_out(busy.wait()),
            asyncio.timeout(1000),
            LoopAgent(agent, says()).run_streaming("go") as stream,
        ):
            async for _ in stream:
                busy.set()
                await asyncio.Event().wait()
    assert LoopResult.of(stream).stop_reason is StopReason.CANCELLED
    assert LoopResult.of(raised.value) is LoopResult.of(stream)


async def test_a_timeout_of_the_agents_own(invoke: Way):
    """Law 18: a timeout inside the agent is the agent's failure, no cancellation."""
    error = TimeoutError("the model took too long")
    with pytest.raises(TimeoutError) as raised:
        await invoke(LoopAgent(RecordingAgent(error), says()))
    assert raised.value is error
    assert LoopResult.of(error).stop_reason is StopReason.FAILED


# Streams that did not end well


async def test_final_response_twice(agent: RecordingAgent):
    """Law 18: `final_response` after some pieces is the whole response, and so it is the second time."""
    stream = LoopAgent(agent, says("more")).run_streaming("go")
    await anext(stream)
    first = await stream.final_response()
    assert len(first.messages) == 3
    assert await stream.final_response() is first
    assert len(agent.calls) == 2


async def test_final_response_after_a_failure():
    """Law 18: a stream that failed has no final response: the failure is raised again, no IndexError."""
    error = RateLimitError()
    stream = LoopAgent(RecordingAgent("draft", error), says("more")).run_streaming("go")
    with pytest.raises(RateLimitError):
        await drain(stream)
    assert LoopResult.of(stream) is LoopResult.of(error)
    with pytest.raises(RateLimitError) as again:
        await stream.final_response()
    assert again.value is error


async def test_final_response_after_closing(agent: RecordingAgent):
    """Law 18: a stream that was closed early has no final response, and says so."""
    async with LoopAgent(agent, says("more")).run_streaming("go") as stream:
        await anext(stream)
    with pytest.raises((AgentsLoopError, RuntimeError), match="closed"):
        await stream.final_response()


# Loops in loops


async def test_nested_loops(agent: RecordingAgent, invoke: Way):
    """Law 18: where loops nest the outer result is the one found; the inner ones are in its iterations."""
    inner = LoopAgent(agent, DelegateLoopEvaluator(lambda context: context.iteration < 2))
    outer = LoopAgent(inner, says("again"), LoopAgentOptions(new_id=itertools.count().__next__))
    result = LoopResult.of(await invoke(outer))
    assert [len(record.response.messages) for record in result.iterations] == [2, 2]
    inners = [LoopResult.of(record.response) for record in result.iterations]
    assert [found.output for found in inners] == ["reply 2", "reply 4"]
    assert [len(found.iterations) for found in inners] == [2, 2]
    assert len({result.run_id, *[found.run_id for found in inners]}) == 3


async def test_nested_usage_is_counted_once(invoke: Way):
    """Law 18: a loop's usage is counted once by the loop around it."""
    inner = LoopAgent(RecordingAgent(usage=UsageDetails(1)), says("more"))
    response = await invoke(LoopAgent(LoopAgent(inner, says("again")), says()))
    assert response.usage == UsageDetails(4)
    assert LoopResult.of(response).usage == UsageDetails(4)


@pytest.mark.parametrize("wraps", [False, True])
async def test_a_failure_in_a_nested_loop(invoke: Way, wraps: bool):
    """Law 18: a failure deep inside has the outer loop's result, also if something between wraps it."""

    class Explaining(DelegatingAIAgent):
        async def run_core(self, messages, *, session, options):
            try:
                return await super().run_core(messages, session=session, options=options)
            except RateLimitError as error:
                raise RuntimeError("explained") from error

        async def run_core_streaming(self, messages, *, session, options):
            try:
                async for update in super().run_core_streaming(messages, session=session, options=options):
                    yield update
            except RateLimitError as error:
                raise RuntimeError("explained") from error

    inner = LoopAgent(RecordingAgent("draft", RateLimitError()), says("more"))
    outer = LoopAgent(Explaining(inner) if wraps else inner, says(), LoopAgentOptions(new_id=lambda: "outer"))
    with pytest.raises((RateLimitError, RuntimeError)) as raised:
        await invoke(outer)
    result = LoopResult.of(raised.value)
    assert (result.run_id, result.stop_reason, result.iterations) == ("outer", StopReason.FAILED, ())


async def test_an_approval_in_a_nested_loop(invoke: Way):
    """Law 3: a pending approval inside an inner loop ends the outer one too, at once."""
    request = ChatMessage("assistant", ToolApprovalRequestContent("q", FunctionCallContent("c", "rm")))
    inner = LoopAgent(RecordingAgent(AgentResponse([request], response_id="r")), says("more"))
    outer_evaluator = says("more")
    response = await invoke(LoopAgent(inner, outer_evaluator))
    assert LoopResult.of(response).stop_reason is StopReason.PENDING_APPROVAL
    assert outer_evaluator.seen == []


# Pickling


ERRORS = [
    AgentsLoopError("a"),
    ConfigurationError("b"),
    MissingExtraError("a local model", "local"),
    ServiceNotFoundError("c"),
    SessionStateError("d"),
    BudgetExceededError("e"),
    JudgeFailedError("length", "cut off"),
    JudgeFailedError("refusal"),
    ScriptExhaustedError("f"),
]


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
async def test_errors_are_picklable(invoke: Way, error: AgentsLoopError):
    """Law 18: our errors are picklable, before and after they ended a run."""
    copied = pickle.loads(pickle.dumps(error))  # noqa: S301 - our own
    assert type(copied) is type(error)
    assert (str(copied), copied.args) == (str(error), error.args)
    with pytest.raises(type(error)):
        await invoke(LoopAgent(RecordingAgent("draft", error), says("more")))
    again = pickle.loads(pickle.dumps(error))  # noqa: S301
    assert (type(again), str(again)) == (type(error), str(error))


class LiveSession(AgentSession):
    """A session that holds what can't be pickled, as a connection can't."""

    def __init__(self) -> None:
        super().__init__()
        self.connection = threading.Lock()


async def test_a_result_does_not_spoil_pickling(invoke: Way):
    """Law 18: an error is as picklable after a run as before, whatever the run's session holds."""

    error = ConfigurationError("b")
    with pytest.raises(ConfigurationError):
        await invoke(LoopAgent(RecordingAgent(error), says()), session=LiveSession())
    assert LoopResult.of(error) is not None
    assert str(pickle.loads(pickle.dumps(error))) == "b"  # noqa: S301


async def test_a_response_is_picklable(agent: RecordingAgent, invoke: Way):
    """Law 18: a response and its result are picklable."""
    response = await invoke(LoopAgent(agent, says("more")))
    copied = pickle.loads(pickle.dumps(response))  # noqa: S301
    assert copied == response
    assert LoopResult.of(copied).to_json() == LoopResult.of(response).to_json()


# JSON


async def test_the_json_is_schema(snapshot: SnapshotAssertion):
    """Law 18: the result as JSON: its field names are schema."""
    ticks, ids = itertools.count(), itertools.count(1)
    call = FunctionCallContent("c", "search", {"q": "haiku"})
    replies = [
        AgentResponse("an old pond", response_id="r1", usage=UsageDetails(10, 5, 15, additional_counts={"audio": 1})),
        AgentResponse([ChatMessage("assistant", ["looking", call]), ChatMessage("tool", "x")], response_id="r2"),
        AgentResponse("a frog jumps in: \u30ab", response_id="r3", usage=UsageDetails(20)),
    ]
    evaluators = [
        says(
            LoopEvaluation.continue_("add a frog", score=0.3, note="no frog"),
            LoopEvaluation.continue_with_messages(["go on"], details={"k": [1, None]}),
            LoopEvaluation.stop(score=1),
        ),
        says(None, None, LoopEvaluation.abort("enough")),
    ]
    options = LoopAgentOptions(new_id=lambda: f"id-{next(ids)}", clock=lambda: float(next(ticks)))
    response = await LoopAgent(RecordingAgent(*replies), evaluators, options).run(["be brief", "write a haiku"])
    assert json.loads(LoopResult.of(response).to_json()) == snapshot


@pytest.mark.parametrize("ending", ["cap", "failure", "empty"])
async def test_every_result_is_json(invoke: Way, ending: str):
    """Law 18: every result is a JSON object, however the run ended."""
    agent = RecordingAgent(Updates() if ending == "empty" else "draft", RateLimitError())
    options = LoopAgentOptions(max_iterations=2 if ending == "failure" else 1)
    try:
        result = LoopResult.of(await invoke(LoopAgent(agent, always(LoopEvaluation.continue_()), options)))
    except RateLimitError as error:
        result = LoopResult.of(error)
    read = json.loads(result.to_json())
    assert read["stop_reason"] == result.stop_reason
    assert read["usage"] is None
    assert read["output"] == ("" if ending == "empty" else "draft")


async def test_a_run_has_one_id(agent: RecordingAgent):
    """Law 18: the injected source gives the run's id, and the events and the result agree on it."""
    loop = LoopAgent(agent, says(), LoopAgentOptions(new_id=lambda: "run-1"))
    async with loop.events("go") as events:
        started = await anext(events)
        async for _ in events:
            pass
    assert started.run_id == events.result.run_id == "run-1"
    assert (started.max_iterations, [message.text for message in started.messages]) == (10, ["go"])


async def test_an_exhausted_iterator_in_an_evaluator(agent: RecordingAgent, invoke: Way):
    """Law 18: a StopAsyncIteration can't leave a generator as it is; the result is still found from its cause."""

    async def exhausted(context: LoopContext) -> bool:
        raise StopAsyncIteration

    with pytest.raises(RuntimeError) as raised:
        await invoke(LoopAgent(agent, DelegateLoopEvaluator(exhausted)))
    assert isinstance(raised.value.__cause__, StopAsyncIteration)
    assert LoopResult.of(raised.value).stop_reason is StopReason.EVALUATOR_FAILED


async def test_the_work_of_a_loop_that_fails_within_a_loop(invoke: Way):
    """Law 18: what an inner loop had done when it failed is in the outer result, and what it used is counted."""
    error = RateLimitError()
    inner = LoopAgent(RecordingAgent("draft", error, usage=UsageDetails(5)), says("more"))
    with pytest.raises(RateLimitError):
        await invoke(LoopAgent(inner, says("again")))
    result = LoopResult.of(error)
    assert result.iterations == ()
    assert result.unfinished.output == "draft"
    assert result.usage == UsageDetails(5)
    assert json.loads(result.to_json())["unfinished"]["output"] == "draft"


async def test_an_exception_that_is_raised_again_later(invoke: Way):
    """Law 18: the result of an earlier run on the same exception is not taken for an inner loop's."""
    error = RateLimitError()
    for _ in range(2):
        with pytest.raises(RateLimitError):
            await invoke(LoopAgent(RecordingAgent(error), says()))
    assert LoopResult.of(error).unfinished is None


async def test_verdicts_given_before_a_cancellation(agent: RecordingAgent, invoke: Way):
    """Law 6: "all": what was answered before the run was cancelled is kept."""
    scored, hanging = LoopEvaluation.continue_("more", score=0.4), HangingEvaluator()
    loop = LoopAgent(agent, [says(scored), hanging], LoopAgentOptions(evaluation_mode="all"))
    task = asyncio.create_task(invoke(loop))
    await hanging.asked.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError) as raised:
        await task
    assert LoopResult.of(raised.value).iterations[0].evaluations == (scored,)
