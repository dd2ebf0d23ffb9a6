from __future__ import annotations

import json
from typing import Any

import pytest
from fakes import WAYS, RecordingAgent, Way, says, texts

from agents_loop import (
    AgentSession,
    ChatMessage,
    ConfigurationError,
    DelegateLoopEvaluator,
    EvidenceLoopEvaluator,
    LoopAgent,
    LoopAgentOptions,
    LoopContext,
    LoopEvaluation,
    LoopResult,
    PanelLoopEvaluator,
    StopReason,
    accept_answer,
    check,
)
from agents_loop.loop.joining import joined_wish

ASK = LoopEvaluation.ask("Which year?")
KEY = "agents_loop"


@pytest.fixture(params=WAYS, ids=["run", "stream"])
def invoke(request: pytest.FixtureRequest) -> Way:
    return request.param


async def asked(invoke: Way, agent: RecordingAgent, *words: Any, options: Any = None) -> tuple[LoopAgent, LoopResult]:
    """A loop whose evaluator has asked a person, and the result so far."""
    loop = LoopAgent(agent, says(*words), options)
    result = LoopResult.of(await invoke(loop))
    assert result is not None
    assert result.stop_reason == StopReason.PENDING_INPUT
    return loop, result


async def stored(agent: RecordingAgent, session: AgentSession | None) -> AgentSession:
    """The session, as another process would read it."""
    assert session is not None
    return await agent.deserialize_session(json.loads(json.dumps(await agent.serialize_session(session))))


async def test_the_question_ends_the_run(invoke: Way):
    """A run whose evaluator needs a person ends as `pending_input`, with the question in `stop_detail`."""
    _, result = await asked(invoke, RecordingAgent(), "more", ASK)

    assert result.stop_detail == "Which year?"
    assert [record.evaluations[0].decision for record in result.iterations] == ["continue", "ask"]
    assert result.output == "reply 2"


@pytest.mark.parametrize("is_stored", [False, True], ids=["same", "stored"])
async def test_the_answer_drives_the_next_iteration(invoke: Way, is_stored: bool):
    """Any message in the session is the person's answer: the agent hears it, and the count goes on."""
    agent = RecordingAgent()
    loop, result = await asked(invoke, agent, "more", ASK)
    session = await stored(agent, result.session) if is_stored else result.session
    evaluator: Any = loop.evaluators[0]

    response = await invoke(loop, "In 2024.", session=session)

    ended = LoopResult.of(response)
    assert ended is not None
    assert agent.inputs == [["the request"], ["more"], ["In 2024."]]
    assert (ended.stop_reason, [record.number for record in ended.iterations]) == (StopReason.SATISFIED, [3])
    assert evaluator.seen[-1].feedback == ["more", "In 2024."]
    assert texts(evaluator.seen[-1].context.initial_messages) == [("user", "the request")]
    assert texts(response.messages) == [("assistant", "reply 3")]
    assert session is not None
    assert KEY not in session.state


@pytest.mark.parametrize("is_stored", [False, True], ids=["same", "stored"])
async def test_accepting_is_a_verdict(invoke: Way, is_stored: bool):
    """A person who accepts ends the run as `satisfied` with the answer at hand, and the agent is not run."""
    agent = RecordingAgent()
    loop, result = await asked(invoke, agent, "more", ASK)
    session = await stored(agent, result.session) if is_stored else result.session

    response = await invoke(loop, accept_answer(), session=session)

    ended = LoopResult.of(response)
    assert ended is not None
    assert len(agent.calls) == 2
    assert (ended.stop_reason, ended.output, response.text) == (StopReason.SATISFIED, "reply 2", "reply 2")
    [record] = ended.iterations
    assert (record.number, record.evaluations[0].evaluator, record.evaluations[0].decision) == (2, "person", "stop")
    assert response.response_id == "response-2"


async def test_an_accepted_answer_is_streamed():
    """The drained stream of an accepted answer equals the response."""
    agent = RecordingAgent()
    loop, result = await asked(WAYS[1], agent, ASK)

    stream = loop.run_streaming(accept_answer(), session=result.session)
    streamed = "".join([update.text async for update in stream])

    assert streamed == (await stream.final_response()).text == "reply 1"


@pytest.mark.parametrize("words", ["accept", "yes, accepted", '{"agents_loop.accept": true}', "VERDICT: DONE"])
async def test_no_text_accepts(invoke: Way, words: str):
    """Nothing unclear is a pass: whatever a person writes is an answer, and only `accept_answer` accepts."""
    agent = RecordingAgent()
    loop, result = await asked(invoke, agent, ASK, "more")

    ended = LoopResult.of(await invoke(loop, words, session=result.session))

    assert agent.inputs[1] == [words]
    assert ended is not None
    assert len(ended.iterations) == 2


async def test_accepting_and_saying_more_is_unclear(invoke: Way):
    """An acceptance beside another message is refused before anything runs, and the question waits on."""
    agent = RecordingAgent()
    loop, result = await asked(invoke, agent, ASK)

    with pytest.raises(ConfigurationError, match="only message"):
        await invoke(loop, [accept_answer(), ChatMessage("user", "but add a year")], session=result.session)

    response = await invoke(loop, accept_answer(), session=result.session)
    assert response.text == "reply 1"


async def test_nothing_to_accept(invoke: Way):
    """An acceptance where nothing waits is an error that says so, and the agent is not run."""
    agent = RecordingAgent()
    with pytest.raises(ConfigurationError, match="no question waits"):
        await invoke(LoopAgent(agent, says()), accept_answer())
    assert agent.calls == []


async def test_no_answer_at_all(invoke: Way):
    """A run without any message while a question waits is refused, and the question waits on."""
    agent = RecordingAgent()
    loop, result = await asked(invoke, agent, ASK)

    with pytest.raises(ConfigurationError, match=r"Which year\?"):
        await invoke(loop, None, session=result.session)

    assert (await invoke(loop, accept_answer(), session=result.session)).text == "reply 1"


async def test_feedback_comes_with_the_answer(invoke: Way):
    """What the agent is to hear beside the question waits for the answer, and is sent with it."""
    agent = RecordingAgent()
    loop, result = await asked(invoke, agent, LoopEvaluation.ask("Which year?", "Name your source."))

    response = await invoke(loop, "2024", session=result.session)

    assert agent.inputs[1] == ["Name your source.", "2024"]
    evaluator: Any = loop.evaluators[0]
    assert evaluator.seen[1].feedback == ["Name your source.\n\n2024"]
    assert texts(response.messages) == [("user", "Name your source."), ("assistant", "reply 2")]


@pytest.mark.parametrize("given", [False, True], ids=["own", "given"])
async def test_fresh_context(invoke: Way, given: bool):
    """In a fresh context the answer comes after the request and all feedback, in a session of its own; later
    iterations hear of it as feedback."""
    agent = RecordingAgent()
    loop = LoopAgent(agent, says("more", ASK, "again"), LoopAgentOptions(fresh_context_per_iteration=True))
    first = await invoke(loop, session=AgentSession() if given else None)
    result = LoopResult.of(first)
    assert result is not None

    await invoke(loop, "In 2024.", session=await stored(agent, result.session))

    assert agent.inputs[2] == ["the request", "## Feedback\n\n- more", "In 2024."]
    assert agent.inputs[3] == ["the request", "## Feedback\n\n- more\n- In 2024.\n- again"]
    assert len({id(session) for session in agent.sessions}) == 4


async def test_a_failed_attempt_can_be_repeated(invoke: Way):
    """Where the agent fails with the answer, the question waits on in the caller's session."""
    for options in (None, LoopAgentOptions(fresh_context_per_iteration=True)):
        agent = RecordingAgent("draft", OSError("down"), "done")
        loop, result = await asked(invoke, agent, ASK, options=options)
        with pytest.raises(OSError, match="down") as caught:
            await invoke(loop, "2024", session=result.session)
        failed = LoopResult.of(caught.value)
        assert failed is not None
        assert failed.session is result.session

        response = await invoke(loop, "2024", session=result.session)

        assert response.text.endswith("done")


async def test_an_answer_at_the_cap(invoke: Way):
    """Law 4: a person who answers a question at the cap raises it by one, so no two iterations have one number."""
    agent, seen = RecordingAgent(), list[tuple[int, int]]()

    def evaluate(context: LoopContext) -> LoopEvaluation | str:
        seen.append((context.iteration, context.max_iterations))
        return ASK if context.last_response.text == "reply 1" else "more"

    evaluator = DelegateLoopEvaluator(evaluate)
    loop = LoopAgent(agent, evaluator, LoopAgentOptions(max_iterations=1, evaluate_final_iteration=True))
    result = LoopResult.of(await invoke(loop))
    assert result is not None
    assert result.stop_reason == StopReason.PENDING_INPUT

    ended = LoopResult.of(await invoke(loop, "2024", session=result.session))

    assert ended is not None
    assert (ended.stop_reason, ended.output) == (StopReason.MAX_ITERATIONS, "reply 2")
    assert ended.stop_detail is not None
    assert ended.stop_detail.startswith("2 of 2 iterations")
    assert [record.number for record in ended.iterations] == [2]
    assert seen == [(1, 1), (2, 2)]


async def test_a_cap_that_was_lowered_meanwhile(invoke: Way):
    """Law 4: where a run goes on under a lower cap, its count goes on too: one more iteration, under the next number."""
    agent = RecordingAgent()
    words = ["more", "more", ASK, "more", "more"]
    long = LoopAgent(agent, says(*words[:3]), LoopAgentOptions(max_iterations=9))
    short = LoopAgent(agent, says(*words[3:]), LoopAgentOptions(max_iterations=2))
    result = LoopResult.of(await invoke(long))
    assert result is not None

    ended = LoopResult.of(await invoke(short, "2024", session=result.session))

    assert ended is not None
    assert [record.number for record in ended.iterations] == [4]
    assert (ended.stop_reason, ended.stop_detail) == (StopReason.MAX_ITERATIONS, "4 of 4 iterations")


@pytest.mark.parametrize(
    ("others", "reason"),
    [
        ([LoopEvaluation.continue_("more")], StopReason.PENDING_INPUT),
        ([LoopEvaluation.stop()], StopReason.PENDING_INPUT),
        ([LoopEvaluation.abort("no")], StopReason.ABORTED),
    ],
    ids=["continue", "stop", "abort"],
)
async def test_the_rank_of_a_question(invoke: Way, others: list[LoopEvaluation], reason: StopReason):
    """An abort outranks a question, and a question every wish to go on, in whatever order they are said."""
    for evaluators in ([says(ASK), says(*others)], [says(*others), says(ASK)]):
        loop = LoopAgent(RecordingAgent(), evaluators, LoopAgentOptions(evaluation_mode="all"))
        result = LoopResult.of(await invoke(loop))
        assert result is not None
        assert result.stop_reason == reason


async def test_what_others_want_waits_for_the_answer(invoke: Way):
    """With `evaluation_mode="all"` the questions are put together, and others' messages and feedback go with the
    answer."""
    agent = RecordingAgent()
    explicit = LoopEvaluation.continue_with_messages("Look here.")
    evaluators = [says(ASK), says("more"), says(explicit), says(LoopEvaluation.ask("And where?"))]
    loop = LoopAgent(agent, evaluators, LoopAgentOptions(evaluation_mode="all"))
    result = LoopResult.of(await invoke(loop))
    assert result is not None
    assert result.stop_detail == "Which year?\n\nAnd where?"

    await invoke(loop, "2024, Rome", session=await stored(agent, result.session))

    assert agent.inputs[1] == ["Look here.", "more", "2024, Rome"]


async def test_in_order_nobody_is_asked_after_a_question(invoke: Way):
    """In order, a question ends the asking."""
    second = says("more")
    await invoke(LoopAgent(RecordingAgent(), [says(ASK), second]))
    assert second.asked_at == []


@pytest.mark.parametrize("is_stored", [False, True], ids=["same", "stored"])
async def test_loops_in_a_loop(invoke: Way, is_stored: bool):
    """A question of an inner loop ends the outer one too; the answer goes to the loop that asked."""
    agent = RecordingAgent()
    inner, outer = says("inner more", ASK), says("outer more")
    loop = LoopAgent(LoopAgent(agent, inner), outer)
    result = LoopResult.of(await invoke(loop))
    assert result is not None
    assert (result.stop_reason, result.stop_detail, outer.asked_at) == (StopReason.PENDING_INPUT, "Which year?", [])
    session = await stored(agent, result.session) if is_stored else result.session

    ended = LoopResult.of(await invoke(loop, accept_answer(), session=session))

    assert ended is not None
    assert ended.stop_reason == StopReason.SATISFIED
    assert agent.inputs == [["the request"], ["inner more"]]
    assert outer.asked_at == [2]


async def test_panels_and_evidence_pass_a_question_on():
    """A panel that goes on, and a check's or a judge's question beside evidence, ask the person."""
    for evaluator in (
        PanelLoopEvaluator([says(ASK), says("more")]),
        EvidenceLoopEvaluator(says(ASK), check("ok", lambda text: True)),
        EvidenceLoopEvaluator(says(LoopEvaluation.stop()), [says(ASK)]),
    ):
        result = LoopResult.of(await LoopAgent(RecordingAgent(), evaluator).run("the request"))
        assert result is not None
        assert (result.stop_reason, result.stop_detail) == (StopReason.PENDING_INPUT, "Which year?")


async def test_a_panel_that_passes_asks_nobody():
    """A question is a wish to go on among a panel's votes: a majority that is content outvotes it."""
    panel = PanelLoopEvaluator([says(ASK), says(), says()])
    result = LoopResult.of(await LoopAgent(RecordingAgent(), panel).run("the request"))
    assert result is not None
    assert result.stop_reason == StopReason.SATISFIED


def test_joined_questions_keep_messages():
    """Evaluations joined with a question keep the others' messages and feedback."""
    joined = joined_wish([ASK, LoopEvaluation.continue_with_messages("Look."), LoopEvaluation.continue_("more")])
    assert (joined.decision, joined.question) == ("ask", "Which year?")
    assert joined.messages is not None
    assert [message.text for message in joined.messages] == ["Look.", "more"]


def test_joined_questions_keep_feedback():
    """Without messages the joined question has the feedback of all."""
    joined = joined_wish([LoopEvaluation.ask("Where?", "first"), LoopEvaluation.continue_("second")])
    assert (joined.question, joined.feedback, joined.messages) == ("Where?", "first\n\nsecond", None)


def test_wrong_questions():
    """A question that is no text, or blank, is an error that says so."""
    with pytest.raises(TypeError, match="question"):
        LoopEvaluation.ask(None)  # pyright: ignore[reportArgumentType]
    with pytest.raises(ConfigurationError, match="question"):
        LoopEvaluation.ask("  ")


async def test_the_result_as_json_holds_the_question():
    """In JSON an evaluation that asks has its question."""
    response = await LoopAgent(RecordingAgent(), DelegateLoopEvaluator(lambda _: ASK)).run("the request")
    result = LoopResult.of(response)
    assert result is not None
    said = json.loads(result.to_json())["iterations"][0]["evaluations"][0]
    assert (said["decision"], said["question"]) == ("ask", "Which year?")
