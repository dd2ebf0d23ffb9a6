from __future__ import annotations

import asyncio

import pytest

pytest.importorskip("semantic_kernel")

from fakes import Way, leaving_nothing
from kernel_fakes import ScriptedService, Weather, calls, chat_agent, says
from semantic_kernel.agents import ChatHistoryAgentThread
from semantic_kernel.contents import ChatHistory, ChatMessageContent, FunctionCallContent, ImageContent
from semantic_kernel.contents.function_result_content import FunctionResultContent as KernelResult
from semantic_kernel.functions import KernelArguments

from agents_loop import (
    AgentRunOptions,
    AgentSession,
    ChatMessage,
    ChatOptions,
    ConfigurationError,
    DataContent,
    DelegateLoopEvaluator,
    LoopAgent,
    LoopAgentOptions,
    LoopEvaluation,
    LoopResult,
    SessionStateError,
    TextContent,
    UsageDetails,
)
from agents_loop.integrations.semantic_kernel import SemanticKernelAgent, adapt_agent
from agents_loop.messages import FunctionCallContent as Call
from agents_loop.messages import FunctionResultContent as Result


def wrapped(*replies, **given):
    agent = chat_agent(*replies, **given)
    return SemanticKernelAgent(agent), agent.service


async def test_identity_is_the_agents():
    """Adapters: name, description and id are the wrapped agent's."""
    kernel_agent = chat_agent("x", description="writes")
    agent = adapt_agent(kernel_agent)
    assert (agent.id, agent.name, agent.description) == (kernel_agent.id, "writer", "writes")
    assert adapt_agent(object()) is None
    with pytest.raises(TypeError, match="not str"):
        SemanticKernelAgent("writer")


async def test_messages_arrive_in_order(invoke: Way):
    """Adapters: the messages reach the service in order, after the instructions."""
    agent, service = wrapped("done", instructions="Be brief.")
    response = await invoke(agent, ["one", ChatMessage("assistant", "two"), "three"])
    assert service.inputs == [[("system", "Be brief."), ("user", "one"), ("assistant", "two"), ("user", "three")]]
    assert [(m.role, m.text, m.author_name) for m in response.messages] == [("assistant", "done", "writer")]
    assert response.messages[0].message_id
    assert response.finish_reason == (None if invoke.streaming else "stop")  # its agent drops the chunk that says so


async def test_a_session_remembers_and_no_message_is_a_run_too(invoke: Way):
    """Adapters: a session is reused; an input without messages asks again."""
    agent, service = wrapped("a", "b", "c")
    session = await agent.create_session()
    await invoke(agent, "hi", session=session)
    await invoke(agent, [], session=session)
    await invoke(agent, None, session=session)
    assert service.inputs[2] == [("user", "hi"), ("assistant", "a"), ("assistant", "b")]


async def test_tool_calls_are_in_the_response_in_order(invoke: Way):
    """Adapters: text, call, result and answer come in the order in which they happened, each once."""
    weather = Weather()
    agent, _ = wrapped(
        calls("Weather-look", '{"city": "Oslo"}', before="Let me look.", usage=(10, 1)),
        says("Rain.", usage=(20, 2)),
        plugins=[weather],
    )
    response = await invoke(agent, "Weather?")
    assert weather.asked == ["Oslo"]
    assert [(m.role, m.contents) for m in response.messages] == [
        ("assistant", [TextContent("Let me look."), Call("call-1", "Weather-look", {"city": "Oslo"})]),
        ("tool", [Result("call-1", "rain in Oslo")]),
        ("assistant", [TextContent("Rain.")]),
    ]
    assert response.usage == UsageDetails(30, 3, 33)


async def test_streaming_gives_what_a_run_gives():
    """Adapters: streaming equals not streaming."""

    def script():
        return calls("Weather-look", '{"city": "Rome"}', before="Hm.", usage=(1, 1)), says("Sunny.", usage=(3, 4))

    ran = await wrapped(*script(), plugins=[Weather()])[0].run("Weather?")
    streamed = await wrapped(*script(), plugins=[Weather()])[0].run_streaming("Weather?").final_response()
    assert streamed.messages == ran.messages
    assert streamed.usage == ran.usage


async def test_a_stream_comes_in_pieces_and_its_messages_have_ids():
    """Adapters: each chunk is an update; the pieces of a message share its id."""
    agent, _ = wrapped(calls("Weather-look", '{"city": "Rome"}', before="Hm, "), "Sunny", plugins=[Weather()])
    updates = [update async for update in agent.run_streaming("Weather?")]
    assert [update.text for update in updates if update.text] == ["Hm", ", ", "Su", "nny"]
    ids = [update.message_id for update in updates if update.message_id]
    assert len(set(ids)) == 3
    assert len({update.response_id for update in updates}) == 1
    assert {update.agent_id for update in updates} == {agent.id}


async def test_images_reach_the_service_and_come_back(invoke: Way):
    """Adapters: images go both ways."""
    png = b"\x89PNG\x00\x01"
    reply = says("Like this:", ImageContent(data=png, data_format="base64", mime_type="image/png"))
    agent, service = wrapped(reply)
    response = await invoke(agent, ChatMessage("user", ["What is it?", DataContent(png, "image/png")]))
    sent = service._requests[0][0].items
    assert (sent[0].text, sent[1].data, sent[1].mime_type) == ("What is it?", png, "image/png")
    assert response.messages[0].contents == [TextContent("Like this:"), DataContent(png, "image/png")]


async def test_a_clone_has_the_whole_history_by_value(invoke: Way):
    """Adapters: a history thread is cloned by value, with tool calls and images, and then goes its own way."""
    png = b"\x89PNG\x00\x01"
    agent, service = wrapped(
        calls("Weather-look", '{"city": "Oslo"}'), "Rain.", "in the clone", "in the first", plugins=[Weather()]
    )
    session = await agent.create_session()
    await invoke(agent, ChatMessage("user", ["Weather?", DataContent(png, "audio/mp3")]), session=session)
    state = await agent.serialize_session(session)
    clone = await agent.deserialize_session(state)
    await invoke(agent, "more", session=clone)
    await invoke(agent, "less", session=session)
    cloned, first = service._requests[2], service._requests[3]
    assert [str(m) for m in cloned][-2:] == ["Rain.", "more"]
    assert [str(m) for m in first][-2:] == ["Rain.", "less"]
    assert cloned[0].items[1].data == png
    assert cloned[0].items[1].mime_type == "audio/mp3"
    assert [type(item) for m in cloned[1:3] for item in m.items] == [FunctionCallContent, KernelResult]
    assert cloned[1].items[0].to_dict() == first[1].items[0].to_dict()
    assert cloned[2].items[0].result == "rain in Oslo"


async def test_a_clone_can_be_cloned_before_it_is_used():
    """Adapters: serialising what was deserialised gives the same."""
    agent, _ = wrapped("a")
    session = await agent.create_session()
    await agent.run("hi", session=session)
    state = await agent.serialize_session(session)
    assert await agent.serialize_session(await agent.deserialize_session(state)) == state


@pytest.mark.parametrize(
    "thread", ["x", {"id": 3}, {"id": None, "messages": [{"role": "nobody"}]}, {"id": "t", "messages": {}}]
)
async def test_what_is_no_thread_is_a_session_state_error(thread):
    """Adapters: a stored state that can't be read says so."""
    agent, _ = wrapped("a")
    session = await agent.deserialize_session({"state": {"semantic_kernel": thread}})
    with pytest.raises(SessionStateError):
        await agent.run("hi", session=session)


async def test_a_thread_of_the_callers_is_continued(invoke: Way):
    """Adapters: a thread that exists already becomes a session."""
    history = ChatHistory(messages=[ChatMessageContent(role="user", content="before")])
    thread = ChatHistoryAgentThread(history)
    agent, service = wrapped("a")
    await invoke(agent, "now", session=agent.session_of(thread))
    assert service.inputs == [[("user", "before"), ("user", "now")]]
    assert [str(m) async for m in thread.get_messages()] == ["before", "now", "a"]


async def test_an_error_is_raised_as_it_was(invoke: Way):
    """Adapters: what Semantic Kernel raises is what the caller catches."""
    error = OSError("no route")
    agent, _ = wrapped(error)
    with pytest.raises(OSError, match="no route") as caught:
        await invoke(agent, "hi")
    assert caught.value is error


async def test_closing_a_stream_early_closes_all_that_semantic_kernel_has_open():
    """Adapters: after closing a stream nothing is open, down to the service's own generator."""
    agent, service = wrapped("a long answer", plugins=[Weather()])
    async with leaving_nothing():
        async with agent.run_streaming("hi") as stream:
            async for update in stream:
                if update.text:
                    break
        assert (service._opened, service._closed) == (1, 1)


async def test_a_cancelled_run_closes_the_service(invoke: Way):
    """Adapters: cancelling a run cancels the call."""
    agent, service = wrapped(service=ScriptedService("never", hangs=True))
    async with leaving_nothing():
        task = asyncio.create_task(invoke(agent, "hi"))
        await service._asked.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    assert service._closed == 1


async def test_options_go_into_the_settings_of_this_run_alone(invoke: Way):
    """Adapters: a run's options are laid over the agent's settings, and leave them as they were."""
    kernel_agent = chat_agent("a", "b", arguments=KernelArguments(who="Ada"), instructions="For {{$who}} in {{$where}}")
    agent, service = SemanticKernelAgent(kernel_agent), kernel_agent.service
    options = AgentRunOptions(
        chat_options=ChatOptions(temperature=0.5, max_output_tokens=9, stop_sequences=["."], model_id="other"),
        additional_properties={"arguments": KernelArguments(where="Oslo")},
    )
    await invoke(agent, "hi", options=options)
    await invoke(agent, "hi", options=AgentRunOptions(additional_properties={"where": "Rome"}))
    first, second = service._settings
    assert (first.temperature, first.max_completion_tokens, first.stop, first.ai_model_id) == (0.5, 9, ["."], "other")
    assert (second.temperature, second.ai_model_id) == (None, None)
    assert [request[0][1] for request in service.inputs] == ["For Ada in Oslo", "For Ada in Rome"]


async def test_what_the_adapter_sets_can_t_be_given():
    """Adapters: wrong use is an error that says so."""
    agent, _ = wrapped("a")
    with pytest.raises(ConfigurationError, match="thread"):
        await agent.run("hi", options=AgentRunOptions(additional_properties={"thread": None}))


# --- the laws of the loop over an agent of Semantic Kernel


def asks(*words):
    """Goes on with each word as feedback, then stops."""
    left = list(words)
    return DelegateLoopEvaluator(lambda _: LoopEvaluation.continue_(left.pop(0)) if left else LoopEvaluation.stop())


async def test_law_10_same_session_feedback_alone(invoke: Way):
    """Law 10: in the same session the next input is the latest feedback alone, or no message at all."""
    agent, service = wrapped("a", "b", "c")
    response = await invoke(LoopAgent(agent, asks("shorter", None)), "write")
    assert service.inputs[1] == [("user", "write"), ("assistant", "a"), ("user", "shorter")]
    assert service.inputs[2] == [*service.inputs[1], ("assistant", "b")]
    assert [m.text for m in response.messages] == ["a", "shorter", "b", "c"]


async def test_law_11_fresh_context_clones_the_callers_session(invoke: Way):
    """Law 11: with fresh context each re-invocation has a clone of the caller's session as it was before."""
    agent, service = wrapped("earlier", "a", "b", "c")
    session = await agent.create_session()
    await agent.run("before", session=session)
    heard = []
    options = LoopAgentOptions(fresh_context_per_iteration=True, session_created_callback=heard.append)
    await invoke(LoopAgent(agent, asks("one", "two"), options), "write", session=session)
    assert service.inputs[1] == [("user", "before"), ("assistant", "earlier"), ("user", "write")]
    feedback = "## Feedback\n\n- one\n- two"
    assert service.inputs[3] == [*service.inputs[1], ("user", feedback)]
    assert len({id(s) for s in [*heard, session]}) == 3


async def test_law_16_usage_is_the_sum(invoke: Way):
    """Law 16: usage is summed over the iterations, each model call counted once."""
    agent, _ = wrapped(
        calls("Weather-look", '{"city": "Oslo"}', usage=(1, 2)),
        says("a", usage=(10, 20)),
        says("b", usage=(100, 200)),
        plugins=[Weather()],
    )
    response = await invoke(LoopAgent(agent, asks("again")), "write")
    assert response.usage == UsageDetails(111, 222, 333)


async def test_law_18_the_result_is_on_the_error(invoke: Way):
    """Law 18: an exception of Semantic Kernel carries the result so far."""
    agent, _ = wrapped("a", OSError("gone"))
    with pytest.raises(OSError, match="gone") as caught:
        await invoke(LoopAgent(agent, asks("again")), "write")
    assert LoopResult.of(caught.value).output == "a"


async def test_the_callers_session_is_used(invoke: Way):
    """Law 2: a session of the caller's holds the loop's conversation."""
    agent, service = wrapped("a", "b", "c")
    session = AgentSession()
    await invoke(LoopAgent(agent, asks("again")), "write", session=session)
    await invoke(agent, "and?", session=session)
    assert [text for _, text in service.inputs[2]] == ["write", "a", "again", "b", "and?"]
