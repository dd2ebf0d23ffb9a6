from __future__ import annotations

import json

import pytest
from fault_server import Completion, Failure, FaultServer
from flow_files import flow_file, js, llm, run
from openai import AsyncOpenAI, RateLimitError

from agents_loop import LoopResult, StopReason
from agents_loop.clients.openai import OpenAIChatClient

JUDGED = flow_file(
    [
        llm("w", "Work.", key="w"),
        llm("j", "So far: {{$.w.messages}}", "again", "done", key="j"),
        js("pass-on", "[..._get('$.w').messages, { role: 'user', content: 'More.' }]", key="messages", scope="$.w"),
    ],
    ("start", "w"),
    ("w", "j"),
    ("j", "pass-on", "again"),
    ("pass-on", "w"),
)


def called(name: str, arguments: str, call_id: str) -> Completion:
    wire = {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}
    return Completion(content=None, tool_calls=(wire,), finish_reason="tool_calls")


@pytest.mark.parametrize("streaming", [False, True])
async def test_a_flow_runs_over_the_real_sdk(server: FaultServer, streaming: bool):
    """Over the real SDK a flow runs to its end, and a conversation with calls in it is one that providers take."""
    server.add(
        Completion(content="draft"),
        called("again", '{"why":"ä"}', "c1"),
        Completion(content="revision"),
        called("done", "{}", "c2"),
    )
    async with AsyncOpenAI(base_url=server.base_url, api_key="k") as sdk:
        result = await run(JUDGED, OpenAIChatClient("m", openai_client=sdk), streaming=streaming)

    assert (result.stop_reason, result.output) == (StopReason.SATISFIED, "revision")
    worker, judge, _, again = server.bodies
    assert "tools" not in worker
    assert [each["function"]["name"] for each in judge["tools"]] == ["again", "done"]
    assert [message["role"] for message in again["messages"]] == ["user", "assistant", "tool"]
    assert again["messages"][2]["tool_call_id"] == again["messages"][1]["tool_calls"][0]["id"] == "c1"
    (kept,) = result.report["context"]["j"]["messages"][1]["tool_calls"]
    assert json.loads(kept["arguments"]) == {"why": "ä"}


async def test_what_the_sdk_raises_reaches_the_caller(server: FaultServer):
    """`except openai.RateLimitError` works around a flow, and the result so far can be read from it."""
    server.default = Failure(429, "slow down")
    async with AsyncOpenAI(base_url=server.base_url, api_key="k", max_retries=0) as sdk:
        with pytest.raises(RateLimitError) as caught:
            await run(JUDGED, OpenAIChatClient("m", openai_client=sdk))

    result = LoopResult.of(caught.value)
    assert result is not None
    assert result.stop_reason == StopReason.FAILED
    assert [entry.outcome for entry in result.ledger] == ["rate_limit"]
