"""Pydantic AI: what the contract suite does not ask. Its own agents, over its test models and a real server."""

import sys

import pytest
from fakes import says, texts

from agents_loop import (
    AgentResponse,
    AgentRunOptions,
    ChatMessage,
    ChatOptions,
    ChatResponse,
    CompletionMarkerLoopEvaluator,
    ConfigurationError,
    DataContent,
    FunctionCallContent,
    FunctionResultContent,
    LoopAgent,
    LoopAgentOptions,
    LoopBudget,
    LoopResult,
    MissingExtraError,
    StopReason,
    TextContent,
    ToolApprovalRequestContent,
    ToolApprovalResponseContent,
    UriContent,
    UsageDetails,
)
from agents_loop.adapting import as_agent

pytest.importorskip("pydantic_ai")

from pydantic import BaseModel
from pydantic_ai import (
    Agent,
    CallDeferred,
    DeferredToolRequests,
    ModelResponse,
    RunContext,
    TextPart,
    ToolCallPart,
)
from pydantic_ai.models.function import DeltaToolCall, FunctionModel

from agents_loop.integrations.pydantic_ai import PydanticAIAgent, adapt_agent
from agents_loop.integrations.pydantic_ai.parts import to_prompt
from agents_loop.testing import ScriptedChatClient


class Scripted:
    """A model that answers from a script, whole or streamed, and records what it was sent."""

    def __init__(self, *replies):
        self.replies = list(replies)
        self.heard = []
        self.settings = []
        self.model = FunctionModel(self.whole, stream_function=self.pieces)

    def _next(self, messages, info):
        self.heard.append(list(messages))
        self.settings.append(info.model_settings)
        return self.replies.pop(0)

    def whole(self, messages, info):
        reply = self._next(messages, info)
        return ModelResponse(parts=[TextPart(reply) if isinstance(reply, str) else reply])

    async def pieces(self, messages, info):
        reply = self._next(messages, info)
        if isinstance(reply, str):
            for start in range(0, len(reply), 3):
                yield reply[start : start + 3]
        else:
            yield {0: DeltaToolCall(reply.tool_name, reply.args_as_json_str(), tool_call_id=reply.tool_call_id)}


class Plan(BaseModel):
    steps: int


def contents(response):
    return [(str(message.role), content) for message in response.messages for content in message.contents]


async def test_a_structured_output_ends_the_response(invoke):
    """Law 14: an output that a tool call gave is the answer's text, as JSON, after the call and its result."""
    model = Scripted(ToolCallPart("final_result", {"steps": 3}, "c1"))
    response = await invoke(as_agent(Agent(model.model, output_type=Plan)), "Plan.")
    assert contents(response)[0] == ("assistant", FunctionCallContent("c1", "final_result", {"steps": 3}))
    assert contents(response)[-1] == ("assistant", TextContent('{"steps": 3}'))
    again = Agent(Scripted(ToolCallPart("final_result", {"steps": 3})).model, output_type=Plan)
    assert LoopResult.of(await invoke(LoopAgent(again, says()), "Plan.")).output == '{"steps": 3}'


async def test_a_structured_output_in_pieces_is_the_same():
    """Law 8: the pieces of a structured output make the messages of the final response."""
    agent = as_agent(Agent(Scripted(ToolCallPart("final_result", {"steps": 3}, "c1")).model, output_type=Plan))
    stream = agent.run_streaming("Plan.")
    updates = [update async for update in stream]
    final = await stream.final_response()
    assert AgentResponse.from_updates(updates).messages == final.messages
    assert final.messages[-1].text == '{"steps": 3}'


async def test_a_call_that_is_executed_outside_waits(invoke):
    """Law 3a: a deferred call ends the loop; its result, sent in the same session, resumes the run."""
    model = Scripted(ToolCallPart("slow", {}, "c1"), "It is 42.")

    agent = Agent(model.model, output_type=[str, DeferredToolRequests])

    @agent.tool_plain
    def slow() -> str:
        """Slow."""
        raise CallDeferred

    result = LoopResult.of(await invoke(LoopAgent(agent, says()), "Compute."))
    assert result.stop_reason is StopReason.PENDING_APPROVAL
    answer = ChatMessage("tool", FunctionResultContent("c1", "42"))
    response = await invoke(as_agent(agent), answer, session=result.session)
    assert response.text == "It is 42."
    assert model.heard[-1][-1].parts[-1].content == "42"


async def test_a_call_outside_can_be_denied(invoke):
    """Law (C4): a rejection of a deferred call resumes the run with a denial for its result."""
    model = Scripted(ToolCallPart("slow", {}, "c1"), "Well then.")
    agent = Agent(model.model, output_type=[str, DeferredToolRequests])

    @agent.tool_plain
    def slow() -> str:
        """Slow."""
        raise CallDeferred

    adapted = as_agent(agent)
    session = await adapted.create_session()
    asked = await invoke(adapted, "Compute.", session=session)
    request = asked.messages[-1].contents[-1]
    assert isinstance(request, ToolApprovalRequestContent)
    no = ToolApprovalResponseContent(request.request_id, approved=False, tool_call=request.tool_call)
    assert (await invoke(adapted, ChatMessage("user", no), session=session)).text == "Well then."
    assert "denied" in str(model.heard[-1][-1].parts[-1].content)


async def test_calls_that_nobody_decides_about_are_left(invoke):
    """Law (C2): new input in place of a decision goes on without the calls that wait: nothing is sent unbalanced."""
    model = Scripted(ToolCallPart("delete", {}, "c1"), "Fine.")
    agent = Agent(model.model, output_type=[str, DeferredToolRequests])

    @agent.tool_plain(requires_approval=True)
    def delete() -> str:
        """Delete."""
        raise AssertionError

    adapted = as_agent(agent)
    session = await adapted.create_session()
    await invoke(adapted, "Delete.", session=session)
    assert (await invoke(adapted, "Never mind.", session=session)).text == "Fine."
    assert not [part for message in model.heard[-1] for part in message.parts if isinstance(part, ToolCallPart)]


async def test_run_options_are_model_settings(invoke):
    """Law 13: a run's chat options reach the model under the framework's names."""
    model = Scripted("ok")
    asked = ChatOptions(temperature=0.5, max_output_tokens=9, seed=3, stop_sequences=["END"])
    await invoke(as_agent(Agent(model.model)), "Go.", options=AgentRunOptions(chat_options=asked))
    assert model.settings[-1] == {"temperature": 0.5, "max_tokens": 9, "seed": 3, "stop_sequences": ["END"]}


@pytest.mark.parametrize("asked", [ChatOptions(response_format="json_object"), ChatOptions(tools=[object()])])
async def test_an_option_that_has_no_place_is_an_error(asked, invoke):
    """Law 13: an option that would be ignored is an error."""
    with pytest.raises(ConfigurationError, match="output_type and tools"):
        await invoke(as_agent(Agent(Scripted("x").model)), "Go.", options=AgentRunOptions(chat_options=asked))


async def test_deps_reach_the_tools(invoke):
    """Design: what is given as deps is each run's."""
    seen = []
    agent = Agent(Scripted(ToolCallPart("who", {}), "you").model, deps_type=str)

    @agent.tool
    def who(context: RunContext[str]) -> str:
        """Who."""
        seen.append(context.deps)
        return "you"

    await invoke(PydanticAIAgent(agent, deps="ann"), "Who?")
    assert seen == ["ann"]


async def test_a_failed_run_leaves_the_session_as_it_was(invoke):
    """Law: a run that fails adds nothing to the history."""
    model = Scripted("one")
    agent = as_agent(Agent(model.model))
    session = await agent.create_session()
    await invoke(agent, "One.", session=session)
    before = await agent.serialize_session(session)
    with pytest.raises(IndexError):
        await invoke(agent, "Two.", session=session)
    assert await agent.serialize_session(session) == before


def test_messages_become_a_history_and_a_prompt():
    """Law 1: what the user said last is the prompt, in order; what came before is history, each content in its place."""
    said = [
        ChatMessage("system", "Be brief."),
        ChatMessage("user", "Look it up."),
        ChatMessage("assistant", ["Looking.", FunctionCallContent("c", "look", {"a": 1})]),
        ChatMessage("tool", FunctionResultContent("c", "found")),
        ChatMessage(
            "user", ["And this?", DataContent(b"x", "image/png"), UriContent("https://example.org/a", "audio/mp3")]
        ),
        ChatMessage("user", "Well?"),
    ]
    history, prompt = to_prompt(said)
    assert [message.kind for message in history] == ["request", "request", "response", "request"]
    assert [part.part_kind for part in history[2].parts] == ["text", "tool-call"]
    assert [part.part_kind for part in history[3].parts] == ["tool-return"]
    assert (prompt[0], prompt[1].data, prompt[2].url, prompt[3]) == (
        "And this?",
        b"x",
        "https://example.org/a",
        "Well?",
    )
    assert to_prompt([ChatMessage("user", "One.")]) == ([], "One.")
    assert to_prompt([]) == ([], None)
    with pytest.raises(ConfigurationError, match="function call"):
        to_prompt([ChatMessage("user", FunctionCallContent("c", "f"))])


async def test_a_wrapped_agent_is_adapted(invoke):
    """Design: whatever is an agent of the framework is adapted, its own wrappers too."""
    from pydantic_ai.agent import WrapperAgent

    class Mine(WrapperAgent):
        """A user's own."""

    agent = as_agent(Mine(Agent(Scripted("hi").model, name="mine")))
    response = await invoke(agent, "Go.")
    assert texts(response.messages) == [("assistant", "hi")]
    assert (agent.name, response.messages[0].author_name) == ("mine", "mine")


def test_without_the_framework_the_extra_is_named(monkeypatch):
    """Design: without the SDK the extra is named."""
    agent = Agent(Scripted().model)
    monkeypatch.setitem(sys.modules, "pydantic_ai", None)
    with pytest.raises(MissingExtraError, match=r"agents-loop\[pydantic-ai\]"):
        PydanticAIAgent(agent)
    assert adapt_agent(agent) is None


async def test_a_budget_counts_the_agents_own_calls_beside_those_of_its_tools(invoke):
    """U1, U2: a tool that asks a chat client of ours hides nothing of what the agent uses itself."""
    helper = ScriptedChatClient(lambda *_: ChatResponse("a fact", usage=UsageDetails(5, 1)))
    agent = Agent(Scripted(*[ToolCallPart("look", {}), "a draft"] * 2).model)

    @agent.tool_plain
    async def look() -> str:
        return (await helper.get_response([ChatMessage("user", "?")])).text

    loop = LoopAgent(agent, CompletionMarkerLoopEvaluator("DONE"), LoopAgentOptions(budget=LoopBudget(max_tokens=50)))
    result = LoopResult.of(await invoke(loop, "go"))
    assert result.stop_reason is StopReason.BUDGET_EXCEEDED
    assert [entry.usage for entry in result.ledger] == [UsageDetails(5, 1), result.iterations[0].response.usage]
