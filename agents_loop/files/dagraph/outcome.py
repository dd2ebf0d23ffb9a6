"""What has become of a node."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from agents_loop.loop.result import LoopResult, StopReason, result_to_json
from agents_loop.message_json import usage_to_json
from agents_loop.messages import JsonValue, UsageDetails

OutcomeStatus: TypeAlias = Literal["waiting", "running", "done", "skipped", "resumed", "failed", "cancelled"]


@dataclass(slots=True)
class NodeOutcome:
    """A node, as far as its run has come."""

    type: str
    status: OutcomeStatus = "waiting"
    output: str = ""
    """The answer; of a node that failed what it had by then."""
    attempts: int = 0
    stop_reason: str | None = None
    """How its loop ended; nothing of an agent."""
    stop_detail: str | None = None
    result: LoopResult | None = None
    """Of its latest attempt that came to a draft; of the first one, if none did."""
    usage: UsageDetails | None = None
    """Of all attempts."""

    @property
    def has_output(self) -> bool:
        """Whether its output is one to go on with."""
        return self.status in ("done", "resumed")

    @property
    def is_exhausted(self) -> bool:
        """Whether it is a loop that ended at its cap."""
        return self.has_output and self.stop_reason == StopReason.MAX_ITERATIONS

    def to_json(self) -> dict[str, JsonValue]:
        """It as a JSON value; `iterations` only of a loop that ran."""
        fields: dict[str, JsonValue] = {
            "type": self.type,
            "status": self.status,
            "output": self.output,
            "attempts": self.attempts,
            "stop_reason": self.stop_reason,
            "stop_detail": self.stop_detail,
            "usage": None if self.usage is None else usage_to_json(self.usage),
        }
        if self.result is not None and self.type == "evaluator_loop":
            fields["iterations"] = result_to_json(self.result)["iterations"]
        return fields
