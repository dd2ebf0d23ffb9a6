"""A plain function as an agent."""

from __future__ import annotations

import inspect
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Sequence
from contextlib import aclosing
from dataclasses import replace
from typing import Any, TypeAlias, cast

from agents_loop.agent import AgentResponse, AgentResponseStream, AgentRunOptions, AgentSession, AIAgent, Messages
from agents_loop.agent_response import AgentResponseUpdate, updates_of
from agents_loop.chat_client import ChatResponse
from agents_loop.ids import new_id
from agents_loop.messages import ChatMessage, ChatRole, as_messages
from agents_loop.streams import close_stream

Reply: TypeAlias = str | ChatMessage | Sequence[str | ChatMessage] | AgentResponse | ChatResponse
"""What a function may give for an answer; a str is what the assistant said."""
Piece: TypeAlias = str | AgentResponseUpdate
AgentFunction: TypeAlias = Callable[..., Reply | Awaitable[Reply] | AsyncIterator[Piece]] | Callable[..., object]


class CallableAgent(AIAgent):
    """A function as an agent.

    A function of one parameter has no memory, so it is given the conversation: what the session holds, then what is
    new. A function whose second parameter is called `session` keeps its own: it is given only what is new, and the
    session, whose `state` is its to use. The session's messages are kept in either case, once an answer is complete.

    Args:
        function: `(messages)` or `(messages, session)`, sync or async, gives a str, a message, several of both, or a
            whole response; or it is an async generator of text pieces (or updates), which is what streaming yields.
            A sync function is called in the event loop.
        name: The agent's name; by default the function's.
        description: What it is for; by default the first line of the function's docstring.

    Raises:
        TypeError: It is not callable, or takes no `messages`.
    """

    def __init__(self, function: AgentFunction, *, name: str | None = None, description: str | None = None) -> None:
        if not callable(function) or isinstance(function, type):
            raise TypeError(f"function must be a callable (messages) -> reply, not {function!r}")
        self._function = function
        self._takes_session = _takes_session(function)
        self.name = name or getattr(function, "__name__", type(function).__name__)
        self.description = description or (inspect.getdoc(function) or "").partition("\n")[0] or None

    async def run_core(
        self, messages: list[ChatMessage], *, session: AgentSession | None, options: AgentRunOptions | None
    ) -> AgentResponse:
        """Call the function once."""
        return await self.run_streaming(messages, session=session, options=options).final_response()

    def run_streaming(
        self,
        messages: Messages = None,
        *,
        session: AgentSession | None = None,
        options: AgentRunOptions | None = None,  # noqa: ARG002 - a function takes none
    ) -> AgentResponseStream:
        """Call the function once; where it is no generator its answer comes whole."""
        given: list[AgentResponse] = []
        return AgentResponseStream(self._pieces(as_messages(messages), session, given), lambda: given[0])

    async def run_core_streaming(
        self, messages: list[ChatMessage], *, session: AgentSession | None, options: AgentRunOptions | None
    ) -> AsyncIterator[AgentResponseUpdate]:
        """The pieces of `run_streaming`."""
        async with aclosing(self.run_streaming(messages, session=session, options=options)) as stream:
            async for update in stream:
                yield update

    async def _pieces(
        self, messages: list[ChatMessage], session: AgentSession | None, given: list[AgentResponse]
    ) -> AsyncGenerator[AgentResponseUpdate, None]:
        answer: Any = self._call(messages, session)
        if inspect.isawaitable(answer):
            answer = await answer
        if isinstance(answer, AsyncIterator):
            updates: list[AgentResponseUpdate] = []
            async with aclosing(self._updates(cast("AsyncIterator[Piece]", answer))) as pieces:
                async for update in pieces:
                    updates.append(update)
                    yield update
            response = AgentResponse.from_updates(updates)
        else:
            response = self._response(answer)
            for update in updates_of(response):
                yield update
        _remember(session, messages, response)
        given.append(response)

    def _call(self, messages: list[ChatMessage], session: AgentSession | None) -> Any:
        if self._takes_session:
            return self._function(messages, session=session)
        return self._function([*(() if session is None else session.messages), *messages])

    async def _updates(self, pieces: AsyncIterator[Piece]) -> AsyncGenerator[AgentResponseUpdate, None]:
        shared: dict[str, Any] = {"agent_id": self.id, "response_id": new_id(), "message_id": new_id()}
        try:
            async for piece in pieces:
                if isinstance(piece, AgentResponseUpdate):
                    yield piece
                elif isinstance(piece, str):  # pyright: ignore[reportUnnecessaryIsInstance]
                    yield AgentResponseUpdate(ChatRole.ASSISTANT, piece, author_name=self.name, **shared)
                else:
                    raise TypeError(f"{self.name} must yield str or AgentResponseUpdate, not {type(piece).__name__}")
        finally:
            await close_stream(pieces)

    def _response(self, answer: object) -> AgentResponse:
        if isinstance(answer, AgentResponse):
            return answer
        if isinstance(answer, ChatResponse):
            return AgentResponse([], agent_id=self.id).take(answer)
        return AgentResponse(self._messages(answer), agent_id=self.id, response_id=new_id())

    def _messages(self, answer: object) -> list[ChatMessage]:
        listed = cast("list[object]", answer) if isinstance(answer, list | tuple) else [answer]
        messages: list[ChatMessage] = []
        for said in listed:
            if isinstance(said, str):
                messages.append(ChatMessage(ChatRole.ASSISTANT, said, author_name=self.name, message_id=new_id()))
            elif isinstance(said, ChatMessage):
                messages.append(said if said.message_id else replace(said, message_id=new_id()))
            else:
                raise TypeError(
                    f"{self.name} must give a str, a ChatMessage, several of these, or an AgentResponse, not {said!r}"
                )
        return messages


def _takes_session(function: AgentFunction) -> bool:
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):  # a builtin without a signature
        return False
    takes_session = "session" in signature.parameters
    try:
        signature.bind([], session=None) if takes_session else signature.bind([])
    except TypeError as error:
        raise TypeError(f"{function!r} can't be an agent: it must be callable with (messages); {error}") from error
    return takes_session


def _remember(session: AgentSession | None, messages: list[ChatMessage], response: AgentResponse) -> None:
    if session is not None:
        session.messages += messages
        session.messages += response.messages
