"""Answers that are none: refused, filtered, cut off, or empty."""

from __future__ import annotations

from typing import Final, Literal, TypeAlias, cast

from agents_loop.agent import AgentResponse
from agents_loop.failures import cause_of_finish
from agents_loop.loop.answer import answer_messages
from agents_loop.messages import Content, ErrorContent, TextContent, TextReasoningContent, UsageContent

BadResponse: TypeAlias = Literal["refusal", "content_filter", "length", "empty"]
"""Why a response is no whole answer; the causes are those of `FailureCause`."""

NUDGES: Final[dict[BadResponse, str]] = {
    "refusal": "The request has not been answered. Please answer it as far as you can.",
    "length": "The answer was cut off before its end. Please give the whole answer in fewer words.",
    "empty": "There was no answer. Please answer the request.",
}
"""What an agent is told that is asked again. What a provider's filter stopped is not sent again."""


def bad_response_of(response: AgentResponse) -> BadResponse | None:
    """What is wrong with a response as such, whatever it says; `None` if nothing is.

    `refusal`, `content_filter` and `length` are its `finish_reason`, or an `ErrorContent` of that code where there is
    no text; `empty` is an answer without text, image, file, tool call or tool result (reasoning alone is no answer).
    """
    cause = cause_of_finish(response.finish_reason)
    if cause is not None:
        return cast("BadResponse", cause.value)
    if response.messages and response.messages[-1].role == "tool":
        return None
    contents = [content for message in answer_messages(response) for content in message.contents]
    if any(_answers(content) for content in contents):
        return None
    codes = [cause_of_finish(content.code) for content in contents if isinstance(content, ErrorContent)]
    return cast("BadResponse", next((code.value for code in codes if code is not None), "empty"))


def _answers(content: Content) -> bool:
    if isinstance(content, TextContent):
        return bool(content.text) and not content.text.isspace()
    return not isinstance(content, TextReasoningContent | UsageContent | ErrorContent)
