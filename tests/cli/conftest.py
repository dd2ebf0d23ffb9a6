from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parents[1]))
sys.path.insert(0, str(Path(__file__).parent))

from commanding import SETTINGS, Command, Ran

from agents_loop.cli import main


@pytest.fixture(autouse=True)
def no_settings_of_this_machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in SETTINGS:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AGENTS_LOOP_HOME", str(tmp_path / "home"))


@pytest.fixture
def command(capsys: pytest.CaptureFixture[str]) -> Command:
    """The command, in this process."""

    def command(*arguments: str) -> Ran:
        code = main(arguments)
        captured = capsys.readouterr()
        return Ran(int(code), captured.out, captured.err)

    return command


@pytest.fixture
def script(tmp_path: Path) -> Callable[..., str]:
    """A scripted backend: a str is a reply, a dict a whole line."""

    def script(*replies: str | dict[str, Any], name: str = "replies.jsonl") -> str:
        lines = [json.dumps(reply if isinstance(reply, dict) else {"text": reply}) for reply in replies]
        path = tmp_path / name
        path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        return f"scripted:{path}"

    return script
