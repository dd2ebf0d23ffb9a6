"""How to go on: anew, with changes, or with a person's help; decided by rules, and said why.

    python samples/strategy_loop.py

It runs offline, with a scripted writer. The detectors are plain functions; a judge or a rubric could stand among them.
"""

import asyncio
import json

from agents_loop import (
    ChatClient,
    ChatClientAgent,
    Confidence,
    IterationSignals,
    IterationStrategyLoopEvaluator,
    LoopAgent,
    LoopContext,
    LoopResult,
    ValidationFailure,
)
from agents_loop.testing import ScriptedChatClient

REQUEST = "The concert as JSON: title, price in EUR as a number, and the source of the price."
DRAFTS = [
    '{"title": "Spring concert", "price": "five"}',
    '{"title": "Spring concert", "price": 5}',
    '{"title": "Spring concert", "price": 5, "source": "the poster"}',
]


def check_form(context: LoopContext) -> IterationSignals:
    concert = json.loads(context.last_response.text)
    if isinstance(concert.get("price"), int):
        return IterationSignals()
    return IterationSignals(validation_failures=[ValidationFailure("NOT_A_NUMBER", "5, not 'five'", "$.price")])


def check_source(context: LoopContext) -> IterationSignals:
    is_named = "source" in json.loads(context.last_response.text)
    return IterationSignals(confidence=Confidence(0.9 if is_named else 0.6, "missing_evidence"))


async def main(writer: ChatClient) -> None:
    loop = LoopAgent(ChatClientAgent(writer), IterationStrategyLoopEvaluator([check_form, check_source]))
    result = LoopResult.of(await loop.run(REQUEST))
    for record in result.iterations:
        print(f"--- draft {record.number}: {record.response.text}")
        for word in record.evaluations:
            print(f">>> {word.note}\n{word.feedback or ''}")
    print(f"=== {result.stop_reason} after {len(result.iterations)}")


if __name__ == "__main__":
    asyncio.run(main(ScriptedChatClient(DRAFTS)))
