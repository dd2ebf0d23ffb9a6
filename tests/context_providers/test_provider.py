from __future__ import annotations

from typing import Any

import pytest
from fakes import Way, leaving_nothing, says, texts

from agents_loop import (
    AgentSession,
    AIAgent,
    ChatClient,
    ChatClientAgent,
    ChatMessage,
    ChatResponse,
    ConfigurationError,
    ContextProvider,
    FinishedRun,
    FunctionCallContent,
    LoopAgent,
    ProvidedContext,
    ProviderContext,
    ToolContext,
)
from agents_loop.testing import ScriptedChatClient


class Provider(ContextProvider):
    """Provides what it is given, and records what it hears."""

    def __init__(self, provided: ProvidedContext | BaseException | None = None, fails: Exception | None = None) -> None:
        self.provided, self.fails = provided, fails
        self.asked: list[ProviderContext] = []
        self.heard: list[FinishedRun] = []

    async def provide(self, context: ProviderContext) -> ProvidedContext | None:
        self.asked.append(context)
        if isinstance(self.provided, BaseException):
            raise self.provided
        return self.provided

    async def finished(self, run: FinishedRun) -> None:
        self.heard.append(run)
        if self.fails is not None:
            raise self.fails


class Counter(ContextProvider):
    """Counts in the session, with a tool."""

    async def provide(self, context: ProviderContext) -> ProvidedContext:
        return ProvidedContext(tools=[self.count])

    def count(self, context: ToolContext) -> int:
        """Count on."""
        state = self.state(context.session)
        state["n"] = state.get("n", 0) + 1
        return state["n"]


def agent_of(
    replies: list[Any], *providers: ContextProvider, **given: Any
) -> tuple[ChatClientAgent, ScriptedChatClient]:
    client = ScriptedChatClient(replies)
    return ChatClientAgent(client, context_providers=providers, **given), client


async def test_what_a_run_gets(invoke: Way):
    """Providers: instructions follow the agent's, messages stand before the input, in order; the history has neither."""
    first = Provider(ProvidedContext(instructions="one", messages="note 1"))
    second = Provider(ProvidedContext(instructions="two", messages=[ChatMessage("assistant", "note 2")]))
    agent, client = agent_of(["a", "b"], first, Provider(), second, instructions="zero")
    session = AgentSession()
    await invoke(agent, "go", session=session)
    await invoke(agent, "on", session=session)
    system, notes = ("system", "zero\n\none\n\ntwo"), [("user", "note 1"), ("assistant", "note 2")]
    assert texts(client.calls[0].messages) == [system, *notes, ("user", "go")]
    history = [("user", "go"), ("assistant", "a")]
    assert texts(client.calls[1].messages) == [system, *history, *notes, ("user", "on")]
    assert texts(session.messages) == [*history, ("user", "on"), ("assistant", "b")]
    assert agent.instructions == "zero"


async def test_a_provider_that_adds_nothing(invoke: Way):
    """Providers: `None` changes nothing of what is sent."""
    agent, client = agent_of(["a"], Provider())
    await invoke(agent, "go")
    assert texts(client.calls[0].messages) == [("user", "go")]
    assert client.calls[0].options is None


async def test_what_a_provider_is_told(invoke: Way):
    """Providers: it is asked once a run, and hears how the run ended; without a session the run has one of its own."""
    provider, session = Provider(), AgentSession()
    agent, _ = agent_of(["a", "b"], provider)
    response = await invoke(agent, ["x", "y"], session=session)
    await invoke(agent, "z")
    asked, heard = provider.asked[0], provider.heard[0]
    assert (asked.agent, asked.session, texts(asked.messages)) == (agent, session, [("user", "x"), ("user", "y")])
    assert (heard.agent, heard.session, heard.messages) == (agent, session, asked.messages)
    assert (heard.response.messages, heard.error) == (response.messages, None)
    assert isinstance(provider.asked[1].session, AgentSession)
    assert provider.asked[1].session is not session
    assert len(provider.asked) == len(provider.heard) == 2


@pytest.mark.parametrize("error", [OSError("down"), KeyboardInterrupt()])
async def test_hearing_of_a_failure(invoke: Way, error: BaseException):
    """Providers: all hear of a run that failed, whatever one of them raises; the caller gets what ended the run."""
    first, second = Provider(fails=KeyError("first")), Provider()
    agent, _ = agent_of([error], first, second)
    with pytest.raises(type(error)):
        await invoke(agent, "go")
    assert [(run.response, run.error) for run in first.heard + second.heard] == [(None, error)] * 2


async def test_a_provider_that_fails_to_hear(invoke: Way):
    """Providers: what `finished` raises reaches the caller of a run that had ended well, after the others were told."""
    first, second = Provider(fails=KeyError("first")), Provider(fails=KeyError("second"))
    agent, _ = agent_of(["a"], first, second)
    with pytest.raises(KeyError, match="first"):
        await invoke(agent, "go")
    assert len(second.heard) == 1


async def test_a_provider_that_fails(invoke: Way):
    """Providers: what `provide` raises fails the run before the model is called; those that were asked hear of it."""
    first, last = Provider(), Provider()
    error = LookupError("no such thing")
    agent, client = agent_of([], first, Provider(error), last)
    with pytest.raises(LookupError):
        await invoke(agent, "go")
    assert (client.calls, last.asked, last.heard) == ([], [], [])
    assert first.heard[0].error is error


async def test_a_stream_that_is_closed():
    """Providers: a stream that is closed early is heard of too, and nothing is left open."""
    provider = Provider()
    agent, _ = agent_of([ChatResponse([ChatMessage("assistant", "a"), ChatMessage("assistant", "b")])], provider)
    async with leaving_nothing():
        async with agent.run_streaming("go") as stream:
            await anext(stream)
            assert provider.heard == []
        assert isinstance(provider.heard[0].error, GeneratorExit)


async def test_tools_and_state(invoke: Way):
    """Providers: their tools are run, their state stands in the session under their key and is stored with it."""
    ask = ChatResponse([ChatMessage("assistant", [FunctionCallContent("c", "count", {})])])
    agent, client = agent_of([ask, "1", ask, "2"], Counter())
    session = AgentSession()
    await invoke(agent, "go", session=session)
    session = await agent.deserialize_session(await agent.serialize_session(session))
    await invoke(agent, "go", session=session)
    assert session.state == {"Counter": {"n": 2}}
    assert client.calls[3].messages[-1].contents[0].result == 2
    with pytest.raises(ConfigurationError, match="'count'"):
        await invoke(agent_of([], Counter(), Counter())[0], "go")


def test_services():
    """Providers: the agent, and a loop around it, offer their providers by type, after the agent and its client."""
    counter, other = Counter(), Provider()
    agent, client = agent_of([], other, counter)
    loop = LoopAgent(agent, says())
    assert agent.get_service(Counter) is loop.get_service(Counter) is counter
    assert agent.get_service(ContextProvider) is other
    assert agent.get_service(AIAgent) is agent
    assert agent.get_service(ChatClient) is client
    assert agent.get_service(LoopAgent) is agent.get_service(Counter, "key") is None
    assert agent.context_providers == (other, counter)
