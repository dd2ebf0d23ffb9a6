from __future__ import annotations

from typing import Any

import pytest
from fakes import RecordingAgent, Way

from agents_loop import (
    AgentResponse,
    AgentSession,
    ChatMessage,
    CompletionMarkerLoopEvaluator,
    CompletionMarkerLoopEvaluatorOptions,
    FunctionCallContent,
    FunctionResultContent,
    LoopAgent,
    LoopContext,
    LoopEvaluation,
    LoopResult,
    StopReason,
    TextReasoningContent,
)


async def judged(response: Any, marker: str = "<done/>", template: str | None = None) -> LoopEvaluation:
    options = CompletionMarkerLoopEvaluatorOptions(feedback_message_template=template)
    context = LoopContext(RecordingAgent(), AgentSession(), "say <done/> when done", AgentResponse(response))
    return await CompletionMarkerLoopEvaluator(marker, options).evaluate(context)


@pytest.mark.parametrize(
    ("marker", "error"), [(None, TypeError), (7, TypeError), ("", ValueError), (" ", ValueError), ("\n\t", ValueError)]
)
def test_it_needs_a_marker(marker: Any, error: type[Exception]):
    """None is a TypeError and a blank marker a ValueError; both name the parameter."""
    with pytest.raises(error, match="completion_marker"):
        CompletionMarkerLoopEvaluator(marker)


def test_the_placeholders():
    """The placeholders are the ancestor's, and the default template tells the agent the marker."""
    assert CompletionMarkerLoopEvaluator.COMPLETION_MARKER_PLACEHOLDER == "{completion_marker}"
    assert CompletionMarkerLoopEvaluator.LAST_RESPONSE_PLACEHOLDER == "{last_response}"
    assert "{completion_marker}" in CompletionMarkerLoopEvaluator.DEFAULT_FEEDBACK_MESSAGE_TEMPLATE


CALL = FunctionCallContent("c", "f", {"text": "<done/>"})


@pytest.mark.parametrize(
    ("response", "is_done"),
    [
        ("all <done/> now", True),
        ("<done/>", True),
        ("done", False),
        ("<DONE/>", False),
        ("< done/>", False),
        ("", False),
        ([ChatMessage("assistant", ["<do", "ne/>"])], True),
        ([ChatMessage("assistant", ["<done/>", CALL])], True),
        ([ChatMessage("assistant", "<done/>"), ChatMessage("tool", [FunctionResultContent("c", 1)])], True),
        ([ChatMessage("assistant", "<do"), ChatMessage("assistant", "ne/>")], False),
        ([ChatMessage("assistant", [CALL])], False),
        ([ChatMessage("assistant", [TextReasoningContent("<done/>")])], False),
        ([ChatMessage("tool", "<done/>"), ChatMessage("assistant", "more")], False),
        ([ChatMessage("user", "<done/>"), ChatMessage("assistant", "more")], False),
        ([ChatMessage("system", "<done/>")], False),
        ([], False),
    ],
)
async def test_what_is_done(response: Any, is_done: bool):
    """The agent's own text is searched, case-sensitively: no tool's, no user's, no reasoning (E5, E6)."""
    assert (await judged(response)).decision == ("stop" if is_done else "continue")


async def test_the_default_feedback():
    """The default feedback holds the marker, and nothing of the reply."""
    evaluation = await judged("only a draft")
    assert "<done/>" in evaluation.feedback
    assert "only a draft" not in evaluation.feedback


async def test_a_template():
    """Both placeholders are filled wherever they stand, in one pass."""
    template = "{last_response}|{completion_marker}|{last_response}|{other}"
    evaluation = await judged("a {completion_marker}", "{last_response}!", template)
    assert evaluation.feedback == "a {completion_marker}|{last_response}!|a {completion_marker}|{other}"


async def test_a_blank_template():
    """A template that comes out blank is no feedback."""
    assert (await judged("x", template="")).feedback is None
    assert (await judged("", template="{last_response}")).feedback is None


async def test_only_the_new_reply_counts(invoke: Way):
    """A marker in the request, in the feedback or in an older reply's history is not the agent's new word (E5)."""
    agent = RecordingAgent("a draft", "another", "<done/>")
    response = await invoke(LoopAgent(agent, CompletionMarkerLoopEvaluator("<done/>")), "say <done/> when done")
    assert LoopResult.of(response).stop_reason is StopReason.SATISFIED
    assert len(agent.calls) == 3
