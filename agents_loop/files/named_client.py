"""A chat client under the name that a loop file gives its model."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence

from agents_loop.adapting import ChatClientLike, as_chat_client
from agents_loop.chat_client import ChatClient, ChatOptions, ChatResponse, ChatResponseUpdate
from agents_loop.messages import ChatMessage
from agents_loop.metering.prices import PriceList, Prices
from agents_loop.streams import close_stream


class NamedChatClient(ChatClient):
    """Passes its calls on. The name is what a client that does not say its model is called, and priced by.

    Args:
        inner: The client that is called.
        name: The model's name in the file.
    """

    def __init__(self, inner: ChatClient, name: str) -> None:
        self.inner = inner
        self.name = name
        said: object = getattr(inner, "model_id", None)
        self.model_id = said if isinstance(said, str) and said else name
        self.failure: BaseException | None = None
        """What the latest call that failed raised."""

    async def get_response(self, messages: Sequence[ChatMessage], options: ChatOptions | None = None) -> ChatResponse:
        """Ask the client."""
        try:
            return await self.inner.get_response(messages, options)
        except BaseException as error:
            self.failure = error
            raise

    async def get_streaming_response(
        self, messages: Sequence[ChatMessage], options: ChatOptions | None = None
    ) -> AsyncIterator[ChatResponseUpdate]:
        """Stream the client."""
        stream = self.inner.get_streaming_response(messages, options)
        try:
            async for update in stream:
                yield update
        except BaseException as error:
            self.failure = error
            raise
        finally:
            await close_stream(stream)


def named(client: ChatClientLike, name: str) -> NamedChatClient:
    """The client under a name; as it is, if it has it already.

    Raises:
        TypeError: It is `None`, or no chat client; the message names the model.
    """
    known = as_chat_client(client, name=f"what client_for gives for the model {name!r}")
    return known if isinstance(known, NamedChatClient) and known.name == name else NamedChatClient(known, name)


def prices_of(clients: Mapping[str, NamedChatClient], given: Prices | None) -> Prices:
    """The prices, those by a name in the file also by that of the model that it stands for."""
    known, prices = PriceList(given), dict(given or {})
    for name, client in clients.items():
        price = known.given_for((name,))
        if price is not None and known.given_for((client.model_id,)) is None:
            prices.setdefault(client.model_id, price)
    return prices
