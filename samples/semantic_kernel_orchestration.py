"""A loop as one member of a Semantic Kernel orchestration: the translator reads its final draft alone.

    pip install 'agents-loop[semantic-kernel]'
    OPENAI_API_KEY=... python samples/semantic_kernel_orchestration.py

With OPENAI_BASE_URL it runs on any server that speaks OpenAI's API; OPENAI_CHAT_MODEL_ID names the model.
"""

import asyncio
import os

from openai import AsyncOpenAI
from semantic_kernel.agents import ChatCompletionAgent, SequentialOrchestration
from semantic_kernel.agents.runtime import InProcessRuntime
from semantic_kernel.connectors.ai.open_ai import OpenAIChatCompletion

from agents_loop import DelegateLoopEvaluator, LoopAgent, LoopAgentOptions, LoopContext
from agents_loop.integrations.semantic_kernel import SemanticKernelAgent, as_semantic_kernel_agent

WORDS = 60


def is_short(context: LoopContext) -> str | None:
    """What is left to do, or nothing."""
    count = len(context.last_response.text.split())
    return f"That is {count} words. Say it in {WORDS} at most." if count > WORDS else None


async def main() -> None:
    async with AsyncOpenAI() as client:
        model = os.environ.get("OPENAI_CHAT_MODEL_ID", "gpt-4.1-mini")
        service = OpenAIChatCompletion(ai_model_id=model, async_client=client)
        writer = ChatCompletionAgent(service=service, name="writer", instructions="Write notices for a notice board.")
        translator = ChatCompletionAgent(service=service, name="translator", instructions="Translate into Spanish.")
        loop = LoopAgent(
            SemanticKernelAgent(writer), DelegateLoopEvaluator(is_short), LoopAgentOptions(max_iterations=4)
        )
        members = [as_semantic_kernel_agent(loop, description="Writes short notices."), translator]

        runtime = InProcessRuntime()
        runtime.start()
        orchestration = SequentialOrchestration(members=members)
        result = await orchestration.invoke(task="The library closes early on Friday.", runtime=runtime)
        print(await result.get(timeout=300))
        await runtime.stop_when_idle()


if __name__ == "__main__":
    asyncio.run(main())
