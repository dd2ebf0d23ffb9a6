"""Any chat completion service of Semantic Kernel as a `ChatClient`."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from functools import reduce
from typing import Any

from semantic_kernel.connectors.ai.chat_completion_client_base import ChatCompletionClientBase
from semantic_kernel.connectors.ai.open_ai.exceptions.content_filter_ai_exception import ContentFilterAIException
from semantic_kernel.connectors.ai.prompt_execution_settings import PromptExecutionSettings
from semantic_kernel.contents.chat_history import ChatHistory
from semantic_kernel.contents.chat_message_content import ChatMessageContent
from semantic_kernel.contents.function_call_content import FunctionCallContent
from semantic_kernel.contents.streaming_chat_message_content import StreamingChatMessageContent

from agents_loop.chat_client import ChatClient, ChatOptions, ChatResponse, ChatResponseUpdate, FinishReason
from agents_loop.errors import ConfigurationError
from agents_loop.ids import new_id
from agents_loop.integrations.semantic_kernel.contents import kernel_messages, our_contents
from agents_loop.integrations.semantic_kernel.reading import read_finish_reason, read_time
from agents_loop.integrations.semantic_kernel.settings import service_settings
from agents_loop.integrations.semantic_kernel.streams import ClosingAll
from agents_loop.integrations.semantic_kernel.usage import UsageCount
from agents_loop.messages import ChatMessage, ChatRole, Content, ErrorContent, UsageContent, as_messages
from agents_loop.retrying import keeps

_FILTERED = "The provider's content filter withheld the answer."


class SemanticKernelChatClient(ChatClient):
    """A chat completion service of Semantic Kernel as a `ChatClient`.

    Options go into the service's own execution settings. No kernel function is offered or run. What Semantic Kernel
    raises reaches the caller as it was raised; but a prompt that the provider's filter refuses is an answer whose
    `finish_reason` says so.

    Args:
        service: The service, such as `OpenAIChatCompletion`.
        settings: Settings laid under each call's options.
        options: Our options, laid between the two.

    Raises:
        TypeError: The service is no `ChatCompletionClientBase`.
    """

    def __init__(
        self,
        service: ChatCompletionClientBase,
        *,
        settings: PromptExecutionSettings | None = None,
        options: ChatOptions | None = None,
    ) -> None:
        if not isinstance(service, ChatCompletionClientBase):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise TypeError(f"service must be a ChatCompletionClientBase, not {type(service).__name__}")
        self.service = service
        self._settings = settings
        self._options = options

    @property
    def model_id(self) -> str:
        """The model that the service asks, unless a call's options name another."""
        return self.service.ai_model_id

    async def get_response(self, messages: Sequence[ChatMessage], options: ChatOptions | None = None) -> ChatResponse:
        """Ask the model, and wait for its whole answer.

        Raises:
            ConfigurationError: A message or an option that Semantic Kernel or the service has no place for.
            semantic_kernel.exceptions.ServiceException: Whatever the service raises, as it was raised.
        """
        history, settings = self._request(messages, options)
        try:
            answers = await self.service.get_chat_message_contents(chat_history=history, settings=settings)
        except ContentFilterAIException as error:
            return ChatResponse(
                [ChatMessage(ChatRole.ASSISTANT, [_filter_content(error)], message_id=new_id())],
                model_id=self.model_id,
                finish_reason=FinishReason.CONTENT_FILTER,
            )
        usage = UsageCount()
        if not answers:
            return ChatResponse([], model_id=self.model_id)
        answer = answers[0]
        usage.take(answer)
        contents, finish_reason = _ending(our_contents(answer.items), answer, _refusal(answer, "message"))
        return ChatResponse(
            [ChatMessage(answer.role.value, contents, author_name=answer.name, message_id=new_id())],
            response_id=_text(answer.metadata.get("id")),
            model_id=answer.ai_model_id or self.model_id,
            finish_reason=finish_reason,
            usage=usage.total,
            created_at=read_time(answer),
        )

    async def get_streaming_response(
        self, messages: Sequence[ChatMessage], options: ChatOptions | None = None
    ) -> AsyncIterator[ChatResponseUpdate]:
        """Ask the model, and get its answer in pieces. Closing the iterator closes what the service has open.

        Raises:
            ConfigurationError: As for `get_response`.
            semantic_kernel.exceptions.ServiceException: Whatever the service raises, as it was raised.
        """
        history, settings = self._request(messages, options)
        reader = _StreamReader(self.model_id)
        try:
            stream = self.service.get_streaming_chat_message_contents(chat_history=history, settings=settings)
            async with ClosingAll(stream):
                async for chunks in stream:
                    for chunk in chunks:
                        update = reader.read(chunk)
                        if update is not None:
                            yield update
            last = reader.finish()
        except ContentFilterAIException as error:
            last = reader.withheld(_filter_content(error))
        except Exception:
            for update in reader.usage_so_far():
                yield update
            raise
        for update in last:
            yield update

    def _request(
        self, messages: Sequence[ChatMessage], options: ChatOptions | None
    ) -> tuple[ChatHistory, PromptExecutionSettings]:
        keeps(self.service)
        laid = (options or ChatOptions()).over(self._options)
        settings = service_settings(self.service, self._settings, laid)
        settings.function_choice_behavior = None
        history = ChatHistory(messages=kernel_messages(as_messages(messages)))
        if not history.messages:
            raise ConfigurationError("a chat completion service needs a message to answer, and there is none")
        return history, settings

    def __repr__(self) -> str:
        return f"{type(self).__name__}({type(self.service).__name__}, model_id={self.model_id!r})"


class _StreamReader:
    """Makes updates of the chunks of one answer; function calls are put together first."""

    def __init__(self, model_id: str) -> None:
        self._model_id = model_id
        self._message_id = new_id()
        self._response_id: str | None = None
        self._created_at: float | None = None
        self._usage = UsageCount()
        self._refusal: list[str] = []
        self._calls: list[FunctionCallContent] = []
        self._last: StreamingChatMessageContent | None = None
        self._finished: StreamingChatMessageContent | None = None
        self._has_shown = False

    def read(self, chunk: StreamingChatMessageContent) -> ChatResponseUpdate | None:
        """What a chunk adds for a reader to see, if it does. One answer is asked for; others have an index."""
        if chunk.choice_index:
            return None
        self._last = chunk
        self._finished = chunk if chunk.finish_reason else self._finished
        self._response_id = _text(chunk.metadata.get("id")) or self._response_id
        self._created_at = read_time(chunk) or self._created_at
        self._model_id = chunk.ai_model_id or self._model_id
        self._usage.take(chunk)
        self._refusal.append(_refusal(chunk, "delta"))
        self._calls += [item for item in chunk.items if isinstance(item, FunctionCallContent)]
        contents = our_contents([item for item in chunk.items if not isinstance(item, FunctionCallContent)])
        if not contents:
            return None
        self._has_shown = True
        return self._update(contents)

    def finish(self) -> list[ChatResponseUpdate]:
        """The last updates: the calls, why the answer ended, and what it cost."""
        calls = our_contents(_joined(self._calls))
        endings, finish_reason = _ending(
            calls, self._finished or self._last, "".join(self._refusal), has_shown=self._has_shown
        )
        return [self._update(endings, finish_reason), *self.usage_so_far()]

    def withheld(self, content: ErrorContent) -> list[ChatResponseUpdate]:
        """The last updates of a stream that the provider's filter ended."""
        return [self._update([content], FinishReason.CONTENT_FILTER), *self.usage_so_far()]

    def usage_so_far(self) -> list[ChatResponseUpdate]:
        """The usage that was reported, if it was; a broken stream has cost that too."""
        total = self._usage.total
        return [] if total is None else [self._update([UsageContent(total)])]

    def _update(self, contents: list[Content], finish_reason: str | None = None) -> ChatResponseUpdate:
        return ChatResponseUpdate(
            ChatRole.ASSISTANT,
            contents,
            response_id=self._response_id,
            message_id=self._message_id,
            model_id=self._model_id,
            finish_reason=finish_reason,
            created_at=self._created_at,
        )


def _joined(pieces: list[FunctionCallContent]) -> list[FunctionCallContent]:
    """The calls that the pieces amount to: those of one index, or without one of one id, are one call."""
    calls: dict[object, list[FunctionCallContent]] = {}
    for position, piece in enumerate(pieces):
        key = ("index", piece.index) if piece.index is not None else ("id", piece.id or position)
        calls.setdefault(key, []).append(piece)
    return [reduce(lambda whole, piece: whole + piece, parts) for parts in calls.values()]


def _ending(
    contents: list[Content], answer: ChatMessageContent | None, refusal: str, *, has_shown: bool = False
) -> tuple[list[Content], str | None]:
    """The contents, with what tells of a refusal or a filter, and why the answer ended."""
    finish_reason = None if answer is None else read_finish_reason(answer)
    if refusal:
        return [ErrorContent(refusal, code="refusal")], FinishReason.REFUSAL
    if finish_reason == FinishReason.CONTENT_FILTER and not contents and not has_shown:
        return [ErrorContent(_FILTERED, code="content_filter")], finish_reason
    return contents, finish_reason


def _refusal(answer: ChatMessageContent, part: str) -> str:
    """A model's refusal. Semantic Kernel passes it on as the answer's text; the service's own reply tells it apart."""
    choices: Any = getattr(answer.inner_content, "choices", None)
    refusal = getattr(getattr(choices[0], part, None), "refusal", None) if choices else None
    return refusal if isinstance(refusal, str) else ""


def _filter_content(error: ContentFilterAIException) -> ErrorContent:
    return ErrorContent(str(error.__cause__ or error) or _FILTERED, code="content_filter")


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and value else None
