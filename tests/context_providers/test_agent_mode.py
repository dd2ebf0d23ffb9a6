from __future__ import annotations

from typing import Any

import pytest
from fakes import Way

from agents_loop import (
    AgentModeProvider,
    AgentSession,
    ChatClientAgent,
    ChatMessage,
    FunctionCallContent,
    SessionStateError,
)
from agents_loop.testing import ScriptedChatClient

MODES = {"draft": "write freely", "final": "mind every word"}


@pytest.mark.parametrize(
    ("modes", "default", "message"),
    [
        ({}, None, "modes must not be empty"),
        ({"a": "x", " ": "y"}, None, "blank"),
        (MODES, "Draft", "no mode 'Draft'; there are: 'draft', 'final'"),
        (MODES, "", "no mode ''"),
    ],
)
def test_modes_are_checked(modes: Any, default: str | None, message: str):
    """Errors: no mode, a blank one, and a default that is none of them are wrong use."""
    with pytest.raises(ValueError, match=message):
        AgentModeProvider(modes, default_mode=default)


def test_the_default():
    """Modes: a session that has none is in the default mode, the first unless another is named; looking writes nothing."""
    session = AgentSession()
    assert AgentModeProvider().get_mode(session) == "plan"
    assert list(AgentModeProvider().modes) == ["plan", "execute"]
    assert AgentModeProvider(MODES).get_mode(session) == "draft"
    assert AgentModeProvider(MODES, default_mode="final").get_mode(session) == "final"
    assert session.state == {}


async def test_the_mode_is_the_sessions():
    """Providers: one provider serves any number of sessions, and the mode goes with the session that is stored."""
    provider, agent = AgentModeProvider(MODES), ChatClientAgent(ScriptedChatClient([]))
    session, other = AgentSession(), AgentSession()
    provider.set_mode(session, "final")
    restored = await agent.deserialize_session(await agent.serialize_session(session))
    assert AgentModeProvider(MODES).get_mode(restored) == "final"
    assert provider.get_mode(other) == "draft"
    provider.set_mode(restored, "draft")
    assert provider.get_mode(session) == "final"


@pytest.mark.parametrize("mode", ["Final", "final ", "", "other"])
def test_an_unknown_mode(mode: str):
    """Modes: they match exactly; the error says which there are, and the mode stays."""
    provider, session = AgentModeProvider(MODES), AgentSession()
    with pytest.raises(ValueError, match=f"no mode '{mode}'; there are: 'draft', 'final'"):
        provider.set_mode(session, mode)
    assert provider.get_mode(session) == "draft"


@pytest.mark.parametrize("stored", [{"mode": "gone"}, {"mode": 7}, "final"])
def test_a_stored_mode_that_there_is_not(stored: Any):
    """Providers: a stored mode that is none of these is an error, not the default; `set_mode` mends it."""
    provider, session = AgentModeProvider(MODES), AgentSession(state={"AgentModeProvider": stored})
    with pytest.raises(SessionStateError):
        provider.get_mode(session)
    provider.set_mode(session, "final")
    assert provider.get_mode(session) == "final"


def calls(name: str, **arguments: Any) -> ChatMessage:
    return ChatMessage("assistant", [FunctionCallContent("c", name, arguments)])


async def test_what_the_model_is_told(invoke: Way):
    """Modes: each run says which there are and which holds; the model asks and changes it; its schema lists them."""
    client = ScriptedChatClient([calls("mode_get"), calls("mode_set", mode="final"), "Changed.", "Still."])
    provider, session = AgentModeProvider(MODES), AgentSession()
    agent = ChatClientAgent(client, context_providers=[provider])
    await invoke(agent, "Go.", session=session)
    system = client.calls[0].messages[0].text
    assert "- draft: write freely\n- final: mind every word" in system
    assert "The current mode is draft." in system
    offered = {tool.name: tool for tool in client.calls[0].options.tools}
    assert offered["mode_set"].parameters["properties"]["mode"]["enum"] == ["draft", "final"]
    results = [call.messages[-1].contents[0].result for call in client.calls[1:3]]
    assert results == [
        {"mode": "draft", "description": "write freely"},
        {"mode": "final", "description": "mind every word"},
    ]
    await invoke(agent, "And now?", session=session)
    assert "The current mode is final." in client.calls[3].messages[0].text


async def test_a_model_that_names_an_unknown_mode(invoke: Way):
    """Modes: the model is told which there are, and the mode stays."""
    client = ScriptedChatClient([calls("mode_set", mode="FINAL"), "Oh."])
    provider, session = AgentModeProvider(MODES), AgentSession()
    await invoke(ChatClientAgent(client, context_providers=[provider]), "Go.", session=session)
    result = client.calls[1].messages[-1].contents[0].result
    assert result == {"error": "there is no mode 'FINAL'; there are: 'draft', 'final'"}
    assert provider.get_mode(session) == "draft"


async def test_a_mode_that_the_model_may_not_change(invoke: Way):
    """Modes: without `model_may_change` the mode is the caller's alone."""
    client = ScriptedChatClient(["Hm."])
    agent = ChatClientAgent(client, context_providers=[AgentModeProvider(MODES, model_may_change=False)])
    await invoke(agent, "Go.")
    assert [tool.name for tool in client.calls[0].options.tools] == ["mode_get"]
