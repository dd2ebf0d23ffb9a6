"""One run of an agent with tools: the model's calls are run, and their results sent, until it answers."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from copy import copy
from dataclasses import dataclass, replace
from typing import TypeVar

from agents_loop.agent import AgentResponse, AgentResponseUpdate, AgentSession
from agents_loop.chat_client import ChatClient, ChatOptions, ChatResponse, ChatResponseUpdate, FinishReason
from agents_loop.chat_client_agent.held import (
    HELD_KEY,
    HeldExchange,
    as_history,
    calls_of,
    held_in,
    hold,
    results_message,
    take_answers,
)
from agents_loop.chat_client_agent.shown import Shown
from agents_loop.chat_client_agent.toolbox import Toolbox
from agents_loop.ids import new_id
from agents_loop.messages import ChatMessage, ChatRole, FunctionCallContent, FunctionResultContent
from agents_loop.numeric import check_count
from agents_loop.streams import close_stream
from agents_loop.tools import error_result

Said = TypeVar("Said", ChatMessage, ChatResponseUpdate)
_OF_TOOLS = ("tool_choice", "parallel_tool_calls")
"""Parameters that a provider rejects where no tool is offered."""
OUT_OF_ROUNDS = "the call was not run: the limit of tool rounds is reached"


@dataclass(frozen=True, slots=True, kw_only=True)
class Asking:
    """How the model is asked in one run."""

    client: ChatClient
    system: Sequence[ChatMessage]
    extra: Sequence[ChatMessage]
    """Messages for this run alone, between the history and the input."""
    options: ChatOptions | None
    """Asked of every call, the tools apart."""
    max_rounds: int
    """How often calls are run, before a last call without tools."""


def checked_rounds(rounds: int) -> int:
    """The bound on tool rounds.

    Raises:
        TypeError: It is no int.
        ConfigurationError: It is less than 1.
    """
    check_count("max_tool_rounds", rounds, why="without tools there are no rounds")
    return rounds


class ToolRun:
    """One run: what the model is asked, round by round, and what the session gets at the end.

    The session's history gets the whole exchange when it is complete, and nothing before. An exchange whose calls wait
    for a person's word is held apart, in the session's state. A run that fails leaves both as they were.

    Args:
        asking: How the model is asked.
        toolbox: The tools.
        shown: What the caller gets; it signs the agent's messages.
        messages: The input.
        session: The conversation.

    Raises:
        ConfigurationError: The input answers a request that is not pending in the session.
    """

    def __init__(
        self, asking: Asking, toolbox: Toolbox, shown: Shown, messages: list[ChatMessage], session: AgentSession
    ) -> None:
        self._asking = asking
        self._toolbox = toolbox
        self._session = session
        self._shown = shown
        self._rounds = 0
        self._held = held_in(session)
        self._is_answer, self._exchange = take_answers(self._held, messages)

    @property
    def response(self) -> AgentResponse:
        """What the run gave, once it is over."""
        return self._shown.response()

    async def updates(self, *, streaming: bool) -> AsyncGenerator[AgentResponseUpdate, None]:
        """Run. The pieces are those of a stream; without `streaming` the model is asked for whole answers."""
        if self._held is not None:
            if self._is_answer and self._held.waiting:
                yield self._wait_further(self._held)
                return
            async for update in self._continue(self._held):
                yield update
        while True:
            may_call = self._rounds < self._asking.max_rounds
            async with aclosing(self._ask(streaming=streaming, with_tools=may_call)) as updates:
                async for update in updates:
                    yield update
            calls = calls_of(self._shown.reply.messages)
            if not calls:
                break
            open_calls = [position for position, (call, _) in enumerate(calls) if self._toolbox.leaves_open(call)]
            if may_call and (open_calls or any(request_id for _, request_id in calls)):
                hold(self._session, HeldExchange(self._exchange, calls, open_calls, self._rounds))
                return
            yield await self._answer([call for call, _ in calls], may_call=may_call)
            if not may_call:
                break
        self._session.state.pop(HELD_KEY, None)
        self._session.messages += self._exchange

    def _wait_further(self, held: HeldExchange) -> AgentResponseUpdate:
        """Keep the answers so far, and ask for the others again. Nothing runs before all are there."""
        held.later += self._exchange
        hold(self._session, held)
        message = ChatMessage(ChatRole.ASSISTANT, held.waiting, message_id=new_id())
        reply = ChatResponse([message], response_id=new_id(), finish_reason=FinishReason.TOOL_CALLS)
        return self._shown.add_whole(reply)

    async def _continue(self, held: HeldExchange) -> AsyncGenerator[AgentResponseUpdate, None]:
        """Go on where the held exchange was: its calls run, if they were answered. None runs twice, whatever fails."""
        results = held.results_message()
        if self._is_answer:
            self._rounds = held.rounds + 1
            hold(self._session, held)
            to_run = held.to_run()
            positions = list(to_run)

            def keep(number: int, result: FunctionResultContent) -> None:
                held.results[positions[number]] = result.result
                hold(self._session, held)

            await self._toolbox.run(list(to_run.values()), self._shown.agent, self._session, keep)
            results = held.results_message()
            yield self._shown.add_results(results)
        self._exchange = [*held.messages, results, *held.later, *self._exchange]

    async def _ask(self, *, streaming: bool, with_tools: bool) -> AsyncGenerator[AgentResponseUpdate, None]:
        """Ask the model once; the reply joins the exchange."""
        asking = self._asking
        prompt = [*asking.system, *self._session.messages, *asking.extra, *self._exchange]
        options = _with_tools(asking.options, self._toolbox, with_tools=with_tools)
        if not streaming:
            reply = copy(await asking.client.get_response(prompt, options))
            if with_tools:
                reply.messages = [await self._marked(message) for message in reply.messages]
            self._take(reply)
            return
        pieces: list[ChatResponseUpdate] = []
        stream = asking.client.get_streaming_response(prompt, options)
        try:
            async for given in stream:
                piece = self._shown.with_own_id(await self._marked(given) if with_tools else given)
                pieces.append(piece)
                yield self._shown.update_of(piece)
        finally:
            await close_stream(stream)
        self._take(ChatResponse.from_updates(pieces))

    async def _marked(self, given: Said) -> Said:
        """What was said, with requests in place of the calls that wait for approval."""
        if not any(isinstance(content, FunctionCallContent) for content in given.contents):
            return given
        return replace(given, contents=await self._toolbox.marked(given.contents))

    def _take(self, reply: ChatResponse) -> None:
        self._shown.add(reply)
        self._exchange += as_history(reply.messages)

    async def _answer(self, calls: list[FunctionCallContent], *, may_call: bool) -> AgentResponseUpdate:
        """Run the calls of a reply; past the limit each gets a result that says so."""
        if may_call:
            self._rounds += 1
            results = await self._toolbox.run(calls, self._shown.agent, self._session)
        else:
            results = [error_result(call, OUT_OF_ROUNDS) for call in calls]
        message = results_message(results)
        self._exchange.append(message)
        return self._shown.add_results(message)


def _with_tools(options: ChatOptions | None, toolbox: Toolbox, *, with_tools: bool) -> ChatOptions | None:
    """A call's options: with what is offered, or without tools and whatever is said about them."""
    if options is None:
        return ChatOptions(tools=toolbox.offered) if with_tools and toolbox.offered else None
    if with_tools:
        return replace(options, tools=toolbox.offered)
    further = {name: value for name, value in (options.additional_properties or {}).items() if name not in _OF_TOOLS}
    return replace(options, tools=(), additional_properties=further or None)
