"""What a projection found."""

from __future__ import annotations

from dataclasses import dataclass

from agents_loop.messages import JsonValue


@dataclass(frozen=True, slots=True)
class ProjectedCall:
    """A call that the run would make."""

    who: str
    """`"agent"` or `"evaluator"`."""
    node: str | None
    """The node of a file that has several."""
    iteration: int | None
    model: str
    """By its name in the file."""
    tokens_in: int
    """Estimated from the messages and the functions that would be sent."""
    tokens_out: int | None
    """The most that the call allows (`max_output_tokens`); `None`: it has no limit, so nobody knows."""
    cost_usd: float | None
    """`None` where the model's price or `tokens_out` is not known."""

    def to_json(self) -> dict[str, JsonValue]:
        """The call as a JSON value."""
        return {
            "who": self.who,
            "node": self.node,
            "iteration": self.iteration,
            "model": self.model,
            "tokens_in": self.tokens_in,
            "tokens_out": self.tokens_out,
            "cost_usd": self.cost_usd,
        }


@dataclass(frozen=True, slots=True)
class Projection:
    """The calls of a run in which no answer satisfies. Tokens are estimated; nothing was called, nothing written."""

    name: str
    """What the file calls itself."""
    calls: tuple[ProjectedCall, ...]
    ended: str
    """How the projected run ended: a stop reason, `"max_iterations"` where its cap bounds it."""
    notes: tuple[str, ...]
    """What it can't know."""

    @property
    def tokens_in(self) -> int:
        """Of all calls."""
        return sum(call.tokens_in for call in self.calls)

    @property
    def tokens_out(self) -> int | None:
        """Of all calls; `None` as soon as one's is not known."""
        known = [call.tokens_out for call in self.calls if call.tokens_out is not None]
        return sum(known) if len(known) == len(self.calls) else None

    @property
    def cost_usd(self) -> float | None:
        """Of all calls; `None` as soon as one's is not known. Never 0 for want of knowing."""
        known = [call.cost_usd for call in self.calls if call.cost_usd is not None]
        return sum(known) if known and len(known) == len(self.calls) else None

    def to_json(self) -> dict[str, JsonValue]:
        """The projection as a JSON value."""
        return {
            "projection": True,
            "name": self.name,
            "calls": [call.to_json() for call in self.calls],
            "total": {
                "calls": len(self.calls),
                "tokens_in": self.tokens_in,
                "tokens_out": self.tokens_out,
                "cost_usd": self.cost_usd,
            },
            "ended": self.ended,
            "notes": list(self.notes),
        }
