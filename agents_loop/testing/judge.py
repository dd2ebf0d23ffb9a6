"""A judge that answers from a script."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from inspect import isawaitable
from typing import Final, TypeAlias

from agents_loop.chat_client import ChatOptions, ChatResponse, FinishReason
from agents_loop.errors import ConfigurationError
from agents_loop.judging.verdict import JudgeVerdict
from agents_loop.messages import ChatMessage, ChatRole, ErrorContent, JsonValue, UsageDetails
from agents_loop.testing.scripted import Reply, ScriptedChatClient


@dataclass(frozen=True, slots=True)
class ScriptedVerdict:
    """A verdict as a judge's model writes it."""

    answered: bool
    gap: str = ""
    """What is missing."""
    _: KW_ONLY
    score: float | None = None
    """Left out of the reply when it is `None`."""
    more: Mapping[str, JsonValue] = field(default_factory=dict[str, JsonValue])
    """Further fields of the object, by their names on the wire."""
    usage: UsageDetails | None = None
    """What the call is said to have used."""


Verdict: TypeAlias = bool | ScriptedVerdict | JudgeVerdict | FinishReason | str | ChatResponse | BaseException
"""`True` and `False` are verdicts without a gap; a `FinishReason` is a reply that ended so, without a verdict; a str is
a reply's text as it stands; an exception is raised."""

_FAILURES: Final = (FinishReason.LENGTH, FinishReason.CONTENT_FILTER, FinishReason.REFUSAL)


class ScriptedJudge(ScriptedChatClient):
    """A judge's model whose verdicts are given beforehand. It records what it was asked in `calls`.

    It gives way to other tasks before it answers, as a real client does.

    Args:
        verdicts: The verdicts in order, one a call; or a function of the messages and options, sync or async.
        name: What the error calls it when it runs out.

    Raises:
        TypeError: A verdict is none.
        ConfigurationError: A finish reason says that nothing went wrong.
    """

    def __init__(
        self,
        verdicts: Iterable[Verdict]
        | Callable[[Sequence[ChatMessage], ChatOptions | None], Verdict | Awaitable[Verdict]],
        *,
        name: str = "ScriptedJudge",
    ) -> None:
        if isinstance(verdicts, str):
            raise TypeError("verdicts must be a list of verdicts, not one str")
        if not callable(verdicts):
            super().__init__([_reply(verdict) for verdict in verdicts], name=name)
            return

        async def answer(messages: Sequence[ChatMessage], options: ChatOptions | None) -> Reply:
            given = verdicts(messages, options)
            return _reply(await given if isawaitable(given) else given)

        super().__init__(answer, name=name)

    async def get_response(self, messages: Sequence[ChatMessage], options: ChatOptions | None = None) -> ChatResponse:
        """Give the next verdict.

        Raises:
            ScriptExhaustedError: There is none left.
        """
        await asyncio.sleep(0)
        return await super().get_response(messages, options)


def _reply(verdict: Verdict) -> Reply:
    match verdict:
        case bool():
            return _written(ScriptedVerdict(verdict))
        case ScriptedVerdict():
            return _written(verdict)
        case JudgeVerdict():
            return verdict.model_dump_json(by_alias=True)
        case FinishReason():
            return _ended(verdict)
        case str() | ChatResponse() | BaseException():
            return verdict
        case _:  # pyright: ignore[reportUnnecessaryComparison]
            raise TypeError(f"a verdict must be a bool, a ScriptedVerdict, a reply or an exception, not {verdict!r}")


def _written(verdict: ScriptedVerdict) -> ChatResponse:
    score = {} if verdict.score is None else {"score": verdict.score}
    fields = {"gapAnalysis": verdict.gap, **score, **verdict.more, "answered": verdict.answered}
    return ChatResponse([ChatMessage(ChatRole.ASSISTANT, json.dumps(fields))], usage=verdict.usage)


def _ended(reason: FinishReason) -> ChatResponse:
    """A reply as clients give it that was cut off, filtered or refused."""
    if reason not in _FAILURES:
        raise ConfigurationError(f"{reason!r} is no failure: give the verdict that the reply holds")
    if reason is FinishReason.LENGTH:
        return ChatResponse([ChatMessage(ChatRole.ASSISTANT, '{"gapAnalysis": "The ')], finish_reason=reason)
    said = ErrorContent("scripted", code=reason.value)
    return ChatResponse([ChatMessage(ChatRole.ASSISTANT, said)], finish_reason=reason)
