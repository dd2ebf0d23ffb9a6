"""A second model judges each answer by criteria, and the writer hears what is missing.

    python samples/judge_loop.py

Here one model plays both parts; `main` takes two. For another one change one word: `LocalChatClient` to
`OpenAIChatClient`, say.
"""

import asyncio

from agents_loop import (
    AIJudgeLoopEvaluator,
    AIJudgeLoopEvaluatorOptions,
    ChatClient,
    ChatClientAgent,
    LocalChatClient,
    LoopAgent,
    LoopAgentOptions,
    LoopResult,
)

REQUEST = "Write to our customers that the bakery is closed in the first week of March because of a new oven."
CRITERIA = ["It says when the bakery opens again.", "It says where to buy bread meanwhile.", "It has at most 80 words."]


async def main(writer: ChatClient, judge: ChatClient) -> None:
    agent = ChatClientAgent(writer, instructions="You write for a bakery. Answer with the text alone.")
    evaluator = AIJudgeLoopEvaluator(judge, AIJudgeLoopEvaluatorOptions(design="requirements", criteria=CRITERIA))
    loop = LoopAgent(agent, evaluator, LoopAgentOptions(max_iterations=4, evaluate_final_iteration=True))
    result = LoopResult.of(await loop.run(REQUEST))
    for record in result.iterations:
        print(f"--- draft {record.number}\n{record.response.text}")
        for said in record.evaluations:
            print(f">>> {said.feedback}" if said.should_reinvoke else ">>> Nothing is missing.")
    print(f"=== {result.stop_reason} after {len(result.iterations)}, {result.usage}")


if __name__ == "__main__":
    client = LocalChatClient()
    asyncio.run(main(client, client))
