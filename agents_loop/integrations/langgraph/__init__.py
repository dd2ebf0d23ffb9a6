"""Compiled LangGraph graphs as inner agents."""

from __future__ import annotations

from agents_loop.errors import MissingExtraError
from agents_loop.integrations.langgraph.agent import LangGraphAgent
from agents_loop.integrations.langgraph.sdk import load_langgraph

__all__ = ["LangGraphAgent", "adapt_agent"]


def adapt_agent(x: object) -> LangGraphAgent | None:
    """A compiled graph as an agent; `None` if it is none.

    Raises:
        TypeError: It is a graph that has not been compiled.
    """
    try:
        pregel = load_langgraph("this").Pregel
        builder = load_langgraph("this", "langgraph.graph").StateGraph
    except MissingExtraError:
        return None
    if isinstance(x, builder):
        raise TypeError("a StateGraph can't be run: pass graph.compile()")
    return LangGraphAgent(x) if isinstance(x, pregel) else None
