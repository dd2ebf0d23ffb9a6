"""The call of a model that is being made: within which other it is, and whether its caller tries again by itself.

Who tries again must be one of both, so that the attempts of a caller and those of an SDK are never multiplied.
"""

from __future__ import annotations

from contextvars import ContextVar
from typing import Any, Final


class Call:
    """A call that is being made, for what is called within it.

    Args:
        client: Who is called.
        outer: The call within which it is made, if any.
    """

    __slots__ = ("client", "has_begun", "has_passed_on", "outer")

    def __init__(self, client: Any, outer: Call | None) -> None:
        self.client = client
        self.outer = outer
        self.has_begun = True
        """Whether the client has been reached."""
        self.has_passed_on = False
        """Whether the client has passed it on to another: a fallback, a cache, a logger."""


class Attempt(Call):
    """A call whose caller tries again by itself, and what the clients below say to that.

    A client whose SDK tries again asks `takes_over`. One that can't switch its SDK's attempts off calls `keeps`.
    """

    __slots__ = ("client_keeps", "clients_own")

    def __init__(self, client: Any, outer: Call | None) -> None:  # pyright: ignore[reportMissingSuperCall]
        self.client = client
        self.outer = outer
        self.has_begun = self.has_passed_on = False
        self.clients_own: int | None = None
        """How often the client's SDK would have tried again, where that is off for the caller's sake."""
        self.client_keeps = False
        """Whether the client tries again all the same, so that the caller must not."""


CALL: Final[ContextVar[Call | None]] = ContextVar("agents_loop_call", default=None)
"""Set for as long as a client is waited for."""


def takes_over(own: int) -> bool:
    """Whether a caller tries again, so that the SDK must not.

    Args:
        own: How often the SDK is set to try again; the caller may go by that.
    """
    attempt = _attempt()
    if attempt is None:
        return False
    attempt.clients_own = own
    return True


def keeps(framework_client: object) -> None:
    """Tell the caller, if it tries again, of a framework's client whose SDK does so already.

    Args:
        framework_client: Holds the SDK's client as `client`; of another one nothing can be told.
    """
    attempt = _attempt()
    if attempt is None:
        return
    own: object = getattr(getattr(framework_client, "client", None), "max_retries", None)
    if isinstance(own, int):
        attempt.clients_own = own
        attempt.client_keeps = own > 0


def _attempt() -> Attempt | None:
    """The nearest call around the current code whose caller tries again."""
    call = CALL.get()
    while call is not None and not isinstance(call, Attempt):
        call = call.outer
    return call
