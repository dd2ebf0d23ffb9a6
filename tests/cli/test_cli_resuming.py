from __future__ import annotations

import hashlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from commanding import LIMERICK, Command, verdict
from fault_server import Completion, FaultServer, Silence

from agents_loop.files import RunFolder

Script = Callable[..., str]
CHAIN = """\
name: chain
nodes:
- {id: a, type: agent, model: ma, prompt: "do {{ what }}"}
- id: b
  type: evaluator_loop
  depends_on: [a]
  max_iterations: 1
  generator: {model: mb, prompt: "{{ a }}"}
  evaluator: {model: me, prompt: "{{ candidate }}"}
- {id: c, type: agent, depends_on: [b], model: mc, prompt: "{{ b }} of {{ a }}"}
outputs: {c.txt: c}
"""


@pytest.fixture(autouse=True)
def chain(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    folder = tmp_path / "here"
    folder.mkdir()
    monkeypatch.chdir(folder)
    path = folder / "chain.yaml"
    path.write_text(CHAIN, "utf-8")
    return path


def replies(**texts: str) -> list[dict[str, Any]]:
    return [{"model": name, "text": text} for name, text in texts.items()]


ALL = replies(ma="A", mb="B", me=verdict(False), mc="C")


@contextmanager
def started(*arguments: str, server: FaultServer) -> Generator[subprocess.Popen[str], None, None]:
    """The command in a process of its own, whose models are a server's."""
    process = subprocess.Popen(
        [
            sys.executable,
            "-m",
            "agents_loop.cli",
            "run",
            "chain.yaml",
            "-i",
            "what=it",
            "--backend",
            "openai",
            *arguments,
        ],
        env={**os.environ, "OPENAI_API_KEY": "k", "OPENAI_BASE_URL": server.base_url},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate(timeout=60)


def until_asked(process: subprocess.Popen[str], server: FaultServer, times: int) -> None:
    while len(server.requests) < times:
        assert process.poll() is None


def test_without_an_id_nothing_is_kept(command: Command, script: Script):
    """No `--run-id` and no `--runs-dir`: no folder."""
    command("run", "chain.yaml", "-i", "what=it", "--backend", script(*ALL), "-q")

    assert sorted(path.name for path in Path().iterdir()) == ["c.txt", "chain.yaml"]


def test_what_nodes_finish_is_kept_by_content(command: Command, script: Script):
    """`runs/ID`: each output under its SHA-256, and an index from nodes to hashes."""
    ran = command("run", "chain.yaml", "-i", "what=it", "--backend", script(*ALL), "--run-id", "one")

    assert (ran.code, ran.out) == (3, "C\n")
    assert "run: one (--run-id one resumes it; it is kept in runs/one)" in ran.err
    index = json.loads(Path("runs/one/artifacts/index.json").read_text("utf-8"))
    assert index == {name: hashlib.sha256(text.encode()).hexdigest() for name, text in zip("abc", "ABC", strict=True)}
    assert Path(f"runs/one/artifacts/sha256/{index['b']}.bin").read_bytes() == b"B"


def test_a_finished_run_costs_nothing_more(command: Command, script: Script):
    """The same id again: no call, the same output and reason, and the outputs are there again."""
    command("run", "chain.yaml", "-i", "what=it", "--backend", script(*ALL), "--run-id", "one", "-q")
    Path("c.txt").unlink()

    ran = command("run", "chain.yaml", "-i", "what=it", "--backend", script(), "--run-id", "one", "--json", "-q")

    assert (ran.code, ran.json["output"], ran.json["model_calls"]) == (3, "C", 0)
    assert {node["status"] for node in ran.json["nodes"].values()} == {"resumed"}
    assert ran.json["stop_detail"].startswith("node 'b': 1 of 1 iterations")
    assert Path("c.txt").read_text("utf-8") == "C"


def test_a_run_that_failed_goes_on_where_it_was(command: Command, script: Script):
    """Nodes that are done are not run again; what they had put out is used."""
    failed = command("run", "chain.yaml", "-i", "what=it", "--backend", script(*ALL[:3]), "--run-id", "one", "-q")
    ran = command(
        "run",
        "chain.yaml",
        "-i",
        "what=it",
        "--backend",
        script(*replies(mc="C")),
        "--run-id",
        "one",
        "--record",
        "r.jsonl",
    )

    assert (failed.code, ran.code, ran.out) == (1, 3, "C\n")
    assert "a: resumed: finished by an earlier run" in ran.err
    recorded = [json.loads(line)["call"] for line in Path("r.jsonl").read_text("utf-8").splitlines()]
    assert [call["messages"][0]["contents"][0]["text"] for call in recorded] == ["B of A"]


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT, signal.SIGTERM])
def test_a_run_that_was_killed_goes_on_where_it_was(
    command: Command, script: Script, server: FaultServer, how: signal.Signals
):
    """kill -9, kill, and Ctrl-C, while a node runs: what was finished is there, and nothing else is taken for finished."""
    server.add(Completion(content="A"))
    server.default = Silence()
    with started("--run-id", "one", server=server) as process:
        until_asked(process, server, 2)
        process.send_signal(how)
        process.wait(60)
        assert process.returncode == (-9 if how == signal.SIGKILL else 130)

    ran = command(
        "run", "chain.yaml", "-i", "what=it", "--backend", script(*ALL[1:]), "--run-id", "one", "--json", "-q"
    )

    assert (ran.code, ran.json["output"], ran.json["model_calls"]) == (3, "C", 3)
    assert [node["status"] for node in ran.json["nodes"].values()] == ["resumed", "done", "done"]
    assert not list(Path("runs").rglob("*.tmp"))


@pytest.mark.parametrize("times", [1, 2])
def test_a_process_that_is_told_to_end_shows_its_work(server: FaultServer, times: int):
    """SIGTERM is an interrupt, and a second one is none: the result tells what was done by then."""
    server.add(Completion(content="A"), Completion(content="B"))
    server.default = Silence()
    with started("--json", "-q", server=server) as process:
        until_asked(process, server, 3)
        for _ in range(times):
            process.send_signal(signal.SIGTERM)
        out, _ = process.communicate(timeout=60)

    result = json.loads(out)
    assert (process.returncode, result["stop_reason"]) == (130, "cancelled")
    assert [result["nodes"][name]["output"] for name in "ab"] == ["A", "B"]


def test_two_processes_do_not_share_a_run(command: Command, script: Script, server: FaultServer):
    """The second one with the same id is wrong use, and makes no call; another id is free."""
    server.default = Silence()
    with started("--run-id", "one", server=server) as process:
        until_asked(process, server, 1)
        second = command("run", "chain.yaml", "-i", "what=it", "--backend", script(*ALL), "--run-id", "one", "-q")
        other = command("run", "chain.yaml", "-i", "what=it", "--backend", script(*ALL), "--run-id", "two", "-q")

    assert (second.code, second.error_lines) == (
        2,
        ["error: the run 'one' is under way in another process (runs/one)"],
    )
    assert other.code == 3


def test_a_run_is_resumed_only_as_it_was_begun(command: Command, script: Script, chain: Path):
    """Other inputs, or a file that says something else, are wrong use; blanks and comments are not."""
    begun = ("run", "chain.yaml", "--run-id", "one", "-q")
    command(*begun, "-i", "what=it", "--backend", script(*ALL))

    inputs = command(*begun, "-i", "what=that", "--backend", script())
    chain.write_text(f"# a comment\n{CHAIN}\n", "utf-8")
    commented = command(*begun, "-i", "what=it", "--backend", script())
    chain.write_text(CHAIN.replace("{{ b }} of", "{{ b }} after"), "utf-8")
    changed = command(*begun, "-i", "what=it", "--backend", script())

    again = "it can only be resumed as it was begun; begin another with a new --run-id"
    assert inputs.error_lines == [f"error: the run 'one' began with other inputs (what): {again}"]
    assert changed.error_lines == [f"error: the file has changed since the run 'one' began: {again}"]
    assert (inputs.code, commented.code, changed.code) == (2, 3, 2)


def test_a_run_that_ended_at_its_budget_is_not_resumed(command: Command, script: Script):
    """As in dagraph: what is done is kept, and the run is over."""
    spent = [{**reply, "usage": {"input_token_count": 50, "output_token_count": 50}} for reply in ALL]
    run = ("run", "chain.yaml", "-i", "what=it", "--run-id", "one", "--max-tokens", "150", "-q")

    first = command(*run, "--backend", script(*spent))
    second = command(*run, "--backend", script(*spent))

    assert (first.code, second.code) == (4, 2)
    assert "the run 'one' ended at its budget, and is not resumed" in second.error_lines[0]
    assert list(json.loads(Path("runs/one/artifacts/index.json").read_text("utf-8"))) == ["a"]


def test_a_budget_counts_what_earlier_attempts_spent(command: Command, script: Script):
    """What earlier attempts have used counts against the budget of the run that is resumed, failed nodes included."""
    spent = [{**reply, "usage": {"input_token_count": 50, "output_token_count": 50}} for reply in ALL]
    run = ("run", "chain.yaml", "-i", "what=it", "--run-id", "one", "--max-tokens", "350", "--json", "-q")

    first = command(*run, "--backend", script(*spent[:2]))
    between = json.loads(Path("runs/one/state.json").read_text("utf-8"))
    second = command(*run, "--backend", script(*spent[1:]))

    assert (first.code, between["ended"], between["spent"]["spent"]["tokens"]) == (1, "failed", 200)
    assert (second.code, second.json["model_calls"]) == (4, 2)
    assert "--max-tokens is 350, and the run has used 400 tokens" in second.json["stop_detail"]


def test_a_finished_run_that_went_over_its_budget_is_finished(command: Command, script: Script):
    """The last call may go over: what is finished is given again all the same, for it costs nothing."""
    spent = [{**reply, "usage": {"input_token_count": 50, "output_token_count": 50}} for reply in ALL]
    run = ("run", "chain.yaml", "-i", "what=it", "--run-id", "one", "--max-tokens", "350", "-q")

    first = command(*run, "--backend", script(*spent))
    second = command(*run, "--backend", script())

    assert [(ran.code, ran.out) for ran in (first, second)] == [(3, "C\n")] * 2


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (
            lambda run: (run / "state.json").write_text("{"),
            "the state of the run 'one' can't be read (runs/one/state.json: ",
        ),
        (lambda run: (run / "state.json").write_text("[]"), "can't be read"),
        (lambda run: (run / "state.json").write_bytes(b"\xff\xfe"), "can't be read"),
        (lambda run: spoiled(run, version=2), "can't be read (runs/one/state.json: version: "),
        (lambda run: spoiled(run, run_id="two"), "can't be read (runs/one/state.json: it is of the run 'two')"),
        (lambda run: spoiled(run, nodes={"a": {"artifact": "../../x"}}), "can't be read"),
        (lambda run: spoiled(run, spent={"spent": {"tokens": -1}}), "can't be resumed: what the run had spent"),
        (lambda run: artifact(run).write_bytes(b"other"), "the output of the node 'a' can't be read"),
        (lambda run: artifact(run).unlink(), "the output of the node 'a' can't be read"),
    ],
)
def test_what_is_spoiled_is_told_and_no_call_made(
    command: Command, script: Script, spoil: Callable[[Path], object], said: str
):
    """A state or an artifact that is not what was kept is wrong use, in one line."""
    run = ("run", "chain.yaml", "-i", "what=it", "--run-id", "one", "--max-tokens", "10000", "-q")
    command(*run, "--backend", script(*ALL[:1]))
    spoil(Path("runs/one"))

    ran = command(*run, "--backend", script(*ALL[1:]))

    assert ran.code == 2
    assert len(ran.error_lines) == 1
    assert said in ran.error_lines[0]
    assert "--run-id" in ran.error_lines[0]


def spoiled(run: Path, **fields: Any) -> None:
    state = json.loads((run / "state.json").read_text("utf-8"))
    (run / "state.json").write_text(json.dumps(state | fields), "utf-8")


def artifact(run: Path) -> Path:
    return next((run / "artifacts" / "sha256").iterdir())


@pytest.mark.parametrize(
    "name", ["", "..", "../x", "/x", "a/b", "a\\b", ".x", "-x", "x" * 101, "a b", "NUL", "com1.x", "x."]
)
def test_an_id_is_no_path(command: Command, script: Script, name: str):
    """An id is letters, digits, `.`, `_` and `-`: it can't name another folder, nor a device."""
    ran = command("run", "chain.yaml", "-i", "what=it", "--backend", script(*ALL), f"--run-id={name}", "-q")

    assert ran.code == 2
    assert "is no id for a run" in ran.error_lines[0]
    assert sorted(path.name for path in Path().iterdir()) == ["chain.yaml"]


def test_a_folder_for_runs_gives_each_an_id(command: Command, script: Script):
    """`--runs-dir` alone: an id of 12 hex digits, which a notice tells."""
    ran = command("run", "chain.yaml", "-i", "what=it", "--backend", script(*ALL), "--runs-dir", "kept/here")

    (made,) = Path("kept/here").iterdir()
    assert len(made.name) == 12
    assert f"run: {made.name} " in ran.err


def test_a_folder_that_can_not_be_made_is_2(command: Command, script: Script):
    """One line, and no call."""
    ran = command("run", "chain.yaml", "-i", "what=it", "--backend", script(*ALL), "--runs-dir", "chain.yaml", "-q")

    assert ran.code == 2
    assert "the run folder 'chain.yaml/" in ran.error_lines[0]


def test_a_file_of_one_loop_is_resumed_too(command: Command, script: Script):
    """Its result has the loop's iterations while it runs, and none when it is finished already."""
    run = ("run", LIMERICK, "-i", "place=Delft", "--run-id", "one", "--json", "-q")

    first = command(*run, "--backend", script("d1", verdict(False), "d2", verdict(True)))
    second = command(*run, "--backend", script())

    assert (first.code, [each["output"] for each in first.json["iterations"]]) == (0, ["d1", "d2"])
    assert (second.code, second.json["output"], second.json["model_calls"]) == (0, "d2", 0)


def test_a_folder_that_can_not_be_written_ends_the_run(command: Command, script: Script):
    """What can't be kept is told at once, as a failure of the node; a later attempt goes on where it was."""
    run = ("run", "chain.yaml", "-i", "what=it", "--run-id", "one", "-q")
    command(*run, "--backend", script(*ALL[:1]))
    artifacts = Path("runs/one/artifacts")
    artifacts.rename("aside")
    (artifacts / "sha256").mkdir(parents=True)
    for path in Path("aside/sha256").iterdir():
        path.rename(artifacts / "sha256" / path.name)
    (artifacts / "index.json").mkdir()

    failed = command(*run, "--backend", script(*ALL[1:]))
    (artifacts / "index.json").rmdir()
    ran = command(*run, "--backend", script(*ALL[1:]))

    assert failed.code == 1
    assert failed.error_lines[0].startswith("error: node 'b': the run folder 'runs/one' can't be written: ")
    assert (ran.code, ran.out) == (3, "C\n")


def test_files_that_others_can_not_resume_are_2(command: Command, script: Script):
    """A file of another format has no nodes to keep: `--run-id` is wrong use, not something that does nothing."""
    sample = str(Path(__file__).parents[2] / "samples" / "market_notice.yaml")

    ran = command("run", sample, "--backend", script(), "--run-id", "one", "-q")

    assert (ran.code, Path("runs").exists()) == (2, False)
    assert "--run-id and --runs-dir are for files in dagraph's format" in ran.error_lines[0]


def test_what_a_kill_left_is_cleared_and_never_taken_for_output(command: Command, script: Script):
    """`.tmp` files of a run that was killed: the same id again takes them away, beside the outputs too."""
    command("run", "chain.yaml", "-i", "what=it", "--backend", script(*ALL), "--run-id", "one", "-q")
    mark = RunFolder(Path("runs"), "one").mark
    index = json.loads(Path("runs/one/artifacts/index.json").read_text("utf-8"))
    left = [
        Path("runs/one/.state.json.0123abcd.tmp"),
        Path("runs/one/artifacts/.index.json.0123abcd.tmp"),
        Path(f"runs/one/artifacts/sha256/.{index['a']}.bin.0123abcd.tmp"),
        Path(f".c.txt.{mark}.tmp"),
        Path(f".c.txt.{mark}.old"),
    ]
    for path in left:
        path.write_text("torn", "utf-8")
    other = Path(".c.txt.0123abcd.tmp")  # another run's, which may be under way
    other.write_text("torn", "utf-8")

    ran = command("run", "chain.yaml", "-i", "what=it", "--backend", script(), "--run-id", "one", "-q")

    assert (ran.code, ran.out, Path("c.txt").read_text("utf-8")) == (3, "C\n", "C")
    assert [path for path in [*left, other] if path.exists()] == [other]


@pytest.mark.parametrize(("missing", "calls"), [("a", 4), ("b", 3), ("c", 1)])
def test_what_depends_on_a_node_that_is_run_again_is_run_again(
    command: Command, script: Script, missing: str, calls: int
):
    """A state that was edited: a node counts as over if all before it are, so that nothing is made of what is no more."""
    run = ("run", "chain.yaml", "-i", "what=it", "--run-id", "one", "--json", "-q")
    command(*run, "--backend", script(*ALL))
    state = json.loads(Path("runs/one/state.json").read_text("utf-8"))
    spoiled(Path("runs/one"), nodes={name: node for name, node in state["nodes"].items() if name != missing})
    again = replies(ma="A2", mb="B2", me=verdict(False), mc="C2")[4 - calls :]

    failed = command(*run, "--backend", script(*again[:-1]))
    ran = command(*run, "--backend", script(again[-1]))

    assert (failed.code, ran.code, ran.json["output"]) == (1, 3, "C2")
    assert failed.json["model_calls"] == calls
    statuses = [node["status"] for node in failed.json["nodes"].values()]
    assert statuses.count("resumed") == "abc".index(missing)


def test_a_node_that_the_file_has_not_is_none_of_the_run(command: Command, script: Script):
    """A state that was edited: what is no node of the file is left out."""
    run = ("run", "chain.yaml", "-i", "what=it", "--run-id", "one", "-q")
    command(*run, "--backend", script(*ALL))
    state = json.loads(Path("runs/one/state.json").read_text("utf-8"))
    spoiled(Path("runs/one"), nodes={**state["nodes"], "x": {**state["nodes"]["a"], "artifact": "0" * 64}})

    assert command(*run, "--backend", script()).out == "C\n"


def test_a_run_folder_is_told_once_it_is_in_use(command: Command, script: Script):
    """The notice that names the folder stands for a run that has begun; a refused one leaves an earlier trace alone."""
    run = ("run", "chain.yaml", "--trace", "t.jsonl")
    no_folder = command(*run, "-i", "what=it", "--backend", script(*ALL), "--run-id", "x", "--runs-dir", "chain.yaml")
    command(*run, "-i", "what=it", "--backend", script(*ALL), "--run-id", "one")
    trace = Path("t.jsonl").read_text("utf-8")
    other_inputs = command(*run, "-i", "what=that", "--backend", script(*ALL), "--run-id", "one")
    left = Path("t.jsonl").read_text("utf-8")
    spoiled(Path("runs/one"), spent={"spent": {"tokens": -1}})
    limited = command(*run, "-i", "what=it", "--backend", script(*ALL), "--run-id", "one", "--max-tokens", "9")

    assert [ran.code for ran in (no_folder, other_inputs, limited)] == [2, 2, 2]
    assert all("run: " not in ran.err for ran in (no_folder, other_inputs, limited))
    assert len(trace.splitlines()) > 5
    assert left == trace
