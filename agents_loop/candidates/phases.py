"""Where the candidates of a run stand in it: for its meter, and for what they were asked."""

from __future__ import annotations

from collections.abc import Sequence
from contextvars import Context, copy_context

from agents_loop.agent import AgentSession
from agents_loop.messages import ChatMessage
from agents_loop.metering.ledger import Role
from agents_loop.metering.meter import PHASE, Phase


def asked_in(session: AgentSession | None, messages: Sequence[ChatMessage]) -> Sequence[ChatMessage]:
    """What an answer to messages is to be judged by: in a loop's own session the loop's request, then the messages.

    Without the request, feedback alone would not tell what is asked.
    """
    phase = PHASE.get()
    if phase is None or session is None or phase.session is not session:
        return messages
    request = phase.request
    return messages if list(messages[: len(request)]) == list(request) else [*request, *messages]


def part_of_run(role: Role, session: AgentSession | None = None, request: Sequence[ChatMessage] = ()) -> Phase | None:
    """A part of the current run that goes on beside others of it; `None` outside of any run."""
    around = PHASE.get()
    if around is None:
        return None
    phase = around.apart()
    phase.role, phase.session, phase.request = role, session, request
    return phase


def context_of(phase: Phase | None) -> Context:
    """The context of a task that is this part of the run."""
    context = copy_context()
    if phase is not None:
        context.run(PHASE.set, phase)
    return context


def join(phases: Sequence[Phase | None]) -> None:
    """Let the current run know what its parts have done."""
    around = PHASE.get()
    for phase in phases:
        if phase is not None and around is not None:
            around.has_calls = around.has_calls or phase.has_calls
            around.has_usage = around.has_usage or phase.has_usage
