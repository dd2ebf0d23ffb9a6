from __future__ import annotations

from typing import Any

import pytest
from fakes import RecordingAgent, Way

from agents_loop import (
    AgentModeProvider,
    AgentResponse,
    AgentSession,
    AIAgent,
    ChatClientAgent,
    ChatMessage,
    ContextProvider,
    FunctionCallContent,
    LoopAgent,
    LoopContext,
    LoopEvaluation,
    LoopResult,
    ServiceNotFoundError,
    StopReason,
    TodoCompletionLoopEvaluator,
    TodoCompletionLoopEvaluatorOptions,
    TodoProvider,
)
from agents_loop.testing import ScriptedChatClient


def agent_with(*providers: ContextProvider) -> AIAgent:
    return ChatClientAgent(ScriptedChatClient([]), context_providers=providers)


async def judged(session: AgentSession, *providers: ContextProvider, **options: Any) -> LoopEvaluation:
    context = LoopContext(agent_with(*providers), session, "do it", AgentResponse("an answer"))
    return await TodoCompletionLoopEvaluator(TodoCompletionLoopEvaluatorOptions(**options)).evaluate(context)


@pytest.mark.parametrize(
    ("modes", "error"),
    [
        ([], ValueError),
        ([""], ValueError),
        (["execute", " \n"], ValueError),
        ("execute", TypeError),
        ([None], TypeError),
        ([1], TypeError),
    ],
)
def test_modes_are_checked(modes: Any, error: type[Exception]):
    """Todos: an empty list of modes and a blank mode are a ValueError, what is no mode a TypeError; both name them."""
    with pytest.raises(error, match="modes"):
        TodoCompletionLoopEvaluatorOptions(modes=modes)


def test_the_placeholder():
    """Todos: the placeholder is the ancestor's, and the default template has it."""
    assert TodoCompletionLoopEvaluator.REMAINING_TODOS_PLACEHOLDER == "{remaining_todos}"
    assert "{remaining_todos}" in TodoCompletionLoopEvaluator.DEFAULT_FEEDBACK_MESSAGE_TEMPLATE


async def test_what_remains_is_fed_back():
    """Todos: a line for each that remains, `- <id>: <title>`, and ` — <description>` where there is one."""
    session, todos = AgentSession(), TodoProvider()
    todos.add(session, "plan")
    todos.add(session, "build", "with {remaining_todos} and\ntwo lines")
    todos.add(session, "ship", " ")
    todos.complete(session, [1])
    word = await judged(session, todos, feedback_message_template="{remaining_todos}|{remaining_todos}")
    lines = "- 2: build — with {remaining_todos} and\ntwo lines\n- 3: ship"
    assert (word.decision, word.feedback) == ("continue", f"{lines}|{lines}")
    default = TodoCompletionLoopEvaluator.DEFAULT_FEEDBACK_MESSAGE_TEMPLATE
    assert (await judged(session, todos)).feedback == default.replace("{remaining_todos}", lines, 1)


async def test_nothing_remains():
    """Todos: with all of them complete, or with none at all, there is no more to ask for."""
    session, todos = AgentSession(), TodoProvider()
    assert await judged(session, todos) == LoopEvaluation.stop()
    assert session.state == {}
    todos.add(session, "plan")
    todos.complete(session, [1])
    assert await judged(session, todos) == LoopEvaluation.stop()


async def test_modes_match_exactly():
    """Todos: in another mode than those that are named the answer is stop, whatever remains."""
    session, todos = AgentSession(), TodoProvider()
    modes = AgentModeProvider({"plan": "think", "Execute": "shout", "execute": "work"})
    todos.add(session, "build")
    said = {}
    for mode in modes.modes:
        modes.set_mode(session, mode)
        said[mode] = (await judged(session, todos, modes, modes=["execute", "other"])).decision
    assert said == {"plan": "stop", "Execute": "stop", "execute": "continue"}
    todos.complete(session, [1])
    assert (await judged(session, todos, modes, modes=["execute"])).decision == "stop"


async def test_without_modes_no_mode_provider_is_needed():
    """Todos: without `modes` the list counts in every mode."""
    session, todos, modes = AgentSession(), TodoProvider(), AgentModeProvider()
    todos.add(session, "build")
    for mode in modes.modes:
        modes.set_mode(session, mode)
        assert (await judged(session, todos, modes)).decision == "continue"


@pytest.mark.parametrize(
    ("providers", "modes", "missing"),
    [
        ([], None, "TodoProvider"),
        ([AgentModeProvider()], ["execute"], "TodoProvider"),
        ([TodoProvider()], ["execute"], "AgentModeProvider"),
    ],
)
async def test_a_provider_is_missing(providers: list[ContextProvider], modes: Any, missing: str):
    """Errors: an evaluator whose provider the agent does not offer names itself and the provider."""
    with pytest.raises(ServiceNotFoundError, match=rf"^TodoCompletionLoopEvaluator .*\b{missing}\b"):
        await judged(AgentSession(), *providers, modes=modes)


async def test_a_missing_provider_ends_the_run(agent: RecordingAgent, invoke: Way):
    """Law 18: what an evaluator raises reaches the caller, with the result so far."""
    with pytest.raises(ServiceNotFoundError) as caught:
        await invoke(LoopAgent(agent, TodoCompletionLoopEvaluator()))
    assert LoopResult.of(caught.value).stop_reason == StopReason.EVALUATOR_FAILED


def calls(name: str, **arguments: Any) -> ChatMessage:
    return ChatMessage("assistant", [FunctionCallContent(f"call-{name}", name, arguments)])


async def test_a_loop_until_all_is_done(invoke: Way):
    """Todos: the agent is run again, with what remains, until its list is done; the list stands in the session."""
    client = ScriptedChatClient(
        [
            calls("todo_add", items=[{"title": "plan"}, {"title": "build"}]),
            "I have a plan.",
            calls("todo_complete", ids=[1]),
            "Planned.",
            calls("todo_complete", ids=[2]),
            "Built.",
        ]
    )
    todos = TodoProvider()
    options = TodoCompletionLoopEvaluatorOptions(feedback_message_template="Left:\n{remaining_todos}")
    loop = LoopAgent(ChatClientAgent(client, context_providers=[todos]), TodoCompletionLoopEvaluator(options))
    result = LoopResult.of(await invoke(loop, "Make it."))
    assert (result.stop_reason, result.output, len(result.iterations)) == (StopReason.SATISFIED, "Built.", 3)
    assert [each.evaluations[0].feedback for each in result.iterations] == [
        "Left:\n- 1: plan\n- 2: build",
        "Left:\n- 2: build",
        None,
    ]
    assert [item.is_complete for item in todos.get_items(result.session)] == [True, True]
