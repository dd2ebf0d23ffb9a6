"""The samples do what they say, with scripted models in place of real ones."""

from __future__ import annotations

import importlib.util
import json
import re
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from agents_loop import ChatMessage, ChatResponse, FunctionCallContent, UsageDetails
from agents_loop.cli import main
from agents_loop.testing import ScriptedChatClient

SAMPLES = Path(__file__).parents[1] / "samples"


def sample(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"sample_{name}", SAMPLES / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def calls(*named: tuple[str, dict[str, Any]]) -> ChatMessage:
    return ChatMessage("assistant", [FunctionCallContent(f"c{n}", *each) for n, each in enumerate(named)])


@pytest.mark.parametrize(
    "name",
    [
        "marker_loop",
        "todo_loop",
        "judge_loop",
        "evidence_loop",
        "strategy_loop",
        "approval_loop",
        "budget_loop",
        "candidates_loop",
    ],
)
def test_a_sample_is_short(name: str):
    """Samples: each is under 60 lines."""
    assert len((SAMPLES / f"{name}.py").read_text("utf-8").splitlines()) < 60


async def test_budget_loop(capsys: pytest.CaptureFixture[str]):
    """Samples: the run ends at its two cents with its answer, and tells what was spent on whom."""

    def answer(messages: Any, options: Any) -> ChatResponse:
        text = '{"gapAnalysis": "who brings what?", "answered": false}' if options else "Come on Friday."
        return ChatResponse(text, usage=UsageDetails(4000, 1000))

    await sample("budget_loop").main(ScriptedChatClient(answer))
    assert capsys.readouterr().out.splitlines() == [
        "Come on Friday.",
        (
            "=== budget_exceeded: budget allows $0.02, and the run has spent $0.018000; "
            "$0.003000 kept back for the verdict: the next call was not made"
        ),
        "agent: 3 calls, $0.0090",
        "evaluator: 3 calls, $0.0090",
    ]


def test_dinner_flow(capsys: pytest.CaptureFixture[str]):
    """Samples: the flow runs over its scripted replies, and its judge's question is what the cook hears next."""
    replies = f"scripted:{SAMPLES / 'dinner_replies.jsonl'}"
    assert main(["run", str(SAMPLES / "dinner_flow.json"), "--backend", replies, "--json", "--quiet"]) == 0
    written = json.loads(capsys.readouterr().out)

    assert written["stop_reason"] == "satisfied"
    assert written["iterations"][1]["input"][-1] == {"role": "user", "text": "Can Cyd eat the parmesan?"}
    assert written["context"]["status"] == "served"


async def test_marker_loop(capsys: pytest.CaptureFixture[str]):
    """Samples: each iteration begins anew with the request and the feedback so far, until the marker is there."""
    client = ScriptedChatClient(["- boots", "- boots\n- raincoat", "- boots\n- raincoat\n- map\n<finished/>"])
    await sample("marker_loop").main(client)
    assert capsys.readouterr().out.endswith("- map\n<finished/>\n=== satisfied after 3\n")
    assert [len(call.messages) for call in client.calls] == [2, 3, 3]
    heard = client.calls[2].messages[2].text
    assert heard.startswith("## Feedback")
    assert "\n- boots\n- raincoat\n" in heard


async def test_todo_loop(capsys: pytest.CaptureFixture[str]):
    """Samples: the plan is shown before the work; then the agent is run again until all is complete."""
    titles = ["hire a piano", "print posters", "rehearse"]
    client = ScriptedChatClient(
        [
            calls(("todo_add", {"items": [{"title": title} for title in titles]})),
            "That is the plan.",
            calls(("todo_complete", {"ids": [1]}), ("todo_complete", {"ids": [2]})),
            "Piano and posters are done.",
            calls(("todo_complete", {"ids": [3]})),
            "All is ready.",
        ]
    )
    await sample("todo_loop").main(client)
    out = capsys.readouterr().out
    assert out.startswith("planned: 1 hire a piano\nplanned: 2 print posters\nplanned: 3 rehearse\n--- iteration 1\n")
    assert out.endswith("All is ready.\n=== satisfied after 2, 0 left\n")
    assert "- 3: rehearse" in client.calls[4].messages[-1].text


async def test_todo_loop_without_tools(capsys: pytest.CaptureFixture[str]):
    """Samples: where the model plans nothing, an empty list is not taken for work that is done."""
    await sample("todo_loop").main(ScriptedChatClient(["I will."]))
    assert capsys.readouterr().out == "The model wrote no todo: it does not call tools.\n"


async def test_judge_loop(capsys: pytest.CaptureFixture[str]):
    """Samples: the writer hears what the judge misses, until nothing is missing."""
    writer = ScriptedChatClient(["We are closed.", "We are closed. Open again on 8 March; bread at Miller's."])

    def answer(messages, options):
        asked = messages[-1].text
        if "List what" in asked:
            return "tell customers that the bakery is closed in the first week of March\nbecause of a new oven"
        return "no" if "opens again" in asked and "8 March" not in asked else "yes"

    judge = ScriptedChatClient(answer)
    await sample("judge_loop").main(writer, judge)
    out = capsys.readouterr().out
    missing = "- It says when the bakery opens again: not found in the response, or only in part"
    assert f"\n\n{missing}\n\n" in out
    assert ">>> Nothing is missing.\n=== satisfied after 2" in out
    assert missing in writer.calls[1].messages[-1].text
    assert all("80 words" not in call.messages[-1].text for call in judge.calls), "code counts"


async def test_evidence_loop(capsys: pytest.CaptureFixture[str]):
    """Samples: checks outrank the judge, the agent hears both, and what got lost is named."""
    module = sample("evidence_loop")
    writer = ScriptedChatClient(module.DRAFTS)
    judge = ScriptedChatClient([module.graded(*verdict) for verdict in module.VERDICTS])
    await module.main(writer, judge)
    out = capsys.readouterr().out
    assert "FAILED: at most 12 words\nFAILED: names the price\n>>> continue, the rubric says 0.67\n" in out
    assert "passed: names the price\n>>> continue, the rubric says 0.33\n" in out
    assert "- It says when the concert is (an earlier response met this): the day\n" in out
    assert out.endswith(">>> stop, the rubric says 1.00\n\n=== satisfied after 3\n")
    assert "- FAILED: at most 12 words: it has 15 words" in judge.calls[0].messages[1].text


async def test_strategy_loop(capsys: pytest.CaptureFixture[str]):
    """Samples: what is wrong decides how the writer goes on, and the loop says why."""
    module = sample("strategy_loop")
    writer = ScriptedChatClient(module.DRAFTS)
    await module.main(writer)
    out = capsys.readouterr().out
    assert re.findall(r"^>>> (\w+ \(\w+\))", out, flags=re.MULTILINE) == [
        "retry (validation_first)",
        "expand (missing_evidence)",
        "accept (nothing_wrong)",
    ]
    assert out.endswith("=== satisfied after 3\n")
    assert writer.calls[2].messages[-1].text.startswith("Your last answer says too little:")


async def test_candidates_loop(capsys: pytest.CaptureFixture[str]):
    """Samples: of three drafts the judge's choice is kept, and the next three go on from it."""
    module = sample("candidates_loop")
    writer, judge = ScriptedChatClient(module.DRAFTS), ScriptedChatClient(module.WORDS)
    await module.main(writer, judge)
    out = capsys.readouterr().out
    assert out == (
        "--- iteration 1, candidate 2 of 3: Warm bread, early.\n"
        "--- iteration 2, candidate 2 of 3: Warm bread, from 6:00 on.\n"
        "agent: 6 calls\nevaluator: 8 calls\n=== satisfied\n"
    )
    assert [message.text for message in writer.calls[5].messages] == [
        module.REQUEST,
        "Warm bread, early.",
        "Say when it opens, as in 6:00.",
    ]


async def test_approval_loop(capsys: pytest.CaptureFixture[str]):
    """Samples: a person is asked before the tool runs; what was rejected did not run, what was approved did, once."""
    client = ScriptedChatClient(
        [
            "Gladly.",
            calls(("book_table", {"restaurant": "Luigi's", "people": 3})),
            calls(("book_table", {"restaurant": "Swan", "people": 3})),
            "You have a table at the Swan.",
        ]
    )
    asked: list[str] = []

    def ask(question: str) -> str:
        asked.append(question)
        return "y" if "Swan" in question else "n"

    await sample("approval_loop").main(client, ask)
    assert len(asked) == 2
    assert "Luigi's" in asked[0]
    assert capsys.readouterr().out == "You have a table at the Swan.\n=== satisfied, booked: ['Swan']\n"


def test_village_news(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    """Samples: the graph's editor sends the piece back once, the reminder stands below it, and two files are written."""
    monkeypatch.chdir(tmp_path)
    script = f"scripted:{SAMPLES / 'village_news_replies.jsonl'}"
    code = main(["run", str(SAMPLES / "village_news.yaml"), "-i", "village=Oakby", "--backend", script])
    captured = capsys.readouterr()
    assert code == 0
    assert captured.out.startswith("A library for the mill\n\nThe council buys")
    assert captured.out.endswith("Take an umbrella until Thursday.\n")
    assert "piece: iteration 1: PromptedEvaluator: continue (score 0.4): Nobody reported a cafe." in captured.err
    assert captured.err.endswith("stopped: satisfied after 5 nodes (8 calls, 668 tokens)\n")
    assert sorted(path.name for path in (tmp_path / "village_news").iterdir()) == ["council.txt", "page.txt"]
    assert f"{(tmp_path / 'village_news' / 'page.txt').read_text('utf-8')}\n" == captured.out


def test_market_notice(capsys: pytest.CaptureFixture[str]):
    """Samples: a file of our own runs over scripted replies; the judge's list of demands sends the writer back."""
    replies = SAMPLES / "market_notice_replies.jsonl"
    code = main(["run", str(SAMPLES / "market_notice.yaml"), "--backend", f"scripted:{replies}", "--json", "-q"])
    result = json.loads(capsys.readouterr().out)
    assert (code, result["stop_reason"], result["model_calls"]) == (0, "satisfied", 11)
    assert "whom to call for a table" in result["iterations"][1]["input"][-1]["text"]
