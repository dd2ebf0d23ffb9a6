"""What an adapter adds to the cost of the framework it adapts, for the same iterations in the same process.

    python benchmarks/adapters.py [--json] [FRAMEWORK ...]

Both sides run the framework's own agent over a provider that answers at once, in this process, so what is measured is
CPU time: the framework's way of continuing a conversation by hand, and the same turns through the adapter. They take
turns at being first, and the median of the rounds' ratios counts. A framework that is not installed is left out.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import importlib.util
import itertools
import json
import statistics
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

ANSWER = ("The release went out on Tuesday after the last fix was merged. " * 4)[:200]
FEEDBACK = "Name an owner for each risk, and say what it costs."
ITERATIONS = 10
ROUNDS = 20
WARM_UP_ROUNDS = 3

Turns = Callable[[], Awaitable[object]]
"""One conversation of `ITERATIONS` turns."""


@dataclass(frozen=True)
class Case:
    """The same turns, by the framework alone and through the adapter."""

    name: str
    alone: Turns
    adapted: Turns


# --- a provider without a network


NUMBER = "@NUMBER@"
"""What each reply has another of: frameworks drop a turn that repeats the last."""


def completion(*, streaming: bool) -> tuple[str, bytes]:
    """The body that a server of the chat completions API sends, and its type; streamed as words."""
    head = {"id": f"reply-{NUMBER}", "created": 1_700_000_000, "model": "m"}
    usage = {"prompt_tokens": 100, "completion_tokens": 40, "total_tokens": 140}
    if not streaming:
        choice = {
            "index": 0,
            "finish_reason": "stop",
            "message": {"role": "assistant", "content": f"{NUMBER} {ANSWER}"},
        }
        whole = {**head, "object": "chat.completion", "choices": [choice], "usage": usage}
        return "application/json", json.dumps(whole).encode()
    deltas = [{"role": "assistant", "content": ""}, *[{"content": f"{word} "} for word in (NUMBER, *ANSWER.split())]]
    chunks: list[dict[str, Any]] = [{"choices": [{"index": 0, "delta": delta}]} for delta in deltas]
    chunks += [{"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}, {"choices": [], "usage": usage}]
    events = [json.dumps({**head, "object": "chat.completion.chunk", **chunk}) for chunk in chunks]
    return "text/event-stream", "".join([f"data: {event}\n\n" for event in [*events, "[DONE]"]]).encode()


def in_process_http() -> Any:
    """An HTTP client over a transport that answers in this process."""
    import httpx2  # noqa: PLC0415 - measured if installed

    bodies = {streaming: completion(streaming=streaming) for streaming in (False, True)}
    numbers = itertools.count(1)

    def answer(request: httpx2.Request) -> httpx2.Response:
        kind, body = bodies[b'"stream":true' in request.content]
        numbered = body.replace(NUMBER.encode(), str(next(numbers)).encode())
        return httpx2.Response(200, content=numbered, headers={"Content-Type": kind})

    return httpx2.AsyncClient(transport=httpx2.MockTransport(answer))


def openai_client() -> Any:
    """OpenAI's own client, over that transport."""
    import openai  # noqa: PLC0415

    return openai.AsyncOpenAI(api_key="none", base_url="http://in-process/v1", http_client=in_process_http())


def cases(name: str, adapter: Any, alone: Turns, alone_streaming: Turns) -> list[Case]:
    """A framework's own turns, and the same through its adapter."""

    async def adapted() -> None:
        session = await adapter.create_session()
        for _ in range(ITERATIONS):
            (await adapter.run(FEEDBACK, session=session)).text  # noqa: B018 - reading it is part of the work

    async def adapted_streaming() -> None:
        session = await adapter.create_session()
        for _ in range(ITERATIONS):
            (await adapter.run_streaming(FEEDBACK, session=session).final_response()).text  # noqa: B018

    return [Case(f"{name}: run", alone, adapted), Case(f"{name}: streaming", alone_streaming, adapted_streaming)]


# --- Semantic Kernel


def semantic_kernel_cases() -> list[Case]:
    """With its OpenAI connector; and with a service that does nothing, which shows the adapter enlarged."""
    from semantic_kernel.connectors.ai.chat_completion_client_base import ChatCompletionClientBase  # noqa: PLC0415
    from semantic_kernel.connectors.ai.open_ai import OpenAIChatCompletion  # noqa: PLC0415
    from semantic_kernel.contents import ChatMessageContent, StreamingChatMessageContent  # noqa: PLC0415
    from semantic_kernel.contents.utils.author_role import AuthorRole  # noqa: PLC0415

    pieces = [f"{word} " for word in ANSWER.split()]

    class Instant(ChatCompletionClientBase):
        async def _inner_get_chat_message_contents(self, chat_history: Any, settings: Any) -> Any:
            return [ChatMessageContent(role=AuthorRole.ASSISTANT, content=ANSWER)]

        async def _inner_get_streaming_chat_message_contents(
            self, chat_history: Any, settings: Any, function_invoke_attempt: int = 0
        ) -> Any:
            for piece in pieces:
                yield [StreamingChatMessageContent(role=AuthorRole.ASSISTANT, choice_index=0, content=piece)]

    connector = OpenAIChatCompletion(ai_model_id="m", async_client=openai_client())
    return [
        *kernel_agent_cases("semantic_kernel", connector),
        *kernel_agent_cases("semantic_kernel, no connector", Instant(ai_model_id="instant")),
    ]


def kernel_agent_cases(name: str, service: Any) -> list[Case]:
    from semantic_kernel.agents import ChatCompletionAgent, ChatHistoryAgentThread  # noqa: PLC0415

    from agents_loop.integrations.semantic_kernel import SemanticKernelAgent  # noqa: PLC0415

    agent = ChatCompletionAgent(service=service, name="writer", instructions="Write reports.")

    async def alone() -> None:
        thread = ChatHistoryAgentThread()
        for _ in range(ITERATIONS):
            async for item in agent.invoke(FEEDBACK, thread=thread):
                str(item.message)

    async def alone_streaming() -> None:
        thread = ChatHistoryAgentThread()
        for _ in range(ITERATIONS):
            "".join([str(item.message) async for item in agent.invoke_stream(FEEDBACK, thread=thread)])

    return cases(name, SemanticKernelAgent(agent), alone, alone_streaming)


# --- Microsoft Agent Framework


def agent_framework_cases() -> list[Case]:
    """An agent with its sessions, which keep the history in this process."""
    from agent_framework import Agent  # noqa: PLC0415
    from agent_framework.openai import OpenAIChatCompletionClient  # noqa: PLC0415

    from agents_loop.integrations.agent_framework import AgentFrameworkAgent  # noqa: PLC0415

    client = OpenAIChatCompletionClient(model="m", async_client=openai_client())
    agent = Agent(client=client, name="writer", instructions="Write reports.")

    async def alone() -> None:
        session = agent.create_session()
        for _ in range(ITERATIONS):
            (await agent.run(FEEDBACK, session=session)).text  # noqa: B018

    async def alone_streaming() -> None:
        session = agent.create_session()
        for _ in range(ITERATIONS):
            stream = agent.run(FEEDBACK, stream=True, session=session)
            "".join([piece.text async for piece in stream])
            (await stream.get_final_response()).text  # noqa: B018 - the session is written then

    return cases("agent_framework", AgentFrameworkAgent(agent), alone, alone_streaming)


# --- OpenAI Agents SDK


def openai_agents_cases() -> list[Case]:
    """An agent whose history is the last run's input list, without tracing."""
    import agents  # noqa: PLC0415

    from agents_loop.integrations.openai_agents import OpenAIAgentsAgent  # noqa: PLC0415

    agents.set_tracing_disabled(disabled=True)
    model = agents.OpenAIChatCompletionsModel("m", openai_client())
    agent = agents.Agent(name="writer", instructions="Write reports.", model=model)
    feedback = {"role": "user", "content": FEEDBACK}

    async def alone() -> None:
        said: list[Any] = []
        for _ in range(ITERATIONS):
            result = await agents.Runner.run(agent, [*said, feedback])
            str(result.final_output)
            said = result.to_input_list()

    async def alone_streaming() -> None:
        said: list[Any] = []
        for _ in range(ITERATIONS):
            result = agents.Runner.run_streamed(agent, [*said, feedback])
            events = [event async for event in result.stream_events() if event.type == "raw_response_event"]
            "".join([event.data.delta for event in events if event.data.type == "response.output_text.delta"])
            said = result.to_input_list()

    return cases("openai_agents", OpenAIAgentsAgent(agent), alone, alone_streaming)


# --- Pydantic AI


def pydantic_ai_cases() -> list[Case]:
    """An agent whose history is the last run's messages; its events are what it streams of a whole run."""
    from pydantic_ai import Agent  # noqa: PLC0415
    from pydantic_ai.models.openai import OpenAIChatModel  # noqa: PLC0415
    from pydantic_ai.providers.openai import OpenAIProvider  # noqa: PLC0415

    from agents_loop.integrations.pydantic_ai import PydanticAIAgent  # noqa: PLC0415

    model = OpenAIChatModel("m", provider=OpenAIProvider(openai_client=openai_client()))
    agent = Agent(model, name="writer", instructions="Write reports.")

    async def alone() -> None:
        history: list[Any] = []
        for _ in range(ITERATIONS):
            result = await agent.run(FEEDBACK, message_history=history)
            str(result.output)
            history = result.all_messages()

    async def alone_streaming() -> None:
        history: list[Any] = []
        for _ in range(ITERATIONS):
            async with agent.run_stream_events(FEEDBACK, message_history=history) as stream:
                events = [event async for event in stream]
            "".join([event.delta.content_delta for event in events if event.event_kind == "part_delta"])
            history = events[-1].result.all_messages()

    return cases("pydantic_ai", PydanticAIAgent(agent), alone, alone_streaming)


# --- LangGraph


def langgraph_cases() -> list[Case]:
    """A graph of one node that asks a model; its state is handed on by hand."""
    from langchain_core.messages import HumanMessage, SystemMessage  # noqa: PLC0415
    from langchain_openai import ChatOpenAI  # noqa: PLC0415
    from langgraph.graph import END, START, MessagesState, StateGraph  # noqa: PLC0415

    from agents_loop.integrations.langgraph import LangGraphAgent  # noqa: PLC0415

    sdk = openai_client()
    model = ChatOpenAI(
        model="m", api_key="none", root_async_client=sdk, async_client=sdk.chat.completions, stream_usage=True
    )

    async def ask(state: Any) -> Any:
        return {"messages": [await model.ainvoke([SystemMessage("Write reports."), *state["messages"]])]}

    builder = StateGraph(MessagesState)
    builder.add_node("ask", ask)
    builder.add_edge(START, "ask")
    builder.add_edge("ask", END)
    graph = builder.compile(name="writer")

    async def alone() -> None:
        said: list[Any] = []
        for _ in range(ITERATIONS):
            said = (await graph.ainvoke({"messages": [*said, HumanMessage(FEEDBACK)]}))["messages"]
            str(said[-1].content)

    async def alone_streaming() -> None:
        said: list[Any] = []
        for _ in range(ITERATIONS):
            pieces: list[str] = []
            given = {"messages": [*said, HumanMessage(FEEDBACK)]}
            async for mode, event in graph.astream(given, stream_mode=["values", "messages"]):
                if mode == "messages":
                    pieces.append(event[0].text)
                else:
                    said = event["messages"]
            "".join(pieces)

    return cases("langgraph", LangGraphAgent(graph), alone, alone_streaming)


FRAMEWORKS: dict[str, Callable[[], list[Case]]] = {
    "semantic_kernel": semantic_kernel_cases,
    "agent_framework": agent_framework_cases,
    "agents": openai_agents_cases,
    "pydantic_ai": pydantic_ai_cases,
    "langgraph": langgraph_cases,
}
"""By the name of the module that must be installed."""


# --- measuring


async def cpu_us(turns: Turns) -> float:
    """CPU microseconds an iteration."""
    started = time.process_time()
    await turns()
    return (time.process_time() - started) / ITERATIONS * 1e6


async def measure(case: Case) -> dict[str, float]:
    pairs: list[tuple[float, float]] = []
    gc.collect()
    gc.disable()
    try:
        for number in range(WARM_UP_ROUNDS + ROUNDS):
            adapted_first = number % 2 == 1
            first, second = (case.adapted, case.alone) if adapted_first else (case.alone, case.adapted)
            taken = [await cpu_us(first), await cpu_us(second)]
            if number >= WARM_UP_ROUNDS:
                pairs.append((taken[1], taken[0]) if adapted_first else (taken[0], taken[1]))
            gc.collect()
    finally:
        gc.enable()
    return {
        "alone_us": statistics.median(alone for alone, _ in pairs),
        "adapted_us": statistics.median(adapted for _, adapted in pairs),
        "ratio": statistics.median(adapted / alone for alone, adapted in pairs),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("frameworks", nargs="*", help=f"of {', '.join(FRAMEWORKS)}; by default all that are installed")
    parser.add_argument("--json", action="store_true", help="print the figures as one JSON object")
    given = parser.parse_args()
    names = given.frameworks or [name for name in FRAMEWORKS if importlib.util.find_spec(name) is not None]
    figures = {case.name: asyncio.run(measure(case)) for name in names for case in FRAMEWORKS[name]()}
    if given.json:
        print(json.dumps(figures))
        return
    for name, measured in figures.items():
        print(f"{name:40}{measured['alone_us']:10.1f} us {measured['adapted_us']:10.1f} us {measured['ratio']:8.3f}")


if __name__ == "__main__":
    main()
