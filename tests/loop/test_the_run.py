"""Laws 1 to 8: when the agent is run, when the evaluators are asked, and when a run ends."""

from __future__ import annotations

import asyncio
import logging

import pytest
from fakes import HangingEvaluator, RecordingAgent, Updates, Way, always, drain, leaving_nothing, says, texts

from agents_loop import (
    AgentResponse,
    AgentResponseUpdate,
    AgentSession,
    AIJudgeLoopEvaluator,
    ChatMessage,
    DataContent,
    DelegateLoopEvaluator,
    FunctionCallContent,
    LoopAgent,
    LoopAgentOptions,
    LoopContext,
    LoopEvaluation,
    LoopEvaluator,
    LoopResult,
    StopReason,
    TextContent,
    ToolApprovalRequestContent,
    ToolApprovalResponseContent,
)
from agents_loop.testing import ScriptedChatClient

STOP, MORE = LoopEvaluation.stop(), LoopEvaluation.continue_()
CALL = FunctionCallContent("call-1", "delete_file", {"path": "a"})
REQUEST = ToolApprovalRequestContent("request-1", CALL)


def reason(response: AgentResponse) -> StopReason:
    result = LoopResult.of(response)
    assert result is not None
    return result.stop_reason


# Law 1


async def test_the_messages_reach_the_agent_once(agent: RecordingAgent, invoke: Way):
    """Law 1: the caller's messages reach the inner agent once, unchanged."""
    image = DataContent(b"\x89PNG", "image/png")
    given = [
        ChatMessage("system", "be brief"),
        ChatMessage("user", ["look", image], author_name="Ann", message_id="m1", additional_properties={"k": [1]}),
    ]
    await invoke(LoopAgent(agent, says("more", "more")), given)
    assert agent.calls[0].messages == given
    assert all(sent is message for sent, message in zip(agent.calls[0].messages, given, strict=True))
    assert given[1].message_id == "m1"
    assert agent.inputs[1:] == [["more"], ["more"]]


async def test_later_changes_of_the_callers_list_do_not_reach_the_run(agent: RecordingAgent):
    """Law 1: what counts is what the caller passed, even where the stream is iterated later."""
    given: list[str | ChatMessage] = ["the request"]
    stream = LoopAgent(agent, says()).run_streaming(given)
    given.append("and this")
    await stream.final_response()
    assert agent.inputs == [["the request"]]


async def test_a_request_without_messages(agent: RecordingAgent, invoke: Way):
    """Law 1: no messages are no messages."""
    await invoke(LoopAgent(agent, says("more")), None)
    assert agent.inputs == [[], ["more"]]


# Law 2


async def test_one_session_is_made_and_kept(agent: RecordingAgent, invoke: Way):
    """Law 2: without a session the loop asks the inner agent for one, first, and uses it for every re-invocation."""
    await invoke(LoopAgent(agent, says("a", None, "b")))
    assert len(agent.created) == 1
    assert agent.sessions == [agent.created[0]] * 4


async def test_the_callers_session_is_used(agent: RecordingAgent, invoke: Way):
    """Law 2: the caller's session is used, and none is made."""
    session = AgentSession()
    response = await invoke(LoopAgent(agent, says("a", "b")), session=session)
    assert agent.sessions == [session] * 3
    assert agent.created == agent.serialized == agent.deserialized == []
    assert LoopResult.of(response).session is session


async def test_an_empty_looking_session_is_a_session(agent: RecordingAgent, invoke: Way):
    """Law 2: a session that is falsy is a session all the same."""

    class Empty(AgentSession):
        def __len__(self) -> int:
            return 0

    session = Empty()
    await invoke(LoopAgent(agent, says("a")), session=session)
    assert agent.sessions == [session, session]


async def test_an_agent_that_can_make_no_session(invoke: Way):
    """Law 2: no session, no run; what `create_session` raised reaches the caller, with a result."""
    error = OSError("no threads left")

    class NoSessions(RecordingAgent):
        async def create_session(self) -> AgentSession:
            raise error

    agent = NoSessions()
    with pytest.raises(OSError, match="no threads left") as raised:
        await invoke(LoopAgent(agent, says()))
    assert raised.value is error
    assert agent.calls == []
    result = LoopResult.of(error)
    assert (result.stop_reason, result.iterations, result.output) == (StopReason.FAILED, (), "")


# Law 3


def asking() -> AgentResponse:
    return AgentResponse([ChatMessage("assistant", ["may I?", REQUEST])], response_id="r")


async def test_a_pending_approval_ends_the_run(invoke: Way):
    """Law 3: a pending approval request ends the run at once; no evaluator is asked."""
    agent, evaluator = RecordingAgent("draft", asking()), says("more", "more", "more")
    response = await invoke(LoopAgent(agent, evaluator))
    assert reason(response) is StopReason.PENDING_APPROVAL
    assert evaluator.asked_at == [1]
    assert "delete_file" in LoopResult.of(response).stop_detail
    assert response.messages[-1].contents[-1] == REQUEST


@pytest.mark.parametrize("evaluate_final", [False, True])
async def test_a_pending_approval_at_the_cap(invoke: Way, caplog: pytest.LogCaptureFixture, evaluate_final: bool):
    """Law 3: at the cap a pending approval is still what ends the run, without a log line."""
    evaluator = says()
    options = LoopAgentOptions(max_iterations=1, evaluate_final_iteration=evaluate_final)
    with caplog.at_level(logging.INFO, "agents_loop"):
        response = await invoke(LoopAgent(RecordingAgent(asking()), evaluator, options))
    assert reason(response) is StopReason.PENDING_APPROVAL
    assert evaluator.asked_at == []
    assert caplog.records == []


@pytest.mark.parametrize("approved", [True, False])
async def test_an_approval_that_is_answered(invoke: Way, approved: bool):
    """Law 3: a request that the same response already answers is not pending, whatever the answer and wherever it is."""
    answered = AgentResponse(
        [
            ChatMessage("assistant", [REQUEST]),
            ChatMessage("user", [ToolApprovalResponseContent("request-1", approved, CALL)]),
            ChatMessage("assistant", "done"),
        ],
        response_id="r",
    )
    evaluator = says()
    response = await invoke(LoopAgent(RecordingAgent(answered), evaluator))
    assert reason(response) is StopReason.SATISFIED
    assert evaluator.asked_at == [1]


async def test_an_answer_to_another_request_changes_nothing(invoke: Way):
    """Law 3: of several requests one unanswered is enough."""
    other = ToolApprovalRequestContent("request-2", FunctionCallContent("call-2", "send_mail"))
    contents = [REQUEST, other, ToolApprovalResponseContent("request-1", approved=True, tool_call=CALL)]
    evaluator = says("more")
    response = await invoke(
        LoopAgent(RecordingAgent(AgentResponse([ChatMessage("assistant", contents)], response_id="r")), evaluator)
    )
    assert reason(response) is StopReason.PENDING_APPROVAL
    assert "send_mail" in LoopResult.of(response).stop_detail
    assert "delete_file" not in LoopResult.of(response).stop_detail
    assert evaluator.asked_at == []


async def test_an_approval_resumes_on_the_session(invoke: Way):
    """Law 3: after an approval the caller goes on where the run was (C4)."""
    agent, session = RecordingAgent(asking(), "deleted"), AgentSession()
    loop = LoopAgent(agent, says())
    await invoke(loop, "delete a", session=session)
    approval = ChatMessage("user", [ToolApprovalResponseContent("request-1", approved=True, tool_call=CALL)])
    response = await invoke(loop, approval, session=session)
    assert reason(response) is StopReason.SATISFIED
    assert agent.calls[1].messages == [approval]
    assert agent.sessions == [session, session]


@pytest.mark.parametrize(("last", "level_up"), [(STOP, 0), (MORE, 1)])
async def test_one_line_at_the_cap(
    agent: RecordingAgent, invoke: Way, caplog: pytest.LogCaptureFixture, last: LoopEvaluation, level_up: int
):
    """Law 3: the cap writes exactly one INFO line, and only if it is what ended the run."""
    options = LoopAgentOptions(max_iterations=2, evaluate_final_iteration=True)
    with caplog.at_level(logging.DEBUG, "agents_loop"):
        await invoke(LoopAgent(agent, says(MORE, last), options))
    assert [(record.name, record.levelno) for record in caplog.records] == [("agents_loop", logging.INFO)] * level_up


async def test_the_line_goes_to_the_given_logger(agent: RecordingAgent, invoke: Way, caplog: pytest.LogCaptureFixture):
    """Law 3: the line at the cap names the run and goes to the caller's logger."""
    caplog.set_level(logging.INFO)
    options = LoopAgentOptions(max_iterations=1, new_id=lambda: "run-7")
    await invoke(LoopAgent(agent, always(MORE), options, logger=logging.getLogger("mine")))
    ((name, level, message),) = caplog.record_tuples
    assert (name, level) == ("mine", logging.INFO)
    assert "run-7" in message


# Law 4


@pytest.mark.parametrize("cap", [1, 2, 7])
async def test_n_means_n(agent: RecordingAgent, invoke: Way, cap: int):
    """Law 4: N means N runs of the inner agent, never N+1."""
    response = await invoke(LoopAgent(agent, always(MORE), LoopAgentOptions(max_iterations=cap)))
    assert len(agent.calls) == cap
    result = LoopResult.of(response)
    assert [record.number for record in result.iterations] == list(range(1, cap + 1))
    assert result.stop_reason is StopReason.MAX_ITERATIONS
    assert result.output == f"reply {cap}"


async def test_ten_by_default(agent: RecordingAgent, invoke: Way):
    """Law 4: the default cap is 10."""
    await invoke(LoopAgent(agent, always(MORE)))
    assert len(agent.calls) == LoopAgent.DEFAULT_MAX_ITERATIONS == LoopAgent(agent, says()).max_iterations == 10


@pytest.mark.parametrize("cap", [0, -1])
def test_less_than_one_is_an_error(cap: int):
    """Law 4: a cap of less than 1 is an error, not "no cap"."""
    with pytest.raises(ValueError, match=f"max_iterations.*{cap}"):
        LoopAgentOptions(max_iterations=cap)


@pytest.mark.parametrize("cap", ["3", 3.0, True])
def test_a_cap_is_an_int(cap: object):
    """Law 4: a cap that is no int is an error (E2)."""
    with pytest.raises(TypeError, match="max_iterations"):
        LoopAgentOptions(max_iterations=cap)


# Law 5


async def test_no_one_is_asked_at_the_cap(agent: RecordingAgent, invoke: Way):
    """Law 5: by default the evaluators are not asked about the answer that hits the cap."""
    evaluator = always(MORE)
    response = await invoke(LoopAgent(agent, evaluator, LoopAgentOptions(max_iterations=3)))
    assert evaluator.asked_at == [1, 2]
    assert LoopResult.of(response).iterations[-1].evaluations == ()


@pytest.mark.parametrize(
    ("last", "expected", "detail"),
    [
        (STOP, StopReason.SATISFIED, None),
        (
            LoopEvaluation.continue_("still more"),
            StopReason.MAX_ITERATIONS,
            "2 of 2 iterations: after 1 revision the answer still does not pass its check",
        ),
        (LoopEvaluation.abort("hopeless"), StopReason.ABORTED, "hopeless"),
    ],
)
@pytest.mark.parametrize("mode", ["first", "all"])
async def test_the_final_answer_can_be_judged(
    agent: RecordingAgent, invoke: Way, mode: str, last: LoopEvaluation, expected: StopReason, detail: str | None
):
    """Law 5: with `evaluate_final_iteration` the last answer is judged, and there is no further iteration."""
    options = LoopAgentOptions(max_iterations=2, evaluate_final_iteration=True, evaluation_mode=mode)
    evaluator = says(MORE, last)
    response = await invoke(LoopAgent(agent, [evaluator, says()], options))
    result = LoopResult.of(response)
    assert (result.stop_reason, result.stop_detail) == (expected, detail)
    assert evaluator.asked_at == [1, 2]
    assert len(agent.calls) == 2
    assert evaluator.seen[-1].context.feedback == [None]


# Law 6


async def test_the_first_that_wants_more_wins(agent: RecordingAgent, invoke: Way):
    """Law 6: evaluators are asked in order; the first that wants to go on wins and the rest are not asked."""
    first, second, third = says(STOP, "from the first"), says("from the second"), says(STOP, STOP, STOP)
    response = await invoke(LoopAgent(agent, [first, second, third]))
    assert agent.inputs == [["the request"], ["from the second"], ["from the first"]]
    assert (first.asked_at, second.asked_at, third.asked_at) == ([1, 2, 3], [1, 3], [3])
    assert reason(response) is StopReason.SATISFIED


@pytest.mark.parametrize("mode", ["first", "all"])
async def test_stop_is_no_veto(agent: RecordingAgent, invoke: Way, mode: str):
    """Law 6: the run ends when all say stop; one stop is no veto."""
    response = await invoke(LoopAgent(agent, [says(), says("go on")], LoopAgentOptions(evaluation_mode=mode)))
    assert len(agent.calls) == 2
    assert reason(response) is StopReason.SATISFIED


def explicit(*messages: str) -> LoopEvaluation:
    return LoopEvaluation.continue_with_messages(list(messages))


@pytest.mark.parametrize("fresh", [False, True])
async def test_all_are_heard_at_once(agent: RecordingAgent, invoke: Way, fresh: bool):
    """Law 6: "all": the explicit messages in evaluator order, then one message of the others' feedback; one log entry."""
    evaluators = [says("one"), says(explicit("x", "y")), says(), says("two"), says(explicit("z")), says(MORE)]
    options = LoopAgentOptions(evaluation_mode="all", fresh_context_per_iteration=fresh)
    await invoke(LoopAgent(agent, evaluators, options))
    assert agent.inputs[1] == ["x", "y", "z", "one\n\ntwo"]
    assert [evaluator.asked_at for evaluator in evaluators] == [[1, 2]] * 6
    assert evaluators[2].seen[1].feedback == ["one\n\ntwo"]


async def test_all_without_explicit_messages(agent: RecordingAgent, invoke: Way):
    """Law 6: "all" without explicit messages is one feedback message, or none."""
    evaluators = [says("one", MORE), says("two", MORE)]
    await invoke(LoopAgent(agent, evaluators, LoopAgentOptions(evaluation_mode="all")))
    assert agent.inputs == [["the request"], ["one\n\ntwo"], []]
    assert evaluators[0].seen[2].feedback == ["one\n\ntwo", None]


async def test_all_with_explicit_messages_alone(agent: RecordingAgent, invoke: Way):
    """Law 6: "all" with explicit messages alone logs no feedback."""
    evaluators = [says(explicit("x")), says(MORE)]
    await invoke(LoopAgent(agent, evaluators, LoopAgentOptions(evaluation_mode="all")))
    assert agent.inputs[1] == ["x"]
    assert evaluators[0].seen[1].feedback == [None]


async def test_all_are_asked_concurrently(agent: RecordingAgent, invoke: Way):
    """Law 6: "all" asks concurrently: none has to answer before another is asked."""
    meeting = asyncio.Barrier(3)

    async def meets(context: LoopContext) -> bool:
        await meeting.wait()
        return False

    loop = LoopAgent(agent, [DelegateLoopEvaluator(meets) for _ in range(3)], LoopAgentOptions(evaluation_mode="all"))
    async with asyncio.timeout(60), leaving_nothing():
        assert reason(await invoke(loop)) is StopReason.SATISFIED


async def test_when_one_of_all_raises(agent: RecordingAgent, invoke: Way):
    """Law 6: "all": if one raises, the others are cancelled and awaited, and that very exception is raised."""
    error, hanging = KeyError("the judge is down"), [HangingEvaluator(), HangingEvaluator()]

    async def raises(context: LoopContext) -> bool:
        for evaluator in hanging:
            await evaluator.asked.wait()
        raise error

    evaluators = [hanging[0], DelegateLoopEvaluator(raises), hanging[1]]
    loop = LoopAgent(agent, evaluators, LoopAgentOptions(evaluation_mode="all"))
    async with asyncio.timeout(60), leaving_nothing():
        with pytest.raises(KeyError) as raised:
            await invoke(loop)
    assert raised.value is error
    assert [type(evaluator.ended_by) for evaluator in hanging] == [asyncio.CancelledError] * 2
    assert LoopResult.of(error).stop_reason is StopReason.EVALUATOR_FAILED


async def test_the_cancelled_ones_are_awaited(agent: RecordingAgent, invoke: Way):
    """Law 6: "all": a cancelled evaluator has finished cleaning up before the exception is raised."""
    steps: list[str] = []
    asked, cleaned_up = asyncio.Event(), asyncio.Event()

    async def tidy(context: LoopContext) -> bool:
        asked.set()
        try:
            await asyncio.Event().wait()
        finally:
            asyncio.get_running_loop().call_soon(cleaned_up.set)
            await cleaned_up.wait()
            steps.append("cleaned up")
        return False

    async def raises(context: LoopContext) -> bool:
        await asked.wait()
        raise LookupError

    loop = LoopAgent(
        agent,
        [DelegateLoopEvaluator(tidy), DelegateLoopEvaluator(raises)],
        LoopAgentOptions(evaluation_mode="all"),
    )
    async with asyncio.timeout(60):
        with pytest.raises(LookupError):
            await invoke(loop)
    assert steps == ["cleaned up"]


async def test_when_several_of_all_raise(agent: RecordingAgent, invoke: Way):
    """Law 6: "all": of several exceptions one is raised, as itself and not in a group."""
    loop = LoopAgent(agent, [says(KeyError("a")), says(OSError("b"))], LoopAgentOptions(evaluation_mode="all"))
    with pytest.raises((KeyError, OSError)):
        await invoke(loop)


async def test_a_cancellation_raised_by_one_of_all(agent: RecordingAgent, invoke: Way):
    """Law 6: "all": an evaluator that raises `CancelledError` has raised; nobody waits for the others."""
    hanging = HangingEvaluator()

    async def raises(context: LoopContext) -> bool:
        await hanging.asked.wait()
        raise asyncio.CancelledError

    loop = LoopAgent(agent, [DelegateLoopEvaluator(raises), hanging], LoopAgentOptions(evaluation_mode="all"))
    with pytest.raises(asyncio.CancelledError):
        async with asyncio.timeout(60):
            await invoke(loop)


async def test_when_a_sync_mistake_raises_in_all(agent: RecordingAgent, invoke: Way):
    """Law 6: "all": what an evaluator answered before another raised is kept in the result."""
    scored = LoopEvaluation.continue_("more", score=0.4)
    loop = LoopAgent(agent, [says(scored), says(OSError("down"))], LoopAgentOptions(evaluation_mode="all"))
    with pytest.raises(OSError, match="down") as raised:
        await invoke(loop)
    assert LoopResult.of(raised.value).iterations[0].evaluations == (scored,)


# Law 7


async def test_abort_ends_the_asking(agent: RecordingAgent, invoke: Way):
    """Law 7: an abort ends the run for good; in order, asking ends there."""
    evaluators = [says(), says(LoopEvaluation.abort("impossible")), says("more")]
    response = await invoke(LoopAgent(agent, evaluators))
    result = LoopResult.of(response)
    assert (result.stop_reason, result.stop_detail) == (StopReason.ABORTED, "impossible")
    assert [evaluator.asked_at for evaluator in evaluators] == [[1], [1], []]
    assert result.output == "reply 1"


async def test_abort_outranks_the_others(agent: RecordingAgent, invoke: Way):
    """Law 7: an abort outranks every wish to go on among the evaluators asked."""
    evaluators = [says("more"), says(explicit("x")), says(LoopEvaluation.abort("impossible")), says("more")]
    response = await invoke(LoopAgent(agent, evaluators, LoopAgentOptions(evaluation_mode="all")))
    assert reason(response) is StopReason.ABORTED
    assert len(agent.calls) == 1
    assert len(LoopResult.of(response).iterations[0].evaluations) == 4


async def test_a_wish_to_go_on_before_an_abort(agent: RecordingAgent, invoke: Way):
    """Law 7: in order, an evaluator that is not asked can't abort."""
    response = await invoke(LoopAgent(agent, [says("more"), says(LoopEvaluation.abort("impossible"))]))
    assert len(agent.calls) == 2
    assert reason(response) is StopReason.SATISFIED


async def test_a_stop_in_a_loop_ends_that_loop_alone(agent: RecordingAgent, invoke: Way):
    """Law 7: a stop or an abort ends only the loop that owns the evaluator (E4)."""
    inner = LoopAgent(agent, says(LoopEvaluation.abort("inner")))
    response = await invoke(LoopAgent(inner, says("again")))
    assert len(agent.calls) == 2
    assert reason(response) is StopReason.SATISFIED


# Law 8


async def test_run_runs_and_streaming_streams(agent: RecordingAgent, invoke: Way):
    """Law 8: `run` calls the inner agent's `run`, `run_streaming` its `run_streaming`."""
    await invoke(LoopAgent(agent, says("a", "b")))
    assert [call.streaming for call in agent.calls] == [invoke.streaming] * 3


@pytest.mark.parametrize("streaming", [False, True])
async def test_the_same_events(streaming: bool):
    """Law 8: both read one stream of events; streaming adds the updates and nothing else."""
    agent = RecordingAgent()
    options = LoopAgentOptions(new_id=lambda: "id", clock=lambda: 0.0)
    loop = LoopAgent(agent, [says("a"), says(STOP, LoopEvaluation.abort("no"))], options)
    async with loop.events("the request", streaming=streaming) as events:
        assert LoopResult.of(events) is None
        kinds = [type(event).__name__ async for event in events]
    once = ["IterationStarted", *["AgentUpdated"] * (2 if streaming else 0), "AgentResponded"]
    decided = ["EvaluatorDecided"]
    assert kinds == ["LoopStarted", *once, *decided, *once, *decided * 2, "LoopStopped"]
    assert LoopResult.of(events).stop_reason is StopReason.ABORTED
    assert LoopResult.of(events) is events.result


@pytest.mark.parametrize("mode", ["first", "all"])
@pytest.mark.parametrize("words", [(STOP,), (MORE, STOP), (LoopEvaluation.abort("no"),), (OSError("down"),)])
async def test_the_result_is_made_of_the_events(mode: str, words: tuple[LoopEvaluation | BaseException, ...]):
    """Law 8: what the result records of the evaluators is what the events told, however the run ends."""
    evaluators: list[LoopEvaluator] = [says("more"), says(*words)]
    loop = LoopAgent(RecordingAgent(), evaluators, LoopAgentOptions(evaluation_mode=mode))
    told = []
    async with loop.events("the request") as events:
        try:
            async for event in events:
                if type(event).__name__ == "EvaluatorDecided":
                    told.append((event.number, event.evaluation))  # noqa: PERF401 - what came before the exception
        except OSError:
            pass
    recorded = [(record.number, said) for record in events.result.iterations for said in record.evaluations]
    assert recorded == told


async def test_a_judge_is_never_streamed(agent: RecordingAgent, invoke: Way):
    """Law 8: a judge is never streamed."""

    class NeverStreamed(ScriptedChatClient):
        def get_streaming_response(self, messages, options=None):
            raise AssertionError

    judge = NeverStreamed(['{"gapAnalysis": "", "answered": true}'])
    response = await invoke(LoopAgent(agent, AIJudgeLoopEvaluator(judge)))
    assert reason(response) is StopReason.SATISFIED
    assert len(judge.calls) == 1


async def test_evaluators_see_the_same_answer(invoke: Way):
    """Law 8: streamed or not, evaluators see the same whole answer, before the next update comes (C3)."""
    reply = AgentResponse(
        [
            ChatMessage("assistant", [TextContent("let me look"), CALL]),
            ChatMessage("tool", "42"),
            ChatMessage("assistant", "It is 42."),
        ],
        response_id="r",
        agent_id="the-agent",
    )
    evaluator = says()
    response = await invoke(LoopAgent(RecordingAgent(reply), evaluator))
    assert texts(evaluator.seen[0].response.messages) == texts(reply.messages)
    assert LoopResult.of(response).output == "It is 42."


async def test_an_answer_without_pieces(invoke: Way):
    """Law 8: a run that yields nothing is an iteration with an empty answer."""
    agent = RecordingAgent(Updates(), Updates([AgentResponseUpdate("assistant", "there", response_id="r")]))
    evaluator = says("say something")
    response = await invoke(LoopAgent(agent, evaluator))
    assert evaluator.seen[0].response.text == ""
    assert texts(response.messages) == [("user", "say something"), ("assistant", "there")]


async def test_the_updates_come_before_the_judgment(agent: RecordingAgent):
    """Law 8: the pieces of an iteration come before its evaluators are asked."""
    evaluator = says("more")
    stream = LoopAgent(agent, evaluator).run_streaming("the request")
    asked = [len(evaluator.seen) async for _ in stream]
    assert asked == [0, 0, 1, 1, 1]
    assert len(await drain(stream)) == 0
