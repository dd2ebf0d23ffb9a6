"""A compiled LangGraph graph as an inner agent."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterator, Mapping
from contextlib import aclosing
from typing import Any

from agents_loop.agent import AgentResponse, AgentResponseUpdate, AgentRunOptions, AgentSession
from agents_loop.approvals import NOT_RUN, Pending, Turn
from agents_loop.errors import ConfigurationError
from agents_loop.foreign_agent import ForeignAgent, json_copy, with_ids
from agents_loop.ids import new_id
from agents_loop.integrations.langgraph.contents import (
    contents_of,
    from_state,
    role_of,
    text_of,
    to_state,
    unanswered,
    usage_of,
)
from agents_loop.integrations.langgraph.interrupts import answers_to, as_json, pending_in, requests_of
from agents_loop.integrations.langgraph.sdk import load_langgraph, load_messages
from agents_loop.integrations.langgraph.threads import GraphConversation, begin_thread, checkpoint_of
from agents_loop.messages import ChatMessage, ChatRole, Content, JsonValue, UsageContent


class LangGraphAgent(ForeignAgent[GraphConversation]):
    """A compiled graph whose state has `messages`.

    With a checkpointer a session is a thread: its history is LangGraph's, and a clone is a new thread that begins as a
    copy of the checkpoint at which the session was written. Without one the session holds the messages, which a run
    adds to once it is complete; other keys of the state begin anew with each run. The response is what the graph added
    to `messages`; its usage is the sum of what these messages report.

    An interrupt ends the run with a `ToolApprovalRequestContent`. A `ToolApprovalResponseContent` resumes it in the
    same session, with `True` or `False`; so does a `FunctionResultContent` for the request's call, with its result.
    What the graph raises reaches the caller as it was raised; a thread then keeps what LangGraph wrote.

    Args:
        graph: The compiled graph.
        config: Handed to each run, as LangGraph takes it; the thread is set in it.
        context: Handed to each run: the graph's runtime context.
        name: The agent's name; by default the graph's, if it has one.
        description: What it is for.

    Raises:
        ConfigurationError: The graph's state has no `messages`.
    """

    framework = "langgraph"

    def __init__(
        self,
        graph: Any,
        *,
        config: Mapping[str, Any] | None = None,
        context: Any = None,
        name: str | None = None,
        description: str | None = None,
    ) -> None:
        load_langgraph(type(self).__name__)
        if "messages" not in graph.channels:
            raise ConfigurationError("the graph's state needs `messages`, such as MessagesState has")
        self.graph = graph
        given_name: str | None = graph.name
        self.name = name or (given_name if given_name != "LangGraph" else None)
        self.description = description
        self._config = dict(config or {})
        self._context = context

    async def run_core(
        self, messages: list[ChatMessage], *, session: AgentSession | None, options: AgentRunOptions | None
    ) -> AgentResponse:
        """Run the graph once."""
        conversation = await self.conversation(session)
        turn, rest = conversation.pending.take(messages)
        if turn is Turn.ASK_AGAIN:
            return AgentResponse([self._asked_again(conversation)], response_id=new_id(), agent_id=self.id)
        run = _GraphRun(await self._arguments(conversation, turn, rest, options))
        async with aclosing(self.graph.astream(**run.arguments, stream_mode=["values"])) as events:
            async for _, event in events:
                run.follow(event)
        return with_ids(self._finish(conversation, run))

    async def stream(
        self,
        messages: list[ChatMessage],
        *,
        session: AgentSession | None,
        options: AgentRunOptions | None,
        given: list[AgentResponse],
    ) -> AsyncGenerator[AgentResponseUpdate, None]:
        """Stream the graph once: a model's text as it comes, all else whole when the state has it."""
        conversation = await self.conversation(session)
        turn, rest = conversation.pending.take(messages)
        if turn is Turn.ASK_AGAIN:
            asked = AgentResponse([self._asked_again(conversation)], response_id=new_id(), agent_id=self.id)
            given.append(asked)
            [message] = asked.messages
            yield AgentResponseUpdate(
                message.role,
                message.contents,
                author_name=self.name,
                agent_id=self.id,
                response_id=asked.response_id,
                message_id=message.message_id,
            )
            return
        run = _GraphRun(await self._arguments(conversation, turn, rest, options))
        async with aclosing(self.graph.astream(**run.arguments, stream_mode=["values", "messages"])) as events:
            async for mode, event in events:
                for role, message_id, name, contents in (
                    run.piece(event[0]) if mode == "messages" else run.follow(event)
                ):
                    yield self._update(run, role, message_id, name, contents)
        response = self._finish(conversation, run)
        requests: list[Content] = list(requests_of(run.waiting))
        if requests:
            yield self._update(run, ChatRole.ASSISTANT, new_id(), None, requests)
        if response.usage is not None:
            yield AgentResponseUpdate(
                contents=UsageContent(response.usage), agent_id=self.id, response_id=run.response_id
            )
        given.append(response)

    def new_conversation(self) -> GraphConversation:
        """A thread with a new id."""
        return GraphConversation()

    async def write_conversation(self, conversation: GraphConversation) -> JsonValue:
        """The thread and its checkpoint; or the messages."""
        kept = load_messages(type(self).__name__).messages_to_dict(conversation.messages)
        origin = await checkpoint_of(self.graph.checkpointer, conversation) if self._has_threads else None
        pending = conversation.pending.to_json()
        return json_copy({"messages": kept, "origin": origin, "waiting": conversation.waiting, "pending": pending})

    async def read_conversation(self, state: JsonValue) -> GraphConversation:
        """A conversation that begins where the written one was."""
        kept = load_messages(type(self).__name__).messages_from_dict(state["messages"])
        pending = Pending.from_json(state["pending"])
        return GraphConversation(messages=kept, origin=state["origin"], waiting=dict(state["waiting"]), pending=pending)

    @property
    def _has_threads(self) -> bool:
        return bool(self.graph.checkpointer) and self.graph.checkpointer is not True

    async def _arguments(
        self,
        conversation: GraphConversation,
        turn: Turn,
        messages: list[ChatMessage],
        options: AgentRunOptions | None,
    ) -> dict[str, Any]:
        if options is not None and options.chat_options is not None:
            raise ConfigurationError("a graph calls its own models: it can't be given chat_options")
        arguments: dict[str, Any] = {"config": self._config}
        if self._context is not None:
            arguments["context"] = self._context
        if self._has_threads:
            await begin_thread(self.graph.checkpointer, conversation)
            configurable = {**self._config.get("configurable", {}), "thread_id": conversation.thread_id}
            arguments["config"] = {**self._config, "configurable": configurable}
        if turn is Turn.RESUME:
            answers = answers_to(conversation.waiting, conversation.pending)
            arguments["input"] = load_langgraph(type(self).__name__, "langgraph.types").Command(resume=answers)
        else:
            new = to_state(messages)
            not_run = unanswered(await self._kept(arguments["config"]), new, NOT_RUN) if self._has_threads else []
            arguments["input"] = {"messages": [*conversation.messages, *not_run, *new]}
        return arguments

    async def _kept(self, config: dict[str, Any]) -> list[Any]:
        values: Any = (await self.graph.aget_state(config)).values
        return list(values.get("messages", ()) if hasattr(values, "get") else getattr(values, "messages", ()))

    def _asked_again(self, conversation: GraphConversation) -> ChatMessage:
        return conversation.pending.asked_again(self.name, new_id())

    def _finish(self, conversation: GraphConversation, run: _GraphRun) -> AgentResponse:
        conversation.waiting, conversation.pending = run.waiting, pending_in(run.waiting)
        if not self._has_threads:
            conversation.messages = run.messages
        messages = from_state(run.added)
        requests = requests_of(run.waiting)
        if requests:
            messages.append(ChatMessage(ChatRole.ASSISTANT, list(requests)))
        for message in messages:
            if message.role == ChatRole.ASSISTANT:
                message.author_name = message.author_name or self.name
        return AgentResponse(messages, response_id=run.response_id, agent_id=self.id, usage=usage_of(run.added))

    def _update(
        self, run: _GraphRun, role: str, message_id: str, name: str | None, contents: list[Content]
    ) -> AgentResponseUpdate:
        author = name or (self.name if role == ChatRole.ASSISTANT else None)
        return AgentResponseUpdate(
            role,
            contents,
            author_name=author,
            agent_id=self.id,
            response_id=run.response_id,
            message_id=message_id,
        )


_Piece = tuple[str, str, str | None, list[Content]]


class _GraphRun:
    """What a run adds to the state, as its events tell: the first holds what was there, the last what there is."""

    def __init__(self, arguments: dict[str, Any]) -> None:
        self.arguments = arguments
        self.response_id = new_id()
        self.messages: list[Any] = []
        self.added: list[Any] = []
        self.waiting: dict[str, JsonValue] = {}
        self._before: set[str] | None = None
        self._told: set[str] = set()
        self._streamed: dict[str, list[Content]] = {}

    def follow(self, values: dict[str, Any]) -> Iterator[_Piece]:
        """Take the state after a step; the pieces are the messages new in it, but for text that was streamed."""
        self.messages = list(values.get("messages", ()))
        if self._before is None:
            self._before = {message.id for message in self.messages}
        self.added = [message for message in self.messages if message.id not in self._before]
        stopped = {interrupt.id: as_json(interrupt.value) for interrupt in values.get("__interrupt__", ())}
        self.waiting = self.waiting | stopped if stopped else {}  # tasks that stop together are told one by one
        new = [message for message in self.added if message.id not in self._told]
        self._told |= {message.id for message in new}
        return iter([piece for message in new if (piece := self._whole(message))[3]])

    def piece(self, message: Any) -> Iterator[_Piece]:
        """The text in a piece of a model's message; what is no such piece comes with the state."""
        contents = text_of(message) if message.type == "AIMessageChunk" else []
        if contents:
            self._streamed.setdefault(message.id, []).extend(contents)
            yield ChatRole.ASSISTANT, message.id, message.name, contents

    def _whole(self, message: Any) -> _Piece:
        contents = contents_of(message)
        kinds = {type(content) for content in self._streamed.get(message.id, ())}
        rest = [content for content in contents if type(content) not in kinds]
        return role_of(message), message.id, message.name, rest
