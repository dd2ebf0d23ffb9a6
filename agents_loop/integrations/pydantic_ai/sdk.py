"""The one door to Pydantic AI. Importing this file does not load it."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType

from agents_loop.errors import MissingExtraError


def load_pydantic_ai(what: str) -> ModuleType:
    """The framework's module.

    Args:
        what: Who needs it, for the message.

    Raises:
        MissingExtraError: It is not installed.
    """
    try:
        return import_module("pydantic_ai")
    except ImportError as error:
        raise MissingExtraError(what, "pydantic-ai") from error
