from __future__ import annotations

import contextlib
import json
import os
import pty
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from commanding import ROOT, Command, process, verdict
from fault_server import Completion, Failure, FaultServer, Silence

Script = Callable[..., str]
FILE = """
name: answers
nodes:
  - id: answer
    type: evaluator_loop
    max_iterations: 2
    generator: {model: writer, max_output_tokens: 50, prompt: "Q: {{ question }}"}
    evaluator: {model: checker, max_output_tokens: 20, prompt: "Check: {{ candidate }}"}
"""
ANSWERS = ("wrong", verdict(False), "right", verdict(True), "right", verdict(True))
"""Of two questions: the first is mended, the second is right at once."""


@pytest.fixture
def base(tmp_path: Path) -> tuple[str, ...]:
    """The command on two questions."""
    (tmp_path / "answers.yaml").write_text(FILE, encoding="utf-8")
    write_questions(tmp_path / "q.jsonl", "a", "b")
    return ("eval", str(tmp_path / "answers.yaml"), "--questions", str(tmp_path / "q.jsonl"))


def write_questions(path: Path, *names: str, **more: Any) -> Path:
    rows = [{"id": name, "question": name, "kind": "lookup", "accept": ["right"], **more} for name in names]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


@pytest.fixture
def at_server(base: tuple[str, ...], server: FaultServer, monkeypatch: pytest.MonkeyPatch) -> tuple[str, ...]:
    """The same, asked of a server on loopback."""
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
    return (*base, "--backend", "openai:m", "--concurrency", "1", "--quiet")


@pytest.fixture
def stub(script: Script) -> tuple[str, ...]:
    return ("--allow-stub", "--backend", script(*ANSWERS))


def test_the_lift_and_its_price_are_one_line(command: Command, base: tuple[str, ...], stub: tuple[str, ...]):
    """The table on standard output, a line for each question on standard error, and exit code 0."""
    ran = command(*base, *stub)

    assert ran.code == 0
    assert any(line.startswith("first draft 0.50 -> loop 1.00 (+0.50) for ") for line in ran.out.splitlines())
    assert "mean revisions 0.50, cap hit 0.00, satisfied 1.00, stalled 0.00" in ran.out
    assert ran.err.splitlines() == [
        "1/2 a: draft wrong, loop right (satisfied, 1 revision)",
        "2/2 b: draft right, loop right (satisfied, 0 revisions)",
    ]


def test_the_result_is_one_json_object_and_a_file(
    command: Command, base: tuple[str, ...], stub: tuple[str, ...], tmp_path: Path
):
    """With `--json` the whole result on standard output; with `--out` in a file; `--quiet` says nothing else."""
    ran = command(*base, *stub, "--json", "--quiet", "--out", str(tmp_path / "r.json"))

    assert (ran.code, ran.err) == (0, "")
    assert ran.json == json.loads((tmp_path / "r.json").read_text(encoding="utf-8"))
    assert ran.json["summary"]["loop"]["score"] == 1.0
    assert ran.json["stub"] is True
    assert ran.json["backends"] == {"writer": "scripted", "checker": "scripted"}


def test_scripted_replies_are_refused_unless_allowed(command: Command, base: tuple[str, ...], script: Script):
    """Figures of scripted replies are no model's: --allow-stub marks them."""
    ran = command(*base, "--backend", script(*ANSWERS))

    assert ran.code == 2
    assert len(ran.error_lines) == 1
    assert "--allow-stub" in ran.err


def test_two_results_are_compared(command: Command, base: tuple[str, ...], script: Script, tmp_path: Path):
    """`--against` adds the comparison; a result in FILE's place is shown and compared without a run."""
    old, new = str(tmp_path / "old.json"), str(tmp_path / "new.json")
    worse = script("wrong", verdict(True), "wrong", verdict(True), name="worse.jsonl")
    command(*base, "--allow-stub", "--backend", worse, "--out", old)

    ran = command(*base, "--allow-stub", "--backend", script(*ANSWERS), "--out", new, "--against", old)
    shown = command("eval", new, "--against", old)
    fields = command("eval", new, "--against", old, "--json").json

    assert "old 0.00 -> new 1.00 (+1.0000), p = 0.5000 (McNemar, exact)" in ran.out
    assert "better: a, b" in shown.out
    assert (shown.code, shown.err) == (0, "")
    assert fields["comparison"]["better"] == ["a", "b"]


def test_an_old_result_of_another_version_is_2_before_any_call(
    command: Command, base: tuple[str, ...], stub: tuple[str, ...], tmp_path: Path
):
    """One clear line."""
    (tmp_path / "old.json").write_text('{"agents_loop_eval": 99}', encoding="utf-8")

    ran = command(*base, *stub, "--against", str(tmp_path / "old.json"))

    assert (ran.code, ran.out) == (2, "")
    assert len(ran.error_lines) == 1
    assert "version 99" in ran.err


def test_all_that_is_wrong_with_questions_is_told(command: Command, base: tuple[str, ...], tmp_path: Path):
    """One line each, with file and line, and exit code 2."""
    (tmp_path / "q.jsonl").write_text('{"id": "a"}\n{"id": "b", "question": "?", "accept": ["("]}\n', encoding="utf-8")

    ran = command(*base)

    assert ran.code == 2
    assert [line.split(": ")[1].rpartition("/")[2] for line in ran.error_lines] == ["q.jsonl:1:1", "q.jsonl:2:1"]


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (("--limit", "0"), "--limit must be a whole number"),
        (("--concurrency", "x"), "--concurrency must be"),
        (("--max-cost", "-1"), "--max-cost must be"),
        (("--review-seed", "x"), "--review-seed must be"),
        (("--kind", "none"), "no question is of the kind 'none'"),
        (("--question-input", "topic"), "nothing in"),
        (("--against", "/nowhere.json"), "can't be read"),
        (("--out", "/nowhere/r.json"), "there is no folder"),
        (("-i", "more"), "must be KEY=VALUE"),
    ],
)
def test_wrong_use_is_2_and_one_line(
    command: Command, base: tuple[str, ...], stub: tuple[str, ...], more: tuple[str, ...], said: str
):
    """Found before any call."""
    ran = command(*base, *stub, *more)

    assert (ran.code, ran.out) == (2, "")
    assert len(ran.error_lines) == 1
    assert said in ran.err


def test_a_file_of_another_kind_is_not_replaced(
    command: Command, base: tuple[str, ...], stub: tuple[str, ...], tmp_path: Path
):
    """`--out` replaces the result of an evaluation, and nothing else."""
    precious = tmp_path / "precious.json"
    precious.write_text("{}", encoding="utf-8")

    assert command(*base, *stub, "--out", str(precious)).code == 2
    assert precious.read_text(encoding="utf-8") == "{}"


def test_questions_are_asked_for(command: Command, base: tuple[str, ...]):
    """Without `--questions` the command says so."""
    ran = command(*base[:2])

    assert ran.code == 2
    assert "--questions FILE.jsonl is missing" in ran.err


def test_a_dry_evaluation_calls_nobody(command: Command, base: tuple[str, ...], tmp_path: Path):
    """`--dry` shows what all questions would come to, without a backend, and writes nothing."""
    out = tmp_path / "r.json"
    ran = command(*base, "--dry", "--price", "*=1,2", "--out", str(out))
    fields = command(*base, "--dry", "--json").json

    assert (ran.code, ran.err, out.exists()) == (0, "", False)
    assert ran.out.splitlines()[0] == "answers: 2 questions, projected; no model was called"
    assert fields["total"]["calls"] == 8
    assert fields["total"]["cost_usd"] is None


def test_the_budget_is_4_and_the_results_so_far(
    command: Command, base: tuple[str, ...], script: Script, tmp_path: Path
):
    """What is done is shown and written, marked partial."""
    replies = [{"text": text, "usage": {"input_token_count": 10, "output_token_count": 5}} for text in ANSWERS]
    out = tmp_path / "r.json"

    ran = command(*base, "--allow-stub", "--backend", script(*replies), "--budget-tokens", "60", "--out", str(out))

    assert ran.code == 4
    assert "PARTIAL: the budget is used up" in ran.out
    assert "1 of 2 questions are done" in ran.error_lines[0]
    assert json.loads(out.read_text(encoding="utf-8"))["ended_by"] == "budget"


def test_when_all_questions_fail_it_is_1(command: Command, at_server: tuple[str, ...], server: FaultServer):
    """Each failure has its cause, and one line says it."""
    server.default = Failure(status=401)

    ran = command(*at_server)

    assert ran.code == 1
    assert "2 failed" in ran.out
    assert len(ran.error_lines) == 1
    assert "2 of 2 questions failed; a: AuthenticationError" in ran.err


def test_one_failing_question_is_no_failure_of_the_evaluation(
    command: Command, at_server: tuple[str, ...], server: FaultServer
):
    """The other is run; the failed one counts as a wrong answer."""
    server.add(Failure(status=400), Completion(content="right"), Completion(content=verdict(True)))

    ran = command(*at_server, "--json")

    assert ran.code == 0
    assert (ran.json["summary"]["failed"], ran.json["summary"]["loop"]["score"]) == (1, 0.5)
    assert ran.json["records"][0]["status"] == "failed"


def test_a_grader_that_fails_is_1(command: Command, base: tuple[str, ...], script: Script, tmp_path: Path):
    """Without any grade that a grader was to give, the evaluation has failed; the answers are kept."""
    write_questions(tmp_path / "q.jsonl", "a", accept=[], grading="rubric", rubric=["It is right."])

    ran = command(*base, "--allow-stub", "--backend", script("right", verdict(True)), "--json")

    assert ran.code == 1
    assert ran.json["summary"]["grader_failures"] == 1
    assert ran.json["records"][0]["output"] == "right"


def test_the_cache_spares_the_calls(command: Command, at_server: tuple[str, ...], server: FaultServer, tmp_path: Path):
    """A second evaluation asks the server nothing."""
    server.add(*[Completion(content=text) for text in ANSWERS])
    arguments = (*at_server, "--concurrency", "1", "--cache-dir", str(tmp_path / "cache"), "--json")
    command(*arguments)
    asked = len(server.requests)

    again = command(*arguments).json

    assert len(server.requests) == asked
    assert (again["summary"]["calls"], again["summary"]["loop"]["score"]) == (0, 1.0)


def test_an_interrupt_is_130_and_keeps_what_is_done(base: tuple[str, ...], server: FaultServer, tmp_path: Path):
    """Ctrl-C on a real process: the results so far are shown and written, and no traceback."""
    server.add(Completion(content="right"), Completion(content=verdict(True)), Silence())
    out = tmp_path / "r.json"
    started = subprocess.Popen(
        [
            sys.executable,
            "-m",
            "agents_loop.cli",
            *base,
            "--backend",
            "openai:m",
            "--concurrency",
            "1",
            "--out",
            str(out),
        ],
        env={**os.environ, "OPENAI_API_KEY": "k", "OPENAI_BASE_URL": server.base_url},
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    while len(server.requests) < 3:
        assert started.poll() is None

    started.send_signal(signal.SIGINT)
    shown, said = started.communicate(timeout=60)

    assert started.returncode == 130
    assert "PARTIAL: interrupted" in shown
    assert "Traceback" not in said
    fields = json.loads(out.read_text(encoding="utf-8"))
    assert (fields["partial"], fields["ended_by"]) == (True, "interrupt")
    assert [record["id"] for record in fields["records"]] == ["a"]


def test_a_terminal_has_a_bar(base: tuple[str, ...], stub: tuple[str, ...]):
    """In a terminal the progress is a bar on standard error, and the result is on standard output."""
    ours, theirs = pty.openpty()
    ran = process(*base, *stub, stderr=theirs, env={"TERM": "xterm", "COLUMNS": "100"})
    os.close(theirs)
    seen = b""
    with contextlib.suppress(OSError):
        while piece := os.read(ours, 4096):
            seen += piece
    os.close(ours)

    assert ran.returncode == 0
    assert b"2/2" in seen
    assert ran.stdout.startswith(b"answers: 2 of 2 questions")


def test_no_secret_gets_into_a_result(
    command: Command, base: tuple[str, ...], server: FaultServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    """What a server says of a key is neither shown nor written."""
    canary = "sk-canary-0123456789abcdef"
    monkeypatch.setenv("OPENAI_API_KEY", canary)
    monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
    server.default = Failure(status=400, message=f"bad key {canary}")
    out = tmp_path / "r.json"

    ran = command(*base, "--backend", "openai:m", "--json", "--out", str(out))

    assert ran.code == 1
    for text in (ran.out, ran.err, out.read_text(encoding="utf-8")):
        assert canary not in text
        assert "bad key ***" in text


def test_a_damaged_cache_is_2_before_any_call(
    command: Command, at_server: tuple[str, ...], server: FaultServer, tmp_path: Path
):
    """One line that names the file."""
    server.add(*[Completion(content=text) for text in ANSWERS])
    cached = (*at_server, "--cache-dir", str(tmp_path / "cache"))
    command(*cached)
    for path in (tmp_path / "cache").iterdir():
        path.write_text("{}\n{}\n", encoding="utf-8")
    asked = len(server.requests)

    ran = command(*cached)

    assert (ran.code, len(server.requests)) == (2, asked)
    assert len(ran.error_lines) == 1
    assert "cache" in ran.err


def test_a_folder_that_cannot_be_written_to_is_2_before_any_call(
    command: Command, at_server: tuple[str, ...], server: FaultServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """Nothing is paid for a result that has no place."""
    access = os.access
    monkeypatch.setattr(os, "access", lambda path, mode: mode != os.W_OK and access(path, mode))
    ran = command(*at_server, "--out", str(tmp_path / "r.json"))

    assert (ran.code, server.requests) == (2, [])
    assert "can't be written to" in ran.err


def test_what_a_result_has_no_use_for_is_2(
    command: Command, base: tuple[str, ...], stub: tuple[str, ...], tmp_path: Path
):
    """A result in the place of the file is shown: options of a run are not passed over in silence."""
    result = str(tmp_path / "r.json")
    assert command(*base, *stub, "--out", result).code == 0

    for more in (("--questions", base[-1]), ("--out", result), ("--dry",)):
        ran = command("eval", result, *more)
        assert (ran.code, ran.out) == (2, "")
        assert "shown, not run" in ran.err
    assert command("eval", result).code == 0


def test_an_earlier_result_is_not_replaced_by_nothing(
    command: Command, base: tuple[str, ...], script: Script, tmp_path: Path
):
    """An evaluation that ends before its first question is done leaves the file of another one as it was."""
    replies = [{"text": text, "usage": {"input_token_count": 10, "output_token_count": 5}} for text in ANSWERS]
    out = tmp_path / "r.json"
    ours = (*base, "--allow-stub", "--backend", script(*replies), "--out", str(out))
    assert command(*ours).code == 0
    before = out.read_bytes()

    ran = command(*ours, "--budget-tokens", "1")

    assert (ran.code, out.read_bytes() == before) == (4, True)
    assert "is left as it was: no question is done" in ran.err
