"""What README and docs say is what happens: their code runs, their commands print what is shown, their tables hold."""

import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import get_args

import pytest
import typer
import yaml
from fault_server import Completion, FaultServer, usage
from pytest_examples import CodeExample, EvalExample, find_examples

import agents_loop
from agents_loop import (
    ChatClientAgent,
    DelegateLoopEvaluator,
    LoopAgent,
    LoopAgentOptions,
    LoopEvaluation,
    LoopResult,
    StopReason,
)
from agents_loop.cli.app import app
from agents_loop.cli.exit_codes import OF_STOP_REASON, ExitCode
from agents_loop.clients.model_files import KNOWN_MODELS
from agents_loop.files import load_loop_file
from agents_loop.files.dagraph.outcome import NodeOutcome
from agents_loop.judging.reading import read_reply
from agents_loop.loop.events import LoopEvent
from agents_loop.testing import ScriptedChatClient

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "agents_loop"
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
FRONT_MATTER = [ROOT / name for name in ("CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md")]

MODEL_REPLIES = {
    "README.md": [
        Completion(content="1. Export. 2. Convert. 3. Redirect.", usage=usage(30, 20)),
        Completion(content='{"gapAnalysis": "No owners, no cost.", "answered": false}', usage=usage(120, 40)),
        Completion(content="1. Export (Ada). 2. Convert (Ben). 3. Redirect (Ada). Cost: 3 days.", usage=usage(90, 30)),
        Completion(content='{"gapAnalysis": "", "answered": true}', usage=usage(180, 10)),
    ],
}
"""What the server behind `OPENAI_BASE_URL` answers while a page's code runs; the code itself is as it is shown."""


# --- fences


@dataclass
class Fence:
    """A fenced block of a page."""

    page: Path
    line: int
    language: str
    title: str | None
    text: str

    @property
    def name(self) -> str:
        return f"{name_of(self.page)}:{self.line}"


@dataclass
class Command:
    """A line of a console fence, and what is shown below it."""

    line: str
    shown: list[str] = field(default_factory=list)


def name_of(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def fences(*pages: Path, language: str | None = None) -> Iterator[Fence]:
    for page in pages:
        text = page.read_text("utf-8")
        for match in re.finditer(
            r"^```(\w+)(?: title=\"(.+?)\")?[^\n]*\n(.*?)^```$", text, flags=re.MULTILINE | re.DOTALL
        ):
            if language in (None, match[1]):
                yield Fence(page, text[: match.start()].count("\n") + 1, match[1], match[2], match[3])


def commands(fence: Fence) -> list[Command]:
    found: list[Command] = []
    for line in fence.text.splitlines():
        if line.startswith("$ "):
            found.append(Command(line.removeprefix("$ ")))
        else:
            found[-1].shown.append(line)
    return found


def section(page: str, heading: str) -> list[list[str]]:
    """The rows of the table under a heading, without code marks."""
    text = (ROOT / "docs" / page).read_text("utf-8")
    body = re.search(rf"^## {re.escape(heading)}\n(.*?)(?=^## |\Z)", text, flags=re.MULTILINE | re.DOTALL)
    assert body, f"{page} has no section {heading!r}"
    rows = [line for line in body[1].splitlines() if line.startswith("| ")][1:]
    return [[cell.strip().strip("`") for cell in row[1:-1].split(" | ")] for row in rows if "---" not in row]


# --- Python


def python_examples() -> list[tuple[str, list[CodeExample]]]:
    """Each page's fences in order, for they build on each other; each docstring's fence on its own.

    pytest-examples looks for `#> `; the formatter writes `# > `.
    """
    of_pages = [(name_of(page), list(find_examples(page))) for page in PAGES]
    of_docstrings = [(f"{name_of(example.path)}:{example.start_line}", [example]) for example in find_examples(PACKAGE)]
    found = [(name, examples) for name, examples in of_pages + of_docstrings if examples]
    for _, examples in found:
        for example in examples:
            example.source = re.sub(r"^( *)# > ?", r"\1#> ", example.source, flags=re.MULTILINE)
    return found


@pytest.fixture
def provider(monkeypatch, tmp_path):
    """A server that answers as OpenAI, the settings that point to it, and model files that can be opened."""
    models = tmp_path / "home" / "models"
    models.mkdir(parents=True)
    for model in KNOWN_MODELS.values():
        with (models / model.file_name).open("wb") as file:
            file.write(b"GGUF")
            file.truncate(model.size_bytes)
    with FaultServer() as server:
        monkeypatch.setenv("NO_PROXY", "127.0.0.1")
        monkeypatch.setenv("OPENAI_API_KEY", "a-key")
        monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
        monkeypatch.setenv("AZURE_OPENAI_ENDPOINT", server.origin)
        monkeypatch.setenv("AZURE_OPENAI_API_KEY", "a-key")
        monkeypatch.setenv("AGENTS_LOOP_HOME", str(tmp_path / "home"))
        yield server


@pytest.mark.parametrize(("name", "examples"), [pytest.param(*found, id=found[0]) for found in python_examples()])
def test_python_runs_and_prints_what_is_shown(name, examples, eval_example: EvalExample, provider, folder, monkeypatch):
    """Docs: every Python fence is executed, and its `# >` lines are what it prints."""
    monkeypatch.chdir(folder)
    eval_example.set_config(line_length=120)
    provider.add(*MODEL_REPLIES.get(name, ()))
    names: dict[str, object] = {}
    for example in examples:
        run = eval_example.run_print_update if eval_example.update_examples else eval_example.run_print_check
        wrong = None
        try:
            names |= run(example, module_globals=names)
        except Exception as error:  # noqa: BLE001 - pytest can't show a traceback that pytest-examples has rewritten
            wrong = f"{example}: {type(error).__name__}: {error}"
        if wrong is not None:
            pytest.fail(wrong, pytrace=False)


# --- commands and files


@pytest.fixture
def folder(tmp_path):
    """A folder with the files that the pages show, and the samples."""
    folder = tmp_path / "work"
    folder.mkdir()
    shutil.copytree(ROOT / "samples", folder / "samples")
    for fence in fences(*PAGES):
        if fence.title:
            (folder / fence.title).write_text(fence.text, "utf-8")
    return folder


def is_shown(shown: list[str], printed: str) -> bool:
    """Whether the output is as shown; `...` stands for anything."""
    pattern = r"\n".join([".*?".join(re.escape(part) for part in line.split("...")) for line in shown])
    return re.fullmatch(pattern, printed.rstrip("\n"), flags=re.DOTALL) is not None


@pytest.mark.parametrize("fence", [pytest.param(fence, id=fence.name) for fence in fences(*PAGES, language="console")])
def test_a_console_shows_what_the_command_prints(fence, folder):
    """Docs: every command over scripted replies is run; what it writes and its exit code are as shown."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("OPENAI_", "AZURE_"))}
    environment = {**kept, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    code = 0
    for command in commands(fence):
        done = subprocess.run(
            ["bash", "-c", f"(exit {code}); {command.line}"],
            cwd=folder,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=60,
            check=False,
        )
        code = done.returncode
        assert is_shown(command.shown, done.stdout), f"$ {command.line}\n{done.stdout}"


@pytest.mark.parametrize(
    "line",
    [
        pytest.param(line, id=f"{fence.name}-{number}")
        for fence in fences(*PAGES, *FRONT_MATTER, language="sh")
        for number, line in enumerate(fence.text.splitlines())
        if line.startswith(("agents-loop", "make", "pip install"))
    ],
)
def test_a_command_that_is_not_run_is_one_that_exists(line):
    """Docs: a command that needs a network or a person names a target, a subcommand, options and extras that exist."""
    words = line.split("#")[0].split()
    assert all((ROOT / word).exists() for word in words if word.startswith("samples/"))
    match words:
        case ["make", target]:
            assert re.search(rf"^{target}:", (ROOT / "Makefile").read_text("utf-8"), flags=re.MULTILINE)
        case ["agents-loop", name, *rest]:
            command = typer.main.get_command(app).commands[name]
            command = command.commands[rest[0]] if name in ("models", "judge") else command
            options = {option for parameter in command.params for option in parameter.opts}
            assert {word for word in rest if word.startswith("-")} <= options
        case ["pip", "install", *_]:
            project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
            for extra in re.findall(r"\[(.+?)\]", line):
                assert extra in project["optional-dependencies"]
            assert f" {project['name']}" in line.replace("'", " ") or " ." in line.replace("'", " ")


@pytest.mark.parametrize("fence", [pytest.param(fence, id=fence.name) for fence in fences(*PAGES, language="yaml")])
def test_a_loop_file_is_valid(fence, tmp_path):
    """Docs: every loop file that is shown is accepted."""
    path = tmp_path / "loop.yaml"
    path.write_text(fence.text, "utf-8")
    assert load_loop_file(path).name


# --- links and navigation


@pytest.mark.parametrize("page", [ROOT / "README.md", *FRONT_MATTER], ids=name_of)
def test_links_lead_somewhere(page):
    """Docs: each link of the front pages leads to a file of the repository (the site's own are checked by mkdocs)."""
    links = re.findall(r"\]\(([^)\s]+)\)", page.read_text("utf-8"))
    for link in links:
        if not link.startswith("https://"):
            assert (page.parent / link.partition("#")[0]).exists(), link


def test_every_page_is_in_the_navigation():
    """Docs: a page that nobody can reach is no page."""
    nav = yaml.safe_load((ROOT / "mkdocs.yml").read_text("utf-8"))["nav"]
    listed = re.findall(r"[\w/-]+\.md", json.dumps(nav))
    assert sorted(listed) == [path.relative_to(ROOT / "docs").as_posix() for path in PAGES[1:]]


def test_every_public_name_is_in_the_reference():
    """Docs: the API page has a section for each public name, and for nothing that does not exist."""
    text = (ROOT / "docs" / "api.md").read_text("utf-8")
    named = re.findall(r"^::: agents_loop\.(\w+)$", text, flags=re.MULTILINE)
    assert sorted(named) == sorted(name for name in agents_loop.__all__ if name != "__version__")


@pytest.mark.parametrize("page", [*PAGES, *FRONT_MATTER], ids=name_of)
def test_lines_are_short_and_speak_of_the_project_alone(page):
    """Docs: 120 characters a line; no path of somebody's machine."""
    text = page.read_text("utf-8")
    assert [line for line in text.splitlines() if len(line) > 120] == []
    assert not re.search(r"/(root|home|work|tmp|Users)/", text)


# --- tables


def test_the_stop_reasons_are_these():
    """Docs: the table of stop reasons has each one, with the exit code it leads to."""
    shown = {row[0]: int(row[1]) for row in section("schema.md", "Stop reasons")}
    assert shown == {reason.value: OF_STOP_REASON[reason].value for reason in StopReason}


def test_the_events_are_these():
    """Docs: the table of events has each kind, in order, with its fields."""
    shown = {row[0]: re.findall(r"\w+", row[1]) for row in section("schema.md", "Events")}
    assert shown == {kind.__name__: [*kind.__dataclass_fields__] for kind in get_args(LoopEvent)}


def test_the_exit_codes_are_these():
    """Docs: the table of exit codes has each one."""
    assert [int(row[0]) for row in section("schema.md", "Exit codes")] == [code.value for code in ExitCode]


def test_the_fields_of_a_result_are_these():
    """Docs: the table of JSON fields has each one that a result can have, and no other."""
    asks = iter(
        [
            LoopEvaluation.continue_with_messages("go on", score=0.1, note="n", details={"a": 1}),
            LoopEvaluation.stop(),
            LoopEvaluation.abort("enough"),
            LoopEvaluation.ask("who?"),
        ]
    )
    evaluators = [DelegateLoopEvaluator(lambda _: next(asks)) for _ in range(2)]
    options = LoopAgentOptions(evaluation_mode="all")
    loop = LoopAgent(ChatClientAgent(ScriptedChatClient(["a", "b"])), evaluators, options)
    result = json.loads(LoopResult.of(loop.run_sync("go")).to_json())
    iteration = result["iterations"][0]
    found = {*result, "model_calls"}
    found |= {f"iterations[].{name}" for name in iteration}
    found |= {f"ledger[].{name}" for name in result["ledger"][0]}
    found |= {f"iterations[].input[].{name}" for name in iteration["input"][0]}
    found |= {
        f"iterations[].evaluations[].{name}"
        for each in result["iterations"]
        for said in each["evaluations"]
        for name in said
    }
    assert {row[0] for row in section("schema.md", "Result as JSON")} == found


def test_the_fields_of_a_node_are_these():
    """Docs: the table of a graph's nodes has each field."""
    outcome = NodeOutcome("evaluator_loop", result=LoopResult("r", StopReason.SATISFIED, None, (), "", None, None, 0))
    assert [row[0] for row in section("schema.md", "Nodes of a graph")] == list(outcome.to_json())


def test_replies_are_read_as_the_table_says():
    """Docs: each row of the judge's table is what the reader does with that reply (a `⏎` is a line break)."""
    rows = section("judge.md", "How a reply is read")
    assert {row[1] for row in rows} == {"passes", "goes on", "goes on, unreadable"}
    for reply, outcome, gap in rows:
        reading = read_reply(reply.replace("⏎", "\n"))
        said = "passes" if reading.answered else "goes on" if reading.readable else "goes on, unreadable"
        assert (said, "" if reading.answered else reading.gap) == (outcome, gap), reply


def test_every_stop_reason_is_explained():
    """Docs: the page on why loops stop has each reason, with an example of each."""
    page = (ROOT / "docs" / "why-did-my-loop-stop.md").read_text("utf-8")
    rows = re.findall(r"^\| `(\w+)` \|", page, flags=re.MULTILINE)
    assert sorted(rows) == sorted(StopReason)
    for reason in StopReason:
        assert f"# > {reason}" in page, f"no example ends as {reason}"
