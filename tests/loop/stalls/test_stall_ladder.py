from __future__ import annotations

import json
from typing import Any

import pytest
from fakes import WAYS, Call, RecordingAgent, Way, always, says

from agents_loop import (
    AgentResponse,
    AgentSession,
    AnotherAgentStep,
    AskPersonStep,
    ChatClientAgent,
    ChatMessage,
    ChatResponse,
    ConfigurationError,
    DelegateLoopEvaluator,
    FreshContextStep,
    FunctionCallContent,
    LoopAgent,
    LoopAgentOptions,
    LoopBudget,
    LoopEvaluation,
    LoopResult,
    NudgeStep,
    SameAnswerSignal,
    SameFeedbackSignal,
    StallNoticed,
    StallPolicy,
    StallSignal,
    StopReason,
    StopStep,
    ToolApprovalRequestContent,
    ToolApprovalResponseContent,
    UsageDetails,
    accept_answer,
)
from agents_loop.testing import ScriptedChatClient

TWICE = [SameAnswerSignal(2)]
MORE = LoopEvaluation.continue_("more")


@pytest.fixture(params=WAYS, ids=["run", "stream"])
def invoke(request: pytest.FixtureRequest) -> Way:
    return request.param


def stuck() -> RecordingAgent:
    return RecordingAgent(answer=lambda call, number: "the same")


def unstuck_by(word: str) -> RecordingAgent:
    """Says the same until it hears a word; then something new each time."""
    heard: list[int] = []

    def answer(call: Call, number: int) -> str:
        if any(word in text for text in call.texts):
            heard.append(number)
        return f"new draft {number}" if heard else "the same"

    return RecordingAgent(answer=answer)


def options(*ladder: Any, signals: Any = TWICE, **further: Any) -> LoopAgentOptions:
    return LoopAgentOptions(**{"max_iterations": 1000, "stall": StallPolicy(signals=signals, ladder=ladder)} | further)


def evaluator(word: LoopEvaluation = MORE, until: str = "done") -> DelegateLoopEvaluator:
    return DelegateLoopEvaluator(lambda context: None if until in context.last_response.text else word)


async def ended(invoke: Way, loop: LoopAgent, *given: Any, **named: Any) -> LoopResult:
    result = LoopResult.of(await invoke(loop, *given, **named))
    assert result is not None
    return result


async def test_a_stuck_loop_is_stopped_soon(invoke: Way):
    """A stuck loop with a cap of 1,000 ends as `stalled` within 5 iterations of the signal, which is named."""
    loop = LoopAgent(stuck(), evaluator(), LoopAgentOptions(max_iterations=1000, stall=StallPolicy()))
    result = await ended(invoke, loop)
    assert result.stop_reason == StopReason.STALLED
    assert result.stop_detail == "same_answer: the last 3 answers are the same"
    assert [record.stall for record in result.iterations] == [None, None, "same_answer", "same_answer"]


@pytest.mark.parametrize(
    ("agent", "word", "signal"),
    [
        (RecordingAgent(answer=lambda call, number: ""), MORE, "empty_answers"),
        (RecordingAgent(), MORE, "same_feedback"),
        (RecordingAgent(), LoopEvaluation.continue_(score=0.5), "flat_score"),
    ],
    ids=["empty", "feedback", "score"],
)
async def test_each_kind_is_named(invoke: Way, agent: RecordingAgent, word: LoopEvaluation, signal: str):
    """E7: the same verdict, the same score or no answer, again and again, is noticed long before the cap, and named."""
    loop = LoopAgent(agent, evaluator(word), LoopAgentOptions(max_iterations=1000, stall=StallPolicy()))
    result = await ended(invoke, loop)
    assert result.stop_reason == StopReason.STALLED
    assert str(result.stop_detail).startswith(f"{signal}: ")
    assert len(result.iterations) <= 10


async def test_off_unless_set(invoke: Way):
    """Without a policy identical answers are no reason to stop, as in the ancestor."""
    result = await ended(invoke, LoopAgent(stuck(), evaluator(), LoopAgentOptions(max_iterations=50)))
    assert (result.stop_reason, len(result.iterations)) == (StopReason.MAX_ITERATIONS, 50)


async def test_the_nudge(invoke: Way):
    """A nudge says the feedback in other words, with what was noticed, once; the log has what the agent heard."""
    agent = unstuck_by("try another way")
    loop = LoopAgent(agent, says("more", "more", "more"), options(NudgeStep(), StopStep()))
    result = await ended(invoke, loop)
    assert result.stop_reason == StopReason.SATISFIED
    nudge = NudgeStep().text("the last 2 answers are the same", "more")
    assert agent.inputs == [["the request"], ["more"], [nudge], ["more"]]
    seen: Any = loop.evaluators[0]
    assert seen.seen[-1].feedback == ["more", nudge, "more"]


def test_the_nudge_is_filled_literally():
    """What evaluators say is never a template."""
    assert NudgeStep(template="{feedback}|{observation}").text("{feedback}", "{observation}") == (
        "{observation}|{feedback}"
    )
    assert "whatever the request asks for" in NudgeStep().text("x", None)


async def test_a_nudge_beside_explicit_messages(invoke: Way):
    """Explicit messages are sent verbatim; the nudge comes after them."""
    agent = stuck()
    word = LoopEvaluation.continue_with_messages("Look here.")
    await ended(invoke, LoopAgent(agent, evaluator(word), options(NudgeStep(template="Anew: {feedback}"), StopStep())))
    assert agent.inputs[2][0] == "Look here."
    assert agent.inputs[2][1].startswith("Anew: ")


@pytest.mark.parametrize("given", [False, True], ids=["own", "given"])
async def test_fresh_context(invoke: Way, given: bool):
    """A fresh context is a new session with the request and all feedback; later iterations stay in it."""
    agent = RecordingAgent(answer=lambda call, number: "the same" if number < 3 else f"draft {number}")
    session = AgentSession() if given else None
    if session is not None:
        session.state["before"] = 1
    loop = LoopAgent(agent, says("one", "two", "three"), options(FreshContextStep(), StopStep()))
    result = await ended(invoke, loop, session=session)
    assert agent.inputs == [["the request"], ["one"], ["the request", "## Feedback\n\n- one\n- two"], ["three"]]
    sessions = agent.sessions
    assert sessions[0] is sessions[1]
    assert sessions[2] is sessions[3] is result.session
    assert sessions[2] is not sessions[0]
    assert sessions[2] is not None
    assert sessions[2].state == {"runs": 2} | ({"before": 1} if given else {})


async def test_another_agent(invoke: Way):
    """Another agent goes on in a session of its own, with the request and all feedback, to the end of the run."""
    first, second = stuck(), RecordingAgent("better", "done")
    loop = LoopAgent(first, evaluator(), options(AnotherAgentStep(second), StopStep()))
    result = await ended(invoke, loop)
    assert (result.stop_reason, result.output, len(first.calls)) == (StopReason.SATISFIED, "done", 2)
    assert second.inputs == [["the request", "## Feedback\n\n- more\n- more"], ["more"]]
    assert result.session is second.sessions[0] is second.created[0]


async def test_another_agent_is_not_measured_by_the_first(invoke: Way):
    """What the agent before it did and heard is no stall of another agent: the signals are looked for anew."""
    other = RecordingAgent(answer=lambda call, number: "done" if number == 3 else f"draft {number}")
    ladder = options(AnotherAgentStep(other), StopStep(), signals=[SameAnswerSignal(2), SameFeedbackSignal(3)])
    result = await ended(invoke, LoopAgent(stuck(), evaluator(), ladder))
    assert (result.stop_reason, result.output) == (StopReason.SATISFIED, "done")
    assert [record.stall for record in result.iterations] == [None, "same_answer", None, None, None]


class Nameless(StallSignal):
    """A signal that does not say what it is called."""

    observation = "something"

    def is_alike(self, iterations: Any) -> bool:
        return True


def test_a_signal_without_a_name_is_refused_before_a_run():
    """Signals are named in records and reasons, so one without a name is an error at once, not when it is true."""
    with pytest.raises(TypeError, match="needs a name, and Nameless"):
        StallPolicy(signals=[Nameless(2)])


async def test_a_callers_session_is_written_down_for_a_fresh_context_alone(invoke: Way):
    """A ladder that clones no session does not serialise the caller's."""
    for ladder, count in [([NudgeStep(), StopStep()], 0), ([FreshContextStep(), StopStep()], 1)]:
        agent = RecordingAgent("done")
        await ended(invoke, LoopAgent(agent, evaluator(), options(*ladder)), session=AgentSession())
        assert len(agent.serialized) == count


async def test_evaluators_see_the_agent_in_use(invoke: Way):
    """Law 13: `context.agent` and `context.session` are those in use."""
    second = RecordingAgent("better", "best")
    watching = always(MORE)
    loop = LoopAgent(stuck(), watching, options(AnotherAgentStep(second), StopStep(), max_iterations=4))
    await ended(invoke, loop)
    assert watching.seen[2].context.agent is second


@pytest.mark.parametrize("is_stored", [False, True], ids=["same", "stored"])
async def test_a_person_is_asked(invoke: Way, is_stored: bool):
    """A ladder may ask a person: the run ends as `pending_input` with the question, and goes on with the answer."""
    agent = stuck()
    loop = LoopAgent(agent, evaluator(), options(AskPersonStep()))
    result = await ended(invoke, loop)
    assert result.stop_reason == StopReason.PENDING_INPUT
    assert result.stop_detail == (
        "The loop no longer comes closer: the last 2 answers are the same.\n\nStill missing: more\n\n"
        "How should it go on?"
    )
    session = result.session
    if is_stored:
        assert session is not None
        session = await agent.deserialize_session(json.loads(json.dumps(await agent.serialize_session(session))))
    again = await ended(invoke, loop, "Think of a frog.", session=session)
    assert agent.inputs[2] == ["more", "Think of a frog."]
    assert again.stop_reason == StopReason.PENDING_INPUT
    accepted = await ended(invoke, loop, accept_answer(), session=again.session)
    assert (accepted.stop_reason, accepted.output) == (StopReason.SATISFIED, "the same")


async def test_a_stall_over_approvals(invoke: Way):
    """A stuck loop that waits for an approval in each turn is noticed all the same, also from a stored session."""

    def asks_and_answers(call: Call, number: int) -> Any:
        if number % 2 == 0:
            return "the same"
        request = ToolApprovalRequestContent(f"r{number}", FunctionCallContent(f"c{number}", "send", {}))
        return AgentResponse([ChatMessage("assistant", [request])])

    agent = RecordingAgent(answer=asks_and_answers)
    loop = LoopAgent(agent, evaluator(), LoopAgentOptions(max_iterations=1000, stall=StallPolicy()))
    result = await ended(invoke, loop)
    while result.stop_reason == StopReason.PENDING_APPROVAL and len(agent.calls) < 50:
        request = result.iterations[-1].response.messages[0].contents[0]
        approved = ToolApprovalResponseContent(request.request_id, True, request.tool_call)
        session = await agent.deserialize_session(json.loads(json.dumps(await agent.serialize_session(result.session))))
        result = await ended(invoke, loop, ChatMessage("user", [approved]), session=session)
    assert (result.stop_reason, len(agent.calls)) == (StopReason.STALLED, 8)
    assert result.stop_detail == "same_answer: the last 3 answers are the same"


async def test_a_stall_over_budgets(invoke: Way):
    """So is one that a budget stops after each answer, and a larger one continues."""
    client = ScriptedChatClient(lambda *_: ChatResponse("the same", usage=UsageDetails(5, 5)))
    session, message = AgentSession(), "go"
    for calls in range(1, 9):
        budget = LoopBudget(max_model_calls=calls)
        loop = LoopAgent(ChatClientAgent(client), evaluator(), LoopAgentOptions(stall=StallPolicy(), budget=budget))
        result = await ended(invoke, loop, message, session=session)
        message = None
        if result.stop_reason != StopReason.BUDGET_EXCEEDED:
            break
    assert (result.stop_reason, calls) == (StopReason.STALLED, 4)


async def test_the_ladder_goes_on_after_a_pause(invoke: Way):
    """How far up the ladder a run is, and which agent it has, survive a pause."""
    first, second = stuck(), RecordingAgent(answer=lambda call, number: "the other same")
    ladder = options(AnotherAgentStep(second), AskPersonStep(question="How?"), StopStep())
    loop = LoopAgent(first, evaluator(), ladder)
    asked = await ended(invoke, loop)
    assert (asked.stop_reason, len(first.calls), len(second.calls)) == (StopReason.PENDING_INPUT, 2, 2)
    result = await ended(invoke, loop, "Try.", session=asked.session)
    assert (result.stop_reason, len(first.calls)) == (StopReason.STALLED, 2)


async def test_the_ladder_is_gone_up_once(invoke: Way):
    """Each time that the run stalls takes the next step, also where it moved in between."""
    agent = RecordingAgent(*"aabbcc", "never")
    result = await ended(invoke, LoopAgent(agent, evaluator(), options(NudgeStep(), FreshContextStep(), StopStep())))
    assert result.output == "c"
    assert [record.stall for record in result.iterations] == [
        None, "same_answer", None, "same_answer", None, "same_answer",
    ]  # fmt: skip


async def test_the_stall_is_an_event():
    """A stall is an event, with its signal and the step that follows."""
    loop = LoopAgent(stuck(), evaluator(), options(NudgeStep(), StopStep()))
    async with loop.events("the request") as events:
        noticed = [event async for event in events if isinstance(event, StallNoticed)]
    assert [(each.number, each.signal, each.step) for each in noticed] == [
        (2, "same_answer", "nudge"),
        (3, "same_answer", "stop"),
    ]
    result = events.result
    assert result is not None
    assert json.loads(result.to_json())["iterations"][1]["stall"] == "same_answer"


async def test_a_satisfied_or_capped_run_is_no_stall(invoke: Way):
    """Signals are looked for only where the run would go on."""
    result = await ended(invoke, LoopAgent(stuck(), says("more"), options(StopStep())))
    assert result.stop_reason == StopReason.SATISFIED
    capped = options(StopStep(), max_iterations=2, evaluate_final_iteration=True)
    result = await ended(invoke, LoopAgent(stuck(), evaluator(), capped))
    assert result.stop_reason == StopReason.MAX_ITERATIONS


async def test_one_policy_serves_many_runs(invoke: Way):
    """Law 20: a policy holds nothing of a run."""
    loop = LoopAgent(stuck(), evaluator(), options(NudgeStep(), StopStep()))
    for _ in range(3):
        result = await ended(invoke, loop)
        assert len(result.iterations) == 3


@pytest.mark.parametrize(
    ("given", "error", "word"),
    [
        ({"signals": []}, ConfigurationError, "signals"),
        ({"signals": ["same_answer"]}, TypeError, "signals"),
        ({"signals": "same_answer"}, TypeError, "signals"),
        ({"signals": None}, TypeError, "signals"),
        ({"ladder": []}, ConfigurationError, "ladder"),
        ({"ladder": [NudgeStep()]}, ConfigurationError, "end with"),
        ({"ladder": ["stop"]}, TypeError, "ladder"),
    ],
)
def test_wrong_policies(given: Any, error: type[Exception], word: str):
    """A policy without signals, or whose ladder has no end, is an error that says so."""
    with pytest.raises(error, match=word):
        StallPolicy(**given)


def test_wrong_steps():
    """A step with what it can't use is an error that names it."""
    with pytest.raises(TypeError, match="template"):
        NudgeStep(template=3)  # pyright: ignore[reportArgumentType]
    with pytest.raises(TypeError, match="question must be a str or None, not int"):
        AskPersonStep(question=3)  # pyright: ignore[reportArgumentType]
    with pytest.raises(ConfigurationError, match="template must not be blank"):
        NudgeStep(template=" ")
    with pytest.raises(ConfigurationError, match="question"):
        AskPersonStep(question=" ")
    with pytest.raises(TypeError, match="agent"):
        AnotherAgentStep(None)  # pyright: ignore[reportArgumentType]
    with pytest.raises(TypeError, match="stall"):
        LoopAgentOptions(stall="yes")  # pyright: ignore[reportArgumentType]


async def test_return_best_of_a_stalled_run(invoke: Way):
    """A stalled run with `return_best` gives its best answer."""
    words = [LoopEvaluation.continue_("more", score=score) for score in (0.2, 0.9, 0.1, 0.1, 0.1, 0.1, 0.1)]
    signals = [SameFeedbackSignal(3)]
    stall = StallPolicy(signals=signals, ladder=[StopStep()])
    loop = LoopAgent(RecordingAgent(), says(*words), LoopAgentOptions(stall=stall, return_best=True))
    result = await ended(invoke, loop)
    assert (result.stop_reason, result.output) == (StopReason.STALLED, "reply 2")
