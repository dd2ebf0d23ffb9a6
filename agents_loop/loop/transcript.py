"""What the caller of a run gets: one response, or the pieces of a stream."""

from __future__ import annotations

from collections.abc import Sequence

from agents_loop.agent_response import AgentResponse, AgentResponseUpdate, with_fields
from agents_loop.loop.options import LoopAgentOptions
from agents_loop.loop.result import IterationRecord, LoopResult
from agents_loop.messages import ChatMessage, sum_usage


def transcript_response(
    records: Sequence[IterationRecord], result: LoopResult, options: LoopAgentOptions, *, streaming: bool
) -> AgentResponse:
    """The response that the run gives, with the transcript up to it as its messages and the sum of the agent's usage.

    It is a copy: the inner responses are not changed.
    """
    if not records:  # a budget that did not even allow the first call
        response = AgentResponse([])
        response.loop_result = result
        return response
    returned = records[-1] if result.returned is None else result.returned
    last = returned.response
    is_earlier = returned is result.best_before
    if is_earlier or (options.non_streaming_returns_last_response_only and not streaming):
        messages = list(last.messages)
    else:
        messages: list[ChatMessage] = []
        for record in records:
            if not options.exclude_on_behalf_of_messages:
                messages += record.on_behalf_of
            messages += record.response.messages
            if record is returned:
                break
    response = with_fields(last, messages, sum_usage([record.response.usage for record in records]))
    response.loop_result = result
    return response


def on_behalf_of_updates(messages: Sequence[ChatMessage], response_id: str | None) -> list[AgentResponseUpdate]:
    """Messages that the loop sent in the caller's place, as pieces of the stream of the iteration they drive."""
    return [
        AgentResponseUpdate(
            message.role,
            message.contents,
            author_name=message.author_name,
            response_id=response_id,
            message_id=message.message_id,
        )
        for message in messages
    ]
