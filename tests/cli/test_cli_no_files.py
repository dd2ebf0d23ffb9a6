"""What the command says of a path that was given as a file, and is none."""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from commanding import Command

Script = Callable[..., str]
FILE = "name: n\nnodes:\n- {id: a, type: agent, model: m, prompt: p}\n"
QUESTION = '{"id": "q", "question": "Why?", "accept": ["x"]}\n'

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="there are no named pipes")


@pytest.fixture(autouse=True)
def here(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.chdir(tmp_path)
    os.mkfifo("pipe")
    Path("folder").mkdir()
    with socket.socket(socket.AF_UNIX) as server:
        server.bind("socket")
    Path("loop.yaml").write_text(FILE, "utf-8")
    Path("questions.jsonl").write_text(QUESTION, "utf-8")
    return tmp_path


KINDS = [("pipe", "a named pipe"), ("folder", "a folder"), ("socket", "a socket"), ("/dev/zero", "a device")]


@pytest.mark.parametrize(("path", "kind"), KINDS)
@pytest.mark.parametrize(
    "arguments",
    [
        ("validate", "PATH"),
        ("run", "PATH"),
        ("run", "PATH", "--dry"),
        ("convert", "PATH"),
        ("eval", "PATH", "--questions", "questions.jsonl"),
        ("eval", "loop.yaml", "--questions", "PATH"),
        ("eval", "loop.yaml", "--questions", "questions.jsonl", "--against", "PATH"),
        ("judge", "check", "PATH", "--cases", "questions.jsonl"),
        ("judge", "check", "loop.yaml", "--cases", "PATH"),
        ("run", "loop.yaml", "--backend", "scripted:PATH"),
        ("run", "loop.yaml", "--model", "m=scripted:PATH"),
        ("run", "loop.yaml", "--replay", "PATH"),
        ("run", "loop.yaml", "--record", "PATH"),
    ],
    ids=" ".join,
)
def test_what_is_no_file_is_named_and_not_waited_for(
    command: Command, script: Script, arguments: tuple[str, ...], path: str, kind: str
):
    """A pipe, a folder, a socket or a device in place of a file is wrong use: one line says which, and no call is made."""
    asked = [each.replace("PATH", path) for each in arguments]
    if arguments[0] == "run" and not {"--backend", "--model", "--replay", "--dry"} & set(arguments):
        asked += ["--backend", script("never")]

    ran = command(*asked)

    assert ran.code == 2
    assert ran.out == ""
    (line,) = ran.error_lines
    assert path in line
    assert line.endswith(f"it is {kind}, not a file")


@pytest.mark.parametrize("path", ["pipe", "folder", "socket"])
def test_a_trace_goes_into_a_file_or_a_device(command: Command, script: Script, path: str):
    """`--trace`: nobody waits for a reader that may never come; `/dev/null` is a place to write to."""
    refused = command("run", "loop.yaml", "--backend", script("x"), "--trace", path)
    ran = command("run", "loop.yaml", "--backend", script("x"), "--trace", "/dev/null")

    assert (refused.code, ran.code) == (2, 0)
    assert refused.error_lines[0].startswith(f"error: --trace {path!r} can't be written: it is a ")


def test_the_null_device_is_an_empty_file(command: Command):
    """`/dev/null` ends at once, so it is read, and is empty."""
    assert command("validate", "/dev/null").error_lines == [
        "error: /dev/null: the file must be a mapping with `name` and `nodes`"
    ]
    ran = command("run", "loop.yaml", "--backend", "scripted:/dev/null", "--record", "/dev/null")
    assert "/dev/null has 0 replies and none is left for call 1" in ran.error_lines[0]


def test_a_pipe_of_the_shell_is_read(command: Command):
    """A pipe that a shell has opened, as that of `<(command)`, is a file like others."""
    reading, writing = os.pipe()
    os.write(writing, FILE.encode())
    os.close(writing)
    try:
        assert command("validate", f"/dev/fd/{reading}").out.startswith("✓ n: 1 nodes")
    finally:
        os.close(reading)


@pytest.mark.parametrize("name", ["state.json", "lock"])
def test_a_pipe_in_a_run_folder_is_not_waited_for(command: Command, script: Script, name: str):
    """A run folder in which something else stands can't be resumed, and says why."""
    folder = Path("runs/x")
    folder.mkdir(parents=True)
    os.mkfifo(folder / name)

    ran = command("run", "loop.yaml", "--backend", script("x"), "--run-id", "x")

    assert ran.code == 2
    assert "it is a named pipe, not a file" in ran.error_lines[0]
