"""Laws 9 to 13: feedback, explicit messages, fresh context, sessions and options."""

from __future__ import annotations

from typing import Any

import pytest
from fakes import RecordingAgent, Updates, Way, always, says

from agents_loop import (
    AgentResponse,
    AgentResponseUpdate,
    AgentRunOptions,
    AgentSession,
    AIAgent,
    ChatMessage,
    ChatOptions,
    FunctionResultContent,
    LoopAgent,
    LoopAgentOptions,
    LoopContext,
    LoopEvaluation,
    LoopResult,
    StopReason,
)

MORE = LoopEvaluation.continue_()
FRESH = LoopAgentOptions(fresh_context_per_iteration=True)


def explicit(*messages: str | ChatMessage) -> LoopEvaluation:
    return LoopEvaluation.continue_with_messages(list(messages))


# Law 9


async def test_one_entry_for_each_re_invocation(agent: RecordingAgent, invoke: Way):
    """Law 9: the log has one entry for each re-invocation: the feedback, or None for none, blank or explicit messages."""
    evaluator = says("first", None, " \n\t", explicit("x"), "last")
    await invoke(LoopAgent(agent, evaluator))
    assert [seen.feedback for seen in evaluator.seen] == [
        [],
        ["first"],
        ["first", None],
        ["first", None, None],
        ["first", None, None, None],
        ["first", None, None, None, "last"],
    ]


async def test_the_log_is_read_only(agent: RecordingAgent, invoke: Way):
    """Law 9: evaluators see the log read-only: neither it nor a slice of it lets them write."""
    evaluator = says("first", "second")
    await invoke(LoopAgent(agent, evaluator))
    log: Any = evaluator.seen[-1].context.feedback
    for name in ("append", "extend", "insert", "clear", "pop", "remove", "__setitem__", "__delitem__", "__iadd__"):
        assert not hasattr(log, name)
    log[:].append("forged")
    assert log == ["first", "second"] == list(log)
    assert log != ["first"]
    assert log != "first"
    assert repr(log) == "FeedbackLog(['first', 'second'])"
    assert log[1:] == ["second"]
    assert (log[-1], list(reversed(log)), "first" in log, len(log)) == ("second", ["second", "first"], True, 2)


@pytest.mark.parametrize("mode", ["first", "all"])
async def test_no_entry_without_a_re_invocation(agent: RecordingAgent, invoke: Way, mode: str):
    """Law 9: feedback that no re-invocation follows is no entry."""
    evaluator = always(LoopEvaluation.continue_("more"))
    options = LoopAgentOptions(max_iterations=2, evaluate_final_iteration=True, evaluation_mode=mode)
    await invoke(LoopAgent(agent, [evaluator, says()], options))
    assert evaluator.seen[-1].context.feedback == ["more"]


# Law 10


async def test_the_latest_feedback_alone(agent: RecordingAgent, invoke: Way):
    """Law 10: the next input is the latest feedback alone, verbatim, as one user message; an older one is never resent."""
    feedback = "  - keep *this*\n\n{gap_analysis}  "
    await invoke(LoopAgent(agent, says(feedback, "second", None, "fourth")))
    assert agent.inputs == [["the request"], [feedback], ["second"], [], ["fourth"]]
    assert [call.messages[0].role for call in agent.calls if call.messages] == ["user"] * 4


async def test_the_rejected_answer_stays_in_the_conversation(agent: RecordingAgent, invoke: Way):
    """Law 10: in the same session the rejected answer is still there (B1)."""
    session = AgentSession()
    await invoke(LoopAgent(agent, says("more")), session=session)
    assert [message.text for message in session.messages] == ["reply 1", "reply 2"]


@pytest.mark.parametrize("blank", ["", " ", "\n\t "])
async def test_blank_feedback_is_none(agent: RecordingAgent, invoke: Way, blank: str):
    """Law 10: blank feedback is no message at all."""
    assert LoopEvaluation.continue_(blank).feedback is None
    await invoke(LoopAgent(agent, says(blank)))
    assert agent.inputs == [["the request"], []]


# Law 11


async def test_fresh_context(agent: RecordingAgent, invoke: Way):
    """Law 11: the next input is the caller's messages, then one message with a heading and a bullet for each entry."""
    given = [ChatMessage("system", "be brief"), ChatMessage("user", "the request", message_id="m")]
    await invoke(LoopAgent(agent, says("first", None, "two\nlines", explicit("x"), " spaced "), FRESH), given)
    one = "## Feedback\n\n- first"
    two = f"{one}\n- two\nlines"
    asked = ["be brief", "the request"]
    assert agent.inputs == [asked, [*asked, one], [*asked, one], [*asked, two], ["x"], [*asked, f"{two}\n-  spaced "]]
    assert all(call.messages[:2] == given for call in agent.calls if len(call.messages) > 1)
    assert [message.role for message in agent.calls[-1].messages] == ["system", "user", "user"]


async def test_fresh_context_without_feedback(agent: RecordingAgent, invoke: Way):
    """Law 11: no feedback, no feedback message."""
    await invoke(LoopAgent(agent, says(None, "  "), FRESH))
    assert agent.inputs == [["the request"]] * 3


async def test_a_session_of_the_loops_is_made_anew(agent: RecordingAgent, invoke: Way):
    """Law 11: a session that the loop made is made anew before every re-invocation."""
    response = await invoke(LoopAgent(agent, says("a", None, explicit("x")), FRESH))
    assert len(agent.created) == 4
    assert agent.sessions == agent.created
    assert agent.serialized == agent.deserialized == []
    assert LoopResult.of(response).session is agent.created[-1]


async def test_a_callers_session_is_cloned(agent: RecordingAgent, invoke: Way):
    """Law 11: a caller's session is serialised once, and each re-invocation gets a fresh clone of that snapshot."""
    session = AgentSession(state={"kept": [1]})
    session.messages.append(ChatMessage("user", "before"))
    evaluator = says("a", "b")
    await invoke(LoopAgent(agent, evaluator, FRESH), session=session)
    assert agent.serialized == [session]
    assert agent.created == []
    assert agent.sessions == [session, *agent.deserialized]
    assert len({id(used) for used in agent.sessions}) == 3
    for clone in agent.deserialized:
        assert clone.state == {"kept": [1], "runs": 1}
        assert clone.messages[0].text == "before"
        assert len(clone.messages) == 2
    assert session.state == {"kept": [1], "runs": 1}
    assert [message.text for message in session.messages] == ["before", "reply 1"]


async def test_the_snapshot_is_from_before(agent: RecordingAgent, invoke: Way):
    """Law 11: the snapshot is from before the first iteration, whatever becomes of the session later."""
    session = AgentSession(state={"notes": ["old"]})

    class Meddling(RecordingAgent):
        def _reply(self, number: int):
            session.state["notes"].append(f"written during {number}")
            return super()._reply(number)

    meddling = Meddling()
    await invoke(LoopAgent(meddling, says("a", "b"), FRESH), session=session)
    assert [clone.state["notes"] for clone in meddling.deserialized] == [["old"], ["old"]]


async def test_clones_share_nothing(invoke: Way):
    """Law 11: each clone is fresh even if the agent's `deserialize_session` keeps the value it is given."""

    class KeepsState(RecordingAgent):
        async def deserialize_session(self, state: Any) -> AgentSession:
            clone = AgentSession(state=state["state"])
            self.deserialized.append(clone)
            return clone

    agent = KeepsState()
    await invoke(LoopAgent(agent, says("a", "b", "c"), FRESH), session=AgentSession(state={"runs": 5}))
    assert [clone.state for clone in agent.deserialized] == [{"runs": 6}] * 3


async def test_clones_of_messages_share_nothing(agent: RecordingAgent):
    """Law 11: sessions that are read from one stored value share nothing, neither with it nor with each other."""
    session = AgentSession(state={"deep": [{"a": 1}]})
    result = FunctionResultContent("call", {"rows": [1]})
    session.messages.append(ChatMessage("tool", [result], additional_properties={"deep": {"a": [1]}}))
    stored = await agent.serialize_session(session)
    one, two = await agent.deserialize_session(stored), await agent.deserialize_session(stored)
    one.state["deep"][0]["a"] = 2
    one.messages[0].contents[0].result["rows"].append(2)
    one.messages[0].additional_properties["deep"]["a"].append(2)
    assert two.state == session.state
    assert two.messages == session.messages
    assert (await agent.deserialize_session(stored)).messages == session.messages


async def test_a_session_that_cannot_be_written(agent: RecordingAgent, invoke: Way):
    """Law 11: a caller's session that can't be serialised is an error before the first iteration."""
    session = AgentSession(state={"not json": {1, 2}})
    with pytest.raises(ValueError, match=session.session_id):
        await invoke(LoopAgent(agent, says("a"), FRESH), session=session)
    assert agent.calls == []


async def test_a_session_is_not_written_without_need(agent: RecordingAgent, invoke: Way):
    """Law 11: only fresh context serialises a session."""
    await invoke(LoopAgent(agent, says("a")), session=AgentSession(state={"not json": {1, 2}}))
    assert len(agent.calls) == 2


async def test_the_callers_messages_are_sent_again_by_value(invoke: Way):
    """Law 11: the caller's messages are sent again unchanged, and no more often than that."""
    agent = RecordingAgent()
    given = [ChatMessage("user", "the request", message_id="m", author_name="Ann")]
    options = LoopAgentOptions(fresh_context_per_iteration=True, on_behalf_of_author_name="the loop")
    await invoke(LoopAgent(agent, says("a", "b"), options), given)
    for call in agent.calls:
        assert call.messages[0] is given[0]
        assert call.texts.count("the request") == 1


# Law 12


@pytest.mark.parametrize("fresh", [False, True])
async def test_explicit_messages(agent: RecordingAgent, invoke: Way, fresh: bool):
    """Law 12: explicit messages are sent verbatim, in either mode; in fresh context the session is still replaced."""
    messages = [
        ChatMessage("system", "a reminder", author_name="policy", message_id="mine"),
        ChatMessage("user", ["look", FunctionResultContent("c", 1)], additional_properties={"k": 1}),
    ]
    options = LoopAgentOptions(fresh_context_per_iteration=fresh, on_behalf_of_author_name="the loop")
    await invoke(LoopAgent(agent, says("before", explicit(*messages)), options))
    assert agent.calls[2].messages == messages
    assert agent.calls[2].messages[0].message_id == "mine"
    assert messages[1].message_id is None
    assert len(set(map(id, agent.sessions))) == (3 if fresh else 1)


@pytest.mark.parametrize("fresh", [False, True])
async def test_no_explicit_messages_are_explicit(agent: RecordingAgent, invoke: Way, fresh: bool):
    """Law 12: an empty list of explicit messages is sent verbatim too."""
    options = LoopAgentOptions(fresh_context_per_iteration=fresh)
    await invoke(LoopAgent(agent, says("feedback", explicit()), options))
    assert agent.inputs[2] == []


async def test_the_same_explicit_messages_again(agent: RecordingAgent, invoke: Way):
    """Law 12: an evaluation that is used again is sent again, and its messages without an id get a new one each time."""
    await invoke(LoopAgent(agent, says(*[explicit("x")] * 3)))
    assert agent.inputs[1:] == [["x"]] * 3
    assert len({call.messages[0].message_id for call in agent.calls[1:]}) == 3


# Law 13


@pytest.mark.parametrize("kind", ["sync", "async"])
@pytest.mark.parametrize("fresh", [False, True])
async def test_the_callback_hears_of_made_sessions(agent: RecordingAgent, invoke: Way, fresh: bool, kind: str):
    """Law 13: the callback hears of every session the loop makes, before it is used, and may be sync or async."""
    heard: list[tuple[AgentSession, int]] = []

    def hear(session: AgentSession) -> None:
        heard.append((session, len(agent.calls)))

    async def hear_later(session: AgentSession) -> None:
        hear(session)

    callback = hear if kind == "sync" else hear_later
    options = LoopAgentOptions(fresh_context_per_iteration=fresh, session_created_callback=callback)
    await invoke(LoopAgent(agent, says("a", "b"), options))
    assert heard == [(session, position) for position, session in enumerate(agent.created)]
    assert len(heard) == (3 if fresh else 1)


async def test_the_callback_hears_of_clones(agent: RecordingAgent, invoke: Way):
    """Law 13: the callback hears of every clone, and never of the caller's session."""
    heard: list[AgentSession] = []
    session = AgentSession()
    options = LoopAgentOptions(fresh_context_per_iteration=True, session_created_callback=heard.append)
    await invoke(LoopAgent(agent, says("a", "b"), options), session=session)
    assert heard == agent.deserialized
    assert len(heard) == 2
    assert session not in heard


async def test_the_callback_never_hears_of_the_callers(agent: RecordingAgent, invoke: Way):
    """Law 13: with the caller's session and no fresh context the callback hears nothing."""
    heard: list[AgentSession] = []
    options = LoopAgentOptions(session_created_callback=heard.append)
    await invoke(LoopAgent(agent, says("a")), session=AgentSession())
    await invoke(LoopAgent(agent, says("a"), options), session=AgentSession())
    assert heard == []


async def test_a_callback_may_give_a_value(agent: RecordingAgent, invoke: Way):
    """Law 13: what a sync callback happens to give is nobody's business."""
    known: dict[str, AgentSession] = {}
    options = LoopAgentOptions(session_created_callback=lambda session: known.setdefault(session.session_id, session))
    await invoke(LoopAgent(agent, says(), options))
    assert list(known.values()) == agent.created


@pytest.mark.parametrize("kind", ["sync", "async"])
@pytest.mark.parametrize("at", [1, 2])
async def test_a_callback_that_raises(agent: RecordingAgent, invoke: Way, kind: str, at: int):
    """Law 13: what the callback raises ends the run, as it was raised; its session is not used."""
    error, heard = PermissionError("no more sessions"), []

    def refuse(session: AgentSession) -> None:
        heard.append(session)
        if len(heard) == at:
            raise error

    async def refuse_later(session: AgentSession) -> None:
        refuse(session)

    callback = refuse if kind == "sync" else refuse_later
    options = LoopAgentOptions(fresh_context_per_iteration=True, session_created_callback=callback)
    with pytest.raises(PermissionError) as raised:
        await invoke(LoopAgent(agent, says("a"), options))
    assert raised.value is error
    result = LoopResult.of(error)
    assert result.stop_reason is StopReason.FAILED
    assert len(result.iterations) == len(agent.calls) == at - 1
    assert heard[-1] not in agent.sessions


@pytest.mark.parametrize("options", [LoopAgentOptions(), FRESH])
@pytest.mark.parametrize("session", [None, AgentSession()])
async def test_the_context(invoke: Way, options: LoopAgentOptions, session: AgentSession | None):
    """Law 13: the context has the session in use, the inner agent, the request, the latest response and the options."""
    agent, evaluator = RecordingAgent(), says("a", "b")
    run_options = AgentRunOptions(chat_options=ChatOptions(seed=7))
    loop = LoopAgent(agent, evaluator, options)
    await invoke(loop, session=session, options=run_options)
    assert [seen.session for seen in evaluator.seen] == agent.sessions
    assert [seen.iteration for seen in evaluator.seen] == [1, 2, 3]
    assert [seen.response.text for seen in evaluator.seen] == ["reply 1", "reply 2", "reply 3"]
    for seen in evaluator.seen:
        assert seen.context.agent is agent
        assert seen.context.run_options is run_options
        assert [message.text for message in seen.context.initial_messages] == ["the request"]
    assert [call.options for call in agent.calls] == [run_options] * 3
    assert all(call.options is run_options for call in agent.calls)


async def test_the_context_is_the_runs_bag(agent: RecordingAgent, invoke: Way):
    """Law 13: what evaluators put into the context stays for the run, and for the run alone."""

    class Counting(type(says())):
        async def evaluate(self, context: LoopContext) -> LoopEvaluation:
            context.additional_properties["n"] = context.additional_properties.get("n", 0) + 1
            found.append(context.additional_properties["n"])
            return await super().evaluate(context)

    found: list[int] = []
    loop = LoopAgent(agent, Counting([MORE, MORE]))
    await invoke(loop)
    await invoke(loop)
    assert found == [1, 2, 3, 1, 2, 3]


async def test_options_reach_every_session_of_an_agent_that_streams_itself(invoke: Way):
    """Law 13: an agent with no stream of its own gets the same options and sessions."""

    class Plain(AIAgent):
        def __init__(self) -> None:
            self.calls: list[tuple[Any, Any]] = []

        async def run_core(self, messages, *, session, options) -> AgentResponse:
            self.calls.append((session, options))
            return AgentResponse("ok")

    agent, options = Plain(), AgentRunOptions()
    await invoke(LoopAgent(agent, says("a")), options=options)
    assert len({id(session) for session, _ in agent.calls}) == 1
    assert [given for _, given in agent.calls] == [options, options]


async def test_the_answer_the_context_holds_is_the_inner_one(invoke: Way):
    """Law 13: `last_response` is the inner agent's, without the messages that drove it."""
    pieces = Updates([AgentResponseUpdate("assistant", "piece", response_id="r", message_id="m")])
    evaluator = says("more")
    await invoke(LoopAgent(RecordingAgent("first", pieces), evaluator))
    assert [message.text for message in evaluator.seen[1].response.messages] == ["piece"]
