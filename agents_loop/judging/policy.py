"""What happens, by cause, when a judge gives no verdict."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from agents_loop.errors import ConfigurationError

FailureAction: TypeAlias = Literal["raise", "continue"]


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeFailurePolicy:
    """What happens, by cause, when the judge gives no verdict.

    `raise` ends the run with an exception that carries the `LoopResult` so far; `continue` runs the agent again. A
    failure says nothing of the answer, so the agent is not told of it.
    """

    error: FailureAction = "raise"
    """The judge's client raised: it is down, say. Raised as it is; a spent budget always is."""
    length: FailureAction = "raise"
    """The reply was cut off by a token limit."""
    refusal: FailureAction = "raise"
    content_filter: FailureAction = "raise"
    unreadable: FailureAction = "continue"
    """There is neither a boolean nor a marker in it; when the run goes on, the reply's prose is the gap."""

    def __post_init__(self) -> None:
        for cause in self.__slots__:
            if getattr(self, cause) not in ("raise", "continue"):
                raise ConfigurationError(f"{cause} must be 'raise' or 'continue', not {getattr(self, cause)!r}")
