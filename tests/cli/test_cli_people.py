from __future__ import annotations

import contextlib
import io
import sys
from collections.abc import Callable
from typing import Any

import pytest
from commanding import LIMERICK, Command, verdict

from agents_loop import (
    AIAgent,
    ChatClientAgent,
    ChatMessage,
    DelegateLoopEvaluator,
    LoopAgent,
    LoopEvaluation,
    LoopResult,
    StopReason,
    accept_answer,
)
from agents_loop.cli.backends import Backends
from agents_loop.cli.display import PlainDisplay
from agents_loop.cli.exit_codes import ExitCode
from agents_loop.cli.people import person_at_terminal
from agents_loop.cli.running import _exit_code, _Run
from agents_loop.files import BuiltLoop
from agents_loop.loop.events import EvaluatorDecided, LoopEvent, LoopStopped
from agents_loop.testing import ScriptedChatClient

Script = Callable[..., str]
HERE = ("-i", "place=Delft")


class Watching:
    """Keeps the events."""

    def __init__(self) -> None:
        self.events: list[LoopEvent] = []
        self.closed = 0

    def on_event(self, event: LoopEvent) -> None:
        self.events.append(event)

    def close(self) -> None:
        self.closed += 1


def asking_loop(*replies: str) -> LoopAgent:
    """A loop that asks a person until the draft names a year."""
    agent: AIAgent = ChatClientAgent(ScriptedChatClient(replies))
    ask = LoopEvaluation.ask("Which\x1b[2J year?")
    return LoopAgent(
        agent, DelegateLoopEvaluator(lambda context: None if "2024" in context.last_response.text else ask)
    )


def ran(loop: LoopAgent, *answers: ChatMessage | BaseException | None, streaming: bool = False) -> tuple[Any, ...]:
    """The run in a terminal whose person says this, and what they were asked."""
    asked: list[str] = []
    left = list(answers)

    def person(question: str) -> ChatMessage | None:
        asked.append(question)
        said = left.pop(0)
        if isinstance(said, BaseException):
            raise said
        return said

    watching = Watching()
    backends = Backends(None, (), on_notice=print, local_client=lambda name: ScriptedChatClient([]), prices={})
    built = BuiltLoop(loop, ChatMessage("user", "Write."))
    run = _Run(built, backends, [watching], streaming=streaming, ask_person=person if answers else None)
    error = run.to_the_end()
    assert isinstance(run.result, LoopResult)
    assert watching.closed == 1
    return run.result, _exit_code(run.result, error), asked, watching.events


@pytest.mark.parametrize("streaming", [False, True], ids=["run", "stream"])
def test_the_answer_drives_the_next_draft(streaming: bool):
    """In a terminal the question is asked, and the run goes on with the answer, as one run to its observers' eyes."""
    result, code, asked, events = ran(
        asking_loop("A report.", "A report of 2024."), ChatMessage("user", "2024"), streaming=streaming
    )
    assert (code, result.output, len(asked)) == (ExitCode.SATISFIED, "A report of 2024.", 1)
    assert [event.result.stop_reason for event in events if isinstance(event, LoopStopped)] == [
        StopReason.PENDING_INPUT,
        StopReason.SATISFIED,
    ]


def test_the_whole_run_is_told():
    """What was before the question is in the result: iterations, calls, and at the end of each part the sum."""
    result, _, _, events = ran(asking_loop("A.", "B.", "C of 2024."), *[ChatMessage("user", "2024")] * 2)
    assert [(record.number, record.response.text) for record in result.iterations] == [
        (1, "A."),
        (2, "B."),
        (3, "C of 2024."),
    ]
    assert result.ledger.total.calls == 3
    ends = [event.result for event in events if isinstance(event, LoopStopped)]
    assert [(len(each.iterations), each.ledger.total.calls) for each in ends] == [(1, 1), (2, 2), (3, 3)]


def test_an_accepted_draft_stands_once_in_the_result():
    """A person's verdict is one more word on the draft, beside those of the evaluators."""
    result, _, _, _ = ran(asking_loop("A report."), accept_answer())
    words = [(word.evaluator, word.decision) for record in result.iterations for word in record.evaluations]
    assert words == [("DelegateLoopEvaluator", "ask"), ("person", "stop")]
    assert (len(result.iterations), result.ledger.total.calls) == (1, 1)


@pytest.mark.parametrize(
    ("failure", "code"), [(ConnectionError("down"), ExitCode.FAILED), (KeyboardInterrupt(), ExitCode.INTERRUPTED)]
)
def test_the_draft_is_not_lost_where_the_answer_leads_to_a_failure(failure: BaseException, code: ExitCode):
    """Finished work is never lost: the draft before the question is the result of a run that fails after it."""
    replies = iter(["A report.", failure])

    def answer(*_: Any) -> Any:
        said = next(replies)
        if isinstance(said, BaseException):
            raise said
        return said

    agent: AIAgent = ChatClientAgent(ScriptedChatClient(answer))
    loop = LoopAgent(agent, DelegateLoopEvaluator(lambda context: LoopEvaluation.ask("Which year?")))
    result, given, _, _ = ran(loop, ChatMessage("user", "2024"))
    assert (given, result.output, len(result.iterations)) == (code, "A report.", 1)


def test_several_questions():
    """A question may follow another."""
    _, code, asked, _ = ran(
        asking_loop("A.", "B.", "C of 2024."), ChatMessage("user", "hm"), ChatMessage("user", "2024")
    )
    assert (code, len(asked)) == (ExitCode.SATISFIED, 2)


def test_the_draft_is_accepted():
    """Accepting at the terminal is a verdict: the draft is the result, and the agent is not run again."""
    result, code, _, _ = ran(asking_loop("A report."), accept_answer())
    assert (code, result.output) == (ExitCode.SATISFIED, "A report.")


def test_the_question_is_shown(capsys: pytest.CaptureFixture[str]):
    """The word that asks is shown with its question, without what would move the cursor."""
    PlainDisplay().on_event(EvaluatorDecided(1, LoopEvaluation.ask("Which\x1b[2J year?", "Name it.")))
    assert capsys.readouterr().err.endswith(": ask: Which year? Name it.\n")


@pytest.mark.parametrize("answers", [(), (None,)], ids=["no terminal", "no answer"])
def test_5_where_nobody_answers(answers: tuple[Any, ...]):
    """5: a person is waited for. The draft so far is the result."""
    result, code, _, _ = ran(asking_loop("A report."), *answers)
    assert (code, result.stop_reason, result.output) == (ExitCode.PENDING, StopReason.PENDING_INPUT, "A report.")


def test_an_interrupt_at_the_question_is_130():
    """130: an interrupt while a person is asked; the draft so far is the result."""
    result, code, _, _ = ran(asking_loop("A report."), KeyboardInterrupt())
    assert (code, result.output) == (ExitCode.INTERRUPTED, "A report.")


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        ("2024 \n", "2024"),
        ("\n", None),
        ("", None),
        ("/accept\n", accept_answer()),
        (" /Accept \n", accept_answer()),
        ("accept\n", "accept"),
    ],
)
def test_what_is_typed(monkeypatch: pytest.MonkeyPatch, typed: str, said: Any):
    """Only `/accept` accepts; a blank line and the end of the input are no answer; the rest is one."""
    shown = Terminal()
    monkeypatch.setattr(sys, "stdin", Terminal(typed))
    monkeypatch.setattr(sys, "stderr", shown)
    ask = person_at_terminal()
    assert ask is not None
    message = ask("Which\x1b[2J year?")
    assert message == (ChatMessage("user", said) if isinstance(said, str) else said)
    assert shown.getvalue().startswith("Which year?\n(your answer; /accept")


@pytest.mark.parametrize("ended_by", ["", KeyboardInterrupt()], ids=["Ctrl-D", "Ctrl-C"])
def test_what_follows_no_answer_begins_a_line(monkeypatch: pytest.MonkeyPatch, ended_by: Any):
    """The draft is not written behind the prompt, where nobody ended its line."""

    class Typed(Terminal):
        def readline(self, size: int = -1, /) -> str:
            if isinstance(ended_by, BaseException):
                raise ended_by
            return ended_by

    shown = Terminal()
    monkeypatch.setattr(sys, "stdin", Typed())
    monkeypatch.setattr(sys, "stderr", shown)
    ask = person_at_terminal()
    assert ask is not None
    with contextlib.suppress(KeyboardInterrupt):
        assert ask("Which year?") is None
    assert shown.getvalue().endswith("> \n")


def test_what_is_no_utf_8_is_asked_for_again(monkeypatch: pytest.MonkeyPatch):
    """An answer that can't be read does not end the run: the person is told, and may write another."""
    shown = Terminal()
    monkeypatch.setattr(sys, "stdin", Terminal("\udcff\n2024\n"))
    monkeypatch.setattr(sys, "stderr", shown)
    ask = person_at_terminal()
    assert ask is not None
    assert ask("Which year?") == ChatMessage("user", "2024")
    assert "> error: the answer is not UTF-8: write it in UTF-8\n(your answer" in shown.getvalue()


def test_no_terminal_nobody_to_ask(monkeypatch: pytest.MonkeyPatch):
    """Where one of the two streams is no terminal, nobody is asked."""
    monkeypatch.setattr(sys, "stdin", io.StringIO("yes\n"))
    monkeypatch.setattr(sys, "stderr", Terminal())
    assert person_at_terminal() is None


def test_return_best(command: Command, script: Script):
    """`--return-best` gives the draft with the highest score where none satisfies; without it, it is the last."""
    replies = ["d1", verdict(False, score=0.2), "d2", verdict(False, score=0.9), "d3", verdict(False, score=0.4)]
    given = ("run", LIMERICK, *HERE, "-q", "--max-iterations", "3")
    assert command(*given, "--backend", script(*replies)).out == "d3\n"
    best = command(*given, "--backend", script(*replies), "--return-best")
    assert (best.code, best.out) == (3, "d2\n")
    as_json = command(*given, "--backend", script(*replies), "--return-best", "--json").json
    assert (as_json["best"], as_json["output"], len(as_json["iterations"])) == (2, "d2", 3)
