"""Semantic Kernel, both ways: its agents and chat services in our loops, our loops as its agents.

`SemanticKernelAgent` and `SemanticKernelChatClient` wrap what is Semantic Kernel's; `as_semantic_kernel_agent` makes
what is ours an agent of Semantic Kernel. Importing this package imports the SDK.
"""

from __future__ import annotations

from importlib import import_module

from agents_loop.agent import AIAgent
from agents_loop.chat_client import ChatClient
from agents_loop.errors import MissingExtraError

try:
    import_module("semantic_kernel.agents.agent")
except ImportError as error:
    raise MissingExtraError("The Semantic Kernel adapter", "semantic-kernel") from error

from semantic_kernel.agents.agent import Agent
from semantic_kernel.connectors.ai.chat_completion_client_base import ChatCompletionClientBase

from agents_loop.integrations.semantic_kernel.agent import SemanticKernelAgent
from agents_loop.integrations.semantic_kernel.approvals import approval_message, approval_requests
from agents_loop.integrations.semantic_kernel.chat_client import SemanticKernelChatClient
from agents_loop.integrations.semantic_kernel.kernel_agent import (
    KernelAgent,
    LoopDetails,
    as_semantic_kernel_agent,
)
from agents_loop.integrations.semantic_kernel.session_thread import AgentSessionThread

__all__ = [
    "AgentSessionThread",
    "KernelAgent",
    "LoopDetails",
    "SemanticKernelAgent",
    "SemanticKernelChatClient",
    "adapt_agent",
    "adapt_chat_client",
    "approval_message",
    "approval_requests",
    "as_semantic_kernel_agent",
]


def adapt_agent(x: object) -> AIAgent | None:
    """An agent of Semantic Kernel as an `AIAgent`; `None` for anything else. One that was made of ours is that one."""
    if isinstance(x, KernelAgent):
        return x.inner_agent
    return SemanticKernelAgent(x) if isinstance(x, Agent) else None


def adapt_chat_client(x: object) -> ChatClient | None:
    """A chat completion service of Semantic Kernel as a `ChatClient`; `None` for anything else."""
    return SemanticKernelChatClient(x) if isinstance(x, ChatCompletionClientBase) else None
