"""A loop that may not spend more than it is given, and what each of its model calls cost.

    python samples/budget_loop.py

The run ends at two cents or after five minutes, with its answer so far. The prices are examples: put in those of your
models, or leave them out and install the extra `prices`.
"""

import asyncio

from agents_loop import (
    AIJudgeLoopEvaluator,
    AIJudgeLoopEvaluatorOptions,
    ChatClient,
    ChatClientAgent,
    LoopAgent,
    LoopAgentOptions,
    LoopBudget,
    LoopResult,
    ModelPrice,
    OpenAIChatClient,
)

PRICES = {"*": ModelPrice(input_usd_per_million=0.25, output_usd_per_million=2)}
CRITERIA = ["It names a date.", "It says who brings what."]


async def main(client: ChatClient) -> None:
    judge = AIJudgeLoopEvaluator(client, AIJudgeLoopEvaluatorOptions(criteria=CRITERIA))
    options = LoopAgentOptions(
        budget=LoopBudget(max_cost_usd=0.02, deadline_s=300), prices=PRICES, max_iterations=100, return_best=True
    )
    loop = LoopAgent(ChatClientAgent(client), judge, options)
    result = LoopResult.of(await loop.run("Invite the neighbours to a street party."))
    print(result.output)
    print(f"=== {result.stop_reason}: {result.stop_detail or 'the judge is content'}")
    for role, total in result.ledger.by_role().items():
        print(f"{role}: {total.calls} calls, ${total.cost_usd:.4f}")


if __name__ == "__main__":
    asyncio.run(main(OpenAIChatClient("gpt-5-mini")))
