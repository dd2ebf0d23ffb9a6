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
import json
import statistics
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

ANSWER = ("The release went out on Tuesday after the last fix was merged. " * 4)[:200]
FEEDBACK = "Name an owner for each risk, and say what it costs."
ITERATIONS = 10
ROUNDS = 40
WARM_UP_ROUNDS = 5

Turns = Callable[[], Awaitable[object]]
"""One conversation of `ITERATIONS` turns."""


@dataclass(frozen=True)
class Case:
    """The same turns, by the framework alone and through the adapter."""

    name: str
    alone: Turns
    adapted: Turns


# --- a provider without a network


def completion(*, streaming: bool) -> tuple[str, bytes]:
    """The body that a server of the chat completions API sends, and its type; streamed as words."""
    head = {"id": "reply-1", "created": 1_700_000_000, "model": "m"}
    usage = {"prompt_tokens": 100, "completion_tokens": 40, "total_tokens": 140}
    if not streaming:
        choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": ANSWER}}
        whole = {**head, "object": "chat.completion", "choices": [choice], "usage": usage}
        return "application/json", json.dumps(whole).encode()
    deltas = [{"role": "assistant", "content": ""}, *[{"content": f"{word} "} for word in ANSWER.split()]]
    chunks: list[dict[str, Any]] = [{"choices": [{"index": 0, "delta": delta}]} for delta in deltas]
    chunks += [{"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}, {"choices": [], "usage": usage}]
    events = [json.dumps({**head, "object": "chat.completion.chunk", **chunk}) for chunk in chunks]
    return "text/event-stream", "".join([f"data: {event}\n\n" for event in [*events, "[DONE]"]]).encode()


def openai_client() -> Any:
    """OpenAI's own client, over a transport that answers in this process."""
    import httpx2  # noqa: PLC0415 - measured if installed
    import openai  # noqa: PLC0415

    bodies = {streaming: completion(streaming=streaming) for streaming in (False, True)}

    def answer(request: httpx2.Request) -> httpx2.Response:
        kind, body = bodies[b'"stream":true' in request.content]
        return httpx2.Response(200, content=body, headers={"Content-Type": kind})

    http_client = httpx2.AsyncClient(transport=httpx2.MockTransport(answer))
    return openai.AsyncOpenAI(api_key="none", base_url="http://in-process/v1", http_client=http_client)


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
    adapter = SemanticKernelAgent(agent)

    async def alone() -> None:
        thread = ChatHistoryAgentThread()
        for _ in range(ITERATIONS):
            async for item in agent.invoke(FEEDBACK, thread=thread):
                str(item.message)

    async def adapted() -> None:
        session = await adapter.create_session()
        for _ in range(ITERATIONS):
            (await adapter.run(FEEDBACK, session=session)).text  # noqa: B018 - reading it is part of the work

    async def alone_streaming() -> None:
        thread = ChatHistoryAgentThread()
        for _ in range(ITERATIONS):
            "".join([str(item.message) async for item in agent.invoke_stream(FEEDBACK, thread=thread)])

    async def adapted_streaming() -> None:
        session = await adapter.create_session()
        for _ in range(ITERATIONS):
            (await adapter.run_streaming(FEEDBACK, session=session).final_response()).text  # noqa: B018

    return [Case(f"{name}: run", alone, adapted), Case(f"{name}: streaming", alone_streaming, adapted_streaming)]


FRAMEWORKS: dict[str, Callable[[], list[Case]]] = {"semantic_kernel": semantic_kernel_cases}
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
