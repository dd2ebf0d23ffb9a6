from __future__ import annotations

import contextlib
import json
import os
import pty
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from commanding import LIMERICK, ROOT, process, verdict
from fault_server import Completion, FaultServer, Silence, Stream, chunk

Script = Callable[..., str]
RUN = ("run", LIMERICK, "-i", "place=Delft", "--price", "*=1,2")
HOSTILE = "\x1b[2J\x1b[31m[b]\t\x1b]0;title\x07\u202egnol\u2066\x9b2Kend"


def test_the_command_runs_as_a_process(script: Script):
    """A real process: the answer on standard output, progress on standard error, the exit code."""
    ran = process(*RUN, "--backend", script("été\n", verdict(True)), env={"LC_ALL": "C", "LANG": "C"})

    assert ran.returncode == 0
    assert ran.stdout == "été\n\n".encode()
    assert "iteration 1: été" in ran.stderr.decode()


def test_the_version_is_shown():
    """`--version` names the command and its version."""
    ran = process("--version")

    assert (ran.returncode, ran.stdout) == (0, b"agents-loop 0.1.0\n")


def test_standard_output_gets_the_text_as_it_is(script: Script):
    """In a pipe what the model wrote is given byte for byte, escape sequences included: only what is shown is cleaned."""
    ran = process(*RUN, "--backend", script(HOSTILE, verdict(True)))

    assert ran.stdout == f"{HOSTILE}\n".encode()
    assert b"\x1b" not in ran.stderr


def test_a_reader_that_has_gone_is_no_traceback(script: Script):
    """A broken pipe is silent, and the exit code is the run's."""
    read, write = os.pipe()
    os.close(read)

    ran = process(
        *RUN, "--json", "--backend", script("x" * 70_000, verdict(False)), "--max-iterations", "1", stdout=write
    )

    os.close(write)
    assert ran.returncode == 3
    assert b"Traceback" not in ran.stderr
    assert b"BrokenPipe" not in ran.stderr


COMMANDS = [
    pytest.param(("validate", LIMERICK), id="validate"),
    pytest.param(("models", "list"), id="models list"),
    pytest.param(("--help",), id="--help"),
    pytest.param(("run", "--help"), id="run --help"),
    pytest.param(("--version",), id="--version"),
]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
def test_a_full_disk_under_standard_output_is_1_and_one_line(script: Script):
    """A result that can't be written is a failure, and says so."""
    with Path("/dev/full").open("wb") as full:
        ran = process(*RUN, "-q", "--backend", script("d1", verdict(True)), stdout=full)

    assert ran.returncode == 1
    assert ran.stderr.decode().splitlines() == [
        "error: the result can't be written to standard output: No space left on device"
    ]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
@pytest.mark.parametrize("arguments", COMMANDS)
def test_each_command_says_when_its_output_is_lost(arguments: tuple[str, ...]):
    """Whatever was asked for: output that can't be written is 1 and one line."""
    with Path("/dev/full").open("wb") as full:
        ran = process(*arguments, stdout=full)

    assert ran.returncode == 1
    errors = [line for line in ran.stderr.decode().splitlines() if not line.startswith("notice: ")]
    assert errors == ["error: the result can't be written to standard output: No space left on device"]


@pytest.mark.parametrize("arguments", COMMANDS)
def test_each_command_is_silent_when_its_reader_has_gone(arguments: tuple[str, ...]):
    """Whatever was asked for: a reader that has gone (`| head`, `| true`) is no failure."""
    read, write = os.pipe()
    os.close(read)

    ran = process(*arguments, stdout=write)

    os.close(write)
    assert ran.returncode == 0
    assert [line for line in ran.stderr.decode().splitlines() if not line.startswith("notice: ")] == []


def test_nobody_to_read_standard_error_does_not_stop_the_run(script: Script):
    """Progress is not worth a run."""
    read, write = os.pipe()
    os.close(read)

    ran = process(*RUN, "--backend", script("d1", verdict(True)), stderr=write)

    os.close(write)
    assert (ran.returncode, ran.stdout) == (0, b"d1\n")


@pytest.mark.parametrize("module", ["typer", "jinja2", "yaml"])
def test_a_missing_extra_is_2_and_one_line(module: str):
    """Without the extra the command says what to install, not where an import failed."""
    code = f"import sys; sys.modules[{module!r}] = None; from agents_loop.cli import main; sys.exit(main(['validate', 'x']))"

    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, cwd=ROOT, check=False, timeout=120)

    assert ran.returncode == 2
    assert ran.stderr.decode().count("\n") == 1
    assert "pip install 'agents-loop[cli]'" in ran.stderr.decode()


def test_an_interrupt_is_130_and_prints_what_is_there(server: FaultServer, tmp_path: Path):
    """Ctrl-C stops at once; the last finished answer is printed, and the trace says how it ended."""
    server.add(
        Completion(content="d1"), Completion(content=verdict(False)), Stream((chunk({"content": "half"}),), "held")
    )
    trace = tmp_path / "t.jsonl"
    environment = {**os.environ, "OPENAI_API_KEY": "k", "OPENAI_BASE_URL": server.base_url}
    started = subprocess.Popen(
        [sys.executable, "-m", "agents_loop.cli", *RUN, "--backend", "openai", "--json", "--trace", str(trace)],
        env=environment,
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert started.stderr is not None
    for line in started.stderr:
        if line.startswith("iteration 1: PromptedEvaluator"):
            break
    while len(server.requests) < 3:
        assert started.poll() is None
    started.send_signal(signal.SIGINT)
    out, err = started.communicate(timeout=120)

    assert started.returncode == 130
    assert (json.loads(out)["stop_reason"], json.loads(out)["output"]) == ("cancelled", "d1")
    assert "Traceback" not in err
    last = json.loads(trace.read_text().splitlines()[-1])
    assert (last["event"], last["result"]["stop_reason"]) == ("LoopStopped", "cancelled")


INTERRUPTED_BY_ITSELF = """
import atexit, os, signal, sys
from agents_loop.cli import main

moment = sys.argv.pop(1)

class Interrupting:
    def find_spec(self, name, path=None, target=None):
        if name == moment:
            os.kill(os.getpid(), signal.SIGINT)

sys.meta_path.insert(0, Interrupting())
if moment == "exit":
    atexit.register(os.kill, os.getpid(), signal.SIGINT)
sys.exit(main())
"""
INTERRUPTED_FROM_OUTSIDE = """
import sys
import agents_loop.cli

run = agents_loop.cli._run

def run_and_tell(*arguments, **options):
    print("begun", flush=True)
    return run(*arguments, **options)

agents_loop.cli._run = run_and_tell
sys.exit(agents_loop.cli.main())
"""


@pytest.mark.parametrize("moment", ["typer", "pydantic", "rich.console", "agents_loop.loop.engine", "openai", "exit"])
def test_an_interrupt_while_modules_are_loaded_is_130_without_a_traceback(moment: str, server: FaultServer):
    """From `main` to the end of the process Ctrl-C is 130 and not a word, whatever is being imported or ended."""
    ran = subprocess.run(
        [sys.executable, "-c", INTERRUPTED_BY_ITSELF, moment, *RUN, "--backend", "openai", "-q"],
        env={**os.environ, "OPENAI_API_KEY": "k", "OPENAI_BASE_URL": server.base_url},
        cwd=ROOT,
        capture_output=True,
        check=False,
        timeout=120,
    )

    assert (ran.returncode, ran.stderr) == (130, b"")


@pytest.mark.parametrize("delay_s", [0.0, 0.05, 0.15, 0.3, 0.6])
def test_an_early_interrupt_is_130_without_a_traceback(delay_s: float, server: FaultServer):
    """Ctrl-C at any time after the start is 130 and no traceback."""
    server.default = Silence()
    started = subprocess.Popen(
        [sys.executable, "-c", INTERRUPTED_FROM_OUTSIDE, *RUN, "--backend", "openai"],
        env={**os.environ, "OPENAI_API_KEY": "k", "OPENAI_BASE_URL": server.base_url},
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert started.stdout is not None
    assert started.stdout.readline() == "begun\n"
    with contextlib.suppress(subprocess.TimeoutExpired):
        started.wait(delay_s)
    started.send_signal(signal.SIGINT)
    out, err = started.communicate(timeout=120)

    assert (started.returncode, out) == (130, "")
    assert "Traceback" not in err
    assert "KeyboardInterrupt" not in err


def test_an_interrupt_that_the_caller_ignores_stays_ignored():
    """What is started with interrupts switched off (`nohup`, a script's background) keeps them off."""
    code = "import signal, sys; signal.signal(signal.SIGINT, signal.SIG_IGN); sys.argv[1:] = ['--version']\n"
    code += INTERRUPTED_BY_ITSELF.replace("sys.argv.pop(1)", "'typer'")

    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, cwd=ROOT, check=False, timeout=120)

    assert (ran.returncode, ran.stdout) == (0, b"agents-loop 0.1.0\n")


def in_terminal(*arguments: str, answer: bytes = b"", env: dict[str, str] | None = None) -> tuple[int, str]:
    """The command in a terminal: its exit code, and all that it showed."""
    pid, terminal = pty.fork()
    if pid == 0:  # pragma: no cover - the child
        os.chdir(ROOT)
        os.execve(  # noqa: S606 - the command under test
            sys.executable,
            [sys.executable, "-m", "agents_loop.cli", *arguments],
            {**os.environ, "TERM": "xterm", **(env or {})},
        )
    shown = b""
    with contextlib.suppress(OSError):  # the terminal closes with the process
        while piece := os.read(terminal, 65_536):
            shown += piece
            if answer and b"[y/N]" in shown:
                os.write(terminal, answer)
                answer = b""
    os.close(terminal)
    _, status = os.waitpid(pid, 0)
    return os.waitstatus_to_exitcode(status), shown.decode()


def test_a_terminal_shows_drafts_words_and_the_ending(script: Script):
    """In a terminal each draft, each evaluator's word and the ending are shown as they happen."""
    code, shown = in_terminal(
        *RUN, "--backend", script("d1 [b]\x1b[2J", verdict(False, "too short"), "d2", verdict(True))
    )

    assert code == 0
    assert "iteration 1 of at most 3" in shown
    assert "d1 [b]" in shown
    assert "\x1b[2J" not in shown
    assert "PromptedEvaluator: continue" in shown
    assert "  too short" in shown
    assert "satisfied after 2 iterations (4 calls" in shown
    assert shown.endswith("d2\r\n")


@pytest.mark.parametrize("form", [(), ("--json",)])
def test_an_answer_can_not_move_the_cursor_of_a_terminal(script: Script, form: tuple[str, ...]):
    """On a terminal the answer is shown as the drafts are: no escape sequences, titles or reversals of direction."""
    code, shown = in_terminal(*RUN, "-q", *form, "--backend", script(HOSTILE, verdict(True)))

    assert code == 0
    assert "[b]" in shown
    assert not re.search("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", shown)
    if not form:
        assert shown == "[b]\tgnol2Kend\r\n"


def test_help_has_its_colours_in_a_terminal():
    """What the command itself writes is not taken for a model's words."""
    code, shown = in_terminal("--help", env={"FORCE_COLOR": "1"})

    assert code == 0
    assert "\x1b[" in shown
    assert "Run loops that stand in files." in shown


def test_a_terminal_is_asked_before_a_model_is_pulled():
    """A model that is not here is never fetched silently: a person is asked, and a no is 2."""
    code, shown = in_terminal(*RUN, "--backend", "local:smollm2-135m", answer=b"n\n")

    assert code == 2
    assert "Pull it now (98 MB)? [y/N]" in shown
    assert "Run: agents-loop models pull smollm2-135m" in shown
