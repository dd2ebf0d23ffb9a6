"""What the command says to its caller with a number."""

from __future__ import annotations

from enum import IntEnum

from agents_loop.loop.result import StopReason


class ExitCode(IntEnum):
    """Schema: scripts depend on it."""

    SATISFIED = 0
    FAILED = 1
    """An agent, or an evaluator."""
    WRONG_USE = 2
    """Also an invalid file, and a missing model, key or extra."""
    UNSATISFIED = 3
    """The cap, a stall, or an evaluator that gave up."""
    LIMIT = 4
    """The budget, or the time."""
    PENDING = 5
    """A person is waited for."""
    INTERRUPTED = 130


OF_STOP_REASON: dict[StopReason, ExitCode] = {
    StopReason.SATISFIED: ExitCode.SATISFIED,
    StopReason.FAILED: ExitCode.FAILED,
    StopReason.EVALUATOR_FAILED: ExitCode.FAILED,
    StopReason.MAX_ITERATIONS: ExitCode.UNSATISFIED,
    StopReason.STALLED: ExitCode.UNSATISFIED,
    StopReason.ABORTED: ExitCode.UNSATISFIED,
    StopReason.BUDGET_EXCEEDED: ExitCode.LIMIT,
    StopReason.DEADLINE: ExitCode.LIMIT,
    StopReason.PENDING_APPROVAL: ExitCode.PENDING,
    StopReason.PENDING_INPUT: ExitCode.PENDING,
    StopReason.CANCELLED: ExitCode.INTERRUPTED,
}
