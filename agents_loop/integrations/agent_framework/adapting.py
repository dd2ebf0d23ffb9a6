"""Which of the framework's objects are adapted."""

from __future__ import annotations

from agents_loop.errors import MissingExtraError
from agents_loop.integrations.agent_framework.agent import AgentFrameworkAgent
from agents_loop.integrations.agent_framework.chat_client import AgentFrameworkChatClient
from agents_loop.integrations.agent_framework.sdk import load_agent_framework


def adapt_agent(x: object) -> AgentFrameworkAgent | None:
    """The framework's agent as ours; `None` if it is none."""
    return AgentFrameworkAgent(x) if _is(x, "SupportsAgentRun") else None


def adapt_chat_client(x: object) -> AgentFrameworkChatClient | None:
    """The framework's chat client as ours; `None` if it is none."""
    return AgentFrameworkChatClient(x) if _is(x, "SupportsChatGetResponse") else None


def _is(x: object, protocol: str) -> bool:
    try:
        return isinstance(x, getattr(load_agent_framework("this"), protocol))
    except MissingExtraError:
        return False
