from __future__ import annotations

from typing import Any

import pytest
from fakes import RecordingAgent, Way

from agents_loop import (
    AgentSession,
    ChatClientAgent,
    ChatMessage,
    FunctionCallContent,
    SessionStateError,
    TodoItem,
    TodoProvider,
    ToolContext,
)
from agents_loop.context_providers.provider import ProviderContext
from agents_loop.testing import ScriptedChatClient


async def said(provider: TodoProvider, session: AgentSession, name: str, **arguments: Any) -> Any:
    """What a tool of the provider answers a model."""
    provided = await provider.provide(ProviderContext(agent=RecordingAgent(), session=session, messages=()))
    tool = next(tool for tool in provided.tools if tool.name == name)
    call = FunctionCallContent("c", name, arguments)
    return (await tool.run(call, ToolContext(agent=RecordingAgent(), session=session, call=call))).result


def test_ids_are_never_used_again():
    """Todos: ids count from 1, and a removed one does not come back."""
    todos, session = TodoProvider(), AgentSession()
    first, second = todos.add(session, " plan ", "what\nand how"), todos.add(session, "build", " ")
    assert (first, second) == (TodoItem(1, "plan", "what\nand how"), TodoItem(2, "build"))
    assert todos.remove(session, [2, 7]) == (second,)
    assert todos.add(session, "ship").id == 3
    assert [item.id for item in todos.get_items(session)] == [1, 3]


def test_completing():
    """Todos: a complete one is on the list and does not remain; ids that there are not are left out."""
    todos, session = TodoProvider(), AgentSession()
    for title in ("a", "b", "c"):
        todos.add(session, title)
    assert todos.complete(session, [3, 1, 9]) == (TodoItem(1, "a", None, True), TodoItem(3, "c", None, True))
    assert [item.title for item in todos.get_remaining(session)] == ["b"]
    assert len(todos.get_items(session)) == 3


def test_a_blank_title():
    """Todos: a todo says what is to be done."""
    with pytest.raises(ValueError, match="title"):
        TodoProvider().add(AgentSession(), " \n")


def test_looking_changes_nothing():
    """Providers: a session that nobody wrote to stays as it is."""
    session = AgentSession()
    assert TodoProvider().get_items(session) == TodoProvider().get_remaining(session) == ()
    assert session.state == {}


async def test_the_list_is_the_sessions():
    """Providers: one provider serves any number of sessions, and the state goes with the session that is stored."""
    todos, agent = TodoProvider(), RecordingAgent()
    session, other = AgentSession(), AgentSession()
    todos.add(session, "plan", "well")
    todos.add(session, "build")
    todos.complete(session, [1])
    restored = await agent.deserialize_session(await agent.serialize_session(session))
    assert TodoProvider().get_items(restored) == todos.get_items(session)
    assert todos.get_items(other) == ()
    assert TodoProvider().add(restored, "ship").id == 3
    assert len(todos.get_items(session)) == 2


@pytest.mark.parametrize("stored", [7, [], {"items": [{"id": "x", "title": "t"}]}, {"items": None}])
def test_a_state_that_is_something_else(stored: Any):
    """Providers: what can't be read is an error that names the place, not an empty list."""
    with pytest.raises(SessionStateError, match="TodoProvider"):
        TodoProvider().get_remaining(AgentSession(state={"TodoProvider": stored}))


async def test_what_the_tools_say():
    """Todos: a model reads ids, what was done, what there is not, and what remains."""
    todos, session = TodoProvider(), AgentSession()
    added = await said(todos, session, "todo_add", items=[{"title": "a"}, {"title": " b ", "description": "more"}])
    assert added == [
        {"id": 1, "title": "a", "description": None, "is_complete": False},
        {"id": 2, "title": "b", "description": "more", "is_complete": False},
    ]
    assert await said(todos, session, "todo_complete", ids=[1]) == {"completed": [1], "remaining": [2]}
    assert await said(todos, session, "todo_list") == added[1:]
    assert [item["id"] for item in await said(todos, session, "todo_list", include="all")] == [1, 2]
    assert await said(todos, session, "todo_remove", ids=[2, 8]) == {
        "removed": [2],
        "remaining": [],
        "there_is_no": [8],
    }


@pytest.mark.parametrize("items", [[], [{"title": " "}], [{"description": "d"}]])
async def test_wrong_items(items: Any):
    """Todos: a model that adds nothing, or something without a title, is told so, and nothing is added."""
    session = AgentSession()
    assert "todo_add" in await said(TodoProvider(), session, "todo_add", items=items)
    assert session.state == {}


@pytest.mark.parametrize("instructions", [None, "Mind the list."])
async def test_what_the_model_is_told(instructions: str | None, invoke: Way):
    """Providers: the instructions join the agent's own, and the tools are offered; the model's calls change the list."""
    calls = [FunctionCallContent(f"c{n}", "todo_add", {"items": [{"title": f"step {n}"}]}) for n in (1, 2)]
    client = ScriptedChatClient([ChatMessage("assistant", calls), "Noted."])
    todos, session = TodoProvider(instructions=instructions), AgentSession()
    agent = ChatClientAgent(client, instructions="Be brief.", context_providers=[todos])
    await invoke(agent, "Go.", session=session)
    told = TodoProvider.DEFAULT_INSTRUCTIONS if instructions is None else instructions
    assert client.calls[0].messages[0] == ChatMessage("system", f"Be brief.\n\n{told}")
    assert [tool.name for tool in client.calls[0].options.tools] == [
        "todo_add",
        "todo_list",
        "todo_complete",
        "todo_remove",
    ]
    assert [(item.id, item.title) for item in todos.get_items(session)] == [(1, "step 1"), (2, "step 2")]
    assert agent.get_service(TodoProvider) is todos
