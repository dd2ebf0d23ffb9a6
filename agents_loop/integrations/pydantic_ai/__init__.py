"""Agents of Pydantic AI as inner agents."""

from __future__ import annotations

from agents_loop.errors import MissingExtraError
from agents_loop.integrations.pydantic_ai.agent import PydanticAIAgent
from agents_loop.integrations.pydantic_ai.sdk import load_pydantic_ai

__all__ = ["PydanticAIAgent", "adapt_agent"]


def adapt_agent(x: object) -> PydanticAIAgent | None:
    """The framework's agent as ours; `None` if it is none."""
    try:
        framework = load_pydantic_ai("this")
    except MissingExtraError:
        return None
    return PydanticAIAgent(x) if isinstance(x, framework.agent.AbstractAgent) else None
