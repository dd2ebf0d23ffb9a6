"""An agent with tools over a real server: what goes out in each round."""

from __future__ import annotations

from fakes import Way
from fault_server import Completion, FaultServer, usage

from agents_loop import (
    AgentSession,
    ChatClientAgent,
    ChatMessage,
    OpenAIChatClient,
    ToolApprovalRequestContent,
    ToolApprovalResponseContent,
    UsageDetails,
    tool,
)


def calling(name: str, arguments: str) -> dict[str, object]:
    return {"id": f"call-{name}", "type": "function", "function": {"name": name, "arguments": arguments}}


def add(a: int, b: int) -> int:
    """Add."""
    return a + b


@tool(approval_required=True)
async def delete(path: str) -> str:
    """Delete a file."""
    return f"deleted {path}"


async def test_rounds_and_an_approval(server: FaultServer, client: OpenAIChatClient, invoke: Way) -> None:
    """Tools: calls, results and an approval make requests that the API takes; usage is that of all rounds."""
    asks = (calling("add", '{"a": 1, "b": 2}'), calling("delete", '{"path": "x"}'))
    server.add(
        Completion(content=None, tool_calls=asks[:1], finish_reason="tool_calls", usage=usage(1, 2)),
        Completion(content="3", usage=usage(10, 20)),
        Completion(content=None, tool_calls=asks, finish_reason="tool_calls", usage=usage(1, 1)),
        Completion(content="done", usage=usage(1, 1)),
    )
    agent, session = ChatClientAgent(client, tools=[add, delete], name="Ann"), AgentSession()
    response = await invoke(agent, "1 + 2?", session=session)
    assert (response.text, response.usage) == ("3", UsageDetails(11, 22, 33))
    user, call, result = server.bodies[1]["messages"]
    assert user == {"role": "user", "content": "1 + 2?"}
    assert call == {"role": "assistant", "tool_calls": list(asks[:1]), "name": "Ann"}
    assert result == {"role": "tool", "tool_call_id": "call-add", "content": "3"}
    assert [declared["function"]["name"] for declared in server.bodies[1]["tools"]] == ["add", "delete"]

    response = await invoke(agent, "delete x", session=session)
    (request,) = [c for c in response.messages[0].contents if isinstance(c, ToolApprovalRequestContent)]
    session = await agent.deserialize_session(await agent.serialize_session(session))
    answer = ToolApprovalResponseContent(request.request_id, approved=True, tool_call=request.tool_call)
    response = await invoke(agent, ChatMessage("user", [answer]), session=session)
    assert response.text == "done"
    roles = [message["role"] for message in server.bodies[3]["messages"]]
    assert roles == ["user", "assistant", "tool", "assistant", "user", "assistant", "tool", "tool"]
    assert [message["content"] for message in server.bodies[3]["messages"][-2:]] == ["3", "deleted x"]
