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

    def answer(request):
        asked = request.body["messages"][-1]["content"]
        if "List what" in asked:
            return Completion(content="plan a one-day workshop on composting\nfor twenty people", usage=usage(40, 9))
        if "<demand_" in asked:
            is_met = "cost per person" not in asked.split("<demand_")[1] or "4 euros" in asked
            return Completion(content="yes" if is_met else "no", usage=usage(90, 1))
        first = len(request.body["messages"]) < 3
        draft = "10:00 Heaps. Rain: the shed." if first else "10:00 Heaps (2 h). 4 euros each. Rain: the shed."
        return Completion(content=draft, usage=usage(50, 10))

    server.answer = answer
    runpy.run_path(str(SAMPLES / "semantic_kernel_judge.py"), run_name="__main__")
    printed = capsys.readouterr().out
    missing = "- The cost per person is given: not found in the response, or only in part"
    assert missing in printed
    assert "2: stop" in printed
    assert "4 euros each" in printed
    assert "satisfied" in printed
    heard = [body["messages"][-1]["content"] for body in server.bodies]
    assert any(missing in text for text in heard)


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
