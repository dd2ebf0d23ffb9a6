from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from commanding import ROOT, Command, verdict
from fault_server import Completion, Failure, FaultServer

Script = Callable[..., str]
TRIP = str(ROOT / "tests" / "files" / "data" / "trip.yaml")
HERE = ("-i", "town=Ghent")
NO, YES = verdict(False, "shorter", score=0.25), verdict(True, "fine", score=1)


@pytest.fixture(autouse=True)
def in_a_folder_of_its_own(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    folder = tmp_path / "here"
    folder.mkdir()
    monkeypatch.chdir(folder)


def trip(*words: str, **others: str | dict[str, Any]) -> list[dict[str, Any]]:
    """The replies of all models of the trip, by name."""
    texts = {"scout": ["the tower"], "cook": ["soup"], "planner": ["plan 1", "plan 2"], "clerk": ["Dear all"]}
    texts["editor"] = list(words or (NO, YES))
    texts |= {name: [text] for name, text in others.items() if isinstance(text, str)}
    return [{"model": name, "text": text} for name, each in texts.items() for text in each]


def test_validate_shows_the_waves(command: Command):
    """`validate`: how many nodes and waves, and which nodes are in each."""
    ran = command("validate", TRIP)

    assert (ran.code, ran.err) == (0, "")
    assert ran.out.splitlines() == [
        "✓ trip: 5 nodes, 3 wave(s)",
        "  wave 1: ['sights', 'food']",
        "  wave 2: ['plan', 'extra']",
        "  wave 3: ['letter']",
    ]


def test_a_graph_is_run_to_its_output(command: Command, script: Script):
    """Standard output has the output of the graph; progress is told under the nodes' ids; outputs are written here."""
    ran = command("run", TRIP, *HERE, "--backend", script(*trip()))

    assert (ran.code, ran.out) == (0, "Dear all\n")
    told = [line for line in ran.err.splitlines() if not line.startswith("notice: ")]
    assert sorted(told[:2]) == ["food: iteration 1: soup", "sights: iteration 1: the tower"]
    assert [line for line in told[2:] if not line.startswith("extra: ")] == [
        "plan: iteration 1: plan 1",
        "plan: iteration 1: PromptedEvaluator: continue (score 0.25): shorter",
        "plan: iteration 2: plan 2",
        "plan: iteration 2: PromptedEvaluator: stop (score 1): fine",
        "plan: stopped: satisfied after 2 iterations (4 calls)",
        "letter: iteration 1: Dear all",
        "stopped: satisfied after 5 nodes (7 calls)",
    ]
    assert "extra: skipped: `when` is not true: appendix and days > 1" in told
    assert {str(path): path.read_text("utf-8") for path in Path("out").iterdir()} == {
        "out/letter.txt": "Dear all",
        "out/plan.txt": "plan 2",
    }
    assert sorted(path.name for path in Path().iterdir()) == ["out"]


def test_the_result_has_the_nodes(command: Command, script: Script):
    """`--json`: `nodes` beside the fields of every result."""
    ran = command("run", TRIP, *HERE, "--backend", script(*trip()), "--json", "-q")

    assert ran.json["model_calls"] == 7
    assert {name: node["status"] for name, node in ran.json["nodes"].items()} == {
        "sights": "done",
        "food": "done",
        "plan": "done",
        "extra": "skipped",
        "letter": "done",
    }


def test_a_loop_at_its_cap_is_3_and_its_outputs_are_written(command: Command, script: Script):
    """3: a loop ended at its cap. What depends on it ran, and `stop_detail` names it."""
    ran = command("run", TRIP, *HERE, "--backend", script(*trip(NO, NO)), "--json", "-q")

    assert (ran.code, ran.json["output"], ran.json["stop_reason"]) == (3, "Dear all", "max_iterations")
    assert ran.json["stop_detail"].startswith("node 'plan': 2 of 2 iterations")
    assert Path("out/plan.txt").read_text("utf-8") == "plan 2"


def test_a_model_that_fails_is_1_and_names_the_node(command: Command, script: Script):
    """1: the line says in which node; standard output is empty, nothing is written."""
    replies = [reply for reply in trip() if reply["model"] != "clerk"]

    ran = command("run", TRIP, *HERE, "--backend", script(*replies), "-q")

    assert (ran.code, ran.out) == (1, "")
    assert len(ran.error_lines) == 1
    assert ran.error_lines[0].startswith("error: node 'letter': ")
    assert "none is left for call 7, to the model 'clerk'" in ran.error_lines[0]
    assert list(Path().iterdir()) == []


def test_a_template_that_fails_after_calls_is_1(command: Command, script: Script, tmp_path: Path):
    """Wrong use is what is found before any call; what a model's answer breaks is a failure, with its place."""
    path = tmp_path / "g.yaml"
    path.write_text(
        "name: g\nnodes:\n- {id: a, type: agent, model: m, prompt: p}\n"
        "- id: b\n  type: agent\n  model: m\n  depends_on: [a]\n  prompt: |\n    go\n    {{ (a | fromjson).x }}\n",
        "utf-8",
    )

    ran = command("run", str(path), "--backend", script("not JSON"), "-q")

    assert ran.code == 1
    assert ran.error_lines[0].startswith(
        f"error: node 'b': {path}:10:1: nodes[1].prompt: can't be rendered: 'fromjson'"
    )


def test_a_budget_is_4_and_names_what_ended(command: Command, script: Script):
    """4: the budget of the run, which all nodes share."""
    replies = [{**reply, "usage": {"input_token_count": 3000, "output_token_count": 1}} for reply in trip()]

    ran = command("run", TRIP, *HERE, "--backend", script(*replies), "--json", "-q")

    assert (ran.code, ran.json["stop_reason"], ran.json["model_calls"]) == (4, "budget_exceeded", 4)
    assert ran.error_lines == [
        "error: budget.max_tokens is 10,000, and the run has used 12,004 tokens in 4 calls: the next call was not made"
    ]


def test_inputs_are_read_as_their_types(command: Command, script: Script):
    """Coercion comes before the first call."""
    ran = command("run", TRIP, *HERE, "-i", "days=two", "--backend", script())

    assert (ran.code, ran.error_lines) == (2, ["error: the input 'days' must be an integer, not 'two'"])


def test_the_trace_has_the_events_of_nodes(command: Command, script: Script):
    """`--trace`: what happens in a node stands in `inner`, under the node's id; the score and the feedback are there."""
    command("run", TRIP, *HERE, "--backend", script(*trip()), "--trace", "t.jsonl", "-q")

    lines = [json.loads(line) for line in Path("t.jsonl").read_text("utf-8").splitlines()]
    assert {line["event"] for line in lines[1:-1]} == {"NodeChanged", "NodeEvent"}
    said = [line["inner"]["evaluation"] for line in lines if line.get("inner", {}).get("event") == "EvaluatorDecided"]
    assert [(each["decision"], each["score"], each["note"] or each["feedback"]) for each in said] == [
        ("continue", 0.25, "shorter"),
        ("stop", 1, "fine"),
    ]
    changed = next(line for line in lines if line["event"] == "NodeChanged" and line["status"] == "skipped")
    assert (changed["node"], changed["detail"]) == ("extra", "`when` is not true: appendix and days > 1")
    assert lines[-1]["result"]["nodes"]["letter"]["output"] == "Dear all"


def test_a_model_that_is_down_falls_on_the_next(
    command: Command, server: FaultServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """`fallback_chain` on real answers: 429 until the SDK gives up, then the next model; a 401 ends the run."""
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
    path = tmp_path / "g.yaml"
    path.write_text("name: g\nnodes:\n- {id: a, type: agent, model: m1, fallback_chain: [m2], prompt: p}\n", "utf-8")
    server.default = Failure(429, headers={"Retry-After": "0"})
    server.add(*[server.default] * 3, Completion(content="from the second"))

    ran = command("run", str(path), "--backend", "openai", "-q")

    assert (ran.code, ran.out) == (0, "from the second\n")
    assert [body["model"] for body in server.bodies] == ["m1", "m1", "m1", "m2"]

    server.add(Failure(401))
    ran = command("run", str(path), "--backend", "openai", "-q")

    assert ran.code == 1
    assert ran.error_lines[0].startswith("error: node 'a': the model 'm1' (openai) did not answer: HTTP 401")


def test_no_output_of_a_graph_shows_a_key(command: Command, server: FaultServer, monkeypatch: pytest.MonkeyPatch):
    """A key that a server repeats stands nowhere: not in the result of a node, the trace, or the progress."""
    canary = "sk-canary-0123456789abcdef"
    monkeypatch.setenv("OPENAI_API_KEY", canary)
    monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
    server.default = Failure(401, f"Incorrect API key provided: {canary}.", code="invalid_api_key")

    ran = command("run", TRIP, *HERE, "--backend", "openai", "--json", "--trace", "t.jsonl", "--run-id", "one")

    assert ran.json["nodes"]["sights"]["status"] == "failed"
    assert "Incorrect API key" in ran.json["nodes"]["sights"]["stop_detail"]
    kept = [path.read_text("utf-8") for path in Path("runs").rglob("*") if path.is_file()]
    for text in (ran.out, ran.err, Path("t.jsonl").read_text("utf-8"), *kept):
        assert canary not in text


# --- recorded calls


def test_a_recorded_run_is_replayed_without_a_backend(command: Command, script: Script):
    """`--record` writes each call; `--replay` answers from them, and needs no key, no model and no network."""
    first = command("run", TRIP, *HERE, "--backend", script(*trip()), "--record", "calls.jsonl", "-q", "--json")
    again = command("run", TRIP, *HERE, "--replay", "calls.jsonl", "-q", "--json")

    assert (first.code, again.code) == (0, 0)
    assert len(Path("calls.jsonl").read_text("utf-8").splitlines()) == 7
    assert again.json["output"] == first.json["output"]
    assert [entry["model_id"] for entry in again.json["ledger"]] == [
        entry["model_id"] for entry in first.json["ledger"]
    ]


def test_a_call_that_was_not_recorded_is_1_and_names_it(command: Command, script: Script):
    """An unknown call is an error: the node, the model, and where it differs from the nearest one."""
    command("run", TRIP, *HERE, "--backend", script(*trip()), "--record", "calls.jsonl", "-q")

    ran = command("run", TRIP, "-i", "town=Bruges", "--replay", "calls.jsonl", "-q")

    assert ran.code == 1
    assert ran.error_lines[0].startswith(
        "error: node 'sights': calls.jsonl holds no reply for a call to the model 'scout'"
    )
    assert "Bruges" in ran.error_lines[0]
    assert "Ghent" in ran.error_lines[0]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--record", "a", "--replay", "b"), "--record and --replay exclude each other"),
        (("--replay", "nowhere.jsonl"), "nowhere.jsonl: there are no recorded calls: no such file"),
        (("--record", "other.txt"), "other.txt is a file of another kind, and would be replaced"),
    ],
)
def test_wrong_use_of_recorded_calls_is_2(command: Command, script: Script, arguments: tuple[str, ...], said: str):
    """Found before any call, and nothing is overwritten."""
    Path("other.txt").write_text("mine", "utf-8")

    ran = command("run", TRIP, *HERE, "--backend", script(*trip()), *arguments, "-q")

    assert ran.code == 2
    assert said in ran.error_lines[0]
    assert Path("other.txt").read_text("utf-8") == "mine"


def test_wrong_inputs_do_not_empty_the_recorded_calls(command: Command, script: Script):
    """The file is begun anew when the first model is asked for, not before."""
    command("run", TRIP, *HERE, "--backend", script(*trip()), "--record", "calls.jsonl", "-q")
    before = Path("calls.jsonl").read_bytes()

    ran = command("run", TRIP, "--backend", script(*trip()), "--record", "calls.jsonl", "-q")

    assert (ran.code, Path("calls.jsonl").read_bytes()) == (2, before)
