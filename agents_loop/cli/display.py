"""What a person sees of a run on standard error: live in a terminal, plain lines elsewhere, nothing with `--quiet`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, cast

from agents_loop.cli.live import LiveScreen
from agents_loop.cli.streams import is_live_terminal, write_err
from agents_loop.cli.text import one_line, printable, redact
from agents_loop.files.counting import counted
from agents_loop.loop.answer import answer_text
from agents_loop.loop.evaluation import LoopEvaluation
from agents_loop.loop.events import (
    AgentResponded,
    AgentUpdated,
    EvaluatorDecided,
    IterationStarted,
    LoopEvent,
    LoopStarted,
    LoopStopped,
    NodeChanged,
    NodeEvent,
    StallNoticed,
)
from agents_loop.loop.result import LoopResult
from agents_loop.metering.spending import tokens_of

_LONGEST = 240
_TOLD = frozenset({"retried", "skipped", "resumed", "failed", "cancelled"})
"""What of a node is worth a line beside the events of its own run."""


class Display(ABC):
    """Shows a run. What it is given may hold anything: it is shown as text, and can't move the cursor."""

    is_live = False
    """Whether it shows drafts while they are written."""

    @abstractmethod
    def notice(self, text: str) -> None:
        """Something that a person should know."""

    @abstractmethod
    def on_event(self, event: LoopEvent) -> None:
        """Something has happened."""

    def close(self) -> None:  # noqa: B027 - most have nothing to do
        """Leave the screen in order."""

    def ending(self, result: LoopResult) -> str:
        """How a run went, in one line."""
        total = result.ledger.total
        used = [counted(total.calls, "call")]
        tokens = tokens_of(total.usage)
        if tokens is not None:
            used.append(counted(tokens[0], "token"))
        if total.cost_usd:
            used.append(f"${total.cost_usd:.4f}")
        line = f"{result.stop_reason.value} after {_through(result)}"
        return f"{line} ({', '.join(used)})"


class QuietDisplay(Display):
    """Shows nothing."""

    def notice(self, text: str) -> None:
        """Nothing."""

    def on_event(self, event: LoopEvent) -> None:
        """Nothing."""


class PlainDisplay(Display):
    """A line for each fact."""

    def notice(self, text: str) -> None:
        """A line."""
        write_err(f"{one_line(text)}\n")

    def on_event(self, event: LoopEvent) -> None:
        """A line for a draft, for a word on it, and for the ending."""
        self._show(event, "")

    def _show(self, event: LoopEvent, whose: str) -> None:
        match event:
            case AgentResponded():
                self.notice(f"{whose}iteration {event.number}: {one_line(answer_text(event.response), _LONGEST)}")
            case EvaluatorDecided():
                said = _said(event.evaluation)
                word = word_of(event.evaluation) + (f": {said}" if said else "")
                self.notice(f"{whose}iteration {event.number}: {one_line(word, _LONGEST)}")
            case StallNoticed():
                self.notice(f"{whose}iteration {event.number}: {_stalled(event)}")
            case LoopStopped():
                self.notice(f"{whose}stopped: {self.ending(event.result)}")
            case NodeEvent():
                self._show(event.event, f"{event.node}: ")
            case NodeChanged() if event.status in _TOLD:
                self.notice(one_line(_changed(event), _LONGEST))
            case _:
                pass


class LiveDisplay(Display):
    """Each draft while it is written, each evaluator's word on it, and the ending."""

    is_live = True

    def __init__(self, screen: LiveScreen | None = None) -> None:
        self._screen = screen or LiveScreen()
        self._max_iterations = 0
        self._running: list[str] = []

    def notice(self, text: str) -> None:
        """A dim line."""
        self._screen.line(one_line(text), "dim")

    def on_event(self, event: LoopEvent) -> None:
        """Show it."""
        screen = self._screen
        match event:
            case LoopStarted():
                self._max_iterations = event.max_iterations
            case IterationStarted():
                most = max(self._max_iterations, event.number)  # a person's answer at the cap raises it
                screen.line(f"── iteration {event.number} of at most {most}", "bold cyan")
                screen.wait("writing")
            case AgentUpdated():
                screen.write(printable(event.update.text))
            case AgentResponded():
                screen.wait("evaluating")
            case EvaluatorDecided():
                self._show_word(event.evaluation)
            case StallNoticed():
                screen.line(_stalled(event), "yellow")
            case NodeEvent():
                self._show_node(event.node, event.event)
            case NodeChanged():
                self._show_change(event)
            case LoopStopped():
                style = "bold green" if event.result.stop_reason == "satisfied" else "bold yellow"
                screen.line(f"── {self.ending(event.result)}", style)

    def close(self) -> None:
        """Take the spinner away."""
        self._screen.close()

    def _show_node(self, node: str, event: LoopEvent) -> None:
        """Nodes run at once: each draft is shown when it is there, under its node's name."""
        screen, whose = self._screen, printable(node)
        match event:
            case AgentResponded():
                screen.line(f"── {whose}: iteration {event.number}", "bold cyan")
                screen.line(printable(answer_text(event.response)))
            case EvaluatorDecided():
                self._show_word(event.evaluation, f"{whose}: ")
            case LoopStopped():
                screen.line(f"── {whose}: {self.ending(event.result)}", "dim")
            case _:
                return
        self._wait_for_nodes()

    def _show_change(self, event: NodeChanged) -> None:
        if event.status == "started":
            self._running.append(printable(event.node))
        elif event.status != "retried" and printable(event.node) in self._running:
            self._running.remove(printable(event.node))
        if event.status in _TOLD:
            self._screen.line(f"── {one_line(_changed(event))}", "yellow")
        self._wait_for_nodes()

    def _wait_for_nodes(self) -> None:
        if self._running:
            self._screen.wait(one_line(", ".join(self._running), _LONGEST))

    def _show_word(self, evaluation: LoopEvaluation, whose: str = "") -> None:
        mark, style = ("✓", "green") if evaluation.decision == "stop" else ("✗", "yellow")
        self._screen.line(f"{mark} {whose}{word_of(evaluation)}", style)
        for line in printable(_said(evaluation)).splitlines():
            self._screen.line(f"  {line}")


def choose_display(*, quiet: bool) -> Display:
    """The display for where standard error goes."""
    if quiet:
        return QuietDisplay()
    return LiveDisplay() if is_live_terminal() else PlainDisplay()


def word_of(evaluation: LoopEvaluation) -> str:
    """Who said what, in short."""
    score = "" if evaluation.score is None else f" (score {evaluation.score:g})"
    return f"{evaluation.evaluator}: {evaluation.decision}{score}"


def _through(result: LoopResult) -> str:
    """What a run went through: of a graph the nodes whose turn came, else its iterations."""
    nodes = cast("dict[str, dict[str, Any]]", result.report.get("nodes") or {})
    if len(nodes) < 2:  # noqa: PLR2004 - a single node is a loop like another
        return counted(len(result.iterations), "iteration")
    return counted(sum(node["status"] != "waiting" for node in nodes.values()), "node")


def _changed(event: NodeChanged) -> str:
    return f"{event.node}: {event.status}" + (f": {redact(event.detail)}" if event.detail else "")


def _stalled(event: StallNoticed) -> str:
    return f"stalled ({event.signal}): {event.observation}; next: {event.step.replace('_', ' ')}"


def _said(evaluation: LoopEvaluation) -> str:
    parts = [evaluation.question, evaluation.reason, evaluation.note, evaluation.feedback]
    return "\n".join(part.strip() for part in parts if part and part.strip())
