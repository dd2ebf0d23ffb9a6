"""How every call of a chat client is metered: `ChatClient` wraps the methods of its subclasses with these.

A client may pass its calls on to another (a fallback, a cache, a logger). Such a call is kept once: as that of the
client that made it in the end. If that one does not say its model, the name is that of the one that passed the call on.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from functools import partial, wraps
from typing import Any, Final, TypeAlias

from agents_loop.messages import ChatMessage, TextContent, TextReasoningContent, UsageContent, UsageDetails, sum_usage
from agents_loop.metering.meter import PHASE, Phase, begin, keep, keep_failed
from agents_loop.retrying import CALL, Call
from agents_loop.streams import close_stream

_WITH_TEXT: Final = (TextContent, TextReasoningContent)
_Whole: TypeAlias = Callable[..., Coroutine[Any, Any, Any]]
_Stream: TypeAlias = Callable[..., AsyncIterator[Any]]


def metered(ask: _Whole) -> _Whole:
    """A `get_response` whose calls are metered, where they are made within a run."""

    @wraps(ask)
    async def get_response(self: Any, messages: Sequence[ChatMessage], options: Any = None) -> Any:
        phase = PHASE.get()
        if phase is None:
            return await ask(self, messages, options)
        meter = phase.meter
        outer = CALL.get()
        call, is_passed_on = (Call(self, None), False) if outer is None else _call_within(outer, self)
        if meter.is_guarded:
            begin(phase, call.client, options, is_passed_on=is_passed_on)
        token = None if call is outer else CALL.set(call)
        started = meter.clock()
        try:
            response = await ask(self, messages, options)
        except BaseException as error:
            if not call.has_passed_on:
                keep_failed(phase, call.client, options, error, None, meter.clock() - started)
            raise
        finally:
            if token is not None:
                CALL.reset(token)
        if call.has_passed_on:
            return response
        client, usage = call.client, response.usage
        seconds = meter.clock() - started
        kept = (phase.role, phase.iteration, response.model_id, client, options, usage, seconds, response.finish_reason)
        if meter.is_guarded or meter.parent is not None:
            is_known = usage and usage.input_token_count is not None and usage.output_token_count is not None
            keep(phase, kept, None if is_known else partial(_sizes, messages, response))
            return response
        meter.calls.append(kept)
        phase.has_calls = True
        if usage is not None:
            phase.has_usage = True
        return response

    return get_response


def metered_stream(ask: _Stream) -> _Stream:
    """A `get_streaming_response` whose calls are metered, where they are made within a run."""

    @wraps(ask)
    def get_streaming_response(self: Any, messages: Sequence[ChatMessage], options: Any = None) -> AsyncIterator[Any]:
        stream = ask(self, messages, options)
        phase = PHASE.get()
        return stream if phase is None else _MeteredStream(phase, self, messages, options).updates(stream)

    return get_streaming_response


class _MeteredStream:
    """One streamed call."""

    def __init__(self, phase: Phase, client: Any, messages: Sequence[ChatMessage], options: Any) -> None:
        self._phase = phase
        self._messages = messages
        self._options = options
        self._call = Call(client, None)
        self._usages: list[UsageDetails] = []
        self._answered = 0
        self._model: str | None = None
        self._finish_reason: str | None = None

    async def updates(self, stream: AsyncIterator[Any]) -> AsyncIterator[Any]:
        """The pieces, as they come; the call is kept however the stream ends."""
        clock = self._phase.meter.clock
        try:
            self._begin()
            started = clock()
            try:
                while True:
                    # What the client does for a piece is done within this call; what its caller does with it is not.
                    token = CALL.set(self._call)
                    try:
                        update = await anext(stream)
                    except StopAsyncIteration:
                        break
                    finally:
                        CALL.reset(token)
                    self._see(update)
                    yield update
            except BaseException as error:
                self._keep_broken(error, clock() - started)
                raise
            self._keep(clock() - started)
        finally:
            await close_stream(stream)

    def _begin(self) -> None:
        outer, is_passed_on = CALL.get(), False
        if outer is not None:
            self._call, is_passed_on = _call_within(outer, self._call.client)
        if self._phase.meter.is_guarded:
            begin(self._phase, self._call.client, self._options, is_passed_on=is_passed_on)

    def _see(self, update: Any) -> None:
        self._model = update.model_id or self._model
        self._finish_reason = update.finish_reason or self._finish_reason
        for content in update.contents:
            if isinstance(content, UsageContent):
                self._usages.append(content.details)
        self._answered += _characters([update])

    def _keep(self, seconds: float) -> None:
        phase, usage = self._phase, sum_usage(self._usages)
        model, outcome = self._model, self._finish_reason
        if not self._call.has_passed_on:
            kept = (phase.role, phase.iteration, model, self._call.client, self._options, usage, seconds, outcome)
            keep(phase, kept, self._sizes)

    def _keep_broken(self, error: BaseException, seconds: float) -> None:
        """Keep a stream that broke or was left: what had come of it was used."""
        if not self._call.has_passed_on:
            came = self._sizes if self._answered else None
            keep_failed(self._phase, self._call.client, self._options, error, sum_usage(self._usages), seconds, came)

    def _sizes(self) -> tuple[int, int]:
        return _characters(self._messages), self._answered


def _call_within(outer: Call, client: Any) -> tuple[Call, bool]:
    """A call within another, and whether it is that one, passed on. What its caller has set is the call itself."""
    if outer.client is client and not outer.has_begun:
        call, around = outer, outer.outer
        call.has_begun = True
        if around is None:
            return call, False
    else:
        call, around = Call(client, outer), outer
    while around is not None and not around.has_begun:
        around = around.outer
    if around is None:
        return call, False
    is_passed_on, around.has_passed_on = not around.has_passed_on, True
    if not getattr(client, "model_id", None):
        call.client = around.client
    return call, is_passed_on


def _sizes(messages: Sequence[ChatMessage], response: Any) -> tuple[int, int]:
    return _characters(messages), _characters(response.messages)


def _characters(said: Sequence[Any]) -> int:
    """The characters of messages, or of pieces."""
    number = 0
    for one in said:
        for content in one.contents:
            if isinstance(content, _WITH_TEXT):
                number += len(content.text)
    return number
