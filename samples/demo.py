"""Watch a model draft a notice, hear what is wrong with it, and do better.

    python samples/demo.py

A check in code comes first: counting words is nothing to ask a model for. Then a judge, the same model here, lists what
the task demands and says of each demand whether it is fulfilled. For another model change one word: `LocalChatClient`
to `OpenAIChatClient`, say.
"""

import asyncio
import sys

from agents_loop import (
    AgentUpdated,
    AIJudgeLoopEvaluator,
    AIJudgeLoopEvaluatorOptions,
    ChatClientAgent,
    ChatOptions,
    DelegateLoopEvaluator,
    EvaluatorDecided,
    IterationStarted,
    LocalChatClient,
    LoopAgent,
    LoopAgentOptions,
    LoopContext,
    LoopEvent,
    LoopStopped,
)

MODEL = sys.argv[1] if len(sys.argv) > 1 else "qwen2.5-coder-1.5b"
DATE, MOST_WORDS = "Saturday 14 June", 30
TASK = f"""\
Write a notice for the opening day of the community garden on {DATE}. Tools are provided. At most {MOST_WORDS} words."""
OPTIONS = ChatOptions(temperature=0, seed=1, max_output_tokens=200)


def check(context: LoopContext) -> str | None:
    text = context.last_response.text
    words = len(text.split())
    if words > MOST_WORDS:
        return f"It has {words} words; at most {MOST_WORDS} are allowed. Write a shorter one."
    return None if DATE in text else f"It lacks the date: {DATE}."


def show(event: LoopEvent) -> None:
    match event:
        case IterationStarted():
            print(f"\n--- draft {event.number}")
        case AgentUpdated():
            print(event.update.text, end="", flush=True)
        case EvaluatorDecided(evaluation=said):
            print(f"\n>>> {said.evaluator}: {said.decision}")
            print(said.feedback or "")
        case LoopStopped(result=result):
            print(f"\n=== {result.stop_reason} after {len(result.iterations)} drafts, {result.duration_s:.0f} s")
        case _:
            pass


async def main() -> None:
    client = LocalChatClient(MODEL)
    writer = ChatClientAgent(
        client, instructions="You are a helpful writer. Answer in English with the text alone.", options=OPTIONS
    )
    judge = AIJudgeLoopEvaluator(client, AIJudgeLoopEvaluatorOptions(design="requirements", chat_options=OPTIONS))
    loop = LoopAgent(writer, [DelegateLoopEvaluator(check), judge], LoopAgentOptions(max_iterations=4))
    print(f"model: {MODEL}\ntask:  {TASK}")
    async with loop.events(TASK, streaming=True) as events:
        async for event in events:
            show(event)


asyncio.run(main())
