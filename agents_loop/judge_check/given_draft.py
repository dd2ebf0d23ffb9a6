"""A draft in the place of an agent's answer, whatever kind of agent the file describes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Final

from agents_loop.chat_client import ChatClient, ChatOptions, ChatResponse
from agents_loop.messages import ChatMessage, ChatRole, UsageDetails
from agents_loop.metering.ledger import LedgerEntry

_NOTHING_USED: Final = UsageDetails(0, 0, 0)


class GivenDraft:
    """Gives a draft to the first call of a run, which is the agent's; further calls reach the model.

    So the agent's conversation holds the draft as if it had written it, and a revision is the agent's own.

    Args:
        draft: The draft; `None`: all calls reach the model.
        client_for: Gives the client of a model's name.
        always: Whether every call gets the draft, so that no model is called.
    """

    def __init__(self, draft: str | None, client_for: Callable[[str], ChatClient], *, always: bool = False) -> None:
        self._draft = draft
        self._client_for = client_for
        self._always = always

    def client_for(self, model: str) -> ChatClient:
        """The client of a model's name, which may answer with the draft."""
        return _DraftFirst(self, self._client_for(model))

    def take(self) -> str | None:
        """The draft, where it is the answer to the call that is made now."""
        draft = self._draft
        if not self._always:
            self._draft = None
        return draft


class _DraftFirst(ChatClient):
    def __init__(self, given: GivenDraft, inner: ChatClient) -> None:
        self._given = given
        self._inner = inner
        said: object = getattr(inner, "model_id", None)
        self.model_id = said if isinstance(said, str) else None

    async def get_response(self, messages: Sequence[ChatMessage], options: ChatOptions | None = None) -> ChatResponse:
        draft = self._given.take()
        if draft is None:
            return await self._inner.get_response(messages, options)
        return ChatResponse([ChatMessage(ChatRole.ASSISTANT, draft)], usage=_NOTHING_USED)


def real_calls(ledger: Iterable[LedgerEntry]) -> list[LedgerEntry]:
    """The calls that reached a model: without those to which a draft was the answer."""
    return [entry for entry in ledger if entry.usage != _NOTHING_USED]
