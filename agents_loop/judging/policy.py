"""What happens, by cause, when a judge gives no verdict."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias, get_args

from agents_loop.adapting import ChatClientLike, as_chat_client
from agents_loop.chat_client import ChatClient
from agents_loop.errors import ConfigurationError
from agents_loop.failures import TRANSIENT_CAUSES, FailureCause
from agents_loop.numeric import is_int, is_number

FailureRemedy: TypeAlias = Literal["retry", "more_room", "trim", "next_judge"]
"""Ask again: the same (after a wait, where the call failed); with room for a longer reply; with the answer cut; or ask
the next judge."""
FailureEnding: TypeAlias = Literal["raise", "continue", "stop"]
"""Raise an exception; run the agent again; end the run as `evaluator_failed`, with its result and no exception."""
FailureAction: TypeAlias = FailureRemedy | FailureEnding
FailureActions: TypeAlias = FailureAction | Sequence[FailureAction]

DEFAULT_RETRIES: Final = 2
"""Where neither the policy nor the client says how often; the SDKs' own number."""

_ENDINGS: tuple[str, ...] = get_args(FailureEnding)
_ACTIONS: tuple[str, ...] = (*get_args(FailureRemedy), *_ENDINGS)
_OF_REPLIES = ("length", "refusal", "content_filter", "unreadable")
_OF_CALLS = ("rate_limit", "quota", "auth", "timeout", "network", "server", "context_overflow")
_FIELDS = {
    FailureCause.LENGTH: "length",
    FailureCause.REFUSAL: "refusal",
    FailureCause.CONTENT_FILTER: "content_filter",
}
"""Causes whose field holds however they show: as the end of a reply, or as an exception."""
_AT_ANOTHER_JUDGE = TRANSIENT_CAUSES | {FailureCause.QUOTA}


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeFailurePolicy:
    """What happens, by cause, when the judge gives no verdict.

    Each cause has an action or several, that are tried in order: first remedies (`retry`, `more_room`, `trim`,
    `next_judge`), each as often as it is named (`retry`: up to `retries` times), and then an ending: `raise` ends the
    run with an exception that carries the `LoopResult` so far, `stop` ends it as `evaluator_failed` without one,
    `continue` runs the agent again. Without an ending it is `raise`. A failure says nothing of the answer, so the agent
    is not told of it.

    Raises:
        ConfigurationError: An action or a number that is none; `next_judge` without any.
        TypeError: One of `next_judges` is no chat client; `sleep` or `draw` is not callable.
    """

    error: FailureActions = "raise"
    """The judge's client raised: it is down, say. Raised as it is; a spent budget always is."""
    length: FailureActions = ("more_room", "raise")
    """The reply was cut off by a token limit."""
    refusal: FailureActions = "raise"
    content_filter: FailureActions = "raise"
    unreadable: FailureActions = "continue"
    """There is neither a boolean nor a marker in it; when the run goes on, the reply's prose is the gap."""
    rate_limit: FailureActions | None = None
    """For this and the causes below: `None` is `error`, after `retry` for what may pass (`rate_limit`, `timeout`,
    `network`, `server`), after `next_judge` for these and `quota` where there are any, and after `trim` for
    `context_overflow`."""
    quota: FailureActions | None = None
    auth: FailureActions | None = None
    timeout: FailureActions | None = None
    network: FailureActions | None = None
    server: FailureActions | None = None
    context_overflow: FailureActions | None = None
    retries: int | None = None
    """How often `retry` asks the same judge again for one verdict, in place of its SDK's own attempts, which are off
    for that call. `None`: as often as the SDK is set to, and twice where there is no SDK."""
    first_wait_s: float = 0.5
    """The wait before the first `retry` of a failed call; each further one waits twice as long. Up to half of a wait
    is drawn at random, so that callers that failed at once don't come back at once."""
    longest_wait_s: float = 60
    """No wait is longer. Where a server asks for a longer one (`Retry-After`), it is not asked again."""
    timeout_s: float | None = None
    """How long one call may take; longer is a failure of the cause `timeout`."""
    next_judges: Sequence[ChatClientLike] = ()
    """Who is asked in turn by `next_judge`."""
    unreadable_limit: int | None = 5
    """The how manieth unreadable verdict in a row of one run is no longer passed over by `continue`; `None`: none."""
    outage_limit: int | None = 5
    """The same for failures of other causes."""
    at_limit: Literal["raise", "stop"] = "raise"
    """What happens then."""
    sleep: Callable[[float], Awaitable[object]] = asyncio.sleep
    """Waits so many seconds; a test's need not."""
    draw: Callable[[], float] = random.random
    """Gives a number from 0 to 1 for the random part of a wait."""

    def __post_init__(self) -> None:
        for name in ("error", *_OF_REPLIES, *_OF_CALLS):
            given: FailureActions | None = getattr(self, name)
            if given is not None or name not in _OF_CALLS:
                self._check(name, given)
        for name, least in (("retries", 0), ("unreadable_limit", 1), ("outage_limit", 1)):
            _check_count(name, getattr(self, name), least)
        for name in ("first_wait_s", "longest_wait_s", "timeout_s"):
            _check_seconds(name, getattr(self, name))
        for name in ("sleep", "draw"):
            if not callable(getattr(self, name)):
                raise TypeError(f"{name} must be callable, not {getattr(self, name)!r}")
        if self.at_limit not in ("raise", "stop"):
            raise ConfigurationError(f"at_limit must be 'raise' or 'stop', not {self.at_limit!r}")
        judges = tuple([as_chat_client(judge, name="next_judges") for judge in self.next_judges])
        object.__setattr__(self, "next_judges", judges)

    @property
    def further_judges(self) -> tuple[ChatClient, ...]:
        """The `next_judges`, each as a chat client."""
        return self.next_judges  # pyright: ignore[reportReturnType] - made so when they were given

    def actions_for(self, cause: FailureCause, *, of_reply: bool) -> tuple[str, ...]:
        """What is tried in order; the last one is an ending.

        Args:
            cause: Why there is no verdict.
            of_reply: Whether there was a reply, rather than an exception.
        """
        if of_reply and cause == FailureCause.UNREADABLE:
            return _listed(self.unreadable)
        if cause in _FIELDS:
            return _listed(getattr(self, _FIELDS[cause]))
        given: FailureActions | None = getattr(self, cause) if cause in _OF_CALLS else None
        if given is not None:
            return _listed(given)
        remedies: list[str] = ["retry"] if cause in TRANSIENT_CAUSES else []
        if cause == FailureCause.CONTEXT_OVERFLOW:
            remedies = ["trim", "trim"]
        if self.next_judges and cause in _AT_ANOTHER_JUDGE:
            remedies.append("next_judge")
        return (*remedies, *_listed(self.error))

    def wait_s(self, attempt: int, asked: float | None) -> float | None:
        """How long to wait before asking again; `None` if that would be too long.

        The backoff is exponential with "equal jitter" (Marc Brooker, "Exponential Backoff And Jitter", AWS
        Architecture Blog, 2015).

        Args:
            attempt: The how manieth time it is that the judge is asked again, from 1.
            asked: How long the server asks to wait.
        """
        if asked is not None:
            return asked if asked <= self.longest_wait_s else None
        longest = min(self.longest_wait_s, self.first_wait_s * 2.0 ** min(attempt - 1, 60))
        return longest * (1 - self.draw() / 2)

    def _check(self, name: str, given: FailureActions | None) -> None:
        actions = given if isinstance(given, Sequence) and not isinstance(given, str) else (given,)
        if not actions or any(action not in _ACTIONS for action in actions):
            raise ConfigurationError(f"{name} must be one of {', '.join(_ACTIONS)}, or several, not {given!r}")
        if any(action in _ENDINGS for action in actions[:-1]):
            raise ConfigurationError(f"{name} must hold 'raise', 'continue' or 'stop' only at its end, not {given!r}")
        if "next_judge" in actions and not self.next_judges:
            raise ConfigurationError(f"{name} is {given!r}: give next_judges too")


def _listed(actions: FailureActions) -> tuple[str, ...]:
    listed: tuple[str, ...] = (actions,) if isinstance(actions, str) else tuple(actions)
    return listed if listed[-1] in _ENDINGS else (*listed, "raise")


def _check_count(name: str, given: int | None, least: int) -> None:
    if given is None:
        return
    if not is_int(given):
        raise TypeError(f"{name} must be an int or None, not {given!r}")
    if given < least:
        raise ConfigurationError(f"{name} must be at least {least}, not {given}")


def _check_seconds(name: str, given: float | None) -> None:
    if given is None and name == "timeout_s":
        return
    if not is_number(given):
        raise TypeError(f"{name} must be a number of seconds, not {given!r}")
    if not 0 <= given < float("inf") or (name == "timeout_s" and given == 0):
        raise ConfigurationError(f"{name} must be a number of seconds from 0, not {given!r}")
