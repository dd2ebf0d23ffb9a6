"""A visit of one node: what it reads, asks or computes, and writes."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from typing import Any, Protocol, TypeVar, cast

from agents_loop.agent import AgentResponse, AgentResponseUpdate
from agents_loop.chat_client import ChatClient, ChatOptions, ChatResponse, ChatResponseUpdate
from agents_loop.errors import BudgetExceededError
from agents_loop.failures import cause_of
from agents_loop.files.current_node import NODE
from agents_loop.files.flomorphic.context import ContextError, Element, FlowContext
from agents_loop.files.flomorphic.conversation import (
    ConversationError,
    assistant_message,
    calls_in,
    chat_messages,
    seeded,
    wire_functions,
)
from agents_loop.files.flomorphic.errors import FlowNodeError
from agents_loop.files.flomorphic.graph import EXCEPTION_PORT, FlowGraph, FlowNode
from agents_loop.files.flomorphic.js import JsError, JsLimits, run_script
from agents_loop.files.flomorphic.json_text import TooLongError
from agents_loop.files.flomorphic.paths import PathError, read_path
from agents_loop.files.flomorphic.routing import Choice, choice_of, failed
from agents_loop.files.flomorphic.side_thread import in_side_thread
from agents_loop.loop.evaluation import LoopEvaluation
from agents_loop.messages import ChatMessage, ChatRole, JsonValue, join_text
from agents_loop.metering.ledger import Role
from agents_loop.streams import close_stream

T = TypeVar("T")


class Told(Protocol):
    """Who hears what happens in a visit, and runs what takes time."""

    async def begins_iteration(self, sent: Sequence[ChatMessage], on_behalf_of: Sequence[ChatMessage]) -> None:
        """A node that answers is about to be asked."""
        ...

    async def updated(self, update: AgentResponseUpdate) -> None:
        """A piece of its answer."""
        ...

    async def answered(self, response: AgentResponse) -> None:
        """Its answer."""
        ...

    async def begins_deciding(self, sent: Sequence[ChatMessage]) -> None:
        """A node that decides is about to be asked."""
        ...

    async def decided(self, reply: AgentResponse, evaluation: LoopEvaluation) -> None:
        """It has spoken."""
        ...

    def logged(self, ref: str, lines: Sequence[str]) -> None:
        """A script has logged."""
        ...

    async def ask(self, call: Callable[[], Awaitable[T]], role: Role) -> T:
        """What a call of a model gives, within the run's limits."""
        ...

    async def in_time(self, waited_for: Awaitable[T]) -> T:
        """What is waited for within the run's deadline."""
        ...


@dataclass(slots=True)
class Visiting:
    """What visits of one run have in common."""

    graph: FlowGraph
    context: FlowContext
    clients: Mapping[str, ChatClient]
    limits: JsLimits
    streaming: bool
    one_script: asyncio.Lock = field(default_factory=asyncio.Lock)
    """Scripts run one at a time: their time is that of the process, and each may use all the memory it is given."""

    async def visit(self, node: FlowNode, told: Told) -> Choice | None:
        """Visit a node, once for each element of its scope in turn; gives what it chose, if it is one that decides.

        Raises:
            FlowNodeError: It failed.
        """
        if node.kind == "startNode":
            return None
        NODE.set(node.ref)
        choice: Choice | None = None
        try:
            for element in self.context.elements(node.scope):
                if node.kind == "js":
                    await self._run_script(node, element, told)
                elif node.is_judge:
                    choice = await self._decide(node, element, told)
                    if choice.code is None:
                        break  # the first element that picks a port ends it
                else:
                    await self._answer(node, element, told)
        except (JsError, PathError, ContextError, ConversationError, TooLongError) as error:
            raise FlowNodeError(node.ref, str(error)) from error
        return choice if choice is not None or not node.is_judge else Choice(())

    async def _run_script(self, node: FlowNode, element: Element, told: Told) -> None:
        async with self.one_script:
            await self._run_alone(node, element, told)

    async def _run_alone(self, node: FlowNode, element: Element, told: Told) -> None:
        root_text = self.context.as_text()  # as it is now, whatever other branches do to it while the script runs
        read_root = cache(lambda: json.loads(root_text))

        def get(path: str) -> tuple[JsonValue] | None:
            try:
                return read_path(path).value(read_root())
            except PathError as error:
                raise JsError(f"_get: {error}") from error

        given = json.dumps(self.context.current(element))
        script = partial(run_script, node.code, given, get, self.limits, has_input=element.exists)
        outcome = await told.in_time(in_side_thread(script))
        told.logged(node.ref, outcome.logs)
        self.context.write(element, node.key, outcome.output)

    async def _answer(self, node: FlowNode, element: Element, told: Told) -> None:
        resumed, messages = self._open(node, element)
        sent = chat_messages(messages)
        await told.begins_iteration(sent, _new_in(sent) if resumed else ())
        reply = await told.ask(lambda: self._answer_of(node, sent, told), "agent")
        said = assistant_message(_text_of(reply.messages), calls_in(reply.messages))
        self.context.write(element, node.key, {"resumed": resumed, "messages": [*messages, said]})
        await told.answered(AgentResponse([], agent_id=node.ref).take(reply))

    async def _answer_of(self, node: FlowNode, sent: list[ChatMessage], told: Told) -> ChatResponse:
        client = self.clients[node.settings_id]
        if not self.streaming:
            return await client.get_response(sent)
        pieces: list[ChatResponseUpdate] = []
        stream = client.get_streaming_response(sent)
        try:
            async for piece in stream:
                pieces.append(piece)
                await told.updated(AgentResponseUpdate.from_chat(piece, agent_id=node.ref))
        finally:
            await close_stream(stream)
        return ChatResponse.from_updates(pieces)

    async def _decide(self, node: FlowNode, element: Element, told: Told) -> Choice:
        resumed, messages = self._open(node, element)
        sent = chat_messages(messages)
        options = ChatOptions(tools=wire_functions(node.functions))
        await told.begins_deciding(sent)
        response = ChatResponse([])
        try:
            response = await told.ask(lambda: self.clients[node.settings_id].get_response(sent, options), "evaluator")
        except BudgetExceededError:
            raise
        except Exception as error:
            if not self.graph.edges_from(node.ref, [EXCEPTION_PORT]):
                raise
            choice = failed("provider_error", f"{type(error).__name__} ({cause_of(error).value})")
        else:
            choice = choice_of(node, response)
        slot: dict[str, JsonValue] = {"resumed": resumed, "messages": messages}
        if response.messages:
            said = assistant_message(_text_of(response.messages), calls_in(response.messages))
            slot["messages"] = [*messages, said]
            if choice.calls:
                slot["tool_calls"] = said["tool_calls"]
        slot |= {"routed": list(choice.ports)} if choice.code is None else {"error": choice.detail, "code": choice.code}
        self.context.write(element, node.key, slot)
        reply = AgentResponse([], agent_id=node.ref).take(response)
        await told.decided(reply, choice.evaluation(self.graph, node))
        return choice

    def _open(self, node: FlowNode, element: Element) -> tuple[bool, list[JsonValue]]:
        """The node's conversation: the one that is there, or its first messages; and whether it was there."""
        held: Any = self.context.current(element)
        if node.key and isinstance(held, dict):
            held = cast("dict[str, Any]", held).get(node.key)
        elif node.key and held is not None:
            raise ContextError(f"the scope {node.scope.text} is no object, so there is no {node.key!r} in it")
        if held is not None and not isinstance(held, dict):
            raise ContextError(f"where its conversation should be stands {held!r:.60}")
        slot = cast("dict[str, Any]", held or {})
        if node.clears_history and "messages" in slot:
            slot["messages"] = []
        existing: Any = cast("Any", slot.get("messages") or [])
        if not isinstance(existing, list):
            raise ContextError(f"`messages` must be a list, not {existing!r:.60}")
        if existing:
            return True, list(cast("list[JsonValue]", existing))
        self.context.as_text()  # no conversation begins in a context that has grown too big
        this = self.context.current(element)
        return False, cast("list[JsonValue]", seeded(node.messages, self.context.root, this))


def _new_in(sent: Sequence[ChatMessage]) -> list[ChatMessage]:
    """What was added to a conversation since its last answer."""
    last = max((number for number, message in enumerate(sent) if message.role == ChatRole.ASSISTANT), default=-1)
    return [message for message in sent[last + 1 :] if message.role != ChatRole.TOOL]


def _text_of(messages: Sequence[ChatMessage]) -> str:
    return join_text([message for message in messages if message.role == ChatRole.ASSISTANT])
