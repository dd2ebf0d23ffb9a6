"""Law 25 and F1 to F6 on the wire: every cause, every policy, streamed or not, with the real OpenAI SDK."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

import pytest
from fakes import WAYS, RecordingAgent, Way
from fault_server import Completion, Failure, FaultServer, Raw, Reply, Silence, Stream, chunk, usage

from agents_loop import (
    AIJudgeLoopEvaluator,
    AIJudgeLoopEvaluatorOptions,
    ChatClientAgent,
    ChatOptions,
    ConfigurationError,
    JudgeFailedError,
    JudgeFailurePolicy,
    LoopAgent,
    LoopAgentOptions,
    LoopResult,
    StopReason,
)
from agents_loop.clients.fallback import FallbackChatClient
from agents_loop.clients.openai import OpenAIChatClient
from agents_loop.failures import FailureCause, cause_of

YES = '{"gapAnalysis": "", "answered": true}'
NO = '{"gapAnalysis": "no dates", "answered": false}'
C = FailureCause


@dataclass(frozen=True)
class Fault:
    """A way to give no verdict, and how it is known."""

    cause: FailureCause
    reply: Reply
    status: int | None = None
    """Of the exception; `None` for a reply that is none."""
    raises: bool = True


FAULTS = {
    "rate limit": Fault(C.RATE_LIMIT, Failure(429, "slow down"), 429),
    "quota": Fault(C.QUOTA, Failure(429, "pay", code="insufficient_quota"), 429),
    "auth": Fault(C.AUTH, Failure(401, "who?", code="invalid_api_key"), 401),
    "forbidden": Fault(C.AUTH, Failure(403), 403),
    "server": Fault(C.SERVER, Failure(500), 500),
    "overload": Fault(C.SERVER, Failure(503), 503),
    "rejected": Fault(C.OTHER, Failure(400, "odd"), 400),
    "unprocessable": Fault(C.OTHER, Failure(422, "odd"), 422),
    "context": Fault(C.CONTEXT_OVERFLOW, Failure(400, "too long", code="context_length_exceeded"), 400),
    "timeout": Fault(C.TIMEOUT, Silence()),
    "network": Fault(C.NETWORK, Stream((), end="torn")),
    "not JSON": Fault(C.UNREADABLE, Raw(b"<html>", content_type="text/html")),
    "filtered prompt": Fault(C.CONTENT_FILTER, Failure(400, "no", code="content_filter"), raises=False),
    "filtered": Fault(C.CONTENT_FILTER, Completion(content=YES, finish_reason="content_filter"), raises=False),
    "refusal": Fault(C.REFUSAL, Completion(refusal="I won't"), raises=False),
    "length": Fault(C.LENGTH, Completion(content=YES, finish_reason="length"), raises=False),
    "unreadable": Fault(C.UNREADABLE, Completion(content="Hmm."), raises=False),
}
FIELDS = {C.OTHER: "error"}
TRANSIENT = {C.RATE_LIMIT, C.SERVER, C.TIMEOUT, C.NETWORK}
ENDINGS = ["raise", "continue", "stop"]


@dataclass
class Bench:
    """An agent and a judge, each with a server of its own."""

    agent_server: FaultServer
    judge_server: FaultServer
    clients: list[OpenAIChatClient]
    waits: list[float] = field(default_factory=list)

    def client(self, server: FaultServer, *, max_retries: int = 0, timeout_s: float = 30) -> OpenAIChatClient:
        client = OpenAIChatClient(
            "m", api_key="k", base_url=server.base_url, max_retries=max_retries, timeout_s=timeout_s
        )
        self.clients.append(client)
        return client

    def policy(self, **given: Any) -> JudgeFailurePolicy:
        return JudgeFailurePolicy(**{"sleep": self._sleep, "draw": lambda: 0.0, **given})

    def loop(self, policy: JudgeFailurePolicy, *, max_retries: int = 0, timeout_s: float = 30, judge: Any = None):
        judge = judge or self.client(self.judge_server, max_retries=max_retries, timeout_s=timeout_s)
        options = AIJudgeLoopEvaluatorOptions(
            on_failure=policy,
            chat_options=ChatOptions(max_output_tokens=50),
            feedback_message_template="{gap_analysis}",
        )
        agent = ChatClientAgent(self.client(self.agent_server))
        return LoopAgent(agent, AIJudgeLoopEvaluator(judge, options), LoopAgentOptions(max_iterations=5))

    async def _sleep(self, seconds: float) -> None:
        self.waits.append(seconds)


@pytest.fixture
async def bench() -> AsyncIterator[Bench]:
    with FaultServer() as agent_server, FaultServer() as judge_server:
        agent_server.default = Completion(content="an answer", usage=usage(10, 5))
        bench = Bench(agent_server, judge_server, [])
        yield bench
        for client in bench.clients:
            await client.aclose()


async def outcome(loop: LoopAgent, way: Way) -> tuple[LoopResult, Exception | None]:
    """The result, however the run ended."""
    try:
        response = await way(loop)
    except Exception as error:  # noqa: BLE001 - what is raised is looked at
        result = LoopResult.of(error)
        assert result is not None
        return result, error
    result = LoopResult.of(response)
    assert result is not None
    return result, None


def heard(bench: Bench) -> list[str]:
    """The last words that the agent was sent, in each call."""
    return [body["messages"][-1]["content"] for body in bench.agent_server.bodies]


def short(name: str) -> float:
    return 0.2 if name == "timeout" else 30


@pytest.mark.parametrize("way", WAYS, ids=["run", "streamed"])
@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize("name", FAULTS)
async def test_a_judges_failure_by_cause_and_policy(bench: Bench, name: str, ending: str, way: Way):
    """Law 25: the agent's work is in the result, and no outage becomes feedback, a pass or a score."""
    fault = FAULTS[name]
    bench.judge_server.add(Completion(content=NO), fault.reply, Completion(content=YES))
    named = FIELDS.get(fault.cause, str(fault.cause))
    policy = bench.policy(**{"error" if name == "not JSON" else named: ending})
    result, error = await outcome(bench.loop(policy, timeout_s=short(name)), way)

    assert [record.response.text for record in result.iterations][:2] == ["an answer", "an answer"]
    assert result.usage.input_token_count == 10 * len(result.iterations)
    failed = result.iterations[1].evaluations
    match ending:
        case "raise":
            assert result.stop_reason == StopReason.EVALUATOR_FAILED
            assert cause_of(error) == fault.cause
            assert isinstance(error, JudgeFailedError) != fault.raises
            assert getattr(error, "status_code", None) == fault.status
            assert failed == ()
        case "stop":
            assert error is None
            assert result.stop_reason == StopReason.EVALUATOR_FAILED
            assert str(fault.cause) in result.stop_detail
            assert failed == ()
        case _:
            assert error is None
            assert result.stop_reason == StopReason.SATISFIED
            assert len(result.iterations) == 3
            assert (failed[0].decision, failed[0].score) == ("continue", None)
            assert failed[0].feedback == ("Hmm." if name == "unreadable" else None)
            assert heard(bench)[:2] == ["the request", "no dates"]
    assert bench.waits == []


@pytest.mark.parametrize("way", WAYS, ids=["run", "streamed"])
@pytest.mark.parametrize("max_retries", [0, 2])
@pytest.mark.parametrize("name", [name for name, fault in FAULTS.items() if fault.raises])
async def test_attempts_are_never_multiplied(bench: Bench, name: str, max_retries: int, way: Way):
    """F1: the policy's attempts stand in place of the SDK's: as many as that was set to, for what may pass."""
    fault = FAULTS[name]
    bench.judge_server.default = fault.reply
    loop = bench.loop(bench.policy(), max_retries=max_retries, timeout_s=short(name))
    result, error = await outcome(loop, way)
    expected = max_retries if fault.cause in TRANSIENT else 0
    assert cause_of(error) == fault.cause
    assert result.output == "an answer"
    assert len(bench.judge_server.requests) == (1 + max_retries if fault.cause in TRANSIENT else 1)
    assert bench.waits == [0.5, 1.0][:expected]


@pytest.mark.parametrize("way", WAYS, ids=["run", "streamed"])
@pytest.mark.parametrize("name", [name for name, fault in FAULTS.items() if fault.cause in TRANSIENT])
async def test_a_transient_failure_then_success(bench: Bench, name: str, way: Way):
    """F3: the loop is not charged for it: one iteration, and no trace in what the agent hears."""
    bench.judge_server.add(FAULTS[name].reply, Completion(content=YES, usage=usage(3, 1)))
    result, error = await outcome(bench.loop(bench.policy(), max_retries=2, timeout_s=short(name)), way)
    assert error is None
    assert result.stop_reason == StopReason.SATISFIED
    assert len(result.iterations) == len(bench.agent_server.requests) == 1
    assert result.usage.input_token_count == 13


async def test_the_policys_own_number_counts(bench: Bench):
    """F1: with a number in the policy, that number, whatever the SDK is set to."""
    bench.judge_server.default = Failure(500)
    await outcome(bench.loop(bench.policy(retries=4), max_retries=1), Way(streaming=False))
    assert len(bench.judge_server.requests) == 5
    bench.judge_server.requests.clear()
    await outcome(bench.loop(bench.policy(retries=0), max_retries=3), Way(streaming=False))
    assert len(bench.judge_server.requests) == 1


async def test_the_agents_own_calls_keep_the_sdks_attempts(bench: Bench):
    """F1: the SDK's attempts are off for the judge's call alone, also with one client for both."""
    bench.judge_server.add(Failure(500, headers={"retry-after-ms": "1"}), Completion(content="an answer"))
    bench.judge_server.add(Failure(500), Completion(content=YES))
    client = bench.client(bench.judge_server, max_retries=1)
    options = AIJudgeLoopEvaluatorOptions(on_failure=bench.policy())
    result, error = await outcome(
        LoopAgent(ChatClientAgent(client), AIJudgeLoopEvaluator(client, options)), Way(streaming=False)
    )
    assert error is None
    assert result.stop_reason == StopReason.SATISFIED
    assert bench.waits == [0.5]


async def test_what_the_server_asks_to_wait_is_waited(bench: Bench):
    """P8: `Retry-After` counts, up to the policy's cap; longer, and the server is not asked again."""
    bench.judge_server.add(Failure(429, headers={"Retry-After": "7"}), Completion(content=YES))
    await outcome(bench.loop(bench.policy(), max_retries=2), Way(streaming=False))
    assert bench.waits == [7]
    bench.judge_server.add(Failure(429, headers={"Retry-After": "61"}))
    result, error = await outcome(bench.loop(bench.policy(), max_retries=2), Way(streaming=False))
    assert cause_of(error) == C.RATE_LIMIT
    assert (bench.waits, result.output) == ([7], "an answer")


async def test_more_room_on_the_wire(bench: Bench):
    """V9: a verdict that was cut off is asked for again with a larger limit, and both calls are counted."""
    bench.judge_server.add(Completion(content="{", finish_reason="length", usage=usage(1, 50)))
    bench.judge_server.add(Completion(content=YES, usage=usage(1, 9)))
    result, _ = await outcome(bench.loop(bench.policy()), Way(streaming=False))
    assert result.stop_reason == StopReason.SATISFIED
    assert [body["max_tokens"] for body in bench.judge_server.bodies] == [50, 200]
    assert result.usage.output_token_count == 64


@pytest.mark.parametrize("way", WAYS, ids=["run", "streamed"])
@pytest.mark.parametrize("name", [name for name, fault in FAULTS.items() if fault.raises])
async def test_a_judge_behind_another_one(bench: Bench, name: str, way: Way):
    """F1: the next judge is asked where this one is down, never where a request was rejected."""
    bench.agent_server.add(Completion(content="an answer"), Completion(content=YES))
    bench.judge_server.default = FAULTS[name].reply
    first = bench.client(bench.judge_server, max_retries=2, timeout_s=short(name))
    policy = bench.policy(next_judges=[bench.client(bench.agent_server)], retries=1)
    result, error = await outcome(bench.loop(policy, judge=first), way)
    falls = FAULTS[name].cause in TRANSIENT | {C.QUOTA}
    assert result.stop_reason == (StopReason.SATISFIED if falls else StopReason.EVALUATOR_FAILED)
    assert (error is None) == falls
    assert len(bench.judge_server.requests) == (2 if FAULTS[name].cause in TRANSIENT else 1)


@pytest.mark.parametrize("way", WAYS, ids=["run", "streamed"])
@pytest.mark.parametrize("name", [name for name, fault in FAULTS.items() if fault.raises])
async def test_an_agents_outage_is_raised_and_never_judged(bench: Bench, name: str, way: Way):
    """F4: the agent's failed turn is not judged; what it had finished is in the result."""
    bench.agent_server.add(Completion(content="an answer"), FAULTS[name].reply)
    bench.judge_server.add(Completion(content=NO))
    agent = ChatClientAgent(bench.client(bench.agent_server, timeout_s=short(name)))
    judge = AIJudgeLoopEvaluator(bench.client(bench.judge_server))
    result, error = await outcome(LoopAgent(agent, judge), way)
    if name == "not JSON" and way.streaming:
        assert cause_of(error) == C.NETWORK  # a stream without an event in it has ended early
    else:
        assert cause_of(error) == FAULTS[name].cause
    assert result.stop_reason == StopReason.FAILED
    assert (result.output, len(result.iterations)) == ("an answer", 1)
    assert len(bench.judge_server.requests) == 1


@pytest.mark.parametrize("way", WAYS, ids=["run", "streamed"])
@pytest.mark.parametrize("name", FAULTS)
async def test_an_agent_with_a_fallback(bench: Bench, name: str, way: Way):
    """F6: the next client answers where the first is down, with each word shown once; nothing else falls."""
    fault = FAULTS[name]
    bench.judge_server.default = fault.reply
    first = bench.client(bench.judge_server, timeout_s=short(name))
    agent = ChatClientAgent(FallbackChatClient(first, bench.client(bench.agent_server)))
    falls = fault.cause in TRANSIENT | {C.QUOTA} or (name == "not JSON" and way.streaming)
    if not falls and fault.raises:
        with pytest.raises(Exception) as caught:  # noqa: PT011 - the cause is looked at
            await way(agent)
        assert cause_of(caught.value) == fault.cause
        return
    response = await way(agent)
    assert response.additional_properties["fallback"]["client"] == int(falls)
    assert len(bench.agent_server.requests) == int(falls)
    if falls:
        assert response.text == "an answer"
        assert response.usage.output_token_count == 5


async def test_a_stream_that_broke_after_its_first_words_is_not_begun_anew(bench: Bench):
    """F6: what was shown is not shown again: the error is raised."""
    bench.judge_server.default = Stream((chunk({"content": "half"}),), end="torn")
    client = FallbackChatClient(bench.client(bench.judge_server), bench.client(bench.agent_server))
    seen = []
    with pytest.raises(Exception, match="onnection") as caught:  # noqa: PT012 - the loop is what raises
        async for update in client.get_streaming_response([]):
            seen += [update.text]
    assert cause_of(caught.value) == C.NETWORK
    assert "".join(seen) == "half"
    assert bench.agent_server.requests == []


async def test_all_clients_down(bench: Bench):
    """F1: the last error is raised as it was raised, with the earlier ones in its notes."""
    bench.judge_server.default, bench.agent_server.default = Failure(429, "slow"), Failure(503, "busy")
    client = FallbackChatClient(bench.client(bench.judge_server), bench.client(bench.agent_server))
    with pytest.raises(Exception, match="503") as caught:
        await client.get_response([])
    assert "RateLimitError" in caught.value.__notes__[0]


async def test_a_fallback_remembers_nothing(bench: Bench):
    """F1: each call begins with the first client."""
    bench.judge_server.add(Failure(500))
    client = FallbackChatClient(bench.client(bench.judge_server), bench.client(bench.agent_server))
    answered = [await client.get_response([]) for _ in range(2)]
    assert [response.additional_properties["fallback"] for response in answered] == [
        {"client": 1, "failed": ["server"]},
        {"client": 0, "failed": []},
    ]


@pytest.fixture(autouse=True)
def no_settings_of_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)


BAD_ANSWERS = {
    "refusal": Completion(refusal="I won't", usage=usage(10, 2)),
    "content_filter": Completion(content=None, finish_reason="content_filter", usage=usage(10, 2)),
    "length": Completion(content="half an ans", finish_reason="length", usage=usage(10, 2)),
    "empty": Completion(content=" ", usage=usage(10, 2)),
}


@pytest.mark.parametrize("way", WAYS, ids=["run", "streamed"])
@pytest.mark.parametrize("policy", ["evaluate", "retry", "stop"])
@pytest.mark.parametrize("name", BAD_ANSWERS)
async def test_an_agents_bad_answer_by_cause_and_policy(bench: Bench, name: str, policy: Any, way: Way):
    """F4: named in the result, handled by the policy; the earlier answer and every token are in the result."""
    bench.agent_server.add(Completion(content="an answer", usage=usage(10, 5)), BAD_ANSWERS[name])
    bench.judge_server.add(Completion(content=NO), Completion(content=YES))
    agent = ChatClientAgent(bench.client(bench.agent_server))
    judge = AIJudgeLoopEvaluator(bench.client(bench.judge_server))
    result, error = await outcome(LoopAgent(agent, judge, LoopAgentOptions(on_bad_response=policy)), way)

    assert error is None
    asks_again = policy == "retry" and name != "content_filter"
    assert [record.bad_response for record in result.iterations] == [None, name, *([None] if asks_again else [])]
    assert result.iterations[0].response.text == "an answer"
    assert result.usage.output_token_count == (12 if asks_again else 7)
    ends_well = policy == "evaluate" or asks_again
    assert result.stop_reason == (StopReason.SATISFIED if ends_well else StopReason.FAILED)
    assert len(bench.judge_server.requests) == (2 if ends_well else 1)
    if not ends_well:
        assert name in result.stop_detail
    if asks_again:
        assert result.output == "an answer"
        assert heard(bench)[2] == result.iterations[2].input[0].text


async def test_an_error_inside_a_stream_that_has_shown_nothing_goes_to_the_next_client(bench: Bench):
    """P7 and F6: an error event in an HTTP 200 stream is an outage; what it cost is counted."""
    told = Stream((chunk({}, usage=usage(7, 0)), {"error": {"message": "busy", "code": "server_error"}}))
    bench.judge_server.default = told
    client = FallbackChatClient(bench.client(bench.judge_server), bench.client(bench.agent_server))
    response = await ChatClientAgent(client).run_streaming("x").final_response()
    assert response.text == "an answer"
    assert response.additional_properties["fallback"] == {"client": 1, "failed": ["server"]}
    assert response.usage.input_token_count == 17


async def test_a_judge_with_a_fallback_asks_each_client_once_an_attempt(bench: Bench):
    """F1: the SDK's attempts are off behind a fallback too: clients times attempts, and no more."""
    bench.judge_server.default = bench.agent_server.default = Failure(500)
    judge = FallbackChatClient(
        bench.client(bench.judge_server, max_retries=2), bench.client(bench.agent_server, max_retries=2)
    )
    options = AIJudgeLoopEvaluatorOptions(on_failure=bench.policy(retries=1))
    with pytest.raises(Exception, match="500"):
        await LoopAgent(RecordingAgent(), AIJudgeLoopEvaluator(judge, options)).run("x")
    assert [len(bench.judge_server.requests), len(bench.agent_server.requests)] == [2, 2]


def test_a_fallback_has_clients():
    """Design: wrong use is found before anything runs."""
    with pytest.raises(ConfigurationError, match="clients"):
        FallbackChatClient()
    with pytest.raises(TypeError, match="clients"):
        FallbackChatClient(None)
