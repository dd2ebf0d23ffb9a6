"""`agents-loop new`, `schema` and `convert`, and files of our own format on the command line."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from commanding import LIMERICK, Command, verdict

Script = Callable[..., str]


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_new_file_is_valid_and_runs(command: Command, script: Script, here: Path):
    """`new` writes a starter that validates and runs, and names its path."""
    made = command("new", "my-slogan")
    assert (made.code, made.out, made.err) == (0, "my-slogan.yaml\n", "")
    text = (here / "my-slogan.yaml").read_text("utf-8")
    assert text.startswith("# yaml-language-server: $schema=loop.schema.json\n")
    assert command("validate", "my-slogan.yaml").out.startswith("✓ my-slogan: a loop of at most 4 iterations\n")
    replies = script(
        {"model": "writer", "text": "A flask that keeps its heat for you, wherever you may go, all day long."},
        {"model": "writer", "text": "Hot all day."},
        *[{"model": "judge", "text": text} for text in ["It names the flask", "yes", "yes", "yes", "yes"]],
    )
    ran = command("run", "my-slogan.yaml", "-i", "topic=a flask", "--backend", replies, "-q")
    assert (ran.code, ran.out) == (0, "Hot all day.\n"), ran.err


def test_new_writes_over_nothing(command: Command, here: Path):
    """A file that is there stays as it is."""
    (here / "mine.yaml").write_text("mine")
    ran = command("new", "mine")
    assert (ran.code, ran.error_lines) == (2, ["error: 'mine.yaml' is there already: nothing is written over it"])
    assert (here / "mine.yaml").read_text() == "mine"


@pytest.mark.parametrize("name", ["../up", "a/b", "", " ", ".hidden", "x" * 65, "ä", "a.yaml", "$name"])
def test_a_name_is_checked(command: Command, here: Path, name: str):
    """A name is of letters, digits, - and _: nothing is written elsewhere."""
    ran = command("new", name)
    assert ran.code == 2
    assert "is no name for a loop" in ran.err
    assert list(here.rglob("*.yaml")) == []


@pytest.mark.parametrize(("arguments", "key"), [((), "loop"), (("--format", "dagraph"), "nodes")])
def test_the_schema(command: Command, arguments: tuple[str, ...], key: str):
    """`schema` writes a JSON Schema to standard output, and nothing else."""
    ran = command("schema", *arguments)
    assert (ran.code, ran.err) == (0, "")
    assert key in json.loads(ran.out)["required"]


def test_an_unknown_format(command: Command):
    """An unknown format is wrong use."""
    assert command("schema", "--format", "toml").error_lines == [
        "error: --format must be one of loop, dagraph, not 'toml'"
    ]


def test_a_file_is_converted(command: Command, script: Script, here: Path):
    """`convert` writes a file of our own to standard output, or where it is told; it runs as the other did."""
    shown = command("convert", LIMERICK)
    assert (shown.code, shown.err) == (0, "")
    written = command("convert", LIMERICK, "-o", "own.yaml")
    assert (written.code, written.out) == (0, "own.yaml\n")
    assert (here / "own.yaml").read_text("utf-8") == shown.out
    assert command("convert", LIMERICK, "-o", "own.yaml").code == 2
    replies = ["d1", verdict(False), "d2", verdict(True)]
    given = ("-i", "place=Delft", "-q", "--json")
    own = command("run", "own.yaml", *given, "--backend", script(*replies)).json
    other = command("run", LIMERICK, *given, "--backend", script(*replies)).json
    assert [each["input"] for each in own["iterations"]] == [each["input"] for each in other["iterations"]]
    assert (own["stop_reason"], own["output"], own["model_calls"]) == ("satisfied", "d2", 4)


def test_what_is_not_carried_is_a_notice(command: Command, here: Path):
    """What a converted file can't say goes to standard error."""
    text = Path(LIMERICK).read_text("utf-8").replace("    max_iterations", "    when: 'true'\n    max_iterations")
    (here / "d.yaml").write_text(text, "utf-8")
    assert command("convert", "d.yaml").err == "notice: not carried over: when: 'true': the loop always runs\n"


def own(here: Path, text: str) -> str:
    (here / "own.yaml").write_text(f"name: n\nloop:\n{text}", "utf-8")
    return "own.yaml"


def test_5_a_person_is_asked(command: Command, script: Script, here: Path):
    """5: the ladder of a file asks a person, and nobody is there."""
    file = own(
        here,
        "  agent: {model: w, request: r}\n"
        "  evaluators: [{type: completion_marker, marker: DONE}]\n"
        "  stall: {signals: [{type: same_answer, repeats: 2}], ladder: [{type: ask_person, question: 'How on?'}]}\n",
    )
    ran = command("run", file, "--backend", script("same", "same"), "-q")
    assert (ran.code, ran.out, ran.error_lines) == (5, "same\n", ["error: a person is asked: How on?"])


def test_5_a_tool_call_waits_for_approval(command: Command, script: Script, here: Path):
    """5: a call that needs approval ends the command, which says which one, and where it can be approved."""
    (here / "risky_tools.py").write_text(
        "from agents_loop import tool\n\n\n@tool(approval_required=True)\ndef delete(path: str) -> str:\n    return path\n"
    )
    (here / "own.yaml").write_text(
        "name: own\nloop:\n  agent: {model: m, request: Tidy up., tools: ['risky_tools:delete']}\n"
        "  evaluators:\n    - {type: length, unit: words, at_most: 9}\n"
    )
    replies = script({"text": "", "tool_calls": [{"name": "delete", "arguments": {"path": "a"}}]})
    ran = command("run", "own.yaml", "--backend", replies, "--allow-imports", "-q")
    assert ran.code == 5
    said = "error: waiting for approval of: delete; this command can't approve it: "
    assert ran.error_lines == [said + "give the agent an auto_approve in the file, or run the loop from Python"]


def test_python_objects_need_leave(command: Command, script: Script, here: Path):
    """2: without --allow-imports nothing is imported; with it, modules beside the file are found."""
    (here / "mine_beside.py").write_text("def judge(context):\n    return None\n")
    file = own(here, "  agent: {model: w, request: r}\n  evaluators: [{type: python, object: 'mine_beside:judge'}]\n")
    assert "  needs --allow-imports: mine_beside:judge\n" in command("validate", file).out
    ran = command("run", file, "--backend", script("a"))
    assert ran.code == 2
    assert len(ran.error_lines) == 1
    assert ran.error_lines[0].startswith(
        "error: own.yaml:4:39: loop.evaluators[0].object: 'mine_beside:judge' is a Python object: --allow-imports"
    )
    assert command("run", file, "--backend", script("a"), "--allow-imports", "-q").code == 0


def test_an_invalid_file(command: Command, here: Path):
    """2: each problem is a line of its own."""
    ran = command("validate", own(here, "  agent: {model: w}\n  evaluators: [{type: jsn}]\n"))
    assert ran.code == 2
    assert ran.error_lines == [
        "error: own.yaml:3:10: loop.agent.request: is missing",
        "error: own.yaml:4:23: loop.evaluators[0].type: unknown type 'jsn'; did you mean 'json'?",
    ]
