"""`agents-loop run`: one stream of events drives the display, the trace and the result."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, cast

from agents_loop.agent import AgentSession
from agents_loop.cli.backends import Backends
from agents_loop.cli.display import Display, choose_display
from agents_loop.cli.exit_codes import OF_STOP_REASON, ExitCode
from agents_loop.cli.explaining import debug_text, explain
from agents_loop.cli.file_request import FileRequest
from agents_loop.cli.folder_notice import FolderNotice
from agents_loop.cli.option_values import parse_inputs
from agents_loop.cli.people import AskPerson, person_at_terminal
from agents_loop.cli.streams import say_error, write_err, write_out
from agents_loop.cli.text import as_utf8, one_line, redact, redact_details
from agents_loop.cli.trace import TraceWriter
from agents_loop.cli.whole_run import whole_run
from agents_loop.errors import ConfigurationError
from agents_loop.files import BuiltLoop, LoopFile, RunFolder, RunSettings, load_loop_file
from agents_loop.loop.events import LoopEvent, LoopStopped
from agents_loop.loop.result import LoopResult, StopReason, result_to_json
from agents_loop.messages import ChatMessage, JsonValue

_RUNS = "runs"
LIMIT_NAMES = {"max_tokens": "--max-tokens", "max_cost_usd": "--max-cost", "deadline_s": "--deadline"}
_APPROVING = "this command can't approve it: give the agent an auto_approve in the file, or run the loop from Python"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRequest(FileRequest):
    """What the command line asks for, to run a file or to check its judge."""

    max_tokens: int | None = None
    deadline_s: float | None = None
    run_id: str | None = None
    runs_dir: Path | None = None
    record: Path | None = None
    replay: Path | None = None
    trace: Path | None = None
    debug: bool = False

    def folder(self) -> RunFolder | None:
        """Where the run keeps what its nodes finish, if it does.

        Raises:
            ConfigurationError: The id is none.
        """
        if self.run_id is None:
            return None if self.runs_dir is None else RunFolder.new(self.runs_dir)
        return RunFolder(self.runs_dir or Path(_RUNS), as_utf8(self.run_id, "--run-id"))

    def settings(self, backends: Backends, display: Display, folder: RunFolder | None) -> RunSettings:
        """What it says of the run itself."""
        return RunSettings(
            max_iterations=self.max_iterations,
            max_tokens=self.max_tokens,
            max_cost_usd=self.max_cost_usd,
            deadline_s=self.deadline_s,
            return_best=self.return_best,
            allow_imports=self.allow_imports,
            prices=backends.prices,
            outputs_dir=Path(),
            run_folder=folder,
            limit_names=LIMIT_NAMES,
            on_notice=lambda text: display.notice(f"notice: {text}"),
        )


class Observer(Protocol):
    """Who wants to hear of a run."""

    def on_event(self, event: LoopEvent) -> None:
        """Something has happened."""
        ...

    def close(self) -> None:
        """Nothing more will happen."""
        ...


def run_file(request: RunRequest) -> int:
    """Run a file, and give the exit code.

    Raises:
        ConfigurationError: Wrong use, found before any call.
    """
    loop_file = load_loop_file(request.file)
    inputs = parse_inputs(request.inputs)
    folder = request.folder()
    if folder is not None and not loop_file.can_resume:
        raise ConfigurationError("--run-id and --runs-dir are for files in dagraph's format: others can't be resumed")
    display = choose_display(quiet=request.quiet)
    backends = request.backends(display.notice, record=request.record, replay=request.replay)
    built = loop_file.build(inputs, backends.client_for, request.settings(backends, display, folder))
    _give_notices(display, loop_file, inputs, backends)
    observers: list[Observer] = [display] if folder is None else [FolderNotice(folder, display.notice), display]
    if request.trace is not None:
        observers.append(TraceWriter(request.trace, lambda text: write_err(f"warning: {text}\n")))
    run = _Run(built, backends, observers, streaming=display.is_live, ask_person=person_at_terminal())
    return _finish(request, run, backends, run.to_the_end())


class _Run:
    """One run, whatever ends it."""

    def __init__(
        self,
        built: BuiltLoop,
        backends: Backends,
        observers: Sequence[Observer],
        *,
        streaming: bool,
        ask_person: AskPerson | None = None,
    ) -> None:
        self._built = built
        self._backends = backends
        self._observers = observers
        self._streaming = streaming
        self._ask_person = ask_person
        self.result: LoopResult | None = None

    def to_the_end(self) -> BaseException | None:
        """Run it, and give what was raised."""
        try:
            with asyncio.Runner() as runner:
                try:
                    self._run(runner)
                finally:
                    runner.run(self._backends.aclose())
        except (Exception, KeyboardInterrupt) as error:  # noqa: BLE001 - the work so far is shown whatever was raised
            return error
        finally:
            for observer in self._observers:
                observer.close()
        return None

    def _run(self, runner: asyncio.Runner) -> None:
        """Run it, and go on with what a person answers.

        The person is asked outside of the event loop, in which an interrupt would wait for the end of the line.
        """
        runner.run(self._drive(self._built.message, None))
        while (answer := self._answer()) is not None:
            assert self.result is not None  # noqa: S101 - it is the one that asks
            runner.run(self._drive(answer, self.result.session))

    def _answer(self) -> ChatMessage | None:
        """What a person says to the question that the run waits for; `None` if it waits for none, or nobody answers."""
        result = self.result
        if self._ask_person is None or result is None or result.stop_reason != StopReason.PENDING_INPUT:
            return None
        return self._ask_person(redact(result.stop_detail or ""))

    async def _drive(self, message: ChatMessage | None, session: AgentSession | None) -> None:
        events, before = None, self.result
        try:
            async with self._built.agent.events(message, session=session, streaming=self._streaming) as events:
                async for event in events:
                    self._tell(_told(before, event))
        except asyncio.CancelledError:
            if events is not None and events.result is not None:
                self._tell(_told(before, LoopStopped(events.result, None)))
            raise
        finally:
            self.result = whole_run(before, None if events is None else events.result)

    def _tell(self, event: LoopEvent) -> None:
        for observer in self._observers:
            observer.on_event(event)


def _told(before: LoopResult | None, event: LoopEvent) -> LoopEvent:
    """The event; at the end the whole run is told, with what was before a question."""
    if not isinstance(event, LoopStopped):
        return event
    return LoopStopped(whole_run(before, event.result) or event.result, event.response)


def _finish(request: RunRequest, run: _Run, backends: Backends, error: BaseException | None) -> int:
    if run.result is not None:
        _write_result(run.result, as_json=request.as_json)
        reason = run.result.stop_reason
        is_unsaid = error is None and reason in (StopReason.FAILED, StopReason.EVALUATOR_FAILED)
        if is_unsaid or reason in (StopReason.BUDGET_EXCEEDED, StopReason.DEADLINE):
            say_error(one_line(redact(run.result.stop_detail or "")))
        if reason == StopReason.PENDING_INPUT and error is None:
            say_error(one_line(f"a person is asked: {redact(run.result.stop_detail or '')}"))
        if reason == StopReason.PENDING_APPROVAL and error is None:
            say_error(one_line(f"{redact(run.result.stop_detail or '')}; {_APPROVING}"))
    if error is not None and not isinstance(error, KeyboardInterrupt):
        if request.debug:
            write_err(debug_text(error))
        model = backends.name_of_failure(error)
        said = explain(error, model=model, backend=backends.kind_of(model))
        say_error(f"{_node_of_failure(run.result, said)}{said}")
    return _exit_code(run.result, error)


def _node_of_failure(result: LoopResult | None, said: str) -> str:
    """Which node of a graph failed, unless the error says so itself."""
    nodes = cast("dict[str, dict[str, Any]]", {} if result is None else result.report.get("nodes") or {})
    failed = [name for name, node in nodes.items() if node["status"] == "failed"]
    return f"node {one_line(failed[0])!r}: " if failed and not said.startswith("node ") else ""


def _exit_code(result: LoopResult | None, error: BaseException | None) -> ExitCode:
    """By the reason; a run that could not even begin, for want of a model or a template's value, is wrong use."""
    if isinstance(error, KeyboardInterrupt):
        return ExitCode.INTERRUPTED
    if isinstance(error, ConfigurationError) and (result is None or not (result.iterations or result.ledger)):
        return ExitCode.WRONG_USE
    code = ExitCode.FAILED if result is None else OF_STOP_REASON[result.stop_reason]
    return ExitCode.FAILED if error is not None and code != ExitCode.LIMIT else code


def _write_result(result: LoopResult, *, as_json: bool) -> None:
    if as_json:
        fields = cast("dict[str, JsonValue]", redact_details(result_to_json(result)))
        fields["model_calls"] = len(result.ledger)
        write_out(f"{json.dumps(fields, ensure_ascii=False)}\n")
    elif result.iterations or result.output:
        write_out(f"{result.output}\n")


def _give_notices(display: Display, loop_file: LoopFile, inputs: dict[str, str], backends: Backends) -> None:
    for name in loop_file.unused_inputs(inputs):
        display.notice(f"notice: no prompt uses the input {name!r}")
    for text in backends.notices():
        display.notice(text)
