"""What context providers add to one run, and telling them that it is over."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from types import TracebackType
from typing import Self

from agents_loop.agent import AgentResponse, AgentSession, AIAgent
from agents_loop.context_providers.provider import ContextProvider, FinishedRun, ProviderContext
from agents_loop.messages import ChatMessage, ChatRole, as_messages
from agents_loop.tools import Tool

_LOGGER = logging.getLogger("agents_loop")


def checked_providers(providers: Sequence[ContextProvider]) -> tuple[ContextProvider, ...]:
    """The providers as they are kept.

    Raises:
        TypeError: One of them is something else.
    """
    listed = tuple(providers)
    for provider in listed:
        if not isinstance(provider, ContextProvider):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise TypeError(f"context_providers must hold ContextProvider, not {provider!r}")
    return listed


class ProvidedRun:
    """Asks providers in order when it is entered, and tells those that were asked when it is left.

    Args:
        agent: The agent that runs.
        providers: Its providers.
        session: The conversation.
        messages: The run's input.
    """

    def __init__(
        self, agent: AIAgent, providers: Sequence[ContextProvider], session: AgentSession, messages: list[ChatMessage]
    ) -> None:
        self._context = ProviderContext(agent=agent, session=session, messages=tuple(messages))
        self._providers = providers
        self._asked: list[ContextProvider] = []
        self._instructions: list[str] = []
        self.messages: list[ChatMessage] = []
        self.tools: list[Tool] = []
        self.response: AgentResponse | None = None
        """What the run gave; to be set before it is left."""

    def system(self, own: str | None) -> list[ChatMessage]:
        """The system message: the agent's instructions, then those of the providers, a blank line between them."""
        parts = [part for part in (own, *self._instructions) if part is not None]
        return [ChatMessage(ChatRole.SYSTEM, "\n\n".join(parts))] if parts else []

    async def __aenter__(self) -> Self:
        try:
            for provider in self._providers:
                self._asked.append(provider)
                await self._ask(provider)
        except BaseException as error:
            await self._tell(error)
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._tell(error)

    async def _ask(self, provider: ContextProvider) -> None:
        provided = await provider.provide(self._context)
        if provided is None:
            return
        if provided.instructions:
            self._instructions.append(provided.instructions)
        self.messages += as_messages(provided.messages)
        self.tools += provided.tools

    async def _tell(self, error: BaseException | None) -> None:
        """Tell all of them. What one of them raises is raised afterwards, if the run had ended well."""
        context = self._context
        finished = FinishedRun(
            agent=context.agent,
            session=context.session,
            messages=context.messages,
            response=self.response if error is None else None,
            error=error,
        )
        failures: list[Exception] = []
        for provider in self._asked:
            try:
                await provider.finished(finished)
            except Exception as failure:
                _LOGGER.warning("%s.finished failed", type(provider).__name__, exc_info=failure)
                failures.append(failure)
        if failures and error is None:
            raise failures[0]
