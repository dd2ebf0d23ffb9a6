"""The ledger and budgets over a real SDK and a real server: streams, retries of the judge's policy, tool rounds."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import pytest

pytest.importorskip("openai")

from fault_server import Completion, Failure, FaultServer, Silence, Stream, chunk, usage

from agents_loop import (
    AIJudgeLoopEvaluator,
    AIJudgeLoopEvaluatorOptions,
    ChatClientAgent,
    JudgeFailurePolicy,
    LoopAgent,
    LoopAgentOptions,
    LoopBudget,
    LoopResult,
    OpenAIChatClient,
    StopReason,
)

MORE = '{"gapAnalysis": "more", "answered": false}'
DONE = '{"gapAnalysis": "", "answered": true}'


@pytest.fixture
def server() -> Iterator[FaultServer]:
    with FaultServer() as server:
        yield server


@pytest.fixture
async def client(server: FaultServer) -> AsyncIterator[OpenAIChatClient]:
    made = OpenAIChatClient("asked-1", api_key="k", base_url=server.base_url)
    yield made
    await made.aclose()


async def _no_sleep(_: float) -> None:
    """Nobody waits."""


def loop(client: OpenAIChatClient, **options: object) -> LoopAgent:
    judging = AIJudgeLoopEvaluatorOptions(on_failure=JudgeFailurePolicy(retries=2, sleep=_no_sleep))
    return LoopAgent(ChatClientAgent(client), AIJudgeLoopEvaluator(client, judging), LoopAgentOptions(**options))


@pytest.mark.parametrize("streaming", [False, True])
async def test_each_request_is_an_entry(client: OpenAIChatClient, server: FaultServer, *, streaming: bool):
    """U1: what the server served is what the ledger says, its failures too."""
    whole = Completion(content="a draft", usage=usage(10, 5))
    last = chunk({}, finish_reason="stop", usage=usage(10, 5))
    server.add(Stream((chunk({"content": "a "}), chunk({"content": "draft"}), last)) if streaming else whole)
    server.add(Failure(503, "busy"), Failure(429, "slow"), Completion(content=DONE, usage=usage(20, 3)))
    made = loop(client)

    response = await (made.run_streaming("go").final_response() if streaming else made.run("go"))

    result = LoopResult.of(response)
    assert result is not None
    used = [None if entry.usage is None else entry.usage.total_token_count for entry in result.ledger]
    assert [entry.outcome for entry in result.ledger] == ["ok", "server", "rate_limit", "ok"]
    assert used == [15, None, None, 23]
    assert len(result.ledger) == len(server.requests)


async def test_a_stream_that_breaks_is_an_entry_with_what_came(client: OpenAIChatClient, server: FaultServer):
    """U1: the usage that came before the connection broke is counted."""
    server.add(Stream((chunk({"content": "half"}, usage=usage(7, 2)),), "torn"))
    with pytest.raises(Exception) as caught:  # noqa: PT011 - whatever the SDK raises for it
        await loop(client).run_streaming("go").final_response()
    result = LoopResult.of(caught.value)
    assert result is not None
    assert [(entry.outcome, entry.usage.total_token_count) for entry in result.ledger] == [("network", 9)]


async def test_a_budget_stops_the_requests(client: OpenAIChatClient, server: FaultServer):
    """U2: the server gets no request that the budget does not allow."""
    for _ in range(5):
        server.add(Completion(content="d", usage=usage(60, 40)), Completion(content=MORE, usage=usage(40, 10)))

    result = LoopResult.of(await loop(client, budget=LoopBudget(max_tokens=320)).run("go"))

    assert result is not None
    assert (result.stop_reason, len(server.requests)) == (StopReason.BUDGET_EXCEEDED, 4)


async def test_a_server_that_hangs_is_left_at_the_deadline(client: OpenAIChatClient, server: FaultServer):
    """U2: the request is cancelled, and is an entry without usage."""
    server.add(Silence())

    result = LoopResult.of(await loop(client, budget=LoopBudget(deadline_s=0.3)).run("go"))

    assert result is not None
    assert (result.stop_reason, result.output) == (StopReason.DEADLINE, "")
    assert [(entry.outcome, entry.usage) for entry in result.ledger] == [("cancelled", None)]
