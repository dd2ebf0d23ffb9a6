"""An agent of the OpenAI Agents SDK as an inner agent."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass, field, replace
from typing import Any, cast

from agents_loop.agent import AgentResponse, AgentResponseUpdate, AgentRunOptions, AgentSession
from agents_loop.approvals import Pending, Turn
from agents_loop.chat_client import ChatOptions
from agents_loop.errors import ConfigurationError
from agents_loop.foreign_agent import ForeignAgent, json_copy, with_ids
from agents_loop.ids import new_id
from agents_loop.integrations.openai_agents.items import Item, approval_request, from_items, to_items, usage_of
from agents_loop.integrations.openai_agents.sdk import load_agents_sdk
from agents_loop.integrations.openai_agents.stream import StreamedItems
from agents_loop.messages import (
    ChatMessage,
    ChatRole,
    JsonValue,
    ToolApprovalRequestContent,
)


@dataclass(slots=True)
class AgentsConversation:
    """What the SDK is sent before what is new, or its own session that holds it; and a run that waits, if one does."""

    items: list[Item] = field(default_factory=list[Item])
    session: Any = None
    waiting: Any = None
    """The `RunState` of a run that waits for approvals."""
    seen: tuple[int, int] = (0, 0)
    """How many model calls and items of that run have been reported already."""
    pending: Pending = field(default_factory=Pending)
    """What that run waits for. Its requests' ids are those of the calls."""
    added: list[Item] = field(default_factory=list[Item])
    """What that run was given to hear beside the answers, in an attempt that failed."""


class OpenAIAgentsAgent(ForeignAgent[AgentsConversation]):
    """An `Agent` of the OpenAI Agents SDK, run by its `Runner`.

    Each run begins with this agent, with the conversation's input items before what is new; a run's items are added
    once it is complete. A tool that needs approval ends the run with a `ToolApprovalRequestContent`; the response to
    it, sent in the same session, resumes the SDK's own run state. Sessions clone by value. What the SDK raises
    (`MaxTurnsExceeded`, a tripwire, an error of the model's client) reaches the caller as it was raised.

    Args:
        agent: The SDK's agent.
        context: Handed to each run, as `Runner.run` takes it.
        run_config: Handed to each run; a run's chat options are laid over its model settings.
        max_turns: The SDK's own bound on model calls within one run; its default when there is none.
        make_session: Makes an SDK session (`SQLiteSession`, say) from an id. Then that holds the conversation, and a
            clone is a new one with the same items. Without it the session of ours holds the items.
    """

    framework = "openai_agents"

    def __init__(
        self,
        agent: Any,
        *,
        context: Any = None,
        run_config: Any = None,
        max_turns: int | None = None,
        make_session: Callable[[str], Any] | None = None,
    ) -> None:
        load_agents_sdk(type(self).__name__)
        self.agent = agent
        self.name = agent.name
        self.description = agent.handoff_description
        self._context = context
        self._run_config = run_config
        self._max_turns = max_turns
        self._make_session = make_session

    async def run_core(
        self, messages: list[ChatMessage], *, session: AgentSession | None, options: AgentRunOptions | None
    ) -> AgentResponse:
        """Run the SDK's agent once."""
        run = await self._begin(messages, session, options)
        if isinstance(run, ChatMessage):
            return AgentResponse([run], response_id=new_id(), agent_id=self.id)
        try:
            result = await self._sdk.Runner.run(self.agent, run.input, **run.arguments)
        except self._sdk.MaxTurnsExceeded as error:
            _end(run, error)
            raise
        return with_ids(self._finish(run, result))

    async def stream(
        self,
        messages: list[ChatMessage],
        *,
        session: AgentSession | None,
        options: AgentRunOptions | None,
        given: list[AgentResponse],
    ) -> AsyncGenerator[AgentResponseUpdate, None]:
        """Stream the SDK's agent once: texts as they come, calls and results whole."""
        run = await self._begin(messages, session, options)
        streamed = StreamedItems(self.id)
        if isinstance(run, ChatMessage):
            given.append(AgentResponse([run], response_id=new_id(), agent_id=self.id))
            for update in streamed.ending(given[0]):
                yield update
            return
        result = self._sdk.Runner.run_streamed(self.agent, run.input, **run.arguments)
        events: Any = result.stream_events()
        try:
            async for event in events:
                for update in streamed.updates(event):
                    yield update
        except self._sdk.MaxTurnsExceeded as error:
            _end(run, error)
            raise
        finally:
            if not result.is_complete:
                result.cancel()
            async for _ in events:
                pass
        response = self._finish(run, result)
        for update in streamed.ending(response):
            yield update
        given.append(response)

    def new_conversation(self) -> AgentsConversation:
        """An empty one; or an SDK session with a new id."""
        return AgentsConversation(session=None if self._make_session is None else self._make_session(new_id()))

    async def write_conversation(self, conversation: AgentsConversation) -> JsonValue:
        """The items, and the run that waits, as the SDK writes it."""
        items = conversation.items if conversation.session is None else await conversation.session.get_items()
        waiting = None if conversation.waiting is None else conversation.waiting.to_json()
        pending = conversation.pending.to_json()
        written = {"items": items, "waiting": waiting, "seen": conversation.seen, "pending": pending}
        return json_copy({**written, "added": conversation.added})

    async def read_conversation(self, state: JsonValue) -> AgentsConversation:
        """A conversation of its own with the same items."""
        conversation = self.new_conversation()
        if conversation.session is None:
            conversation.items = state["items"]
        elif state["items"]:
            await conversation.session.add_items(state["items"])
        if state["waiting"] is not None:
            conversation.seen = (state["seen"][0], state["seen"][1])
            conversation.waiting = await self._sdk.RunState.from_json(self.agent, state["waiting"])
            conversation.pending = Pending.from_json(state["pending"])
            conversation.added = state["added"]
        return conversation

    @property
    def _sdk(self) -> Any:
        return load_agents_sdk(type(self).__name__)

    async def _begin(
        self, messages: list[ChatMessage], session: AgentSession | None, options: AgentRunOptions | None
    ) -> _Run | ChatMessage:
        """The run; or the requests that are left, where some are."""
        conversation = await self.conversation(session)
        have_run = conversation.waiting is not None and not conversation.waiting.get_interruptions()
        turn, rest = conversation.pending.take(messages, have_run=have_run)
        if turn is Turn.ASK_AGAIN:
            return conversation.pending.asked_again(self.name, new_id())
        chat_options = None if options is None else options.chat_options
        arguments = {
            "context": self._context,
            "run_config": self._run_config if chat_options is None else self._configured(chat_options),
            "max_turns": self._max_turns,
            "session": conversation.session,
        }
        arguments = {name: value for name, value in arguments.items() if value is not None}
        new = to_items(rest)
        if turn is Turn.RESUME:
            state: Any = conversation.waiting
            _decide(state, conversation.pending)
            again = len(conversation.added) if new[: len(conversation.added)] == conversation.added else 0
            if new[again:]:
                state.add_input(new[again:])
                conversation.added = [*conversation.added, *new[again:]]
            return _Run(conversation, state, arguments, *conversation.seen)
        return _Run(conversation, [*conversation.items, *new], arguments)

    def _finish(self, run: _Run, result: Any) -> AgentResponse:
        conversation, is_waiting = run.conversation, bool(result.interruptions)
        conversation.waiting = result.to_state() if is_waiting else None
        conversation.seen = (len(result.raw_responses), len(result.new_items)) if is_waiting else (0, 0)
        if conversation.session is None and not is_waiting:
            conversation.items = result.to_input_list()
        elif conversation.session is None and isinstance(run.input, list):
            conversation.items = cast(
                "list[Item]", run.input
            )  # without the calls: if nobody decides, they are not part of it
        messages = from_items(result.new_items[run.items_before :])
        _add_requests(messages, [approval_request(item) for item in result.interruptions])
        conversation.pending = Pending([approval_request(item) for item in result.interruptions])
        conversation.added = []
        return AgentResponse(
            messages,
            response_id=result.last_response_id or new_id(),
            agent_id=self.id,
            usage=usage_of(result.raw_responses[run.responses_before :]),
        )

    def _configured(self, options: ChatOptions) -> Any:
        if options.response_format is not None or options.tools:
            raise ConfigurationError("an OpenAI Agents SDK agent has its own output_type and tools: leave them unset")
        named = {
            "temperature": options.temperature,
            "top_p": options.top_p,
            "max_tokens": options.max_output_tokens,
            "frequency_penalty": options.frequency_penalty,
            "presence_penalty": options.presence_penalty,
            "extra_args": dict(options.additional_properties or {}) or None,
        }
        config = self._run_config or self._sdk.RunConfig()
        settings = self._sdk.ModelSettings(**named)
        base = config.model_settings
        return replace(
            config,
            model=options.model_id or config.model,
            model_settings=settings if base is None else base.resolve(settings),
        )


@dataclass(slots=True)
class _Run:
    """One run of the SDK's runner: what it is given, and how much of its result was there before."""

    conversation: AgentsConversation
    input: Any
    arguments: dict[str, Any]
    responses_before: int = 0
    items_before: int = 0


def _end(run: _Run, error: Any) -> None:
    """A resumed run that has no turns left can't go on: the conversation keeps what it produced."""
    conversation = run.conversation
    if isinstance(run.input, list) or error.run_data is None:
        return
    if conversation.session is None:
        given = error.run_data.input
        before: list[Item] = [{"role": "user", "content": given}] if isinstance(given, str) else list(given)
        conversation.items = [*before, *(item.to_input_item() for item in error.run_data.new_items if _is_sent(item))]
    conversation.waiting, conversation.seen = None, (0, 0)
    conversation.pending, conversation.added = Pending(), []


def _is_sent(item: Any) -> bool:
    return item.type != "tool_approval_item"


def _decide(state: Any, pending: Pending) -> None:
    """Tell a run that waits what was decided; one that has run its calls, and failed after it, waits for nothing."""
    for item in state.get_interruptions():
        (state.approve if pending.approvals.get(item.call_id) else state.reject)(item)


def _add_requests(messages: list[ChatMessage], requests: list[ToolApprovalRequestContent]) -> None:
    """Let the messages end with those of the requests that are not in them yet."""
    contents = [content for message in messages for content in message.contents]
    missing = [request for request in requests if request not in contents]
    if missing and (not messages or messages[-1].role != ChatRole.ASSISTANT):
        messages.append(ChatMessage(ChatRole.ASSISTANT, []))
    if missing:
        messages[-1].contents += missing
