"""Keys that are given twice: what they say is not clear, and nothing unclear is a pass."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from commanding import ROOT, Command

Script = Callable[..., str]
DINNER = str(ROOT / "samples" / "dinner_flow.json")


def test_a_verdict_with_a_key_twice_is_none(command: Command, script: Script):
    """A flow whose judge calls its function with a key twice ends without a verdict, and says which key."""
    said = {"tool_calls": [{"name": "serve", "arguments": '{"reason": "no", "reason": "yes"}'}]}

    ran = command("run", DINNER, "--backend", script("Soup", said), "--json", "-q")

    assert (ran.code, ran.json["stop_reason"], ran.json["output"]) == (1, "evaluator_failed", "Soup")
    assert "unclear_arguments" in ran.error_lines[0]
    assert "the key 'reason' is given twice" in ran.error_lines[0]
    arguments = ran.json["context"]["critic"]["messages"][-1]["tool_calls"][0]["arguments"]
    assert arguments == '{"reason": "no", "reason": "yes"}'


def test_an_input_with_a_key_twice_is_wrong_use(command: Command, script: Script):
    """An input of a flow that is JSON says one thing, or nothing is run."""
    ran = command("run", DINNER, "--backend", script("Soup"), "-i", 'project={"goal": "a", "goal": "b"}')

    assert ran.code == 2
    assert ran.error_lines == ["error: the input 'project' is JSON, and the key 'goal' is given twice"]


def test_a_scripted_line_with_a_key_twice_is_wrong_use(command: Command, tmp_path: Path):
    """A line of scripted replies says one thing, in all that is within it."""
    path = tmp_path / "replies.jsonl"
    path.write_text(json.dumps({"text": "Soup"}) + '\n{"text": "a", "usage": {}, "text": "b"}\n', "utf-8")

    ran = command("run", DINNER, "--backend", f"scripted:{path}")

    assert (ran.code, ran.error_lines) == (2, [f"error: {path}:2: the key 'text' is given twice"])
