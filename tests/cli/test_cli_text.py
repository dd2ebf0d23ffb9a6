from __future__ import annotations

import io
import re

import pytest

from agents_loop import AgentResponse, LoopEvaluation
from agents_loop.agent import AgentResponseUpdate
from agents_loop.cli.display import LiveDisplay, PlainDisplay
from agents_loop.cli.exit_codes import OF_STOP_REASON
from agents_loop.cli.live import LiveScreen, ScreenConsole
from agents_loop.cli.text import one_line, printable, redact
from agents_loop.loop.events import AgentResponded, AgentUpdated, EvaluatorDecided, IterationStarted
from agents_loop.loop.result import StopReason

HOSTILE = "[bold red]x[/] \x1b[2J\x1b]0;title\x07\x1b[31mred \x9b2K\b\b\r\u202egnol\u200f [link=http://x]y[/link]"


def test_every_stop_reason_has_an_exit_code():
    """Exit codes are schema: scripts depend on them."""
    assert {reason.value: int(OF_STOP_REASON[reason]) for reason in StopReason} == {
        "satisfied": 0,
        "max_iterations": 3,
        "pending_approval": 5,
        "pending_input": 5,
        "aborted": 3,
        "stalled": 3,
        "budget_exceeded": 4,
        "deadline": 4,
        "evaluator_failed": 1,
        "failed": 1,
        "cancelled": 130,
    }


def test_printable_text_can_not_move_the_cursor():
    """Escape sequences, control characters and reversals of direction are gone; the rest stays."""
    assert printable(HOSTILE) == "[bold red]x[/] red 2Kgnol [link=http://x]y[/link]"
    assert printable("tab\there\nline é 漢 🙂") == "tab\there\nline é 漢 🙂"
    assert printable("\ud800x\x1b") == "x"
    assert printable("\x1b]never closed, so it stays readable") == "never closed, so it stays readable"


def test_one_line_is_one_line():
    """Line breaks and blanks become one blank; a long text is cut."""
    assert one_line("a\n\n b\r\nc") == "a b c"
    assert one_line("abcdefgh", 5) == "abcd…"


def test_secrets_are_redacted(monkeypatch: pytest.MonkeyPatch):
    """What the environment calls a key, a token or a password is not shown, nor one in an address."""
    monkeypatch.setenv("OPENAI_API_KEY", " canary-one ")
    monkeypatch.setenv("MY_TOKEN", "canary-two")

    assert redact("a canary-one b canary-two c http://u:p@host/x") == "a *** b *** c http://***@host/x"


def test_a_live_display_shows_text_as_text():
    """What a model wrote is neither markup nor an escape sequence, on any way to the screen."""
    out = io.StringIO()
    display = LiveDisplay(LiveScreen(ScreenConsole(file=out, force_terminal=False, width=200, highlight=False)))

    display.on_event(IterationStarted(1, (), ()))
    display.on_event(AgentUpdated(1, AgentResponseUpdate("assistant", HOSTILE)))
    display.on_event(AgentResponded(1, AgentResponse(HOSTILE)))
    evaluation = LoopEvaluation.continue_(HOSTILE, score=0.5)
    evaluation.evaluator = "E"
    display.on_event(EvaluatorDecided(1, evaluation))
    display.close()

    shown = out.getvalue()
    assert shown.count("[bold red]x[/] red 2Kgnol [link=http://x]y[/link]") == 2
    assert "✗ E: continue (score 0.5)" in shown
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202e]", shown)


def test_a_plain_display_shows_one_line_a_fact(capsys: pytest.CaptureFixture[str]):
    """A draft of many lines is one line, cut where it is long."""
    PlainDisplay().on_event(AgentResponded(2, AgentResponse(HOSTILE + "\nmore " + "x" * 500)))

    err = capsys.readouterr().err
    assert err.startswith("iteration 2: [bold red]x[/] red 2K")
    assert err.endswith("…\n")
    assert len(err) < 260
    assert "\x1b" not in err


@pytest.mark.parametrize("error", [BrokenPipeError(), OSError(5, "Input/output error")])
def test_a_terminal_that_has_gone_is_no_error(error: OSError):
    """The run goes on without an audience, and keeps its standard output."""

    class Gone(io.StringIO):
        def write(self, text: str) -> int:
            raise error

    display = LiveDisplay(LiveScreen(ScreenConsole(file=Gone(), force_terminal=False)))

    display.notice("x")
    display.on_event(AgentUpdated(1, AgentResponseUpdate("assistant", "y")))
    display.close()
