"""An agent made of a chat client: instructions, history, tools with approval, context providers."""

from agents_loop.chat_client_agent.agent import ChatClientAgent

__all__ = ["ChatClientAgent"]
