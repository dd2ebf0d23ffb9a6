"""The chat clients that the contract is checked on: each by its own SDK's means, over a real server."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from agent_subjects import Subject, openai_client
from fault_server import Completion, Failure, FaultServer, RecordedRequest, Reply, Stream, closed_later

from agents_loop import (
    ChatClient,
    ChatMessage,
    ChatOptions,
    ChatResponse,
    ErrorContent,
    FunctionCallContent,
    UsageDetails,
)
from agents_loop.adapting import as_chat_client
from agents_loop.clients.azure_openai import AzureOpenAIChatClient
from agents_loop.clients.chat_completions.wire_messages import wire_messages
from agents_loop.clients.fallback import FallbackChatClient
from agents_loop.clients.openai import OpenAIChatClient
from agents_loop.testing import ScriptedChatClient


@dataclass(frozen=True)
class ClientSubject(Subject):
    """A chat client for the model `m` at a server.

    Args:
        speaks: Whether it speaks to the server over HTTP, so that there is a wire to look at.
    """

    make: Callable[[FaultServer], ChatClient]
    speaks: bool = True


class Echo(FaultServer):
    """Answers what the last message says, and counts its letters as the usage."""

    def reply_to(self, request: RecordedRequest) -> Reply:
        self.requests.append(request)
        said = request.body["messages"][-1]["content"]
        counted = {"prompt_tokens": len(said), "completion_tokens": 1, "total_tokens": len(said) + 1}
        return Completion(content=said, usage=counted)


def scripted(server: FaultServer) -> ChatClient:
    """Takes its replies from the server's script, without a connection."""

    async def answer(messages: Sequence[ChatMessage], options: ChatOptions | None) -> ChatResponse | BaseException:
        body = {"messages": wire_messages(messages), "stream": False}
        match server.reply_to(RecordedRequest("", {}, {}, body)):
            case Completion() as reply:
                return _response(reply)
            case Failure(message=message):
                return PermissionError(message)
            case Stream():
                return ChatResponse([ChatMessage("assistant", "half an answer")])
            case _:
                try:
                    await asyncio.Event().wait()
                finally:
                    server.client_left.set()
        raise AssertionError

    return ScriptedChatClient(answer)


def _response(reply: Completion) -> ChatResponse:
    contents: list[Any] = [reply.content] if reply.content else []
    if reply.refusal:
        contents = [ErrorContent(reply.refusal, code="refusal")]
    for call in reply.tool_calls:
        function = call["function"]
        contents.append(FunctionCallContent(call["id"], function["name"], json.loads(function["arguments"])))
    counted = reply.usage and UsageDetails(
        reply.usage["prompt_tokens"], reply.usage["completion_tokens"], reply.usage["total_tokens"]
    )
    return ChatResponse(
        [ChatMessage("assistant", contents)],
        response_id="reply-1",
        model_id="m",
        finish_reason="refusal" if reply.refusal else reply.finish_reason,
        usage=counted,
    )


def openai(server: FaultServer) -> ChatClient:
    return closed_later(OpenAIChatClient("m", api_key="k", base_url=server.base_url, max_retries=0))


def azure_openai(server: FaultServer) -> ChatClient:
    return closed_later(AzureOpenAIChatClient("m", endpoint=server.origin, credential="k", max_retries=0))


def fallback(server: FaultServer) -> ChatClient:
    """Its first client is down, so that the second one answers."""
    return FallbackChatClient(ScriptedChatClient(lambda *_: ConnectionError("no route")), openai(server))


def semantic_kernel(server: FaultServer) -> ChatClient:
    connectors = import_module("semantic_kernel.connectors.ai.open_ai")
    return as_chat_client(connectors.OpenAIChatCompletion(ai_model_id="m", async_client=openai_client(server)))


def agent_framework(server: FaultServer) -> ChatClient:
    clients = import_module("agent_framework.openai")
    return as_chat_client(clients.OpenAIChatCompletionClient(model="m", async_client=openai_client(server)))


CLIENT_SUBJECTS = [
    ClientSubject("scripted", scripted, refused=("builtins", "PermissionError"), streams=False, speaks=False),
    ClientSubject("openai", openai),
    ClientSubject("azure_openai", azure_openai),
    ClientSubject("fallback", fallback),
    ClientSubject(
        "semantic_kernel",
        semantic_kernel,
        ("semantic_kernel", "semantic_kernel.agents", "semantic_kernel.connectors.ai.open_ai"),
        ("semantic_kernel.exceptions", "ServiceResponseException"),
    ),
    ClientSubject(
        "agent_framework",
        agent_framework,
        ("agent_framework", "agent_framework.openai", "agent_framework_openai"),
        ("agent_framework.exceptions", "ChatClientException"),
    ),
]
