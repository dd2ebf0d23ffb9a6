"""`agents-loop judge check`: its output, its options and its exit codes."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from commanding import LIMERICK, Command, verdict
from fault_server import FaultServer

from agents_loop.cli import display

Script = Callable[..., str]


@pytest.fixture
def cases(tmp_path: Path) -> Callable[..., str]:
    """A file of cases: the kind, the draft."""

    def cases(*given: tuple[str, str], name: str = "cases.jsonl") -> str:
        path = tmp_path / name
        lines = [{"id": f"c{n}", "kind": kind, "draft": draft} for n, (kind, draft) in enumerate(given, start=1)]
        path.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
        return str(path)

    return cases


def check(*more: str) -> tuple[str, ...]:
    return ("judge", "check", LIMERICK, "-i", "place=Delft", *more)


def test_all_is_well_is_0_and_a_table(command: Command, script: Script, cases: Callable[..., str]):
    """0: every check is passed. Standard output holds the table, standard error a line for each case."""
    given = cases(("repeat", "a limerick"), ("blind_spot", "a lie"), ("trivial", "a limrick"), ("serious", "a list"))
    replies = [verdict(True), verdict(True), verdict(True), verdict(True), verdict(False), "a limerick", verdict(True)]
    ran = command(*check("--cases", given, "--backend", script(*replies)))

    assert ran.code == 0
    first, blank, header, _, *rows = ran.out.splitlines()
    assert (first, blank) == ("limerick_with_critic: passed, 5 cases (7 calls)", "")
    assert header == "check                status  what was seen"
    assert [row.split(maxsplit=2)[:2] for row in rows] == [
        ["agreement", "passed"],
        ["blind_spots", "noted"],
        ["never_passes", "passed"],
        ["trivial_and_serious", "passed"],
    ]
    assert rows[3].endswith("trivial faults take 0.00 revisions, serious ones 1.00")
    assert ran.err.splitlines()[0] == "c1 (repeat): passes, passes"


def test_a_check_that_is_not_passed_is_3(command: Command, script: Script, cases: Callable[..., str]):
    """3: a judge that contradicts itself. As JSON it is one object, with the judge's words."""
    replies = script(verdict(True, "fine"), verdict(False, "poor"))
    ran = command(*check("--cases", cases(("repeat", "a limerick")), "--backend", replies, "--json", "-q"))

    assert (ran.code, ran.err) == (3, "")
    assert (ran.json["passed"], ran.json["partial"], ran.json["model_calls"]) == (False, False, 2)
    agreement = ran.json["checks"][0]
    assert (agreement["name"], agreement["status"], agreement["agreement_rate"]) == ("agreement", "failed", 0)
    assert [each["said"] for each in ran.json["cases"][0]["verdicts"]] == [
        "PromptedEvaluator: stop: fine",
        "PromptedEvaluator: continue: poor",
    ]


def test_less_agreement_may_be_enough(command: Command, script: Script, cases: Callable[..., str]):
    """`--repeats` and `--min-agreement` say how often, and how much."""
    replies = script(verdict(True), verdict(True), verdict(False))
    more = ("--repeats", "3", "--min-agreement", "0.3")
    ran = command(*check("--cases", cases(("repeat", "x")), "--backend", replies, "--json", *more))

    assert (ran.code, ran.json["checks"][0]["agreement_rate"]) == (0, 0.3333)


def test_a_budget_is_4_and_what_was_seen_is_given(command: Command, script: Script, cases: Callable[..., str]):
    """4: the limit on the whole; the report is there, and partial."""
    line = {"text": verdict(True), "usage": {"input_token_count": 900, "output_token_count": 100}}
    given = cases(*[("repeat", f"draft {number}") for number in range(9)])
    ran = command(*check("--cases", given, "--backend", script(*[line] * 18), "--json", "--max-tokens", "3000"))

    assert (ran.code, ran.json["partial"]) == (4, True)
    assert len(ran.error_lines) == 1
    assert 2 <= ran.json["model_calls"] <= 3


def test_a_failure_is_1_and_one_line(command: Command, script: Script, cases: Callable[..., str]):
    """1: a client failed; what was seen before is in the report."""
    given = cases(("repeat", "a"), ("repeat", "b"))
    ran = command(*check("--cases", given, "--backend", script(verdict(True), verdict(True)), "--json"))

    assert (ran.code, ran.json["partial"]) == (1, True)
    assert ran.json["checks"][0]["cases"] == 1
    assert len(ran.error_lines) == 1


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (("--repeats", "1"), "repeats must be at least 2"),
        (("--repeats", "two"), "--repeats must be a whole number"),
        (("--min-agreement", "2"), "--min-agreement must be a number from 0 to 1"),
        (("--min-agreement", "all"), "--min-agreement must be a number from 0 to 1"),
        (("--cases", "nowhere.jsonl"), "the cases can't be read"),
        (("--max-tokens", "0"), "--max-tokens must be a whole number"),
        (("-i", "place=Delft"), "given twice"),
    ],
)
def test_wrong_use_is_2(command: Command, script: Script, cases: Callable[..., str], more: tuple[str, ...], said: str):
    """2: wrong use is one clear line, and no call is made."""
    ran = command(*check("--cases", cases(("repeat", "x")), "--backend", script(), *more))

    assert (ran.code, ran.out) == (2, "")
    assert said in ran.error_lines[-1]


def test_cases_that_are_wrong_are_2(command: Command, script: Script, cases: Callable[..., str]):
    """2: each problem of the cases is a line."""
    ran = command(*check("--cases", cases(("often", "x"), ("repeat", " ")), "--backend", script()))

    assert ran.code == 2
    assert len(ran.error_lines) == 2


def test_a_secret_stays_one(
    command: Command, script: Script, cases: Callable[..., str], monkeypatch: pytest.MonkeyPatch
):
    """What is told of a case holds no value of a secret."""
    monkeypatch.setenv("MY_API_KEY", "canary-123456")
    ran = command(*check("--cases", cases(("never_passes", "x")), "--backend", script(), "-i", "key=canary-123456"))

    assert "canary-123456" not in ran.out + ran.err


def test_a_notice_and_the_traceback(command: Command, script: Script, cases: Callable[..., str]):
    """A `--model` that matches nothing is told; `--debug` shows the traceback of a failure."""
    more = ("--backend", script(), "--model", "nobody=local", "--debug")
    ran = command(*check("--cases", cases(("repeat", "x")), *more))

    assert ran.code == 1
    assert "notice: --model 'nobody' matches no model of the file" in ran.err
    assert "Traceback" in ran.err
    assert "partial" in ran.out


def test_tokens_and_cost_are_told(command: Command, script: Script, cases: Callable[..., str]):
    """The first line says what it took, where that is known."""
    line = {"text": verdict(True), "usage": {"input_token_count": 900, "output_token_count": 100}}
    more = ("--backend", script(line, line), "--price", "*=100,100")
    ran = command(*check("--cases", cases(("repeat", "x")), *more))

    assert ran.out.splitlines()[0] == "limerick_with_critic: passed, 2 cases (2 calls, 2,000 tokens, $0.2000)"


def test_an_interrupt_is_130_and_what_was_seen_is_given(
    command: Command, script: Script, cases: Callable[..., str], monkeypatch: pytest.MonkeyPatch
):
    """130: the report of what was seen until then."""
    replies = script(*[verdict(True)] * 4)

    def interrupt(text: str) -> None:
        signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(display, "write_err", interrupt)
    ran = command(*check("--cases", cases(("repeat", "a"), ("repeat", "b")), "--backend", replies, "--json"))

    assert (ran.code, ran.json["partial"]) == (130, True)
    assert ran.json["checks"][0]["cases"] == 1


def test_as_a_process(script: Script, cases: Callable[..., str]):
    """A real process, and its help."""
    arguments = ["--cases", cases(("never_passes", "x")), "--backend", script()]
    command = [sys.executable, "-m", "agents_loop.cli", *check(*arguments)]
    ran = subprocess.run(command, capture_output=True, check=False, timeout=120)
    assert (ran.returncode, ran.stdout.startswith(b"limerick_with_critic: passed, 1 case (0 calls)\n")) == (0, True)


def test_a_budget_in_dollars_without_a_price_is_2_and_no_report(
    command: Command, cases: Callable[..., str], server: FaultServer, monkeypatch: pytest.MonkeyPatch
):
    """Wrong use that is found before any call: nothing was seen, and standard output stays empty."""
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
    given = cases(("repeat", "a limerick"))

    ran = command(*check("--cases", given, "--backend", "openai:of-nobody", "--max-cost", "1", "-q"))

    assert (ran.code, ran.out, server.requests) == (2, "", [])
    assert "'of-nobody' is not known" in ran.err
