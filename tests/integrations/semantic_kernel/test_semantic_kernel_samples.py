from __future__ import annotations

import runpy
from pathlib import Path

import pytest

pytest.importorskip("semantic_kernel")

from fault_server import Completion, FaultServer, usage

SAMPLES = Path(__file__).parents[3] / "samples"


@pytest.fixture(autouse=True)
def provider(server: FaultServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
    monkeypatch.setenv("OPENAI_API_KEY", "a-key")


def test_the_judge_sample(server: FaultServer, capsys):
    """Samples: an agent of Semantic Kernel is judged by a service of Semantic Kernel until nothing is missing."""
    server.add(
        Completion(content="10:00 Heaps. 12:00 Lunch.", usage=usage(30, 10)),
        Completion(content='{"gapAnalysis": "no cost, no rain plan", "answered": false}', usage=usage(90, 9)),
        Completion(content="10:00 Heaps (2 h). 4 euros each. Rain: the shed.", usage=usage(50, 10)),
        Completion(content='{"gapAnalysis": "", "answered": true}', usage=usage(99, 9)),
    )
    runpy.run_path(str(SAMPLES / "semantic_kernel_judge.py"), run_name="__main__")
    printed = capsys.readouterr().out
    assert "no cost, no rain plan" in printed
    assert "2: stop" in printed
    assert "Rain: the shed." in printed
    assert "satisfied" in printed
    assert "no cost, no rain plan" in server.bodies[2]["messages"][-1]["content"]


def test_the_orchestration_sample(server: FaultServer, capsys):
    """Samples: the member after a loop reads its final draft alone."""
    server.add(
        Completion(content="word " * 70),
        Completion(content="Closed at noon on Friday."),
        Completion(content="Cerrado."),
    )
    runpy.run_path(str(SAMPLES / "semantic_kernel_orchestration.py"), run_name="__main__")
    assert capsys.readouterr().out == "Cerrado.\n"
    assert "70 words" in server.bodies[1]["messages"][-1]["content"]
    assert [m["content"] for m in server.bodies[2]["messages"]][1:] == ["Closed at noon on Friday."]


@pytest.mark.parametrize("name", ["semantic_kernel_judge.py", "semantic_kernel_orchestration.py"])
def test_samples_are_short(name):
    """Samples: each is under 60 lines."""
    assert len((SAMPLES / name).read_text("utf-8").splitlines()) < 60
