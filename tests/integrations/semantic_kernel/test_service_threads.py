from __future__ import annotations

import asyncio
import uuid
from types import SimpleNamespace

import pytest

pytest.importorskip("semantic_kernel")

from fakes import Way
from fault_server import Completion, FaultServer, Stream, chunk, usage
from kernel_fakes import Weather, chat_agent
from semantic_kernel.agents import Agent, AgentResponseItem, AgentThread, ChatCompletionAgent
from semantic_kernel.agents.open_ai.openai_assistant_agent import AssistantAgentThread, OpenAIAssistantAgent
from semantic_kernel.agents.open_ai.openai_responses_agent import OpenAIResponsesAgent, ResponsesAgentThread
from semantic_kernel.contents import ChatMessageContent, StreamingChatMessageContent
from semantic_kernel.contents.utils.author_role import AuthorRole

from agents_loop import (
    AgentRunOptions,
    ChatOptions,
    ConfigurationError,
    DelegateLoopEvaluator,
    FunctionCallContent,
    FunctionResultContent,
    JsonSchemaFormat,
    LoopAgent,
    LoopAgentOptions,
    SessionStateError,
    TextContent,
    UsageDetails,
)
from agents_loop.adapting import as_agent, as_chat_client
from agents_loop.integrations.semantic_kernel import SemanticKernelAgent, SemanticKernelChatClient
from agents_loop.integrations.semantic_kernel.threads import read_thread, thread_maker, write_thread
from agents_loop.testing import assert_loop_laws


class ServiceThread(AgentThread):
    """A conversation that lives in a service; here it has only an id."""

    def __init__(self, conversations, thread_id=None):
        super().__init__()
        self._conversations = conversations
        self._id = thread_id

    async def _create(self):
        thread_id = uuid.uuid4().hex
        self._conversations[thread_id] = []
        return thread_id

    async def _delete(self):
        del self._conversations[self._id]

    async def _on_new_message(self, new_message):
        self._conversations[self._id].append(str(new_message))


class ServiceAgent(Agent):
    """Says how much of the conversation it has; its threads are made by itself."""

    conversations: dict = {}  # noqa: RUF012 - pydantic copies it

    async def _answer(self, messages, thread):
        thread = await self._ensure_thread_exists_with_messages(
            messages=messages,
            thread=thread,
            construct_thread=lambda: ServiceThread(self.conversations),
            expected_type=ServiceThread,
        )
        said = f"heard {len(self.conversations[thread.id])}"
        self.conversations[thread.id].append(said)
        return said, thread

    async def get_response(self, messages=None, *, thread=None, **kwargs):
        raise NotImplementedError

    async def invoke(self, messages=None, *, thread=None, on_intermediate_message=None, temperature=None, **kwargs):
        said, thread = await self._answer(messages, thread)
        message = ChatMessageContent(role=AuthorRole.ASSISTANT, content=f"{said}{temperature or ''}", name=self.name)
        yield AgentResponseItem(message=message, thread=thread)

    async def invoke_stream(
        self, messages=None, *, thread=None, on_intermediate_message=None, temperature=None, **kwargs
    ):
        said, thread = await self._answer(messages, thread)
        for piece in (said, str(temperature or "")):
            chunk = StreamingChatMessageContent(role=AuthorRole.ASSISTANT, choice_index=0, content=piece)
            yield AgentResponseItem(message=chunk, thread=thread)
        # service agents tell the whole message once more
        await on_intermediate_message(
            ChatMessageContent(role=AuthorRole.ASSISTANT, content=said + str(temperature or ""))
        )


async def test_an_agent_that_makes_its_own_thread_keeps_it(invoke: Way):
    """Adapters: the thread that an agent made in the first run is the session's from then on."""
    agent = SemanticKernelAgent(ServiceAgent(name="service"))
    session = await agent.create_session()
    assert (await invoke(agent, "one", session=session)).text == "heard 1"
    assert (await invoke(agent, "two", session=session)).text == "heard 3"
    assert (await invoke(agent, "alone")).text == "heard 1"


async def test_a_service_thread_is_cloned_by_its_id(invoke: Way):
    """Adapters: the clone of a service thread shares the conversation."""
    kernel_agent = ServiceAgent(name="service")
    agent = SemanticKernelAgent(
        kernel_agent, make_thread=lambda thread_id: ServiceThread(kernel_agent.conversations, thread_id)
    )
    session = await agent.create_session()
    await invoke(agent, "one", session=session)
    clone = await agent.deserialize_session(await agent.serialize_session(session))
    assert (await invoke(agent, "two", session=clone)).text == "heard 3"
    assert (await invoke(agent, "three", session=session)).text == "heard 5"


async def test_a_thread_that_can_t_be_made_again_says_so():
    """Adapters: without a way to make a thread of an id, what was written can't be read, and the error says what to do."""
    agent = SemanticKernelAgent(ServiceAgent(name="service"))
    session = await agent.create_session()
    unused = await agent.deserialize_session(await agent.serialize_session(session))
    assert (await agent.run("one", session=unused)).text == "heard 1"
    used = await agent.deserialize_session(await agent.serialize_session(unused))
    with pytest.raises(SessionStateError, match="make_thread"):
        await agent.run("two", session=used)


async def test_fresh_context_begins_a_new_service_thread(invoke: Way):
    """Law 11: a caller's session that was not used yet is cloned as that: each re-invocation has a new thread."""
    agent = SemanticKernelAgent(ServiceAgent(name="service"))
    asked = iter(["again", False])
    loop = LoopAgent(
        agent, DelegateLoopEvaluator(lambda _: next(asked)), LoopAgentOptions(fresh_context_per_iteration=True)
    )
    response = await invoke(loop, "one", session=await agent.create_session())
    assert [m.text for m in response.messages if m.role == "assistant"] == ["heard 1", "heard 2"]


async def test_options_become_arguments_of_the_run(invoke: Way):
    """Adapters: an agent without execution settings takes what its run has an argument for."""
    agent = SemanticKernelAgent(ServiceAgent(name="service"))
    options = AgentRunOptions(chat_options=ChatOptions(temperature=0.5))
    assert (await invoke(agent, "one", options=options)).text == "heard 10.5"
    with pytest.raises(ConfigurationError, match=r"top_p=0\.1"):
        await invoke(agent, "one", options=AgentRunOptions(chat_options=ChatOptions(top_p=0.1)))


@pytest.mark.parametrize(
    ("kind", "thread_kind"),
    [(OpenAIAssistantAgent, AssistantAgentThread), (OpenAIResponsesAgent, ResponsesAgentThread)],
)
async def test_the_services_own_threads_are_made_by_id(kind, thread_kind):
    """Adapters: the threads of the agents that come with Semantic Kernel are known."""
    agent = kind.model_construct(client=SimpleNamespace(), store_enabled=True)
    make = thread_maker(agent)
    assert isinstance(make(None), thread_kind)
    assert make("t-1").id == "t-1"
    assert await write_thread(make("t-1")) == {"id": "t-1", "messages": None}
    assert (await read_thread({"id": "t-1", "messages": None}, make)).id == "t-1"


async def test_a_responses_thread_that_the_service_does_not_have_is_written_by_value():
    """Adapters: before a response has an id its messages are on this side."""
    thread = ResponsesAgentThread(client=SimpleNamespace())
    await thread.on_new_message(ChatMessageContent(role=AuthorRole.USER, content="hi"))
    written = await write_thread(thread)
    read = await read_thread(written, lambda _: ResponsesAgentThread(client=SimpleNamespace()))
    assert [str(m) async for m in read.get_messages()] == ["hi"]


async def test_responses_agents_take_a_format_as_text():
    """Adapters: the Responses API has a parameter of its own for the format."""
    from agents_loop.integrations.semantic_kernel.settings import run_arguments

    agent = OpenAIResponsesAgent.model_construct(client=SimpleNamespace())
    schema = JsonSchemaFormat("v", {"type": "object"})
    options = ChatOptions(model_id="m", max_output_tokens=3, response_format=schema)
    assert run_arguments(agent, agent.invoke, options) == {
        "model": "m",
        "max_output_tokens": 3,
        "text": {"format": {"type": "json_schema", "name": "v", "schema": {"type": "object"}, "strict": True}},
    }


# --- over the wire


@pytest.fixture
def wire_agent(openai_service):
    return ChatCompletionAgent(service=openai_service, name="writer", plugins=[Weather()])


async def test_tools_and_usage_over_the_wire(invoke: Way, wire_agent, server: FaultServer):
    """Adapters: over OpenAI's own stream each call's usage, the one in a chunk without choices too, counts once."""
    call = {"id": "c1", "type": "function", "function": {"name": "Weather-look", "arguments": '{"city": "Oslo"}'}}
    server.add(
        Completion(content="Let me look.", tool_calls=(call,), finish_reason="tool_calls", usage=usage(10, 1)),
        Completion(content="Rain, as ever.", usage=usage(20, 2, prompt_tokens_details={"cached_tokens": 8})),
    )
    response = await invoke(SemanticKernelAgent(wire_agent), "Weather?")
    assert [(m.role, m.contents) for m in response.messages] == [
        ("assistant", [TextContent("Let me look."), FunctionCallContent("c1", "Weather-look", {"city": "Oslo"})]),
        ("tool", [FunctionResultContent("c1", "rain in Oslo")]),
        ("assistant", [TextContent("Rain, as ever.")]),
    ]
    assert response.usage == UsageDetails(30, 3, 33, 8)
    assert response.created_at == 1_700_000_000
    assert server.bodies[1]["messages"][-1] == {"role": "tool", "tool_call_id": "c1", "content": "rain in Oslo"}


async def test_a_run_without_feedback_asks_again_over_the_wire(invoke: Way, wire_agent, server: FaultServer):
    """Law 10: without feedback no message is sent; the request is the conversation as it stands."""
    agent = SemanticKernelAgent(wire_agent)
    session = await agent.create_session()
    await invoke(agent, "one", session=session)
    await invoke(agent, [], session=session)
    assert [m["role"] for m in server.bodies[1]["messages"]] == ["user", "assistant"]


async def test_leaving_a_stream_closes_the_connection(wire_agent, server: FaultServer, caplog):
    """Law 19: closing a stream early closes the connection, though Semantic Kernel does not."""
    server.add(Stream((chunk({"role": "assistant", "content": "half"}),), end="held"))
    async with SemanticKernelAgent(wire_agent).run_streaming("hi") as stream:
        async for _ in stream:
            break
    assert await asyncio.to_thread(server.client_left.wait, 30)
    assert caplog.records == []


async def test_the_loop_laws_hold():
    """Adapters: an agent of Semantic Kernel has what a loop needs of an inner agent."""
    await assert_loop_laws(chat_agent(*["hello"] * 100))


def test_adapting_finds_the_adapter():
    """Adapters: `LoopAgent(x, y)` takes agents and services of Semantic Kernel as they are."""
    agent = as_agent(chat_agent("x"))
    assert isinstance(agent, SemanticKernelAgent)
    assert isinstance(as_chat_client(agent.agent.service), SemanticKernelChatClient)
    assert isinstance(as_agent(ServiceAgent(name="service")), SemanticKernelAgent)
