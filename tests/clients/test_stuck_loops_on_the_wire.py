"""Comparing, asking a person, and stalls over a real SDK and a real server."""

import json

import pytest
from fakes import RecordingAgent, says
from fault_server import Completion, Failure, FaultServer, usage

from agents_loop import (
    AIJudgeLoopEvaluator,
    AskPersonStep,
    ChatClientAgent,
    FreshContextStep,
    JudgeFailurePolicy,
    LoopAgent,
    LoopAgentOptions,
    LoopEvaluation,
    LoopResult,
    NudgeStep,
    OpenAIChatClient,
    PairwiseJudge,
    PairwiseJudgeOptions,
    PreferenceLoopEvaluator,
    StallPolicy,
    StopStep,
    accept_answer,
)


def better(word: str) -> Completion:
    return Completion(content=json.dumps({"reason": "r", "better": word}), usage=usage(100, 10))


def not_yet(gap: str) -> Completion:
    return Completion(content=json.dumps({"gapAnalysis": gap, "answered": False}))


@pytest.mark.parametrize("streaming", [False, True])
async def test_comparing_over_the_wire(server: FaultServer, client: OpenAIChatClient, streaming: bool):
    """P2, P4: the schema is sent strict, with no sampling parameter; both orders are asked, and what they use counts."""
    server.add(better("second"), better("first"))
    evaluators = [PreferenceLoopEvaluator(PairwiseJudge(client)), says("more")]
    loop = LoopAgent(RecordingAgent("one", "two"), evaluators)
    response = await (loop.run_streaming("go").final_response() if streaming else loop.run("go"))
    result = LoopResult.of(response)
    assert (result.best.number, result.usage.input_token_count) == (2, 200)
    for body in server.bodies:
        sent = body["response_format"]["json_schema"]
        assert (sent["name"], sent["strict"], list(sent["schema"]["properties"])) == (
            "preference",
            True,
            ["reason", "better"],
        )
        assert not {"stream", "temperature", "tools"} & set(body)
    shown = [body["messages"][1]["content"] for body in server.bodies]
    assert shown[0].index("one") < shown[0].index("two")
    assert shown[1].index("two") < shown[1].index("one")


async def test_a_judge_that_is_down_for_a_moment(server: FaultServer, client: OpenAIChatClient):
    """F3: a comparison whose call fails for a moment is asked again, and nothing is decided by the failure."""
    server.add(Failure(status=500), better("second"), better("first"))
    waits: list[float] = []

    async def sleep(seconds: float) -> None:
        waits.append(seconds)

    policy = JudgeFailurePolicy(retries=1, sleep=sleep)
    judge = PairwiseJudge(client, PairwiseJudgeOptions(on_failure=policy))
    loop = LoopAgent(RecordingAgent("one", "two"), [PreferenceLoopEvaluator(judge), says("more")])
    result = LoopResult.of(await loop.run("go"))
    assert (result.best.number, len(waits)) == (2, 1)


async def test_a_stuck_loop_over_the_wire(server: FaultServer, client: OpenAIChatClient):
    """A stuck agent hears the nudge, then starts again without what it said, and then the run ends."""
    for number in range(5):
        server.add(Completion(content="It depends."), not_yet(f"No cost, for the {number}. time."))
    policy = StallPolicy(ladder=[NudgeStep(), FreshContextStep(), StopStep()])
    agent = ChatClientAgent(client, instructions="Be brief.")
    loop = LoopAgent(agent, AIJudgeLoopEvaluator(client), LoopAgentOptions(max_iterations=1000, stall=policy))
    result = LoopResult.of(await loop.run("What does it cost?"))
    assert (result.stop_reason, len(result.iterations)) == ("stalled", 5)
    of_agent = [body["messages"] for body in server.bodies if body["messages"][0]["content"] == "Be brief."]
    assert "try another way" in of_agent[3][-1]["content"]
    assert [message["role"] for message in of_agent[4]] == ["system", "user", "user"]
    assert of_agent[4][1]["content"] == "What does it cost?"
    assert of_agent[4][2]["content"].startswith("## Feedback")


async def test_a_person_answers_later(server: FaultServer, client: OpenAIChatClient):
    """C4: the run goes on where it was, in a conversation that was stored meanwhile and has all of it."""
    server.add(Completion(content="A report."), Completion(content="A report of 2024."))
    words = [LoopEvaluation.ask("Which year?", "Name the year."), LoopEvaluation.ask("May it go out?")]
    loop = LoopAgent(ChatClientAgent(client), says(*words))
    asked = LoopResult.of(await loop.run("Write."))
    session = await loop.deserialize_session(json.loads(json.dumps(await loop.serialize_session(asked.session))))
    again = LoopResult.of(await loop.run("2024", session=session))
    assert (again.stop_reason, again.stop_detail) == ("pending_input", "May it go out?")
    assert [(each["role"], each["content"]) for each in server.bodies[1]["messages"]] == [
        ("user", "Write."),
        ("assistant", "A report."),
        ("user", "Name the year."),
        ("user", "2024"),
    ]
    accepted = LoopResult.of(await loop.run(accept_answer(), session=again.session))
    assert (accepted.stop_reason, accepted.output) == ("satisfied", "A report of 2024.")
    assert len(server.bodies) == 2


async def test_the_ladder_asks_a_person_over_the_wire(server: FaultServer, client: OpenAIChatClient):
    """The question of a ladder waits in the session, and the answer reaches the model."""
    server.add(*[Completion(content="It depends.")] * 3, Completion(content="3 days."))
    policy = StallPolicy(ladder=[AskPersonStep()])
    loop = LoopAgent(ChatClientAgent(client), says(*["Name it."] * 3), LoopAgentOptions(stall=policy))
    asked = LoopResult.of(await loop.run("What does it cost?"))
    assert asked.stop_reason == "pending_input"
    result = LoopResult.of(await loop.run("Count the days.", session=asked.session))
    assert (result.stop_reason, result.output) == ("satisfied", "3 days.")
    assert server.bodies[-1]["messages"][-1]["content"] == "Count the days."
