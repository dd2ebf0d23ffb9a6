"""Three drafts at once in each iteration; a judge compares them, in both orders, and the loop goes on from the best.

    python samples/candidates_loop.py

It runs offline, with a scripted writer and a scripted judge.
"""

import asyncio

from agents_loop import (
    CandidateAgent,
    ChatClient,
    ChatClientAgent,
    CompletionMarkerLoopEvaluator,
    CompletionMarkerLoopEvaluatorOptions,
    LoopAgent,
    LoopResult,
    PairwiseJudge,
)
from agents_loop.testing import ScriptedChatClient

REQUEST = "A slogan for the bakery, with its opening time."
DRAFTS = ["Buy bread.", "Warm bread, early.", "Bread for sale."]
DRAFTS += ["Bread from 6.", "Warm bread, from 6:00 on.", "We open."]
SECOND, FIRST = '{"better": "second"}', '{"better": "first"}'
WORDS = [SECOND, FIRST, FIRST, SECOND] * 2  # each pair is asked about twice, with the places swapped


async def main(writer: ChatClient, judge: ChatClient) -> None:
    agent = CandidateAgent(ChatClientAgent(writer), 3, PairwiseJudge(judge))
    asks = CompletionMarkerLoopEvaluatorOptions(
        feedback_message_template="Say when it opens, as in {completion_marker}."
    )
    loop = LoopAgent(agent, CompletionMarkerLoopEvaluator("6:00", asks))
    result = LoopResult.of(await loop.run(REQUEST))
    for record in result.iterations:
        told = record.response.additional_properties["candidates"]
        print(f"--- iteration {record.number}, candidate {told['kept']} of {len(told['of'])}: {record.response.text}")
    for role, total in result.ledger.by_role().items():
        print(f"{role}: {total.calls} calls")
    print(f"=== {result.stop_reason}")


if __name__ == "__main__":
    asyncio.run(main(ScriptedChatClient(DRAFTS), ScriptedChatClient(WORDS)))
