"""Microsoft Agent Framework: what the contract suite does not ask. Its own agents and clients, over a real server."""

import json
import sys

import pytest
from fakes import says, texts
from fault_server import Completion, usage

from agents_loop import (
    AgentRunOptions,
    AIJudgeLoopEvaluator,
    ChatMessage,
    ChatOptions,
    ChatResponse,
    DataContent,
    ErrorContent,
    FunctionCallContent,
    FunctionResultContent,
    JsonSchemaFormat,
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
from agents_loop.adapting import as_agent, as_chat_client

pytest.importorskip("agent_framework")
pytest.importorskip("agent_framework_openai")

from agent_framework import Agent, BaseAgent, Content, Message, tool
from agent_framework import AgentResponse as TheirResponse
from agent_framework.openai import OpenAIChatCompletionClient
from pydantic import BaseModel

from agents_loop.integrations.agent_framework import (
    AgentFrameworkAgent,
    AgentFrameworkChatClient,
    as_agent_framework_agent,
)
from agents_loop.integrations.agent_framework.contents import from_framework, to_framework


@pytest.fixture
def client(server):
    return OpenAIChatCompletionClient(model="m", api_key="k", base_url=server.base_url)


@pytest.fixture
def agent(client):
    return Agent(client=client, name="worker", description="Works.", instructions="Be brief.")


# --- in: agents


def test_it_has_the_agents_identity(agent):
    """Design: id, name and description are the framework's; the framework's agent is a service."""
    adapted = as_agent(agent)
    assert (adapted.id, adapted.name, adapted.description) == (agent.id, "worker", "Works.")
    assert adapted.get_service(Agent) is agent
    assert adapted.get_service(AgentFrameworkAgent) is adapted


async def test_a_users_own_agent_is_adapted(invoke):
    """Design: an agent of a user's class, with a plain async generator for a stream, is adapted by what it derives from."""

    class Mine(BaseAgent):
        def run(self, messages=None, *, stream=False, session=None, **given):
            return self.pieces() if stream else self.whole()

        async def whole(self):
            return TheirResponse(messages=[Message("assistant", ["mine"])])

        async def pieces(self):
            from agent_framework import AgentResponseUpdate

            for word in ("mi", "ne"):
                yield AgentResponseUpdate(role="assistant", contents=[Content.from_text(word)])

    assert (await invoke(as_agent(Mine(name="mine")), "Go.")).text == "mine"


async def test_run_options_reach_the_model(agent, server, invoke):
    """Law 13: the caller's run options reach every inner run, under the framework's names."""
    asked = ChatOptions(model_id="other", temperature=0.5, max_output_tokens=9, stop_sequences=["END"], seed=3)
    await invoke(LoopAgent(agent, says("More.")), "Go.", options=AgentRunOptions(chat_options=asked))
    for body in server.bodies:
        assert (body["model"], body["temperature"], body["stop"], body["seed"]) == ("other", 0.5, ["END"], 3)
        assert 9 in (body.get("max_tokens"), body.get("max_completion_tokens"))


async def test_a_loop_resumes_after_an_approval(client, server, invoke):
    """Law 3a (C4): a loop over an agent that asks ends as pending, and goes on in its session with the answer."""
    done = []

    @tool(approval_mode="always_require")
    def delete(path: str) -> str:
        """Delete."""
        done.append(path)
        return "deleted"

    call = {"id": "c1", "type": "function", "function": {"name": "delete", "arguments": '{"path": "a"}'}}
    server.add(Completion(tool_calls=(call,), finish_reason="tool_calls"), Completion(content="Deleted."))
    loop = LoopAgent(Agent(client=client, tools=[delete]), says())
    result = LoopResult.of(await invoke(loop, "Delete a."))
    assert result.stop_reason is StopReason.PENDING_APPROVAL
    request = result.iterations[-1].response.messages[-1].contents[-1]
    answer = ToolApprovalResponseContent(request.request_id, approved=True, tool_call=request.tool_call)
    response = await invoke(loop, ChatMessage("user", answer), session=result.session)
    assert LoopResult.of(response).stop_reason is StopReason.SATISFIED
    assert LoopResult.of(response).output == "Deleted."
    assert done == ["a"]


# --- contents


CONTENTS = [
    TextContent("hi"),
    TextReasoningContent("hm"),
    DataContent(b"\x89PNG", "image/png"),
    UriContent("https://example.org/a.png", "image/png"),
    FunctionCallContent("c", "f", {"a": 1}),
    FunctionCallContent("c", "f"),
    FunctionResultContent("c", "3"),
    ToolApprovalRequestContent("r", FunctionCallContent("c", "f", {"a": 1})),
    ToolApprovalResponseContent("r", approved=True, tool_call=FunctionCallContent("c", "f", {"a": 1})),
    ErrorContent("no", code="refusal"),
]


@pytest.mark.parametrize("content", CONTENTS, ids=lambda content: type(content).__name__)
def test_contents_survive_the_way_there_and_back(content):
    """Law 1: each content is the same after the way into the framework and back, and so are role, name and id."""
    message = ChatMessage("user", content, author_name="ann", message_id="m1")
    [back] = from_framework(to_framework([message]))
    assert (back, back.message_id) == (message, "m1")


def test_every_message_has_an_id():
    """Law (C5): the framework drops a turn that it takes for a repetition; one with an id of its own it keeps."""
    said = to_framework([ChatMessage("user", "hi"), ChatMessage("user", "hi")])
    assert all(message.message_id for message in said)
    assert said[0].message_id != said[1].message_id


def test_a_question_to_a_person_is_a_request():
    """Law 3a: whatever the framework asks a person for ends the loop, not tool calls alone."""
    asked = Content.from_oauth_consent_request("https://example.org/consent")
    [message] = from_framework([Message("assistant", [asked])])
    [request] = message.contents
    assert isinstance(request, ToolApprovalRequestContent)
    assert request.tool_call.name == "oauth_consent_request"
    assert request.tool_call.arguments["consent_link"] == "https://example.org/consent"


def test_what_a_service_did_is_a_call_and_its_result():
    """Law 14: a hosted tool's call and result are in the response, with what they say."""
    said = [
        Content.from_mcp_server_tool_call("c1", "look_up", server_name="s", arguments={"q": "x"}),
        Content.from_mcp_server_tool_result("c1", output="found"),
        Content.from_hosted_file("file-1"),
    ]
    [message] = from_framework([Message("assistant", said)])
    call, result, file = message.contents
    assert isinstance(call, FunctionCallContent)
    assert (call.call_id, call.name) == ("c1", "look_up")
    assert isinstance(result, FunctionResultContent)
    assert (result.call_id, result.result["output"]) == ("c1", "found")
    assert file == UriContent("file-1", "application/octet-stream")


# --- in: chat clients


class Verdict(BaseModel):
    good: bool


SCHEMA = {
    "type": "object",
    "properties": {"good": {"type": "boolean"}},
    "required": ["good"],
    "additionalProperties": False,
}


@pytest.mark.parametrize(
    ("asked", "kind"),
    [(Verdict, "json_schema"), (JsonSchemaFormat("verdict", SCHEMA), "json_schema"), ("json_object", "json_object")],
    ids=["model", "schema", "json object"],
)
async def test_a_response_format_is_sent(client, server, asked, kind):
    """Law 23: a format that is asked for is sent as the framework's own."""
    await as_chat_client(client).get_response([ChatMessage("user", "Good?")], ChatOptions(response_format=asked))
    sent = server.bodies[-1]["response_format"]
    assert sent["type"] == kind
    if isinstance(asked, JsonSchemaFormat):
        assert sent["json_schema"] == {"name": "verdict", "schema": SCHEMA, "strict": True}


async def test_an_answer_is_whole_and_in_pieces(client, server):
    """Contract of chat clients: text, usage, model and finish reason, streamed or not."""
    server.default = Completion(content="one two three", usage=usage(3, 4))
    adapted = as_chat_client(client)
    assert isinstance(adapted, AgentFrameworkChatClient)
    whole = await adapted.get_response([ChatMessage("user", "Go.")])
    pieces = [piece async for piece in adapted.get_streaming_response([ChatMessage("user", "Go.")])]
    streamed = ChatResponse.from_updates(pieces)
    assert len([piece for piece in pieces if piece.text]) > 1
    for response in (whole, streamed):
        assert texts(response.messages) == [("assistant", "one two three")]
        assert (response.usage, response.finish_reason, response.model_id) == (
            UsageDetails(3, 4, 7),
            "stop",
            "served-model",
        )


async def test_a_client_of_the_framework_judges(agent, client, server, invoke):
    """Design: a judge takes any known chat client; it is asked directly, for the verdict's schema."""
    server.add(Completion(content="draft"), Completion(content='{"gapAnalysis": "no cost", "answered": false}'))
    server.add(Completion(content="better"), Completion(content='{"gapAnalysis": "", "answered": true}'))
    response = await invoke(LoopAgent(agent, AIJudgeLoopEvaluator(client)), "Plan.")
    assert LoopResult.of(response).stop_reason is StopReason.SATISFIED
    judge = server.bodies[1]
    assert [message["role"] for message in judge["messages"]] == ["system", "user"]
    assert judge["response_format"]["type"] == "json_schema"
    assert "tools" not in judge
    assert "no cost" in server.bodies[2]["messages"][-1]["content"]


# --- out


@pytest.fixture
def looped(agent):
    """A loop that goes on twice, as an agent of the framework."""
    return as_agent_framework_agent(LoopAgent(agent, says("More.", "Yet more.")), name="looped", description="Loops.")


def three_drafts(server):
    for number in (1, 2, 3):
        server.add(Completion(content=f"draft {number}", usage=usage(10, 1)))


async def test_a_loop_is_an_agent_of_the_framework(looped, server):
    """Out: it has an identity, answers with the last iteration, and reports the usage of all."""
    three_drafts(server)
    response = await looped.run("Write.")
    assert (looped.name, looped.description) == ("looped", "Loops.")
    assert [(message.role, message.author_name, message.text) for message in response.messages] == [
        ("assistant", "looped", "draft 3")
    ]
    assert response.usage_details["total_token_count"] == 33


async def test_its_stream_brings_the_last_iteration_alone(looped, server):
    """Out: a workflow joins a stream's pieces into one message, so drafts are not among them."""
    three_drafts(server)
    stream = looped.run("Write.", stream=True)
    assert "".join([update.text async for update in stream]) == "draft 3"
    final = await stream.get_final_response()
    assert (final.text, final.usage_details["total_token_count"]) == ("draft 3", 33)


async def test_a_stream_that_is_not_read_runs_nothing(looped, server):
    """Law 17: nothing starts until it is iterated."""
    looped.run("Write.", stream=True)
    assert server.requests == []


async def test_all_iterations_on_request(agent, server):
    """Out: on request the response is the loop's own, drafts and feedback included."""
    three_drafts(server)
    looped = as_agent_framework_agent(LoopAgent(agent, says("More.", "Yet more.")), iterations="all")
    response = await looped.run("Write.")
    assert [message.text for message in response.messages] == ["draft 1", "More.", "draft 2", "Yet more.", "draft 3"]


async def test_a_session_holds_the_loops_conversation(agent, server):
    """Out: a session of the framework, also one that was written and read, goes on with the loop's conversation."""
    looped = as_agent_framework_agent(LoopAgent(agent, says()))
    session = looped.create_session()
    await looped.run("One.", session=session)
    await looped.run("Two.", session=session)
    later = type(session).from_dict(json.loads(json.dumps(session.to_dict())))
    await looped.run("Three.", session=later)
    said = [message["content"] for message in server.bodies[-1]["messages"] if message["role"] == "user"]
    assert said == ["One.", "Two.", "Three."]


@pytest.mark.parametrize("streaming", [False, True], ids=["run", "stream"])
async def test_it_takes_part_in_a_sequence(looped, client, server, streaming):
    """Out: in `SequentialBuilder` the next agent reads the request and the loop's last answer, and no draft."""
    pytest.importorskip("agent_framework_orchestrations")
    from agent_framework.orchestrations import SequentialBuilder

    three_drafts(server)
    workflow = SequentialBuilder(participants=[looped, Agent(client=client, name="editor")]).build()
    if streaming:
        async for _ in workflow.run("Write.", stream=True):
            pass
    else:
        await workflow.run("Write.")
    assert len(server.requests) == 4
    said = [(message["role"], message["content"]) for message in server.bodies[-1]["messages"]]
    assert [content for _, content in said] == ["Write.", "draft 3"]


@pytest.mark.parametrize("wrong", [None, "agent", object()], ids=["none", "text", "object"])
def test_only_an_agent_goes_out(wrong):
    """Out: wrong use is an error before anything runs."""
    with pytest.raises(TypeError, match="agent must be"):
        as_agent_framework_agent(wrong)


def test_an_unknown_choice_of_iterations_is_an_error(agent):
    """Out: what is no choice is an error that names the choices."""
    with pytest.raises(ValueError, match="'last' or 'all'"):
        as_agent_framework_agent(as_agent(agent), iterations="first")


# --- without it


def test_without_the_framework_the_extra_is_named(agent, client, monkeypatch):
    """Design: without the SDK an adapter names the extra to install."""
    ours = as_agent(agent)
    monkeypatch.setitem(sys.modules, "agent_framework", None)
    for make in (lambda: AgentFrameworkAgent(agent), lambda: AgentFrameworkChatClient(client)):
        with pytest.raises(MissingExtraError, match=r"agents-loop\[agent-framework\]"):
            make()
    with pytest.raises(MissingExtraError, match="as_agent_framework_agent"):
        as_agent_framework_agent.__globals__["_outward_agent"].__wrapped__()
    assert ours.name == "worker"
