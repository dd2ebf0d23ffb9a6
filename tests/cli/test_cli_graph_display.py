from __future__ import annotations

import asyncio
import io
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "files"))

from graphs import NO, TRIP, YES, DownError, run, travellers

from agents_loop.cli.display import LiveDisplay
from agents_loop.cli.live import LiveScreen, ScreenConsole
from agents_loop.loop.events import NodeChanged


def shown(*words: str) -> list[str]:
    """What a live display shows of a trip."""
    screen = io.StringIO()
    display = LiveDisplay(LiveScreen(ScreenConsole(file=screen, highlight=False)))
    _, events = asyncio.run(run(travellers(*words).build(TRIP, {"town": "Ghent"}), streaming=True))
    for event in events:
        display.on_event(event)
    display.close()
    return [line.strip() for line in screen.getvalue().splitlines() if line.strip()]


def test_a_terminal_shows_each_draft_under_its_node():
    """Nodes run at once, so a draft is shown as a whole, under its node's id, and once."""
    lines = shown(NO, YES)

    assert lines[lines.index("── plan: iteration 1") :][:9] == [
        "── plan: iteration 1",
        "plan 1",
        "✗ plan: PromptedEvaluator: continue",
        "shorter",
        "── plan: iteration 2",
        "plan 2",
        "✓ plan: PromptedEvaluator: stop",
        "fine",
        "── plan: satisfied after 2 iterations (4 calls)",
    ]
    assert "── extra: skipped: `when` is not true: appendix and days > 1" in lines
    assert lines[-1] == "── satisfied after 5 nodes (7 calls)"
    assert lines.count("Dear all") == 1


def test_a_node_can_not_move_the_cursor():
    """An id and a model's error are shown as text."""
    screen = io.StringIO()
    display = LiveDisplay(LiveScreen(ScreenConsole(file=screen, highlight=False)))

    display.on_event(NodeChanged("a\x1b[2J", "started"))
    display.on_event(NodeChanged("a\x1b[2J", "failed", f"{DownError('x')}\x1b]0;title\x07\nmore"))
    display.close()

    assert "\x1b[2J" not in screen.getvalue()
    assert "── a: failed: x more" in screen.getvalue()
