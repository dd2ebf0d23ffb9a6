"""A loop that stops before a tool runs, asks a person, and goes on where it was.

    python samples/approval_loop.py

It takes a model that calls tools, which the small local ones seldom do: change one word, `LocalChatClient` to
`OpenAIChatClient`, say.
"""

import asyncio
from collections.abc import Callable

from agents_loop import (
    AgentResponse,
    ChatClient,
    ChatClientAgent,
    ChatMessage,
    DelegateLoopEvaluator,
    LocalChatClient,
    LoopAgent,
    LoopAgentOptions,
    LoopResult,
    StopReason,
    ToolApprovalRequestContent,
    ToolApprovalResponseContent,
    tool,
)


def answers_to(response: AgentResponse, ask: Callable[[str], str]) -> ChatMessage:
    contents = [content for message in response.messages for content in message.contents]
    requests = [content for content in contents if isinstance(content, ToolApprovalRequestContent)]
    answers = []
    for request in requests:
        call = request.tool_call
        approved = ask(f"{call.name} {call.arguments}? [y/n] ") == "y"
        answers.append(ToolApprovalResponseContent(request.request_id, approved, call))
    return ChatMessage("user", answers)


async def main(client: ChatClient, ask: Callable[[str], str] = input) -> None:
    booked: list[str] = []

    @tool(approval_required=True)
    async def book_table(restaurant: str, people: int) -> str:
        """Book a table for tonight."""
        booked.append(restaurant)
        return f"booked at {restaurant} for {people}"

    agent = ChatClientAgent(client, instructions="You book tables with book_table.", tools=[book_table])
    is_booked = DelegateLoopEvaluator(lambda _: None if booked else "Nothing is booked yet. Call book_table.")
    loop = LoopAgent(agent, is_booked, LoopAgentOptions(max_iterations=6))
    response = await loop.run("A table for three at Luigi's, please; if that can't be, at the Swan.")
    while (result := LoopResult.of(response)).stop_reason == StopReason.PENDING_APPROVAL:
        response = await loop.run(answers_to(response, ask), session=result.session)
    print(f"{result.output}\n=== {result.stop_reason}, booked: {booked}")


if __name__ == "__main__":
    asyncio.run(main(LocalChatClient()))
