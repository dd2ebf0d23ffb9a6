from __future__ import annotations

import asyncio

import pytest

pytest.importorskip("semantic_kernel")

from fault_server import Completion, Failure, FaultServer, usage
from kernel_fakes import ScriptedService, calls, says
from openai import APIStatusError
from pydantic import BaseModel
from semantic_kernel.connectors.ai.function_choice_behavior import FunctionChoiceBehavior
from semantic_kernel.connectors.ai.open_ai import OpenAIChatPromptExecutionSettings
from semantic_kernel.connectors.ai.prompt_execution_settings import PromptExecutionSettings
from semantic_kernel.exceptions import ServiceResponseException

from agents_loop import (
    AIJudgeLoopEvaluator,
    ChatClientAgent,
    ChatMessage,
    ChatOptions,
    ChatResponse,
    ConfigurationError,
    DataContent,
    ErrorContent,
    FunctionCallContent,
    FunctionResultContent,
    JsonSchemaFormat,
    LoopAgent,
    LoopResult,
    TextContent,
    UriContent,
    UsageDetails,
)
from agents_loop.integrations.semantic_kernel import SemanticKernelChatClient, adapt_chat_client


class Ask:
    """One of the two ways to ask a client."""

    def __init__(self, *, streaming: bool) -> None:
        self.streaming = streaming

    async def __call__(self, client, messages, options=None) -> ChatResponse:
        if not self.streaming:
            return await client.get_response(messages, options)
        return ChatResponse.from_updates([u async for u in client.get_streaming_response(messages, options)])


@pytest.fixture(params=[False, True], ids=["whole", "streamed"])
def ask(request: pytest.FixtureRequest) -> Ask:
    return Ask(streaming=request.param)


HI = [ChatMessage("user", "hi")]


class Verdict(BaseModel):
    answered: bool


def test_any_service_is_adapted():
    """Adapters: a chat completion service is a chat client, anything else is not."""
    client = adapt_chat_client(ScriptedService())
    assert isinstance(client, SemanticKernelChatClient)
    assert repr(client) == "SemanticKernelChatClient(ScriptedService, model_id='scripted')"
    assert adapt_chat_client("x") is None
    with pytest.raises(TypeError, match="not str"):
        SemanticKernelChatClient("x")


async def test_an_answer_over_the_wire(ask: Ask, openai_service, server: FaultServer):
    """Adapters: text, usage, ids and the reason for stopping come from the service's own reply."""
    server.add(
        Completion(
            content="hello there",
            usage=usage(
                7, 3, prompt_tokens_details={"cached_tokens": 5}, completion_tokens_details={"reasoning_tokens": 1}
            ),
        )
    )
    response = await ask(SemanticKernelChatClient(openai_service), HI)
    assert (response.text, response.finish_reason) == ("hello there", "stop")
    assert response.usage == UsageDetails(7, 3, 10, 5, 1)
    assert (response.response_id, response.model_id, response.created_at) == ("reply-1", "m", 1_700_000_000)
    assert server.bodies[0]["messages"] == [{"role": "user", "content": "hi"}]


async def test_options_are_sent(ask: Ask, openai_service, server: FaultServer):
    """Adapters: options go into the service's settings, laid over those that were given."""
    settings = OpenAIChatPromptExecutionSettings(
        temperature=1.0, user="u", function_choice_behavior=FunctionChoiceBehavior.Auto()
    )
    client = SemanticKernelChatClient(openai_service, settings=settings, options=ChatOptions(top_p=0.5, seed=1))
    options = ChatOptions(
        temperature=0.0,
        max_output_tokens=9,
        stop_sequences=("a", "b"),
        seed=3,
        model_id="other",
        additional_properties={"top_k": 4, "store": True},
    )
    await ask(client, HI, options)
    body = server.bodies[0]
    expected = {
        "temperature": 0.0,
        "user": "u",
        "top_p": 0.5,
        "max_completion_tokens": 9,
        "stop": ["a", "b"],
        "seed": 3,
    }
    assert expected.items() <= body.items()
    assert (body["model"], body["top_k"], body["store"]) == ("other", 4, True)
    assert "tools" not in body
    assert settings.temperature == 1.0
    assert isinstance(settings.function_choice_behavior, FunctionChoiceBehavior)


@pytest.mark.parametrize(
    ("asked", "sent"),
    [
        ("json_object", {"type": "json_object"}),
        ("text", None),
        (
            JsonSchemaFormat("v", {"type": "object"}, strict=False),
            {"type": "json_schema", "json_schema": {"name": "v", "schema": {"type": "object"}, "strict": False}},
        ),
    ],
)
async def test_a_response_format_is_sent(ask: Ask, openai_service, server: FaultServer, asked, sent):
    """Adapters: the response format goes through the execution settings."""
    await ask(SemanticKernelChatClient(openai_service), HI, ChatOptions(response_format=asked))
    assert server.bodies[0].get("response_format") == sent


async def test_a_pydantic_model_is_sent_as_its_strict_schema(ask: Ask, openai_service, server: FaultServer):
    """Adapters: Semantic Kernel makes the strict schema of a pydantic model."""
    await ask(SemanticKernelChatClient(openai_service), HI, ChatOptions(response_format=Verdict))
    sent = server.bodies[0]["response_format"]["json_schema"]
    assert (sent["name"], sent["strict"], sent["schema"]["additionalProperties"]) == ("Verdict", True, False)


async def test_a_service_without_a_setting_says_so():
    """Adapters: an option that would be ignored is an error; a response format is left to the messages."""

    class Plain(ScriptedService):
        def get_prompt_execution_settings_class(self):
            return PromptExecutionSettings

    client = SemanticKernelChatClient(Plain("ok"))
    with pytest.raises(ConfigurationError, match=r"temperature=0\.5"):
        await client.get_response(HI, ChatOptions(temperature=0.5))
    with pytest.raises(ConfigurationError, match="top_k"):
        await client.get_response(HI, ChatOptions(additional_properties={"top_k": 1}))
    assert (await client.get_response(HI, ChatOptions(response_format="json_object"))).text == "ok"


async def test_a_value_that_the_settings_do_not_take_is_wrong_use(openai_service):
    """Adapters: Semantic Kernel's own check of a value is a configuration error."""
    client = SemanticKernelChatClient(openai_service)
    with pytest.raises(ConfigurationError, match="temperature"):
        await client.get_response(HI, ChatOptions(temperature=9))
    with pytest.raises(ConfigurationError, match="response_format"):
        await client.get_response(HI, ChatOptions(response_format=3))


async def test_contents_reach_the_wire(ask: Ask, openai_service, server: FaultServer):
    """Adapters: images, links, calls and results are put as the API wants them."""
    await ask(
        SemanticKernelChatClient(openai_service),
        [
            ChatMessage("system", "Look."),
            ChatMessage(
                "user",
                ["This?", DataContent(b"\x01\x02", "image/png"), UriContent("https://x.example/a.png", "image/png")],
                author_name="Ada",
            ),
            ChatMessage(
                "assistant", [FunctionCallContent("c1", "look", {"at": "ü"}), FunctionCallContent("c2", "look", "{")]
            ),
            ChatMessage("tool", [FunctionResultContent("c1", {"seen": 1}), FunctionResultContent("c2", "bad")]),
            ChatMessage("user", [ErrorContent("not sent")]),
            ChatMessage("user", ["a", "b"], author_name="not a name"),
        ],
    )
    assert server.bodies[0]["messages"] == [
        {"role": "system", "content": "Look."},
        {
            "role": "user",
            "name": "Ada",
            "content": [
                {"type": "text", "text": "This?"},
                {"type": "image_url", "image_url": {"url": "data:image/png;base64,AQI="}},
                {"type": "image_url", "image_url": {"url": "https://x.example/a.png"}},
            ],
        },
        {
            "role": "assistant",
            "tool_calls": [
                {"id": "c1", "type": "function", "function": {"name": "look", "arguments": '{"at": "ü"}'}},
                {"id": "c2", "type": "function", "function": {"name": "look", "arguments": "{"}},
            ],
        },
        {"role": "tool", "tool_call_id": "c1", "content": '{"seen": 1}'},
        {"role": "tool", "tool_call_id": "c2", "content": "bad"},
        {"role": "user", "content": "ab"},
    ]


async def test_what_can_t_be_sent_is_wrong_use():
    """Adapters: an unknown role, and nothing to say, are errors before anything is sent."""
    client = SemanticKernelChatClient(ScriptedService())
    with pytest.raises(ConfigurationError, match="critic"):
        await client.get_response([ChatMessage("critic", "x")])
    with pytest.raises(ConfigurationError, match="none"):
        await client.get_response([])


async def test_tool_calls_are_contents_and_nothing_is_run(ask: Ask, openai_service, server: FaultServer):
    """Adapters: a reply of calls alone is an answer; no kernel function is run."""
    call = {"id": "c1", "type": "function", "function": {"name": "look", "arguments": '{"city": "Oslo"}'}}
    other = {"id": "c2", "type": "function", "function": {"name": "look", "arguments": ""}}
    server.add(Completion(content=None, tool_calls=(call, other), finish_reason="tool_calls"))
    tools = [{"type": "function", "function": {"name": "look", "parameters": {"type": "object"}}}]
    response = await ask(SemanticKernelChatClient(openai_service), HI, ChatOptions(tools=tools))
    assert response.messages[0].contents == [
        FunctionCallContent("c1", "look", {"city": "Oslo"}),
        FunctionCallContent("c2", "look", None),
    ]
    assert response.finish_reason == "tool_calls"
    assert server.bodies[0]["tools"] == tools
    assert len(server.requests) == 1


async def test_our_tools_are_declared_and_run_by_our_agent(openai_service, server: FaultServer):
    """Adapters: a chat client agent over a service of Semantic Kernel runs its own tools."""

    def look(city: str) -> str:
        """The weather in a city."""
        return f"rain in {city}"

    call = {"id": "c1", "type": "function", "function": {"name": "look", "arguments": '{"city": "Oslo"}'}}
    server.add(Completion(content=None, tool_calls=(call,), finish_reason="tool_calls"), Completion(content="Rain."))
    agent = ChatClientAgent(SemanticKernelChatClient(openai_service), tools=[look])
    assert (await agent.run("Weather?")).messages[-1].text == "Rain."
    assert server.bodies[0]["tools"][0]["function"]["description"] == "The weather in a city."
    assert server.bodies[1]["messages"][-1] == {"role": "tool", "tool_call_id": "c1", "content": "rain in Oslo"}


@pytest.mark.parametrize("reason", ["length", "content_filter"])
async def test_an_answer_that_ended_early_says_why(ask: Ask, openai_service, server: FaultServer, reason):
    """Adapters: an answer that was cut off or filtered is an answer."""
    server.add(Completion(content="half an", finish_reason=reason, usage=usage(1, 2)))
    response = await ask(SemanticKernelChatClient(openai_service), HI)
    assert (response.text, response.finish_reason) == ("half an", reason)


async def test_a_refusal_is_told_apart_from_text(ask: Ask, openai_service, server: FaultServer):
    """Adapters: a refusal is no text of the answer."""
    server.add(Completion(content=None, refusal="I won't."))
    response = await ask(SemanticKernelChatClient(openai_service), HI)
    assert response.messages[0].contents == [ErrorContent("I won't.", code="refusal")]
    assert response.finish_reason == "refusal"


async def test_a_filtered_answer_and_a_filtered_prompt(ask: Ask, openai_service, server: FaultServer):
    """Adapters: what a filter withholds is an outcome, not an error."""
    server.add(Completion(content="", finish_reason="content_filter"), Failure(400, "Filtered.", code="content_filter"))
    for _ in range(2):
        response = await ask(SemanticKernelChatClient(openai_service), HI)
        (content,) = response.messages[0].contents
        assert (content.code, response.finish_reason) == ("content_filter", "content_filter")


async def test_an_error_is_raised_as_it_was(ask: Ask, openai_service, server: FaultServer):
    """Adapters: what Semantic Kernel raises reaches the caller, with the SDK's error as its cause."""
    server.add(Failure(500, "broken"))
    with pytest.raises(ServiceResponseException) as caught:
        await ask(SemanticKernelChatClient(openai_service), HI)
    assert isinstance(caught.value.__cause__, APIStatusError)


async def test_a_stream_that_breaks_tells_its_usage_first():
    """Adapters: a broken stream has cost something too."""
    from kernel_fakes import chunk
    from semantic_kernel.connectors.ai.completion_usage import CompletionUsage

    class Breaking(ScriptedService):
        async def _inner_get_streaming_chat_message_contents(self, chat_history, settings, function_invoke_attempt=0):
            yield [chunk([], 0, metadata={"usage": CompletionUsage(prompt_tokens=4)})]
            raise OSError("gone")

    stream = SemanticKernelChatClient(Breaking()).get_streaming_response(HI)
    told = await anext(stream)
    with pytest.raises(OSError, match="gone"):
        await anext(stream)
    assert ChatResponse.from_updates([told]).usage == UsageDetails(4)


async def test_leaving_a_stream_closes_the_service():
    """Adapters: closing a stream early closes what the service has open."""
    service = ScriptedService("a long answer")
    stream = SemanticKernelChatClient(service).get_streaming_response(HI)
    async for _ in stream:
        break
    await stream.aclose()
    assert (service._opened, service._closed) == (1, 1)


async def test_a_cancelled_call_closes_the_service():
    """Adapters: cancelling a call cancels the service's."""
    service = ScriptedService("never", hangs=True)
    task = asyncio.create_task(SemanticKernelChatClient(service).get_response(HI))
    await service._asked.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert service._closed == 1


async def test_streamed_calls_without_an_index_are_told_apart_by_their_ids():
    """Adapters: connectors that give no index give whole calls."""
    reply = calls("look", '{"a": 1}')
    reply.items.append(reply.items[0].model_copy(update={"id": "call-2", "index": None}))
    reply.items[0].index = None
    response = ChatResponse.from_updates(
        [u async for u in SemanticKernelChatClient(ScriptedService(reply)).get_streaming_response(HI)]
    )
    assert [content.call_id for content in response.messages[0].contents] == ["call-1", "call-2"]


async def test_it_judges_a_loop(openai_service, server: FaultServer):
    """Adapters: a service of Semantic Kernel is a judge; its verdict is asked for as the schema says."""
    server.add(
        Completion(content='{"gapAnalysis": "no cost", "answered": false}', usage=usage(5, 5)),
        Completion(content='{"gapAnalysis": "", "answered": true}', usage=usage(5, 5)),
    )
    worker = ChatClientAgent(SemanticKernelChatClient(ScriptedService("a plan", "a plan with a cost")))
    loop = LoopAgent(worker, AIJudgeLoopEvaluator(SemanticKernelChatClient(openai_service)))
    result = LoopResult.of(await loop.run("Plan it"))
    assert (result.stop_reason, result.output) == ("satisfied", "a plan with a cost")
    assert result.usage == UsageDetails(10, 10, 20)
    assert server.bodies[0]["response_format"]["type"] == "json_schema"
    assert says("x").content == TextContent("x").text
