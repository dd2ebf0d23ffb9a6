"""LangGraph: what the contract suite does not ask. Real graphs, with nodes that answer by themselves."""

import sys

import pytest
from fakes import says, texts

from agents_loop import (
    AgentResponse,
    AgentRunOptions,
    AgentSession,
    ChatMessage,
    ChatOptions,
    ConfigurationError,
    DataContent,
    FunctionCallContent,
    FunctionResultContent,
    LoopAgent,
    LoopResult,
    MissingExtraError,
    StopReason,
    TextContent,
    TextReasoningContent,
    ToolApprovalRequestContent,
    ToolApprovalResponseContent,
    UriContent,
    UsageDetails,
)
from agents_loop.adapting import as_agent

pytest.importorskip("langgraph.graph")

from langchain_core.language_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.types import Send, interrupt
from typing_extensions import TypedDict

from agents_loop.integrations.langgraph import LangGraphAgent, adapt_agent
from agents_loop.integrations.langgraph.contents import contents_of, from_state, to_state
from agents_loop.integrations.langgraph.interrupts import requests_of


def graph_of(*nodes, checkpointer=None, name=None):
    """A compiled graph of nodes in a row, each given what has been said."""
    graph = StateGraph(MessagesState)
    before = START
    for number, node in enumerate(nodes):
        graph.add_node(f"node {number}", node)
        graph.add_edge(before, f"node {number}")
        before = f"node {number}"
    return graph.compile(checkpointer=checkpointer, name=name)


def counting(state):
    """A node that says how many messages there are."""
    return {"messages": [AIMessage(f"{len(state['messages'])} so far")]}


def asking(value):
    """A node that asks a person."""

    def ask(state):
        return {"messages": [AIMessage(f"answer: {interrupt(value)}")]}

    return ask


def requests_in(response):
    contents = [content for message in response.messages for content in message.contents]
    return [content for content in contents if isinstance(content, ToolApprovalRequestContent)]


async def test_nodes_without_a_model_stream_whole_messages():
    """Law 8: what a node adds by itself comes whole, once, in the order of the state."""
    agent = as_agent(graph_of(counting, counting))
    stream = agent.run_streaming("Go.")
    updates = [update async for update in stream]
    assert [update.text for update in updates] == ["1 so far", "2 so far"]
    assert AgentResponse.from_updates(updates).messages == (await stream.final_response()).messages


async def test_text_of_a_message_that_is_not_kept_is_no_part_of_the_response():
    """Law 8 (C3): evaluators see what the state holds, streamed or not, whatever a node's own model said besides."""
    model = GenericFakeChatModel(messages=iter(["a thought aside"] * 2))

    async def think(state):
        await model.ainvoke(state["messages"])
        return {"messages": [AIMessage("the answer")]}

    agent = as_agent(graph_of(think))
    assert (await agent.run("Go.")).text == "the answer"
    assert (await agent.run_streaming("Go.").final_response()).text == "the answer"


async def test_usage_is_what_the_messages_report(invoke):
    """Law 16: the usage is the sum over the messages that are new, cached and reasoning counts included."""
    reported = {
        "input_tokens": 5,
        "output_tokens": 3,
        "total_tokens": 8,
        "input_token_details": {"cache_read": 2},
        "output_token_details": {"reasoning": 1},
    }

    def answer(state):
        return {"messages": [AIMessage("a", usage_metadata=reported)]}

    agent = as_agent(graph_of(answer, answer))
    session = await agent.create_session()
    for _ in range(2):
        response = await invoke(agent, "Go.", session=session)
        assert response.usage == UsageDetails(10, 6, 16, 4, 2)


async def test_a_clone_is_a_thread_of_its_own(invoke):
    """Law 11: a clone begins at the checkpoint that was written, whatever the first thread did since."""
    saver = InMemorySaver()
    agent = as_agent(graph_of(counting, checkpointer=saver))
    session = await agent.create_session()
    await invoke(agent, "One.", session=session)
    written = await agent.serialize_session(session)
    await invoke(agent, "Two.", session=session)
    for _ in range(2):
        clone = await agent.deserialize_session(written)
        assert (await invoke(agent, "Other.", session=clone)).text == "3 so far"
    assert (await invoke(agent, "Three.", session=session)).text == "5 so far"
    assert len(set(saver.storage)) == 3


async def test_a_session_that_never_ran_is_cloned_too(invoke):
    """Law 11: an unused session is written, read and used."""
    agent = as_agent(graph_of(counting, checkpointer=InMemorySaver()))
    session = AgentSession()
    await agent.conversation(session)
    clone = await agent.deserialize_session(await agent.serialize_session(session))
    assert (await invoke(agent, "Go.", session=clone)).text == "1 so far"


async def test_an_interrupt_ends_the_loop_and_a_result_answers_it(invoke):
    """Law 3a (C4): an interrupt is a request; a function result answers it with any value."""
    loop = LoopAgent(graph_of(asking({"question": "Which city?"}), checkpointer=InMemorySaver()), says())
    response = await invoke(loop, "Plan a trip.")
    result = LoopResult.of(response)
    assert result.stop_reason is StopReason.PENDING_APPROVAL
    [request] = requests_in(response)
    assert (request.tool_call.name, request.tool_call.arguments) == ("interrupt", {"question": "Which city?"})
    answer = ChatMessage("tool", FunctionResultContent(request.tool_call.call_id, "Oslo"))
    assert (await invoke(loop.inner_agent, answer, session=result.session)).text == "answer: Oslo"


async def test_an_interrupt_for_several_actions_is_several_requests(invoke):
    """Law 3a: LangChain's middleware asks for several calls at once; it is resumed once all are answered."""
    value = {"action_requests": [{"name": "delete", "args": {"path": "a"}}, {"name": "send", "args": {"to": "b"}}]}
    agent = as_agent(graph_of(asking(value), checkpointer=InMemorySaver()))
    session = await agent.create_session()
    first, second = requests_in(await invoke(agent, "Go.", session=session))
    assert (first.tool_call.name, first.tool_call.arguments) == ("delete", {"path": "a"})
    answer = ToolApprovalResponseContent(second.request_id, approved=True, tool_call=second.tool_call)
    assert requests_in(await invoke(agent, ChatMessage("user", answer), session=session)) == [first]
    answer = ToolApprovalResponseContent(first.request_id, approved=False, tool_call=first.tool_call)
    response = await invoke(agent, ChatMessage("user", answer), session=session)
    assert response.text == "answer: {'decisions': [{'type': 'reject'}, {'type': 'approve'}]}"


def test_what_is_no_object_is_asked_as_a_value():
    """Design: an interrupt that is no tool call is a request for a call named `interrupt`."""
    assert requests_of({"a": 1}) == [
        ToolApprovalRequestContent("a", FunctionCallContent("a", "interrupt", {"value": 1}))
    ]


async def test_an_approved_call_with_a_task_of_its_own_runs_once(invoke):
    """Law (C4): where each call is a task, all are asked at once, and none that ran runs again for another."""
    ran = []

    def delete(call):
        allowed = interrupt(call)
        ran.append((call, allowed))
        return {"messages": [AIMessage(f"{call}: {allowed}")]}

    graph = StateGraph(MessagesState)
    graph.add_node("delete", delete)
    graph.add_conditional_edges(START, lambda _: [Send("delete", "a"), Send("delete", "b")])
    agent = as_agent(graph.compile(checkpointer=InMemorySaver()))
    session = await agent.create_session()
    first, second = requests_in(await invoke(agent, "Go.", session=session))
    answers = [ToolApprovalResponseContent(r.request_id, r is first, r.tool_call) for r in (first, second)]
    assert requests_in(await invoke(agent, ChatMessage("user", answers[:1]), session=session)) == [second]
    assert ran == []
    await invoke(agent, ChatMessage("user", answers[1:]), session=session)
    allowed = [(request.tool_call.arguments["value"], request is first) for request in (first, second)]
    assert sorted(ran) == sorted(allowed)  # the tasks stop in an order of their own
    assert [call for call, _ in sorted(ran)] == ["a", "b"]


async def test_context_and_config_reach_the_graph(invoke):
    """Design: what is given as config and context is each run's; the thread is set in the config."""
    seen = []

    class Context(TypedDict):
        user: str

    def node(state, runtime, config):
        seen.append(
            (runtime.context["user"], config["configurable"]["tenant"], bool(config["configurable"]["thread_id"]))
        )
        return counting(state)

    from langchain_core.runnables import RunnableConfig
    from langgraph.runtime import Runtime

    node.__annotations__ = {"state": MessagesState, "runtime": Runtime[Context], "config": RunnableConfig}
    graph = StateGraph(MessagesState, context_schema=Context)
    graph.add_node("node", node)
    graph.add_edge(START, "node")
    compiled = graph.compile(checkpointer=InMemorySaver())
    agent = LangGraphAgent(compiled, config={"configurable": {"tenant": "t"}}, context={"user": "ann"}, name="n")
    await invoke(agent, "Go.")
    assert seen == [("ann", "t", True)]
    assert agent.name == "n"


async def test_chat_options_have_no_place(invoke):
    """Law 13: an option that would be ignored is an error."""
    options = AgentRunOptions(chat_options=ChatOptions(temperature=1))
    with pytest.raises(ConfigurationError, match="can't be given chat_options"):
        await invoke(as_agent(graph_of(counting)), "Go.", options=options)


async def test_a_failed_run_without_checkpointer_leaves_the_session_as_it_was(invoke):
    """Law: what a node raises reaches the caller, and the history has nothing of that run."""

    def fail(state):
        if len(state["messages"]) > 2:
            raise OSError("no disk")
        return counting(state)

    agent = as_agent(graph_of(fail))
    session = await agent.create_session()
    await invoke(agent, "One.", session=session)
    before = await agent.serialize_session(session)
    with pytest.raises(OSError, match="no disk"):
        await invoke(agent, "Two.", session=session)
    assert await agent.serialize_session(session) == before


def test_messages_survive_the_way_there_and_back():
    """Law 1: each content is the same after the way into the state and back; every message gets an id of its own."""
    said = [
        ChatMessage("system", "Be brief."),
        ChatMessage("user", ["Look", DataContent(b"x", "image/png"), UriContent("https://example.org/a", "audio/mp3")]),
        ChatMessage("assistant", ["Looking.", FunctionCallContent("c", "look", {"a": 1})], author_name="ann"),
        ChatMessage("tool", FunctionResultContent("c", "found")),
        ChatMessage("critic", "Hm."),
    ]
    written = to_state(said)
    assert from_state(written) == said
    assert len({message.id for message in written + to_state(said)}) == 2 * len(said)


def test_reasoning_is_told_from_text():
    """Law 14: a model's reasoning is a content of its own."""
    message = AIMessage([{"type": "reasoning", "reasoning": "hm"}, {"type": "text", "text": "yes"}])
    assert contents_of(message) == [TextReasoningContent("hm"), TextContent("yes")]


def test_what_can_not_be_run_is_an_error():
    """Design: a graph that was not compiled, or whose state has no messages, is an error that says so."""
    with pytest.raises(TypeError, match=r"pass graph.compile\(\)"):
        as_agent(StateGraph(MessagesState))

    class Other(TypedDict):
        text: str

    graph = StateGraph(Other)
    graph.add_node("node", lambda state: {"text": "x"})
    graph.add_edge(START, "node")
    with pytest.raises(ConfigurationError, match="`messages`"):
        as_agent(graph.compile())


async def test_its_name_is_the_graphs(invoke):
    """Law 15: a graph that was given a name signs its messages with it; the default name is none."""
    agent = as_agent(graph_of(counting, name="counter"))
    assert (await invoke(agent, "Go.")).messages[0].author_name == "counter"
    assert as_agent(graph_of(counting)).name is None
    assert texts(from_state([HumanMessage("hi", id="1")])) == [("user", "hi")]


def test_without_the_framework_the_extra_is_named(monkeypatch):
    """Design: without the SDK the extra is named."""
    graph = graph_of(counting)
    monkeypatch.setitem(sys.modules, "langgraph.pregel", None)
    monkeypatch.setitem(sys.modules, "langchain_core.messages", None)
    with pytest.raises(MissingExtraError, match=r"agents-loop\[langgraph\]"):
        LangGraphAgent(graph)
    with pytest.raises(MissingExtraError, match=r"agents-loop\[langgraph\]"):
        to_state([])
    assert adapt_agent(graph) is None
