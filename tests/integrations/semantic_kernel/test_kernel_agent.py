from __future__ import annotations

import copy
import json

import pytest

pytest.importorskip("semantic_kernel")

from fakes import RecordingAgent, Updates, leaving_nothing, says
from kernel_fakes import ScriptedService, calls, chat_agent
from semantic_kernel import Kernel
from semantic_kernel.agents import ChatHistoryAgentThread, GroupChatOrchestration, SequentialOrchestration
from semantic_kernel.agents.orchestration.group_chat import RoundRobinGroupChatManager
from semantic_kernel.agents.runtime import InProcessRuntime
from semantic_kernel.contents import ChatHistory, ChatMessageContent, ImageContent
from semantic_kernel.contents.utils.author_role import AuthorRole
from semantic_kernel.functions import KernelArguments

from agents_loop import (
    AgentResponse,
    AgentResponseUpdate,
    AgentSession,
    ChatMessage,
    ConfigurationError,
    DataContent,
    FunctionCallContent,
    FunctionResultContent,
    LoopAgent,
    LoopAgentOptions,
    LoopResult,
    UsageDetails,
)
from agents_loop.integrations.semantic_kernel import (
    AgentSessionThread,
    SemanticKernelAgent,
    adapt_agent,
    as_semantic_kernel_agent,
)


def loop(inner=None, *words, **options):
    """A loop of as many iterations as there are words, and one more."""
    return LoopAgent(inner or RecordingAgent(), says(*(words or ("better",))), LoopAgentOptions(**options))


def kernel_agent(inner=None, *words, **given):
    return as_semantic_kernel_agent(loop(inner, *words), name="looped", description="Writes.", **given)


async def streamed(agent, *args, **given):
    """The items, and the message that Semantic Kernel makes of them."""
    items = [item async for item in agent.invoke_stream(*args, **given)]
    return items, sum((item.message for item in items[1:]), items[0].message)


async def test_get_response_gives_the_final_answer():
    """Outward: the final answer alone, signed; the run is in its metadata."""
    inner = RecordingAgent(usage=UsageDetails(2, 3))
    item = await kernel_agent(inner).get_response("write")
    assert (str(item.message), item.message.role, item.message.name) == ("reply 2", AuthorRole.ASSISTANT, "looped")
    result = LoopResult.of(item.message.metadata["agents_loop"])
    assert (result.stop_reason, len(result.iterations)) == ("satisfied", 2)
    assert item.message.metadata["usage"].prompt_tokens == 4
    assert [m.text for m in item.message.metadata["agents_loop"].response.messages] == ["reply 1", "better", "reply 2"]
    assert inner.inputs == [["write"], ["better"]]


async def test_messages_of_every_kind_reach_the_agent():
    """Outward: messages arrive in order with their roles, names and contents."""
    inner = RecordingAgent()
    image = ImageContent(data=b"\x01\xff", data_format="base64", mime_type="image/png")
    await as_semantic_kernel_agent(inner, name="a").get_response(
        [
            "one",
            ChatMessageContent(role=AuthorRole.ASSISTANT, content="two", name="Ada"),
            ChatMessageContent(role=AuthorRole.USER, items=[image]),
        ]
    )
    assert inner.calls[0].messages == [
        ChatMessage("user", "one"),
        ChatMessage("assistant", "two", author_name="Ada"),
        ChatMessage("user", [DataContent(b"\x01\xff", "image/png")]),
    ]


async def test_intermediate_messages_are_told_aside():
    """Outward: drafts and feedback go to the callback, in order; the answer does not."""
    told = []

    async def tell(message):
        told.append((message.role.value, str(message)))

    agent = kernel_agent(None, "better")
    items = [item async for item in agent.invoke("write", on_intermediate_message=tell)]
    assert [str(item.message) for item in items] == ["reply 2"]
    assert told == [("assistant", "reply 1"), ("user", "better")]
    told.clear()
    _, whole = await streamed(kernel_agent(None, "better"), "write", on_intermediate_message=tell)
    assert str(whole) == "reply 2"
    assert told == [("assistant", "reply 1"), ("user", "better")]


async def test_streaming_gives_the_final_iteration_or_all_on_request():
    """Outward: by default the final iteration alone is streamed; its chunks join to the answer."""
    _, final = await streamed(kernel_agent(), "write")
    assert str(final) == "reply 2"
    assert LoopResult.of(final.metadata["agents_loop"]).output == "reply 2"
    items, everything = await streamed(kernel_agent(streams="all"), "write")
    assert str(everything) == "reply 1reply 2"
    assert len(items) > 3


async def test_an_agent_that_is_no_loop_streams_as_it_comes():
    """Outward: without a loop there is nothing to wait for."""
    items, whole = await streamed(as_semantic_kernel_agent(RecordingAgent("hello there"), name="a"), "hi")
    assert [str(item.message) for item in items] == ["hello", " there", ""]
    assert str(whole) == "hello there"
    assert LoopResult.of(whole.metadata["agents_loop"]) is None


async def test_calls_and_results_are_told_aside():
    """Outward: in a stream only the agent's text is the answer."""
    told = []

    async def tell(message):
        told.append([type(item).__name__ for item in message.items])

    inner = RecordingAgent(
        Updates(
            [
                AgentResponseUpdate("assistant", ["Hm.", FunctionCallContent("c", "look", {})], message_id="1"),
                AgentResponseUpdate("tool", FunctionResultContent("c", "rain"), message_id="2"),
                AgentResponseUpdate("assistant", "Rain.", message_id="3"),
            ]
        )
    )
    _, whole = await streamed(as_semantic_kernel_agent(inner, name="a"), "hi", on_intermediate_message=tell)
    assert str(whole) == "Hm.Rain."
    assert told == [["FunctionCallContent"], ["FunctionResultContent"]]


async def test_an_answer_without_text_is_an_answer():
    """Outward: an image, or nothing at all, still gives a message to pass on."""
    image = AgentResponse([ChatMessage("assistant", [DataContent(b"\x01", "image/png")])])
    _, whole = await streamed(kernel_agent(RecordingAgent(image, image)), "draw")
    assert isinstance(whole.items[0], ImageContent)
    empty = AgentResponse([])
    items, whole = await streamed(kernel_agent(RecordingAgent(empty, empty)), "draw")
    assert (len(items), str(whole)) == (1, "")


async def test_a_thread_is_a_session():
    """Outward: a thread is one session, made by the agent; messages that others add are sent with the next input."""
    inner = RecordingAgent()
    agent = as_semantic_kernel_agent(inner, name="a")
    first = await agent.get_response("one")
    assert isinstance(first.thread, AgentSessionThread)
    await first.thread.on_new_message(ChatMessageContent(role=AuthorRole.ASSISTANT, content="from another"))
    second = await agent.get_response("two", thread=first.thread)
    await streamed(agent, None, thread=second.thread)
    assert inner.inputs == [["one"], ["from another", "two"], []]
    assert len(inner.created) == 1
    assert set(inner.sessions) == {first.thread.session}
    assert first.thread.id == inner.created[0].session_id
    await first.thread.delete()
    with pytest.raises(RuntimeError, match="deleted"):
        await agent.get_response("three", thread=first.thread)


async def test_a_session_of_the_callers_is_a_thread():
    """Outward: a session that exists already is used."""
    inner, session = RecordingAgent(), AgentSession()
    await as_semantic_kernel_agent(inner, name="a").get_response("x", thread=AgentSessionThread(inner, session))
    assert inner.sessions == [session]
    assert inner.created == []


async def test_a_history_thread_is_accepted():
    """Outward: the messages of a ChatHistoryAgentThread are used, and the exchange is added to it."""
    inner = RecordingAgent()
    thread = ChatHistoryAgentThread(ChatHistory(messages=[ChatMessageContent(role="user", content="before")]))
    agent = kernel_agent(inner)
    await agent.get_response("now", thread=thread)
    await streamed(agent, "and now", thread=thread)
    turn_1, turn_2 = ["before", "now"], ["before", "now", "reply 2", "and now"]
    assert inner.inputs == [turn_1, ["better"], turn_2, ["better"]]
    assert [str(m) async for m in thread.get_messages()] == ["before", "now", "reply 2", "and now", "reply 4"]


async def test_a_thread_of_another_kind_is_wrong_use():
    """Outward: a thread that can't be read is an error that says what can."""

    class Other(AgentSessionThread.__bases__[0]):
        _create = _delete = _on_new_message = None

    with pytest.raises(ConfigurationError, match="Other"):
        await as_semantic_kernel_agent(RecordingAgent(), name="a").get_response("x", thread=Other())


async def test_a_message_with_a_run_behind_it_can_be_copied_and_written():
    """Outward: group chats copy their messages deeply, and histories are written as JSON."""
    message = (await kernel_agent().get_response("write")).message
    copied = copy.deepcopy(message)
    assert copied.metadata["agents_loop"] is message.metadata["agents_loop"]
    written = json.loads(ChatHistory(messages=[message]).serialize())
    assert written["messages"][0]["metadata"]["agents_loop"]["stop_reason"] == "satisfied"


async def test_what_semantic_kernel_passes_reaches_the_run_options():
    """Outward: further arguments are the run's additional properties."""
    inner = RecordingAgent()
    agent = as_semantic_kernel_agent(inner, name="a")
    arguments = KernelArguments(x=1)
    await agent.get_response("hi", arguments=arguments, kernel=None)
    await agent.get_response("hi")
    assert [call.options and call.options.additional_properties for call in inner.calls] == [
        {"arguments": arguments},
        None,
    ]


async def test_an_error_is_raised_as_it_was():
    """Outward: the agent's exception reaches Semantic Kernel, with the result so far."""
    error = OSError("gone")
    agent = kernel_agent(RecordingAgent("a", error))
    with pytest.raises(OSError, match="gone") as caught:
        await agent.get_response("hi")
    assert caught.value is error
    assert LoopResult.of(error).output == "a"


async def test_leaving_a_stream_closes_the_agent():
    """Outward: closing a stream early closes the agent's."""
    inner = RecordingAgent("hello there")
    async with leaving_nothing():
        stream = as_semantic_kernel_agent(inner, name="a").invoke_stream("hi")
        async for _ in stream:
            break
        await stream.aclose()
    assert inner.closed == [1]


def test_wrong_use_is_said():
    """Outward: a name is needed, of the characters Semantic Kernel takes."""
    nameless = RecordingAgent()
    nameless.name = None
    with pytest.raises(ConfigurationError, match="name="):
        as_semantic_kernel_agent(nameless)
    with pytest.raises(ConfigurationError, match="two words"):
        as_semantic_kernel_agent(nameless, name="two words")
    with pytest.raises(TypeError, match="not str"):
        as_semantic_kernel_agent("agent")
    agent = as_semantic_kernel_agent(RecordingAgent())
    assert agent.name == "recorder"
    assert adapt_agent(agent) is agent.inner_agent


# --- among Semantic Kernel's own

reading_an_agents_members = pytest.mark.filterwarnings(
    "ignore::pydantic.PydanticDeprecatedSince20", "ignore::pydantic.PydanticDeprecatedSince211"
)
"""Semantic Kernel looks for functions in every attribute of a plugin, pydantic's deprecated ones included."""


async def test_in_a_sequential_orchestration_the_next_agent_reads_the_answer_alone():
    """Outward: the next agent of a sequence reads the final answer, not the drafts glued together."""
    writer = kernel_agent()
    editor = chat_agent("edited", name="editor")
    heard = []
    orchestration = SequentialOrchestration(
        members=[writer, editor], agent_response_callback=lambda message: heard.append((message.name, str(message)))
    )
    runtime = InProcessRuntime()
    runtime.start()
    result = await orchestration.invoke(task="write", runtime=runtime)
    value = await result.get(timeout=60)
    await runtime.stop_when_idle()
    assert str(value) == "edited"
    assert editor.service.inputs == [[("assistant", "reply 2")]]
    assert heard[-2:] == [("looped", "reply 2"), ("editor", "edited")]


async def test_in_a_group_chat_a_thread_lasts_and_all_is_heard():
    """Outward: in a group chat the loop keeps its session over its turns and hears what the others said."""
    inner = RecordingAgent()
    critic = chat_agent("too long", "good", name="critic", description="Criticises.")
    orchestration = GroupChatOrchestration(
        members=[kernel_agent(inner, "better"), critic], manager=RoundRobinGroupChatManager(max_rounds=3)
    )
    runtime = InProcessRuntime()
    runtime.start()
    result = await orchestration.invoke(task="write", runtime=runtime)
    value = await result.get(timeout=60)
    await runtime.stop_when_idle()
    assert str(value) == "reply 4"
    assert len(inner.created) == 1
    assert inner.inputs[0] == ["write"]
    assert inner.inputs[2][-1] == "too long"
    assert LoopResult.of(value.metadata["agents_loop"]).output == "reply 4"


@reading_an_agents_members
async def test_as_a_plugin_another_agent_calls_it():
    """Outward: the loop is a function of a kernel, which another agent's model can call."""
    inner = RecordingAgent()
    boss = chat_agent(
        service=ScriptedService(calls("looped-looped", '{"messages": "write"}'), "Here it is."),
        name="boss",
        plugins=[kernel_agent(inner)],
    )
    response = await SemanticKernelAgent(boss).run("please")
    assert inner.inputs == [["write"], ["better"]]
    assert response.messages[1].contents == [FunctionResultContent("call-1", "reply 2")]
    assert response.text == "Here it is."


@reading_an_agents_members
async def test_as_a_kernel_function():
    """Outward: a kernel invokes it by its name."""
    kernel = Kernel()
    kernel.add_plugin(kernel_agent(), plugin_name="writers")
    result = await kernel.invoke(plugin_name="writers", function_name="looped", arguments=KernelArguments(messages="x"))
    assert str(result.value) == "reply 2"


async def test_there_and_back_again():
    """Outward and inward: a loop as a kernel agent, wrapped again, is an agent whose usage is counted."""
    outer = SemanticKernelAgent(kernel_agent(RecordingAgent(usage=UsageDetails(1, 2))))
    session = await outer.create_session()
    response = await outer.run("write", session=session)
    assert (response.text, response.usage) == ("reply 1\nbetter\nreply 2", UsageDetails(2, 4, 6))
    streamed_response = await outer.run_streaming("write", session=session).final_response()
    assert streamed_response.text == "reply 3\nbetter\nreply 4"
    assert streamed_response.usage == response.usage
