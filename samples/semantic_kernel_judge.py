"""A Semantic Kernel agent writes, and a second model judges, until nothing is missing.

    pip install 'agents-loop[semantic-kernel]'
    OPENAI_API_KEY=... python samples/semantic_kernel_judge.py

With OPENAI_BASE_URL it runs on any server that speaks OpenAI's API; OPENAI_CHAT_MODEL_ID names the model.
"""

import asyncio
import os

from openai import AsyncOpenAI
from semantic_kernel.agents import ChatCompletionAgent
from semantic_kernel.connectors.ai.open_ai import OpenAIChatCompletion

from agents_loop import (
    AIJudgeLoopEvaluator,
    AIJudgeLoopEvaluatorOptions,
    LoopAgent,
    LoopAgentOptions,
    LoopResult,
)
from agents_loop.integrations.semantic_kernel import SemanticKernelAgent, SemanticKernelChatClient

REQUEST = "Plan a one-day workshop on composting for a community garden of twenty people."
CRITERIA = ["Each session has a time and a duration.", "The cost per person is given.", "There is a plan for rain."]


async def main() -> None:
    async with AsyncOpenAI() as client:
        model = os.environ.get("OPENAI_CHAT_MODEL_ID", "gpt-4.1-mini")
        service = OpenAIChatCompletion(ai_model_id=model, async_client=client)
        planner = ChatCompletionAgent(service=service, name="planner", instructions="Plan events. Be brief.")
        options = AIJudgeLoopEvaluatorOptions(design="requirements", criteria=CRITERIA)
        judge = AIJudgeLoopEvaluator(SemanticKernelChatClient(service), options)
        loop = LoopAgent(SemanticKernelAgent(planner), judge, LoopAgentOptions(max_iterations=4))

        result = LoopResult.of(await loop.run(REQUEST))
        for record in result.iterations:
            for evaluation in record.evaluations:
                print(f"{record.number}: {evaluation.feedback or evaluation.decision}")
        print(f"\n{result.output}\n\n{result.stop_reason}, {result.usage}")


if __name__ == "__main__":
    asyncio.run(main())
