from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from flow_files import DINNER, DINNER_REPLIES, RICHER_DINNER, call, run, run_events

from agents_loop import StopReason
from agents_loop.cli import main
from agents_loop.files import load_loop_file
from agents_loop.files.flomorphic.file import FloMorphicFile
from agents_loop.loop.events import AgentUpdated, LoopStarted, LoopStopped, NodeChanged
from agents_loop.testing import ScriptedChatClient

QUESTION = "Can Cyd eat the parmesan?"


def golden_client() -> ScriptedChatClient:
    return ScriptedChatClient(["draft", call("ask", question=QUESTION), "revision", call("serve", reason="all can")])


def golden_file(path: Path = DINNER) -> FloMorphicFile:
    loop_file = load_loop_file(path)
    assert isinstance(loop_file, FloMorphicFile)
    return loop_file


@pytest.mark.parametrize("streaming", [False, True])
@pytest.mark.parametrize("path", [DINNER, RICHER_DINNER], ids=["bare", "richer"])
async def test_the_golden_run(path: Path, streaming: bool):
    """The golden run: the visits, the context at the end and the roles are those that the format promises."""
    counter = "next-round" if path == DINNER else "next-round-that-the-critic-reads"
    result = await run(golden_file(path), golden_client(), streaming=streaming)

    assert result.stop_reason == StopReason.SATISFIED
    assert result.report["visits"] == [
        "start",
        "set-the-table",
        "cook",
        "critic",
        "pass-the-question-on",
        counter,
        "cook",
        "critic",
        "serve",
    ]
    context = result.report["context"]
    assert list(context) == ["round", "brief", "guests", "menu", "critic", "status", "dinner", "verdict"]
    assert [message["role"] for message in context["menu"]["messages"]] == [
        "system",
        "user",
        "assistant",
        "user",
        "assistant",
    ]
    assert [message["role"] for message in context["critic"]["messages"]] == ["system", "user", "assistant"]
    assert context["round"] == {"number": 1}
    assert (context["status"], context["verdict"]) == ("served", {"reason": "all can"})
    assert context["dinner"] == context["menu"]
    assert result.output == "revision"


async def test_what_each_call_of_the_golden_run_is_sent():
    """The judge is seeded anew each time, with the count and the conversation as they are; the worker goes on."""
    client = golden_client()
    result = await run(golden_file(), client)
    cook, critic, again, last = [call.messages for call in client.calls]

    assert [len(messages) for messages in (cook, critic, again, last)] == [2, 2, 4, 2]
    assert "This is round 0." in critic[0].text
    assert "This is round 1." in last[0].text
    shown = [json.loads(messages[1].text.partition("so far:\n")[2]) for messages in (critic, last)]
    assert [len(messages) for messages in shown] == [3, 5]
    assert again[-1].text == QUESTION
    assert [message.text for message in result.iterations[1].on_behalf_of] == [QUESTION]
    guests = [
        {"name": "Ada", "eats": "everything"},
        {"name": "Bo", "eats": "no nuts"},
        {"name": "Cyd", "eats": "vegan"},
    ]
    assert cook[1].text == f"Plan the dinner.\n\nThe guests:\n{json.dumps(guests, separators=(',', ':'))}"


async def test_functions_are_offered_with_name_description_and_parameters_alone():
    """Of a function its name, its description and its parameters are sent, whatever else the export says of it."""
    client = golden_client()
    await run(golden_file(RICHER_DINNER), client)

    assert client.calls[0].options is None
    tools = client.calls[1].options.tools
    assert [set(tool["function"]) for tool in tools] == [{"name", "description", "parameters"}] * 2
    assert [tool["function"]["name"] for tool in tools] == ["ask", "serve"]


async def test_a_flow_is_a_loop():
    """A visit of a node that answers is an iteration, one of a node that decides an evaluation in it."""
    events, result = await run_events(golden_file(), golden_client())

    assert [record.number for record in result.iterations] == [1, 2]
    assert [record.response.text for record in result.iterations] == ["draft", "revision"]
    said = [evaluation for record in result.iterations for evaluation in record.evaluations]
    assert [(each.evaluator, each.decision, each.feedback) for each in said] == [
        ("critic", "continue", QUESTION),
        ("critic", "stop", None),
    ]
    assert said[1].details == {"calls": [{"name": "serve", "arguments": {"reason": "all can"}}]}
    assert [(entry.role, entry.iteration) for entry in result.ledger] == [
        ("agent", 1),
        ("evaluator", 1),
        ("agent", 2),
        ("evaluator", 2),
    ]
    kinds = [type(event).__name__ for event in events if not isinstance(event, NodeChanged)]
    assert kinds == [
        "LoopStarted",
        *["IterationStarted", "AgentResponded", "EvaluatorDecided"] * 2,
        "LoopStopped",
    ]
    started, stopped = events[0], events[-1]
    assert isinstance(started, LoopStarted)
    assert isinstance(stopped, LoopStopped)
    assert stopped.response is not None
    assert [message.text for message in stopped.response.messages] == ["draft", QUESTION, "revision"]


async def test_answers_are_streamed_and_decisions_are_not():
    """In a streaming run there are pieces of each answer, and none of what a judge says."""
    events, _ = await run_events(golden_file(), golden_client(), streaming=True)
    pieces = [(event.number, event.update.text) for event in events if isinstance(event, AgentUpdated)]

    assert [piece for piece in pieces if piece[1]] == [(1, "draft"), (2, "revision")]


def test_the_command_runs_an_export(capsys: pytest.CaptureFixture[str]):
    """The command runs an export as it is; with --json the context stands at the top level."""
    code = main(["run", str(DINNER), "--backend", f"scripted:{DINNER_REPLIES}", "--json"])
    written: dict[str, Any] = json.loads(capsys.readouterr().out)

    assert code == 0
    assert written["stop_reason"] == "satisfied"
    assert written["model_calls"] == 4
    assert written["context"]["status"] == "served"
    assert written["usage"]["input_token_count"] == 755
    assert [each["evaluations"][0]["decision"] for each in written["iterations"]] == ["continue", "stop"]


def test_the_command_stops_a_flow_at_its_cap(capsys: pytest.CaptureFixture[str]):
    """--max-iterations counts answers: N means N, and the last one is still judged."""
    code = main(
        ["run", str(DINNER), "--backend", f"scripted:{DINNER_REPLIES}", "--json", "--quiet", "--max-iterations", "1"]
    )
    written: dict[str, Any] = json.loads(capsys.readouterr().out)

    assert code == 3
    assert (written["stop_reason"], len(written["iterations"])) == ("max_iterations", 1)
    assert written["iterations"][0]["evaluations"][0]["decision"] == "continue"


def test_the_command_shows_what_a_flow_is(capsys: pytest.CaptureFixture[str]):
    """`validate` tells nodes, models and where loops close."""
    assert main(["validate", str(DINNER)]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "✓ Dinner for three: 7 nodes, 7 edges",
        "  models: cook, critic",
        "  loop: next-round -> cook",
    ]


def test_a_flow_can_be_projected(capsys: pytest.CaptureFixture[str]):
    """--dry walks a flow to its cap without a model."""
    assert main(["run", str(DINNER), "--dry", "--max-iterations", "2", "--json"]) == 0
    projected: dict[str, Any] = json.loads(capsys.readouterr().out)

    assert [(each["model"], each["iteration"]) for each in projected["calls"]] == [
        ("cook", 1),
        ("critic", 1),
        ("cook", 2),
        ("critic", 2),
    ]
