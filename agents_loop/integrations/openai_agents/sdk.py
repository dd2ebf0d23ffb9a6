"""The one door to the OpenAI Agents SDK. Importing this file does not load it."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType

from agents_loop.errors import MissingExtraError


def load_agents_sdk(what: str) -> ModuleType:
    """The SDK's module.

    Args:
        what: Who needs it, for the message.

    Raises:
        MissingExtraError: It is not installed; or a package of another maker has its name, `agents`.
    """
    try:
        sdk = import_module("agents")
    except ImportError as error:
        raise MissingExtraError(what, "openai-agents") from error
    if not hasattr(sdk, "Runner"):
        raise MissingExtraError(what, "openai-agents")
    return sdk
