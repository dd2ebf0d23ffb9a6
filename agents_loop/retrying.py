"""Who tries again: so that the attempts of a caller and those of an SDK are never multiplied."""

from __future__ import annotations

from contextvars import ContextVar
from typing import Final


class Retrying:
    """A caller that tries again by itself, and what the clients below say to that. Made for each call of a judge.

    A client whose SDK tries again asks `takes_over`. One that can't switch its SDK's attempts off calls `keeps`.
    """

    clients_own: int | None = None
    """How often the client's SDK would have tried again, where that is off for the caller's sake."""
    client_keeps: bool = False
    """Whether the client tries again all the same, so that the caller must not."""


CALLER: Final[ContextVar[Retrying | None]] = ContextVar("agents_loop_retrying", default=None)
"""Set by a caller that tries again, for as long as it waits for a client."""


def takes_over(own: int) -> bool:
    """Whether a caller tries again, so that the SDK must not.

    Args:
        own: How often the SDK is set to try again; the caller may go by that.
    """
    retrying = CALLER.get()
    if retrying is None:
        return False
    retrying.clients_own = own
    return True


def keeps(framework_client: object) -> None:
    """Tell the caller, if it tries again, of a framework's client whose SDK does so already.

    Args:
        framework_client: Holds the SDK's client as `client`; of another one nothing can be told.
    """
    retrying = CALLER.get()
    if retrying is None:
        return
    own: object = getattr(getattr(framework_client, "client", None), "max_retries", None)
    if isinstance(own, int):
        retrying.clients_own = own
        retrying.client_keeps = own > 0
