"""Semantic Kernel's threads: how an agent's are made, written down and read back.

A thread that keeps its history on this side is written by value. One that lives in a service is written by its id: what
is read back is the same conversation, and whoever has it shares it.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any, cast

from pydantic import ValidationError
from semantic_kernel.agents.agent import Agent, AgentThread
from semantic_kernel.agents.chat_completion.chat_completion_agent import ChatCompletionAgent, ChatHistoryAgentThread
from semantic_kernel.contents.binary_content import BinaryContent
from semantic_kernel.contents.chat_message_content import ChatMessageContent
from semantic_kernel.exceptions.content_exceptions import ContentException

from agents_loop.errors import SessionStateError
from agents_loop.messages import JsonValue

MakeThread = Callable[[str | None], AgentThread]
"""Makes a thread: a new one for `None`, the one of that id otherwise."""


@dataclass(frozen=True, slots=True)
class _ServiceThread:
    """How the threads of a service's agents are made."""

    module: str
    name: str
    id_parameter: str
    taken_from_agent: Mapping[str, str]
    """The parameters that are taken from the agent, and its attributes that hold them."""

    def make(self, agent: Agent, thread_id: str | None) -> AgentThread:
        kind: Callable[..., AgentThread] = getattr(import_module(self.module), self.name)
        taken = {parameter: getattr(agent, attribute) for parameter, attribute in self.taken_from_agent.items()}
        return kind(**taken, **{self.id_parameter: thread_id})


_AGENTS = "semantic_kernel.agents"
_CLIENT = {"client": "client"}
_SERVICE_THREADS = {
    "OpenAIAssistantAgent": _ServiceThread(
        f"{_AGENTS}.open_ai.openai_assistant_agent", "AssistantAgentThread", "thread_id", _CLIENT
    ),
    "OpenAIResponsesAgent": _ServiceThread(
        f"{_AGENTS}.open_ai.openai_responses_agent",
        "ResponsesAgentThread",
        "previous_response_id",
        {**_CLIENT, "enable_store": "store_enabled"},
    ),
    "AzureAIAgent": _ServiceThread(f"{_AGENTS}.azure_ai.azure_ai_agent", "AzureAIAgentThread", "thread_id", _CLIENT),
    "CopilotStudioAgent": _ServiceThread(
        f"{_AGENTS}.copilot_studio.copilot_studio_agent", "CopilotStudioAgentThread", "conversation_id", _CLIENT
    ),
    "BedrockAgent": _ServiceThread(
        f"{_AGENTS}.bedrock.bedrock_agent",
        "BedrockAgentThread",
        "session_id",
        {"bedrock_runtime_client": "bedrock_runtime_client"},
    ),
    "AutoGenConversableAgent": _ServiceThread(
        f"{_AGENTS}.autogen.autogen_conversable_agent", "AutoGenConversableAgentThread", "thread_id", {}
    ),
}
"""By the names of the agents' classes: importing these would load every service's SDK."""


def thread_maker(agent: Agent) -> MakeThread | None:
    """What makes the threads of a known kind of agent; `None` for another."""
    if isinstance(agent, ChatCompletionAgent):
        return lambda thread_id: ChatHistoryAgentThread(thread_id=thread_id)
    for kind in type(agent).__mro__:
        known = _SERVICE_THREADS.get(kind.__name__)
        if known is not None and kind.__module__.startswith(f"{_AGENTS}."):
            return lambda thread_id: known.make(agent, thread_id)
    return None


async def write_thread(thread: AgentThread | None) -> JsonValue:
    """A thread as a JSON value that shares nothing with it. One that does not exist yet has neither id nor history."""
    if thread is None:
        return {"id": None, "messages": None}
    return {"id": thread.id, "messages": await _history(thread)}


async def _history(thread: AgentThread) -> JsonValue:
    """The messages of a thread that keeps them on this side, else `None`."""
    is_local = isinstance(thread, ChatHistoryAgentThread) or type(thread).__name__ == "AutoGenConversableAgentThread"
    is_local = is_local or (type(thread).__name__ == "ResponsesAgentThread" and thread.id is None)
    if not is_local:
        return None
    try:
        return [_written(message) async for message in cast("ChatHistoryAgentThread", thread).get_messages()]
    except (TypeError, ValueError) as error:
        raise SessionStateError(f"thread {thread.id!r} holds what can't be written as JSON: {error}") from error


def _written(message: ChatMessageContent) -> JsonValue:
    """One message. Bytes are written apart, for a data URI is not read back for every media type."""
    written: dict[str, Any] = json.loads(message.model_dump_json(exclude_none=True))
    for item, fields in zip(message.items, written.get("items", []), strict=True):
        if isinstance(item, BinaryContent) and item.data:
            del fields["data_uri"]
            data = base64.b64encode(bytes(item.data)).decode()
            fields |= {"data": data, "data_format": "base64", "mime_type": item.mime_type}
    return written


async def read_thread(state: Mapping[str, JsonValue], make_thread: MakeThread) -> AgentThread:
    """A thread from what `write_thread` gave.

    Raises:
        SessionStateError: The value is not one of `write_thread`.
    """
    thread_id, messages = state.get("id"), state.get("messages")
    if not isinstance(thread_id, str | None) or not isinstance(messages, list | None):
        raise SessionStateError(f"a stored thread needs a str `id` and a list `messages`, not {state!r}")
    thread = make_thread(thread_id)
    for written in cast("list[Any]", messages or []):
        try:
            message = ChatMessageContent.model_validate(written)
        except (ValidationError, ContentException, TypeError, ValueError) as error:
            raise SessionStateError(f"a stored message of a thread can't be read: {error}") from error
        thread_id_of_message = message.metadata.pop("thread_id", None)  # it would be taken for one that is there
        await thread.on_new_message(message)
        if thread_id_of_message is not None:
            message.metadata["thread_id"] = thread_id_of_message
    return thread
