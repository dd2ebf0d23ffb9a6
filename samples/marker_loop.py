"""A loop until the agent says that it is finished, each time in a fresh context.

    python samples/marker_loop.py

No iteration sees what was written before: it hears the request again, and all feedback so far. Here the feedback
carries the last draft along. For another model change one word: `LocalChatClient` to `OpenAIChatClient`, say.
"""

import asyncio

from agents_loop import (
    ChatClient,
    ChatClientAgent,
    CompletionMarkerLoopEvaluator,
    CompletionMarkerLoopEvaluatorOptions,
    LocalChatClient,
    LoopAgent,
    LoopAgentOptions,
    LoopResult,
)

MARKER = "<finished/>"
INSTRUCTIONS = f"""\
You write packing lists. Each time you are asked, give the whole list with one thing more than the last draft has. \
When the list has all that the trip needs, put {MARKER} on a line of its own below it."""
FEEDBACK = (
    "The last draft was not finished:\n{last_response}\nComplete it, and end with {completion_marker} when it is."
)


async def main(client: ChatClient) -> None:
    agent = ChatClientAgent(client, instructions=INSTRUCTIONS)
    evaluator = CompletionMarkerLoopEvaluator(
        MARKER, CompletionMarkerLoopEvaluatorOptions(feedback_message_template=FEEDBACK)
    )
    loop = LoopAgent(agent, evaluator, LoopAgentOptions(max_iterations=4, fresh_context_per_iteration=True))
    result = LoopResult.of(await loop.run("What do I pack for two days of hiking in the rain?"))
    for record in result.iterations:
        print(f"--- draft {record.number}\n{record.response.text}")
    print(f"=== {result.stop_reason} after {len(result.iterations)}")


if __name__ == "__main__":
    asyncio.run(main(LocalChatClient()))
