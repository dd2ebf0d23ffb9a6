"""The agents that the contract is checked on: one a framework, each made by the framework's own means over a real server."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from contextlib import aclosing
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import httpx
import pytest
from fault_server import FaultServer, closed_later, sqlite_session

from agents_loop import AgentResponseUpdate, ChatClientAgent, ChatMessage
from agents_loop.clients.openai import OpenAIChatClient

Make = Callable[[FaultServer], Any]


@dataclass
class Deletions:
    """What the tool that needs approval has done."""

    done: list[str]


DELETIONS = Deletions([])


@dataclass(frozen=True)
class Subject:
    """A framework's agent with instructions `Be brief.`, a tool `add`, and a tool `delete` that needs approval.

    Args:
        name: The framework.
        make: Makes the agent, for a server.
        needs: The modules without which there is none.
        refused: What it raises when the server says 401: the SDK's own exception, by module and name.
        has_tools: Whether it has the tools.
        approves: Whether a tool of it can wait for a person.
        streams: Whether its text comes in pieces.
    """

    name: str
    make: Make
    needs: tuple[str, ...] = ()
    refused: tuple[str, str] = ("openai", "AuthenticationError")
    has_tools: bool = True
    approves: bool = True
    streams: bool = True

    @property
    def error(self) -> type[Exception]:
        return getattr(import_module(self.refused[0]), self.refused[1])

    def require(self) -> None:
        with warnings.catch_warnings():  # importing an SDK is not what is tested
            warnings.simplefilter("ignore")
            for module in self.needs:
                pytest.importorskip(module)


def add(a: int, b: int) -> str:
    """Add two numbers."""
    return str(a + b)


def delete(path: str) -> str:
    """Delete a file."""
    DELETIONS.done.append(path)
    return f"deleted {path}"


def openai_client(server: FaultServer) -> Any:
    openai = import_module("openai")
    return closed_later(openai.AsyncOpenAI(api_key="k", base_url=server.base_url, max_retries=0))


def chat_client_agent(server: FaultServer) -> Any:
    return ChatClientAgent(OpenAIChatClient("m", openai_client=openai_client(server)), instructions="Be brief.")


def function(server: FaultServer) -> Any:
    client = OpenAIChatClient("m", openai_client=openai_client(server))

    async def ask(messages):
        """Ask the model."""
        return await client.get_response([ChatMessage("system", "Be brief."), *messages])

    return ask


def generator(server: FaultServer) -> Any:
    client = OpenAIChatClient("m", openai_client=openai_client(server))

    async def ask(messages):
        """Ask the model, and pass on its pieces."""
        async with aclosing(client.get_streaming_response([ChatMessage("system", "Be brief."), *messages])) as pieces:
            async for piece in pieces:
                yield AgentResponseUpdate(piece.role, piece.contents, message_id=piece.message_id)

    return ask


def agent_framework(server: FaultServer) -> Any:
    from agent_framework import Agent, tool
    from agent_framework.openai import OpenAIChatCompletionClient

    return Agent(
        client=OpenAIChatCompletionClient(model="m", async_client=openai_client(server)),
        instructions="Be brief.",
        name="worker",
        tools=[tool(add), tool(delete, approval_mode="always_require")],
    )


def openai_agents(server: FaultServer) -> Any:
    import agents

    agents.set_tracing_disabled(disabled=True)
    return agents.Agent(
        name="worker",
        instructions="Be brief.",
        model=agents.OpenAIChatCompletionsModel("m", openai_client(server)),
        tools=[agents.function_tool(add), agents.function_tool(delete, needs_approval=True)],
    )


def openai_agents_with_its_session(server: FaultServer) -> Any:
    from agents_loop.integrations.openai_agents import OpenAIAgentsAgent

    return OpenAIAgentsAgent(openai_agents(server), make_session=sqlite_session)


def pydantic_ai(server: FaultServer) -> Any:
    from pydantic_ai import Agent, DeferredToolRequests, Tool
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.providers.openai import OpenAIProvider

    return Agent(
        OpenAIChatModel("m", provider=OpenAIProvider(openai_client=openai_client(server))),
        instructions="Be brief.",
        name="worker",
        tools=[add, Tool(delete, requires_approval=True)],
        output_type=[str, DeferredToolRequests],
    )


def langgraph(server: FaultServer, checkpointer: Any = None) -> Any:
    from langchain_core.messages import SystemMessage
    from langchain_core.tools import tool
    from langchain_openai import ChatOpenAI
    from langgraph.graph import END, START, MessagesState, StateGraph
    from langgraph.prebuilt import ToolNode
    from langgraph.types import interrupt

    def delete_if_allowed(path: str) -> str:
        """Delete a file."""
        return delete(path) if interrupt({"path": path}) else "not allowed"

    tools = [tool(add), tool("delete")(delete_if_allowed)]
    own = httpx.AsyncClient()  # by default one is kept for each address, also once a test has closed it
    chat = ChatOpenAI(model="m", api_key="k", base_url=server.base_url, max_retries=0, http_async_client=own)
    closed_later(chat.root_async_client)
    model = chat.bind_tools(tools)

    async def ask(state):
        return {"messages": [await model.ainvoke([SystemMessage("Be brief."), *state["messages"]])]}

    graph = StateGraph(MessagesState)
    graph.add_node("ask", ask)
    graph.add_node("tools", ToolNode(tools))
    graph.add_edge(START, "ask")
    graph.add_conditional_edges("ask", lambda state: "tools" if state["messages"][-1].tool_calls else END)
    graph.add_edge("tools", "ask")
    return graph.compile(checkpointer=checkpointer, name="worker")


def langgraph_with_checkpointer(server: FaultServer) -> Any:
    from langgraph.checkpoint.memory import InMemorySaver

    return langgraph(server, CHECKPOINTS.setdefault(server.base_url, InMemorySaver()))


CHECKPOINTS: dict[str, Any] = {}
"""One store for each server, as one database serves the process that comes after a crash."""


def semantic_kernel(server: FaultServer) -> Any:
    from semantic_kernel.agents import ChatCompletionAgent
    from semantic_kernel.connectors.ai.open_ai import OpenAIChatCompletion
    from semantic_kernel.functions import KernelPlugin, kernel_function

    return ChatCompletionAgent(
        service=OpenAIChatCompletion(ai_model_id="m", async_client=openai_client(server)),
        instructions="Be brief.",
        name="worker",
        plugins=[KernelPlugin.from_object("sums", {"add": kernel_function(add, name="add")})],
    )


_AGENT_FRAMEWORK = ("agent_framework", "agent_framework.openai", "agent_framework_openai")
_LANGGRAPH = ("langgraph.graph", "langgraph.prebuilt", "langchain_openai")

SUBJECTS = [
    Subject("ChatClientAgent", chat_client_agent, has_tools=False),
    Subject("function", function, has_tools=False, streams=False),
    Subject("generator", generator, has_tools=False),
    Subject(
        "agent_framework", agent_framework, _AGENT_FRAMEWORK, ("agent_framework.exceptions", "ChatClientException")
    ),
    Subject("openai_agents", openai_agents, ("agents",)),
    Subject("openai_agents, its session", openai_agents_with_its_session, ("agents",)),
    Subject(
        "pydantic_ai", pydantic_ai, ("pydantic_ai", "pydantic_ai.models.openai"), ("pydantic_ai", "ModelHTTPError")
    ),
    Subject("langgraph", langgraph, _LANGGRAPH, approves=False),
    Subject("langgraph, checkpointer", langgraph_with_checkpointer, _LANGGRAPH),
    Subject(
        "semantic_kernel",
        semantic_kernel,
        ("semantic_kernel", "semantic_kernel.agents", "semantic_kernel.connectors.ai.open_ai"),
        ("semantic_kernel.exceptions", "ServiceResponseException"),
        approves=False,
    ),
]
