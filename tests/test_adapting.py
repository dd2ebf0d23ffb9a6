"""Which adapter wraps a foreign object, and what is said of what is none."""

import importlib.metadata
import subprocess
import sys
from types import ModuleType

import pytest
from fakes import RecordingAgent, says

from agents_loop import (
    AgentResponse,
    AIAgent,
    AIJudgeLoopEvaluator,
    ChatClientAgent,
    ConfigurationError,
    LoopAgent,
    adapting,
)
from agents_loop.adapting import as_agent, as_chat_client
from agents_loop.testing import ScriptedChatClient


def of_module(name, **members):
    """An object whose class says that it is of a module."""
    return type("Thing", (), {"__module__": name, **members})()


@pytest.fixture
def acme(monkeypatch):
    """An installed package that brings an adapter for objects of `acme`."""

    class AcmeAgent(AIAgent):
        def __init__(self, x):
            self.x = x

        async def run_core(self, messages, *, session, options):
            return AgentResponse(f"acme says {self.x.word}")

    adapter = ModuleType("acme_for_agents_loop")
    adapter.adapt_agent = lambda x: AcmeAgent(x) if hasattr(x, "word") else None
    adapter.adapt_chat_client = lambda x: ScriptedChatClient(["from acme"]) if hasattr(x, "model") else None
    monkeypatch.setitem(sys.modules, "acme_for_agents_loop", adapter)
    entry = importlib.metadata.EntryPoint("acme.", "acme_for_agents_loop", adapting.ENTRY_POINT_GROUP)
    found = importlib.metadata.EntryPoints([entry])
    monkeypatch.setattr(importlib.metadata, "entry_points", found.select)
    adapting._of_others.cache_clear()
    yield
    adapting._of_others.cache_clear()


def test_what_is_one_is_returned():
    """Design: an `AIAgent` and a `ChatClient` are returned as they are."""
    agent, client = RecordingAgent(), ScriptedChatClient([])
    assert as_agent(agent) is agent
    assert as_chat_client(client) is client


def test_an_agent_of_ours_loads_no_adapter():
    """Design: nothing is imported to find out; not even the list of installed packages is read."""
    code = """
import sys
from agents_loop import AIAgent, LoopAgent, DelegateLoopEvaluator
class Mine(AIAgent):
    async def run_core(self, messages, *, session, options): ...
LoopAgent(Mine(), DelegateLoopEvaluator(lambda c: False))
print([name for name in sys.modules if name.startswith("agents_loop.integrations") or name == "agents"])
"""
    assert subprocess.check_output([sys.executable, "-I", "-c", code], text=True).strip() == "[]"


@pytest.mark.parametrize("adapt", [as_agent, as_chat_client])
def test_none_is_an_error_that_names_the_parameter(adapt):
    """Design: `None` is a `TypeError` that names the parameter."""
    with pytest.raises(TypeError, match="the_thing must not be None"):
        adapt(None, name="the_thing")


def test_the_loop_and_the_judge_name_their_parameters():
    """Design: `None` for an agent or a client is a `TypeError` that names the parameter."""
    with pytest.raises(TypeError, match="inner_agent"):
        LoopAgent(None, says())
    with pytest.raises(TypeError, match="judge_client"):
        AIJudgeLoopEvaluator(None)


@pytest.mark.parametrize("adapt", [as_agent, as_chat_client])
def test_a_class_is_an_error(adapt):
    """Design: a class in place of an object is told from it, also where classes are callable."""
    with pytest.raises(TypeError, match="not the class RecordingAgent: create one"):
        adapt(RecordingAgent)


@pytest.mark.parametrize("adapt", [as_agent, as_chat_client])
@pytest.mark.parametrize("unknown", ["text", 3, object(), {"a": 1}], ids=["text", "number", "object", "dict"])
def test_the_error_lists_what_is_known(adapt, unknown):
    """Design: what is not known gets an error that says what it is, and lists what is known."""
    with pytest.raises(TypeError, match=r"builtins\.") as raised:
        adapt(unknown)
    for known in ("Semantic Kernel", "Agent Framework", "OpenAI Agents SDK", "Pydantic AI", "LangGraph"):
        assert known in str(raised.value)


@pytest.mark.parametrize(
    "module", ["agents.mine", "agent_framework", "pydantic_ai.agent", "langgraph.pregel", "agentsmith"]
)
def test_a_module_that_looks_like_a_frameworks_is_not_believed(module):
    """Design: an object of a package that shares a framework's name is no agent of that framework."""
    with pytest.raises(TypeError, match=module):
        as_agent(of_module(module))
    called = as_agent(of_module(module, __call__=lambda self, messages: "hi"))
    assert called.run_sync("x").text == "hi"


def test_a_chat_client_is_no_agent():
    """Design: the error says how a chat client becomes an agent."""
    with pytest.raises(TypeError, match=r"ChatClientAgent\(client\)"):
        as_agent(ScriptedChatClient([]))


def test_an_agent_is_no_chat_client():
    """Law 21: a judge is called directly; an agent in its place is an error, and so is a function."""
    for other in (ChatClientAgent(ScriptedChatClient([])), lambda messages: "hi"):
        with pytest.raises(TypeError, match="judge_client must be a chat client"):
            AIJudgeLoopEvaluator(other)


def test_an_sdk_client_names_no_model():
    """Design: an `openai.AsyncOpenAI` names no model; the error says which client takes it."""
    openai = pytest.importorskip("openai")
    client = openai.AsyncOpenAI(api_key="k")
    with pytest.raises(TypeError, match=r"names no model. Use OpenAIChatClient\(model, openai_client="):
        as_chat_client(client, name="judge_client")


def test_others_bring_adapters(acme):
    """Design: an entry point of the group `agents_loop.adapters` adapts objects of its module prefix."""
    assert as_agent(of_module("acme.core", word="hello")).run_sync("x").text == "acme says hello"
    assert isinstance(as_chat_client(of_module("acme", model="m")), ScriptedChatClient)
    for no_acme in (of_module("acmes", word="hello"), of_module("acme")):
        with pytest.raises(TypeError, match="acme"):
            as_agent(no_acme)


def test_a_derived_class_is_known_by_its_bases(acme):
    """Design: a user's class, in the user's module, that derives from a framework's agent is adapted."""
    base = type("Base", (), {"__module__": "acme.core", "word": "hello"})
    derived = type("Derived", (base,), {"__module__": "users_own"})
    assert as_agent(derived()).run_sync("x").text == "acme says hello"


async def test_a_loop_takes_a_function(invoke):
    """Design: `LoopAgent(x, y)` takes whatever `as_agent` takes."""
    heard = []

    async def agent(messages):
        heard.append([message.text for message in messages])
        return f"draft {len(heard)}"

    response = await invoke(LoopAgent(agent, says("More.")), "Go.")
    assert response.text.splitlines() == ["draft 1", "More.", "draft 2"]
    assert heard == [["Go."], ["Go.", "draft 1", "More."]]


def test_a_function_is_no_evaluator():
    """Design: a plain callable as an evaluator is not adapted."""
    with pytest.raises((TypeError, ConfigurationError)):
        LoopAgent(RecordingAgent(), lambda context: False)
