"""OpenAI Agents SDK: what the contract suite does not ask. Its own runner, over a real server."""

import sys

import pytest
from fakes import texts
from fault_server import Completion, closed_later, sqlite_session, usage

from agents_loop import (
    AgentResponse,
    AgentRunOptions,
    ChatMessage,
    ChatOptions,
    ConfigurationError,
    DataContent,
    ErrorContent,
    FunctionCallContent,
    FunctionResultContent,
    MissingExtraError,
    TextContent,
    TextReasoningContent,
    ToolApprovalResponseContent,
    UriContent,
    UsageDetails,
)
from agents_loop.adapting import as_agent

pytest.importorskip("agents")

import agents
from openai import AsyncOpenAI
from pydantic import BaseModel

from agents_loop.integrations.openai_agents import OpenAIAgentsAgent, adapt_agent
from agents_loop.integrations.openai_agents.items import from_item, to_items


@pytest.fixture
def model(server):
    agents.set_tracing_disabled(disabled=True)
    client = closed_later(AsyncOpenAI(api_key="k", base_url=server.base_url, max_retries=0))
    return agents.OpenAIChatCompletionsModel("m", client)


def call(name, call_id, arguments="{}"):
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}


def asking(*calls, **given):
    return Completion(tool_calls=calls, finish_reason="tool_calls", **given)


def contents(response):
    return [(str(message.role), content) for message in response.messages for content in message.contents]


async def test_a_handoff_is_in_the_response(model, server, invoke):
    """Law 14: a handoff is a call and its result; each message has the name of the agent that wrote it."""
    expert = agents.Agent(name="expert", model=model, handoff_description="Knows.")
    front = agents.Agent(name="front", model=model, handoffs=[expert])
    server.add(asking(call("transfer_to_expert", "c1"), usage=usage(1, 1)))
    server.add(Completion(content="I know.", usage=usage(2, 2)))
    response = await invoke(as_agent(front), "Who knows?")
    assert [message.author_name for message in response.messages] == ["front", None, "expert"]
    assert contents(response)[0] == ("assistant", FunctionCallContent("c1", "transfer_to_expert", {}))
    assert contents(response)[-1] == ("assistant", TextContent("I know."))
    assert response.usage == UsageDetails(3, 3, 6)
    assert as_agent(expert).description == "Knows."


async def test_a_structured_output_is_its_text(model, server, invoke):
    """Law 14: the answer of an agent with an output type is the JSON that the model wrote."""

    class Plan(BaseModel):
        steps: int

    server.add(Completion(content='{"steps": 3}'))
    assert (
        await invoke(as_agent(agents.Agent(name="p", model=model, output_type=Plan)), "Plan.")
    ).text == '{"steps": 3}'


async def test_reasoning_comes_before_the_text_it_led_to(model, server):
    """Law 8: reasoning is a content of its own, in the order in which the model wrote, streamed or not."""
    agent = as_agent(agents.Agent(name="thinker", model=model))
    server.add(*[Completion(reasoning="let me think", content="done")] * 2)
    expected = [("assistant", TextReasoningContent("let me think")), ("assistant", TextContent("done"))]
    assert contents(await agent.run("Go.")) == expected
    updates = [update async for update in agent.run_streaming("Go.")]
    assert contents(AgentResponse.from_updates(updates)) == expected


async def test_a_refusal_is_raised_as_the_sdk_raises_it(model, server, invoke):
    """Law (P5): a refusal is not an answer; the SDK raises it, and so does the adapter."""
    server.add(Completion(content=None, refusal="I won't."))
    with pytest.raises(agents.ModelRefusalError, match="I won't"):
        await invoke(as_agent(agents.Agent(name="r", model=model)), "Go.")


def test_a_refusal_within_a_message_is_told_from_text():
    """Law (P5): a refusal that the SDK keeps in a message is an error content, not text."""
    from openai.types.responses import ResponseOutputMessage, ResponseOutputRefusal

    refusal = ResponseOutputRefusal(refusal="I won't.", type="refusal")
    raw = ResponseOutputMessage(id="1", content=[refusal], role="assistant", status="completed", type="message")
    item = agents.MessageOutputItem(agents.Agent(name="r"), raw)
    assert from_item(item) == ("assistant", [ErrorContent("I won't.", code="refusal")])


async def test_the_sdks_own_errors_are_raised(model, server, invoke):
    """Law: what the SDK raises reaches the caller; the session is as it was before."""

    @agents.function_tool
    def look() -> str:
        """Look."""
        return "nothing"

    server.default = asking(call("look", "c1"))
    agent = OpenAIAgentsAgent(agents.Agent(name="l", model=model, tools=[look]), max_turns=2)
    session = await agent.create_session()
    with pytest.raises(agents.MaxTurnsExceeded):
        await invoke(agent, "Look.", session=session)
    server.default = Completion(content="ok")
    await invoke(agent, "Again.", session=session)
    assert [message["content"] for message in server.bodies[-1]["messages"]] == ["Again."]


async def test_run_options_are_laid_over_the_run_config(model, server, invoke):
    """Law 13: a run's chat options reach the model; what the run config sets besides stays."""
    settings = agents.ModelSettings(temperature=0.1, top_p=0.9)
    agent = OpenAIAgentsAgent(agents.Agent(name="o", model=model), run_config=agents.RunConfig(model_settings=settings))
    await invoke(agent, "Go.", options=AgentRunOptions(chat_options=ChatOptions(temperature=0.7, max_output_tokens=5)))
    body = server.bodies[-1]
    assert (body["temperature"], body["top_p"], body["max_tokens"]) == (0.7, 0.9, 5)


@pytest.mark.parametrize("asked", [ChatOptions(response_format="json_object"), ChatOptions(tools=[object()])])
async def test_an_option_that_has_no_place_is_an_error(model, asked, invoke):
    """Law 13: an option that would be ignored is an error."""
    with pytest.raises(ConfigurationError, match="output_type and tools"):
        await invoke(as_agent(agents.Agent(name="o", model=model)), "Go.", options=AgentRunOptions(chat_options=asked))


async def test_the_context_reaches_the_tools(model, server, invoke):
    """Design: what is given as context is the context of each run."""
    seen = []

    @agents.function_tool
    def who(context: agents.RunContextWrapper[str]) -> str:
        """Who."""
        seen.append(context.context)
        return "you"

    server.add(asking(call("who", "c1")))
    await invoke(OpenAIAgentsAgent(agents.Agent(name="c", model=model, tools=[who]), context="ann"), "Who?")
    assert seen == ["ann"]


async def test_a_run_that_nobody_decides_about_is_left(model, server, invoke):
    """Law (C2): new input in place of a decision goes on without the call that waits: nothing is sent unbalanced."""

    @agents.function_tool(needs_approval=True)
    def delete() -> str:
        """Delete."""
        raise AssertionError

    agent = as_agent(agents.Agent(name="d", model=model, tools=[delete]))
    session = await agent.create_session()
    server.add(asking(call("delete", "c1")))
    await invoke(agent, "Delete.", session=session)
    await invoke(agent, "Never mind.", session=session)
    assert [(message["role"], message["content"]) for message in server.bodies[-1]["messages"]] == [
        ("user", "Delete."),
        ("user", "Never mind."),
    ]


async def test_an_sdk_session_holds_the_conversation(model, server, invoke):
    """Design: with `make_session` the SDK's own session holds the items, and a clone is a new one with the same."""
    made = []

    def make_session(session_id):
        made.append(sqlite_session(session_id))
        return made[-1]

    agent = OpenAIAgentsAgent(agents.Agent(name="s", model=model), make_session=make_session)
    session = await agent.create_session()
    await invoke(agent, "One.", session=session)
    clone = await agent.deserialize_session(await agent.serialize_session(session))
    await invoke(agent, "Two.", session=clone)
    assert [len(await each.get_items()) for each in made] == [2, 4]
    for each in made:
        each.close()


def test_messages_become_input_items():
    """Law 1: each content goes where the SDK has a place for it."""
    said = [
        ChatMessage("system", "Be brief."),
        ChatMessage("user", ["see", UriContent("https://example.org/a.png", "image/png")]),
        ChatMessage("user", [DataContent(b"x", "application/pdf"), UriContent("https://example.org/b", "text/html")]),
        ChatMessage(
            "assistant", [TextReasoningContent("hm"), TextContent("look"), FunctionCallContent("c", "f", {"a": 1})]
        ),
        ChatMessage("tool", FunctionResultContent("c", {"b": 2})),
    ]
    assert to_items(said) == [
        {"role": "system", "content": "Be brief."},
        {
            "role": "user",
            "content": [
                {"type": "input_text", "text": "see"},
                {"type": "input_image", "image_url": "https://example.org/a.png", "detail": "auto"},
            ],
        },
        {
            "role": "user",
            "content": [
                {"type": "input_file", "file_data": "data:application/pdf;base64,eA==", "filename": "file"},
                {"type": "input_file", "file_url": "https://example.org/b"},
            ],
        },
        {"role": "assistant", "content": "look"},
        {"type": "function_call", "call_id": "c", "name": "f", "arguments": '{"a": 1}'},
        {"type": "function_call_output", "call_id": "c", "output": '{"b": 2}'},
    ]
    with pytest.raises(ConfigurationError, match="more than text"):
        to_items([ChatMessage("assistant", DataContent(b"x", "image/png"))])


async def test_its_name_is_on_its_messages(model, invoke):
    """Law 15: the messages have the agent's name."""
    response = await invoke(as_agent(agents.Agent(name="worker", model=model)), "Go.")
    assert texts(response.messages) == [("assistant", "ok")]
    assert response.messages[0].author_name == "worker"


def test_without_the_sdk_the_extra_is_named(model, monkeypatch):
    """Design: without the SDK the extra is named; a package of another maker with its name is not taken for it."""
    agent = agents.Agent(name="w", model=model)
    for other in (None, type(sys)("agents")):
        monkeypatch.setitem(sys.modules, "agents", other)
        with pytest.raises(MissingExtraError, match=r"agents-loop\[openai-agents\]"):
            OpenAIAgentsAgent(agent)
        assert adapt_agent(agent) is None


@pytest.mark.parametrize("own_session", [False, True])
async def test_a_resumed_run_without_turns_left_keeps_what_it_did(server, invoke, own_session):
    """Law (C2): `MaxTurnsExceeded` after an approved call ends that run; what it produced stays, balanced."""
    done = []

    def delete(path: str) -> str:
        done.append(path)
        return f"deleted {path}"

    def made(call_id):
        function = {"name": "delete", "arguments": '{"path": "a"}'}
        called = {"id": call_id, "type": "function", "function": function}
        return Completion(tool_calls=(called,), finish_reason="tool_calls")

    async def only_the_first(_context, _arguments, call_id):
        return call_id == "c1"

    client = closed_later(AsyncOpenAI(api_key="k", base_url=server.base_url, max_retries=0))
    inner = agents.Agent(
        name="worker",
        model=agents.OpenAIChatCompletionsModel("m", client),
        tools=[agents.function_tool(delete, needs_approval=only_the_first)],
    )
    made_by = sqlite_session if own_session else None
    agent = OpenAIAgentsAgent(inner, max_turns=2, make_session=made_by)
    session = await agent.create_session()
    server.add(made("c1"), made("c2"))
    asked = await invoke(agent, "Go.", session=session)
    request = asked.messages[-1].contents[-1]
    answer = ChatMessage("user", ToolApprovalResponseContent(request.request_id, True, request.tool_call))
    with pytest.raises(agents.MaxTurnsExceeded):
        await invoke(agent, answer, session=session)
    await invoke(agent, "And?", session=session)
    assert [said["role"] for said in server.bodies[-1]["messages"]] == [
        *["user", "assistant", "tool", "assistant", "tool", "user"]
    ]
    assert done == ["a", "a"]
