"""The chat completions API, spoken through openai-python: what the clients in this folder share.

Nothing else in the library imports that SDK, and here it is imported when a client is made, not before.
"""

from __future__ import annotations

from agents_loop.clients.chat_completions.client import ChatCompletionsClient
from agents_loop.clients.chat_completions.sdk import make_azure_openai, make_openai

__all__ = ["ChatCompletionsClient", "make_azure_openai", "make_openai"]
