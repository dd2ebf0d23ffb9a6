"""`agents-loop judge check`: what it does, and how it shows what it found."""

from __future__ import annotations

import json
from pathlib import Path

from agents_loop.cli.backends import Backends
from agents_loop.cli.display import PlainDisplay, QuietDisplay
from agents_loop.cli.exit_codes import ExitCode
from agents_loop.cli.explaining import debug_text, explain
from agents_loop.cli.interrupts import KeptWork
from agents_loop.cli.option_values import parse_inputs
from agents_loop.cli.running import RunRequest
from agents_loop.cli.streams import say_error, write_err, write_out
from agents_loop.cli.tables import render_table
from agents_loop.cli.text import one_line, redact
from agents_loop.errors import ConfigurationError
from agents_loop.files import load_loop_file
from agents_loop.files.counting import counted
from agents_loop.judge_check import JudgeCheck, JudgeCheckOptions, JudgeReport, load_cases
from agents_loop.messages import JsonValue
from agents_loop.metering.spending import tokens_of


def check_judge(request: RunRequest, cases_file: Path, *, repeats: int, min_agreement: float) -> int:
    """Check the judge of a file, and give the exit code.

    Args:
        request: What is asked of the file's runs; its limits are those of all of them together.
        cases_file: The drafts.
        repeats: How often a draft of the kind `repeat` is judged.
        min_agreement: Which share of these verdicts must agree.

    Raises:
        ConfigurationError: Wrong use, found before any call.
    """
    display = QuietDisplay() if request.quiet else PlainDisplay()
    loop_file, cases = load_loop_file(request.file), load_cases(cases_file)
    options = JudgeCheckOptions(
        repeats=repeats, min_agreement=min_agreement, on_progress=lambda text: display.notice(redact(text))
    )
    backends = request.backends(display.notice)
    check = JudgeCheck(
        loop_file,
        cases,
        backends.client_for,
        inputs=parse_inputs(request.inputs),
        settings=request.settings(backends, QuietDisplay(), None),
        options=options,
    )
    for text in backends.notices():
        display.notice(text)
    with KeptWork() as kept:
        error = _run(check, backends, kept)
        if not _is_wrong_use(error, check.report):
            _write(check.report, as_json=request.as_json)
    return _finish(check.report, backends, error, debug=request.debug)


def _run(check: JudgeCheck, backends: Backends, kept: KeptWork) -> BaseException | None:
    """Run it to its end, and give what was raised."""
    try:
        kept.run(check.run, backends.aclose)
    except Exception as error:  # noqa: BLE001 - what was seen so far is shown whatever was raised
        return error
    return KeyboardInterrupt() if kept.is_interrupted else None


def _finish(report: JudgeReport, backends: Backends, error: BaseException | None, *, debug: bool) -> ExitCode:
    if isinstance(error, KeyboardInterrupt):
        return ExitCode.INTERRUPTED
    if error is not None:
        if debug:
            write_err(debug_text(error))
        model = backends.name_of_failure(error)
        say_error(explain(error, model=model, backend=backends.kind_of(model)))
        return ExitCode.WRONG_USE if _is_wrong_use(error, report) else ExitCode.FAILED
    if report.ended_early is not None:
        say_error(one_line(redact(report.ended_early)))
        return ExitCode.LIMIT
    return ExitCode.SATISFIED if report.passed else ExitCode.UNSATISFIED


def _is_wrong_use(error: BaseException | None, report: JudgeReport) -> bool:
    """Whether it was found before any call: then nothing was seen."""
    return isinstance(error, ConfigurationError) and not report.total.calls


def _write(report: JudgeReport, *, as_json: bool) -> None:
    write_out(f"{json.dumps(report_json(report), ensure_ascii=False)}\n" if as_json else report_text(report))


def report_json(report: JudgeReport) -> dict[str, JsonValue]:
    """A report as a JSON value, without secrets in what errors say."""
    fields = report.to_json()
    fields["ended_early"] = None if report.ended_early is None else redact(report.ended_early)
    fields["checks"] = [{**check.to_json(), "detail": redact(check.detail)} for check in report.checks]
    return fields


def report_text(report: JudgeReport) -> str:
    """A report as a table of its checks, and one line on what it took."""
    used = [counted(report.total.calls, "call")]
    tokens = tokens_of(report.total.usage)
    if tokens is not None:
        used.append(counted(tokens[0], "token"))
    if report.total.cost_usd:
        used.append(f"${report.total.cost_usd:.4f}")
    word = "partial" if report.ended_early is not None else "passed" if report.passed else "not passed"
    rows = [(check.name, check.status, redact(check.detail)) for check in report.checks]
    first = one_line(f"{report.name}: {word}, {counted(len(report.cases), 'case')} ({', '.join(used)})")
    return f"{first}\n\n{render_table(('check', 'status', 'what was seen'), rows)}\n"
