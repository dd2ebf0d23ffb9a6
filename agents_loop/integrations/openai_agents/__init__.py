"""Agents of the OpenAI Agents SDK as inner agents."""

from __future__ import annotations

from agents_loop.errors import MissingExtraError
from agents_loop.integrations.openai_agents.agent import OpenAIAgentsAgent
from agents_loop.integrations.openai_agents.sdk import load_agents_sdk

__all__ = ["OpenAIAgentsAgent", "adapt_agent"]


def adapt_agent(x: object) -> OpenAIAgentsAgent | None:
    """The SDK's agent as ours; `None` if it is none."""
    try:
        sdk = load_agents_sdk("this")
    except MissingExtraError:
        return None
    return OpenAIAgentsAgent(x) if isinstance(x, sdk.Agent) else None
