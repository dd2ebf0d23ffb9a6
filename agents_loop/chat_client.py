"""A chat client: one stateless call to a model. It is all that a judge is allowed to use."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import partial
from typing import Any, Literal, TypeAlias, Unpack

from pydantic import BaseModel

from agents_loop.messages import ChatMessage, Content, JsonValue
from agents_loop.metering.calls import metered, metered_stream
from agents_loop.updates import Response, ResponseUpdate, UpdateFields, merge_updates, split


class FinishReason(StrEnum):
    """Why a model stopped writing. Any other string a provider sends is kept as it is."""

    STOP = "stop"
    LENGTH = "length"
    TOOL_CALLS = "tool_calls"
    CONTENT_FILTER = "content_filter"
    REFUSAL = "refusal"


@dataclass(frozen=True, slots=True)
class JsonSchemaFormat:
    """A reply that must be JSON of a schema, sent as it stands."""

    name: str
    """What the provider is told the schema is called: letters, digits, `_` and `-`."""
    schema: Mapping[str, JsonValue]
    strict: bool = True


ResponseFormat: TypeAlias = type[BaseModel] | JsonSchemaFormat | Literal["text", "json_object"]
"""A pydantic model (its strict schema is sent), a schema of one's own, any JSON object, or plain text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatOptions:
    """What a caller asks of one call. `None` means: not sent, so the provider's own default holds."""

    model_id: str | None = None
    temperature: float | None = None
    top_p: float | None = None
    max_output_tokens: int | None = None
    stop_sequences: Sequence[str] | None = None
    seed: int | None = None
    frequency_penalty: float | None = None
    presence_penalty: float | None = None
    top_logprobs: int | None = None
    """How many alternatives of each token to give with their log probabilities, under `logprobs` of the response's
    `additional_properties`. A client or a model that has none gives none."""
    response_format: ResponseFormat | None = None
    tools: Sequence[Any] = ()
    additional_properties: Mapping[str, JsonValue] | None = None
    """Parameters of the provider that have no name here; sent as they are."""

    def over(self, base: ChatOptions | None) -> ChatOptions:
        """These options on top of others: what is not set here is taken from `base`."""
        if base is None:
            return self
        names = self.__slots__
        given = {name: value for name in names if (value := getattr(self, name)) not in (None, ())}
        return replace(base, **given)


@dataclass(slots=True)
class ChatResponse(Response):
    """What a model answered."""

    model_id: str | None = field(default=None, kw_only=True)

    @classmethod
    def from_updates(cls, updates: Iterable[ChatResponseUpdate]) -> ChatResponse:
        """The answer that the pieces of a stream amount to."""
        listed = list(updates)
        model_id = next((update.model_id for update in reversed(listed) if update.model_id), None)
        return cls([], model_id=model_id).take(merge_updates(listed))

    def to_updates(self) -> list[ChatResponseUpdate]:
        """The answer as the pieces of a stream: one for each message, and one for its usage and its other fields."""
        return split(self, partial(ChatResponseUpdate, model_id=self.model_id))


@dataclass(slots=True, init=False)
class ChatResponseUpdate(ResponseUpdate):
    """A piece of a model's streamed answer.

    Args:
        role: Who speaks; `None` where an earlier piece said it.
        contents: A str, one content, or a sequence of both.
        model_id: The model that answers.
        **fields: As in `ResponseUpdate`.
    """

    model_id: str | None

    def __init__(
        self,
        role: str | None = None,
        contents: str | Content | Sequence[str | Content] = (),
        *,
        model_id: str | None = None,
        **fields: Unpack[UpdateFields],
    ) -> None:
        ResponseUpdate.__init__(self, role, contents, **fields)
        self.model_id = model_id


class ChatClient(ABC):
    """One stateless call to a model.

    A client keeps no conversation: everything the model is to see stands in `messages`. It may be used by any
    number of callers at once. What an SDK raises reaches the caller as it was raised.

    A call that is made within a loop's run is in that run's ledger, and a budget of the run may refuse it
    (`BudgetExceededError`), whoever makes it. Subclasses need do nothing for that. A client that has a `model_id`
    (a str) says which model it asks, so that a money budget knows the price before the call.
    """

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if "get_response" in cls.__dict__:
            cls.get_response = metered(cls.get_response)  # pyright: ignore[reportAttributeAccessIssue]
        if "get_streaming_response" in cls.__dict__:
            cls.get_streaming_response = metered_stream(cls.get_streaming_response)

    @abstractmethod
    async def get_response(self, messages: Sequence[ChatMessage], options: ChatOptions | None = None) -> ChatResponse:
        """Ask the model, and wait for its whole answer."""

    async def get_streaming_response(
        self, messages: Sequence[ChatMessage], options: ChatOptions | None = None
    ) -> AsyncIterator[ChatResponseUpdate]:
        """Ask the model, and get its answer in pieces. By default: one update a message of `get_response`."""
        response = await self.get_response(messages, options)
        for update in response.to_updates():
            yield update
