"""An agent writes its todo list first, and is run again until nothing is left on it.

    python samples/todo_loop.py

The list counts in the mode `execute` only, so the plan can be looked at before the work begins. It takes a model that
calls tools, which the small local ones seldom do: change one word, `LocalChatClient` to `OpenAIChatClient`, say.
"""

import asyncio

from agents_loop import (
    AgentModeProvider,
    ChatClient,
    ChatClientAgent,
    LocalChatClient,
    LoopAgent,
    LoopAgentOptions,
    LoopResult,
    TodoCompletionLoopEvaluator,
    TodoCompletionLoopEvaluatorOptions,
    TodoProvider,
)

REQUEST = "Our choir sings in the market hall on 2 May. Write down with todo_add what has to be prepared, in 3 todos."


async def main(client: ChatClient) -> None:
    todos, modes = TodoProvider(), AgentModeProvider()
    agent = ChatClientAgent(client, instructions="You prepare concerts.", context_providers=[todos, modes])
    evaluator = TodoCompletionLoopEvaluator(TodoCompletionLoopEvaluatorOptions(modes=["execute"]))
    loop = LoopAgent(agent, evaluator, LoopAgentOptions(max_iterations=6))
    session = await loop.create_session()

    modes.set_mode(session, "plan")
    await loop.run(REQUEST, session=session)
    for item in todos.get_items(session):
        print(f"planned: {item.id} {item.title}")
    if not todos.get_items(session):
        print("The model wrote no todo: it does not call tools.")
        return

    modes.set_mode(session, "execute")
    result = LoopResult.of(await loop.run("Good. Now do it, and complete each todo.", session=session))
    for record in result.iterations:
        print(f"--- iteration {record.number}\n{record.response.text}")
    left = len(todos.get_remaining(session))
    print(f"=== {result.stop_reason} after {len(result.iterations)}, {left} left")


if __name__ == "__main__":
    asyncio.run(main(LocalChatClient()))
