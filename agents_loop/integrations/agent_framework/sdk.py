"""The one door to Microsoft Agent Framework. Importing this file does not load it."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType

from agents_loop.errors import MissingExtraError


def load_agent_framework(what: str) -> ModuleType:
    """The framework's module.

    Args:
        what: Who needs it, for the message.

    Raises:
        MissingExtraError: It is not installed.
    """
    try:
        return import_module("agent_framework")
    except ImportError as error:
        raise MissingExtraError(what, "agent-framework") from error


def content_filter_error() -> type[Exception]:
    """What the framework's chat clients raise where a provider's filter refuses a prompt."""
    return import_module("agent_framework.exceptions").ChatClientContentFilterException
