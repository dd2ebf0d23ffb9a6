"""Checks that run a command: its time and its output are bounded, and nothing is left behind."""

import asyncio
import os
import shutil
import signal
import sys
from contextlib import suppress
from pathlib import Path

import pytest
from fakes import leaving_nothing, time_runs_out

from agents_loop import (
    AgentResponse,
    AgentSession,
    ChatClientAgent,
    ConfigurationError,
    LoopContext,
    command_check,
)
from agents_loop.checks import process
from agents_loop.testing import ScriptedChatClient

pytestmark = pytest.mark.skipif(os.name == "nt", reason="the commands are a POSIX shell's")

CODE = "Here you are:\n\n```python\ndef double(x):\n    return {}\n```\n"
TEST = "from solution import double\nassert double(4) == 8, f'{double(4)} is not 8'\n"


async def problem(evaluator, answer="answer"):
    agent = ChatClientAgent(ScriptedChatClient([]))
    context = LoopContext(agent, AgentSession(), "do it", AgentResponse(answer))
    async with leaving_nothing():
        return (await evaluator.evaluate(context)).details["problem"]


def shell(script, **options):
    return command_check("it runs", ["/bin/sh", "-c", script], **options)


def is_alive(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    state = Path(f"/proc/{pid}/stat")
    return not state.exists() or state.read_text().rpartition(")")[2].split()[0] != "Z"


def living_of_group(group):
    """The processes of a group that are alive, where the system says so in /proc."""
    fields = {path.parent.name: text.rpartition(")")[2].split() for path, text in _stats()}
    return [pid for pid, (state, _, of, *_) in fields.items() if int(of) == group and state != "Z"]


def _stats():
    for path in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            yield path, path.read_text()


def is_there(path):
    return Path(path).exists()


async def test_exit_codes():
    """Command: it passes with exit code 0; otherwise the agent hears how it ended, with all it wrote."""
    assert await problem(shell("echo fine")) is None
    assert await problem(shell("echo out; echo err >&2; exit 3")) == (
        "the command ended with exit code 3. Its output:\nout\nerr"
    )
    assert await problem(shell("exit 1")) == "the command ended with exit code 1, without output"
    assert await problem(shell("kill -9 $$")) == "the command was ended by signal 9, without output"


async def test_the_answer_is_its_input():
    """Command: the answer's text is the standard input; a command that does not read it does not fail for it."""
    assert await problem(shell('test "$(cat)" = "ünïcode"'), "ünïcode") is None
    assert await problem(shell("exec true"), "x" * 1_000_000) is None


async def test_code_is_tested():
    """Command: the answer's only code block lies beside the tests, in a directory of its own that is removed."""
    evaluator = command_check(
        "the tests pass", [sys.executable, "tests/check.py"],
        answer_file="solution.py", files={"tests/check.py": f"import sys; sys.path.insert(0, '.')\n{TEST}"},
    )  # fmt: skip
    assert await problem(evaluator, CODE.format("2 * x")) is None
    assert "AssertionError: 12 is not 8" in await problem(evaluator, CODE.format("3 * x"))
    where = await problem(shell("pwd; exit 1", answer_file="a.txt"))
    assert not is_there(where.splitlines()[-1])


async def test_text_without_one_block_is_written_whole():
    """Command: an answer without code, or with several blocks, is written as it is."""
    evaluator = shell("cat answer.txt; exit 1", answer_file="answer.txt")
    assert (await problem(evaluator, "plain")).endswith("\nplain")


async def test_where_it_runs(tmp_path):
    """Command: with `cwd` it sees the agent's work, and leaves it there."""
    (tmp_path / "made.txt").write_text("by a tool")
    assert await problem(shell("test -f made.txt", cwd=tmp_path)) is None
    assert (tmp_path / "made.txt").exists()


async def test_no_secret_reaches_it(monkeypatch):
    """Command: keys of this process's environment are not the command's."""
    monkeypatch.setenv("OPENAI_API_KEY", "canary")
    assert "canary" not in await problem(shell("env; exit 1"))
    assert "given" in await problem(shell("env; exit 1", env={"X": "given"}))


async def test_its_time_is_bounded(tmp_path):
    """Command: after its time the whole process group is killed, and the check has failed."""
    begun = tmp_path / "begun"
    os.mkfifo(begun)
    async with time_runs_out(asyncio.to_thread(begun.read_bytes)):
        wrong = await problem(shell(f"echo $$; sleep 1000 & echo $!; : > '{begun}'; wait", timeout_s=1000))
    assert wrong.startswith("the command did not end within 1000 seconds, and was stopped. Its output:\n")
    shell_pid, sleep_pid = wrong.splitlines()[1:]
    assert not is_alive(int(shell_pid))
    assert not is_alive(int(sleep_pid))


async def test_what_it_started_ends_with_it():
    """Command: a process in the background neither holds up the check nor outlives it."""
    wrong = await problem(shell("sleep 1000 & echo $!; exit 1"))
    assert not is_alive(int(wrong.splitlines()[-1]))


@pytest.mark.skipif(shutil.which("setsid") is None, reason="needs setsid")
async def test_who_leaves_the_group_holds_nothing_up(monkeypatch):
    """Command: a process that left the group, and holds the output open, is not waited for."""
    monkeypatch.setattr(process, "_DRAIN_S", 0.05)
    wrong = await problem(shell("setsid sh -c 'echo $$; exec sleep 1000' & sleep 0.2; exit 1"))
    os.kill(int(wrong.splitlines()[-1]), signal.SIGKILL)
    assert wrong.startswith("the command ended with exit code 1. Its output:\n")


async def test_its_output_is_bounded():
    """Command: of a flood the agent hears the head and the tail."""
    wrong = await problem(shell("echo head; head -c 3000000 /dev/zero | tr '\\0' x; echo tail; exit 1"))
    assert len(wrong) < 4200
    assert "Its output:\nhead\nxx" in wrong
    assert "xx\n[... output is left out here ...]\nxx" in wrong
    assert wrong.endswith("xtail")
    short = await problem(shell("echo 0123456789; exit 1", max_output_characters=4))
    assert short.endswith("\n01\n[... output is left out here ...]\n9")
    assert (await problem(shell("echo 0123456789; exit 1", max_output_characters=1))).endswith(":\n0")


async def test_no_control_characters():
    """I2: colours and control characters of a terminal don't reach the agent; bytes that are no text don't fail."""
    wrong = await problem(shell(r"printf '\033[31mred\033[0m\007\000 \377'; exit 1"))
    assert wrong.endswith("\nred \ufffd")


@pytest.mark.parametrize("time", range(20))
async def test_cancelled(tmp_path, time):
    """F5: a cancelled check kills its command and what that has started, also while it is starting."""
    os.mkfifo(tmp_path / "started")
    context = LoopContext(ChatClientAgent(ScriptedChatClient([])), AgentSession(), "do it", AgentResponse("x"))
    async with leaving_nothing():
        asking = asyncio.ensure_future(shell("echo $$ >started; sleep 1000", cwd=tmp_path).evaluate(context))
        pid = int(await asyncio.to_thread((tmp_path / "started").read_text))
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
    assert living_of_group(pid) == []


async def test_a_program_that_is_not_there():
    """F1: what can't be started is no verdict."""
    with pytest.raises(FileNotFoundError):
        await problem(command_check("it runs", ["/nothing/is/here"]))


@pytest.mark.parametrize(
    ("command", "options", "error"),
    [
        ("pytest -q", {}, TypeError),
        ([1], {}, TypeError),
        ([], {}, ConfigurationError),
        (["x"], {"timeout_s": 0}, ConfigurationError),
        (["x"], {"timeout_s": float("nan")}, ConfigurationError),
        (["x"], {"timeout_s": True}, TypeError),
        (["x"], {"timeout_s": "3"}, TypeError),
        (["x"], {"max_output_characters": 0}, ConfigurationError),
        (["x"], {"max_output_characters": 1.5}, TypeError),
        (["x"], {"answer_file": "../x"}, ConfigurationError),
        (["x"], {"answer_file": "/x"}, ConfigurationError),
        (["x"], {"files": {" ": ""}}, ConfigurationError),
        (["x"], {"cwd": "/", "answer_file": "x"}, ConfigurationError),
    ],
)
def test_wrong_use(command, options, error):
    """Command: wrong use is found before anything ran."""
    with pytest.raises(error):
        command_check("it runs", command, **options)
