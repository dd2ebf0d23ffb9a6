"""The one door to LangGraph, and to LangChain's messages, which its graphs hold. Importing this file loads neither."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType

from agents_loop.errors import MissingExtraError

_EXTRA = "langgraph"


def load_langgraph(what: str, module: str = "langgraph.pregel") -> ModuleType:
    """A module of LangGraph.

    Args:
        what: Who needs it, for the message.
        module: Its name.

    Raises:
        MissingExtraError: It is not installed.
    """
    try:
        return import_module(module)
    except ImportError as error:
        raise MissingExtraError(what, _EXTRA) from error


def load_messages(what: str) -> ModuleType:
    """LangChain's messages.

    Raises:
        MissingExtraError: They are not installed.
    """
    try:
        return import_module("langchain_core.messages")
    except ImportError as error:
        raise MissingExtraError(what, _EXTRA) from error
