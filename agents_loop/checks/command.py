"""A check that runs a command, tests say."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path

from agents_loop.checks.check import Check, check_maker
from agents_loop.checks.process import FinishedProcess, run_process
from agents_loop.errors import ConfigurationError
from agents_loop.judging.feedback import screen_feedback
from agents_loop.judging.measures import code_blocks
from agents_loop.numeric import check_count, is_number

_KEPT_VARIABLES = ("PATH", "HOME", "LANG", "LC_ALL", "TMPDIR", "TEMP", "TMP", "VIRTUAL_ENV", "SYSTEMROOT")
"""What a command needs to run, and no key or token among it."""


@check_maker
def command_check(
    name: str,
    command: Sequence[str],
    *,
    answer_file: str | None = None,
    files: Mapping[str, str] | None = None,
    cwd: str | Path | None = None,
    env: Mapping[str, str] | None = None,
    timeout_s: float = 60,
    max_output_characters: int = 4000,
    required: bool = True,
) -> Check:
    """A command must end with exit code 0: the tests of what the agent wrote, a linter, a compiler.

    It is given the answer's text as its standard input. With `answer_file` it runs in a new directory that holds the
    answer and `files`, and that is removed afterwards; with `cwd` where the agent works. No shell is involved. When it
    ends, or the time is over, or the run is cancelled, its whole process group is killed. **It is no sandbox**: code
    that a model wrote runs with your rights, so run it where it may do harm.

    Args:
        name: What the check is called in feedback, evidence and records.
        command: The program and its arguments.
        answer_file: Where the answer is written, relative to the new directory: the code of its only code block, or
            else all of its text.
        files: Further files of the new directory: their text by their relative path.
        cwd: Where the command runs, if there is no new directory.
        env: Its environment. `None`: of this process's only PATH, HOME and the like, so that no key reaches it.
        timeout_s: Seconds until it is killed, and has failed.
        max_output_characters: How much of its output the agent hears, never more than 8,000: if there is more, the
            head and the tail, without colours and what else a reader does not see.
        required: Whether an `EvidenceLoopEvaluator` may call nothing done while this fails.

    Raises:
        TypeError: The command is one str, or holds something else than str; a limit is no number.
        ConfigurationError: It is empty, a limit is not above 0, a file would lie elsewhere, or `cwd` is given besides
            `answer_file` or `files`.
    """
    arguments = _checked_command(command)
    written = dict(files or {})
    for path, text in written.items():
        if not isinstance(text, str):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise TypeError(f"files must hold the text of {path!r} as a str, not {type(text).__name__}")
    for option, path in [*(("files", path) for path in written), ("answer_file", answer_file)]:
        if path is not None and (not path.strip() or Path(path).is_absolute() or ".." in Path(path).parts):
            raise ConfigurationError(f"{option} must lie in the new directory, with a relative path, not {path!r}")
    if answer_file is not None and Path(answer_file) in {Path(path) for path in written}:
        raise ConfigurationError(f"files must not hold the answer_file {answer_file!r}: the answer would replace it")
    if cwd is not None and (answer_file is not None or files):
        raise ConfigurationError("cwd must be left out where answer_file or files are given: they get a new directory")
    _check_timeout(timeout_s)
    check_count("max_output_characters", max_output_characters)

    async def examine(text: str) -> str | None:
        with ExitStack() as stack:
            directory = cwd
            if answer_file is not None or written:
                directory = stack.enter_context(tempfile.TemporaryDirectory(ignore_cleanup_errors=True))
                answer = {} if answer_file is None else {answer_file: _code_of(text)}
                _write(Path(directory), {**written, **answer})
            finished = await run_process(
                arguments,
                stdin=text,
                cwd=directory,
                env=_environment() if env is None else env,
                timeout_s=timeout_s,
                max_output_characters=max_output_characters,
            )
        return _problem(finished, timeout_s)

    return Check(name, examine, required=required)


def _check_timeout(timeout_s: object) -> None:
    if not is_number(timeout_s):
        raise TypeError(f"timeout_s must be a number, not {timeout_s!r}")
    if not timeout_s > 0:
        raise ConfigurationError(f"timeout_s must be above 0, not {timeout_s!r}")


def _checked_command(command: Sequence[str]) -> list[str]:
    if isinstance(command, str):
        raise TypeError("command must be a sequence of str, not one str: no shell splits it")
    arguments = list(command)
    for argument in arguments:
        if not isinstance(argument, str):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise TypeError(f"command must hold str, not {type(argument).__name__}")
    if not arguments:
        raise ConfigurationError("command must not be empty")
    return arguments


def _environment() -> dict[str, str]:
    return {name: os.environ[name] for name in _KEPT_VARIABLES if name in os.environ}


def _code_of(text: str) -> str:
    blocks = code_blocks(text)
    return f"{blocks[0].code}\n" if len(blocks) == 1 else text


def _write(directory: Path, files: Mapping[str, str]) -> None:
    for name, text in files.items():
        path = directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8", "replace")


def _problem(finished: FinishedProcess, timeout_s: float) -> str | None:
    if finished.exit_code == 0:
        return None
    if finished.exit_code is None:
        ending = f"the command did not end within {timeout_s:g} seconds, and was stopped"
    elif finished.exit_code < 0:
        ending = f"the command was ended by signal {-finished.exit_code}"
    else:
        ending = f"the command ended with exit code {finished.exit_code}"
    output = screen_feedback(finished.output).strip()
    return f"{ending}. Its output:\n{output}" if output else f"{ending}, without output"
