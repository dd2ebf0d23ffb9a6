"""Microsoft Agent Framework (Python), both ways: its agents and chat clients here, a `LoopAgent` there."""

from __future__ import annotations

from agents_loop.integrations.agent_framework.adapting import adapt_agent, adapt_chat_client
from agents_loop.integrations.agent_framework.agent import AgentFrameworkAgent
from agents_loop.integrations.agent_framework.chat_client import AgentFrameworkChatClient
from agents_loop.integrations.agent_framework.outward import as_agent_framework_agent

__all__ = [
    "AgentFrameworkAgent",
    "AgentFrameworkChatClient",
    "adapt_agent",
    "adapt_chat_client",
    "as_agent_framework_agent",
]
