"""How a run is left in its session to be continued, and how a later run goes on from there."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from agents_loop.agent_response import updates_of
from agents_loop.errors import ConfigurationError
from agents_loop.loop.events import AgentUpdated
from agents_loop.loop.next_input import next_input
from agents_loop.loop.questions import Question, is_acceptance
from agents_loop.loop.result import LoopResult, best_of
from agents_loop.loop.resuming import STATE_KEY, PendingRun, StoppedRun, keep, take
from agents_loop.loop.run_state import RunState
from agents_loop.messages import ChatMessage, ToolApprovalRequestContent


async def begin(run: RunState) -> Question | None:
    """Begin the run, or go on with the one that waits in the session; gives the question whose answer is accepted.

    What a person is asked is answered by the messages: they drive the next iteration.
    """
    given, metered = run.messages, run.metered
    run.number = _resume(run)
    metered.phase.request = run.messages
    await metered.in_time(run.sessions.first())
    if run.stopped_run is not None:
        run.next_input = run.stopped_run.next_input
    if run.question is not None:
        if is_acceptance(given):
            return run.question
        run.next_input = _answered(run, run.question, given)
        if run.options.fresh_context_per_iteration:
            await metered.in_time(run.sessions.replacement())
    return None


def _resume(run: RunState) -> int:
    """Go on with the run that waits in the session, if the input answers it; gives the iterations so far."""
    session = run.sessions.current
    pending = None
    if session is not None and STATE_KEY in session.state:
        run.waiting = session, session.state[STATE_KEY]
        pending = take(session, run.messages)
    if pending is None or pending.question is None:
        if is_acceptance(run.messages):
            raise ConfigurationError("accept_answer() accepts nothing: no question waits in this session")
    else:
        run.earlier = pending.question.response
        if pending.inner is None:  # else the loop within this one takes the answer
            run.question = pending.question
    spent = None if pending is None else pending.spent
    run.metered.guard(run.options, run.agent, run.evaluators, spent, is_resumed=pending is not None)
    if pending is None:
        return 0
    run.resumed_at = pending.iteration
    if pending.stopped is not None:
        run.stopped_run, run.earlier = pending.stopped, pending.stopped.response
    run.messages = tuple(pending.messages)
    run.feedback += pending.feedback
    run.best_before, run.memory = pending.best, pending.memory
    run.sessions.resume(pending.snapshot)
    if run.stalls is not None:
        run.stalls.resume(pending.stall_steps, pending.watched)
        agent = run.stalls.agent
        if agent is not None:
            run.use(agent)
    number = pending.iteration
    is_complete = run.question is not None or pending.stopped is not None
    if number >= run.max_iterations and not is_complete:
        number -= 1  # its answer waits for a person's word, and is the one to come
    run.max_iterations = max(run.max_iterations, number + 1)
    return number


def _answered(
    run: RunState, question: Question, answer: tuple[ChatMessage, ...]
) -> tuple[tuple[ChatMessage, ...], tuple[ChatMessage, ...]]:
    """The input of the iteration that a person's answer drives, and the part of it that the loop sends."""
    feedback = [*run.feedback, question.feedback]
    sent, on_behalf_of = next_input(question.outcome(), run.messages, feedback, run.options)
    run.feedback.append(question.feedback_with(answer))
    return (*sent, *answer), on_behalf_of


def answer_at_hand(run: RunState, question: Question | None) -> Iterator[AgentUpdated]:
    """The pieces of an answer that the run takes over from the one before it: accepted, or still to be judged."""
    stopped = run.stopped_run
    number, response = run.number, None if question is None else question.response
    if stopped is not None and not stopped.is_judged:
        number, response = number + 1, stopped.response
    if response is not None:
        for update in updates_of(response):
            yield AgentUpdated(number, update)


def keep_waiting(run: RunState) -> None:
    """Put back what waited in the session, where this run failed before its first answer: it can be tried again."""
    if run.waiting is not None and not run.records:
        session, run.sessions.current = run.waiting[0], run.waiting[0]
        session.state[STATE_KEY] = run.waiting[1]


def forget_run_within(run: RunState) -> None:
    """Drop what a loop within keeps for a resume: its answer was taken, and the next iteration runs it anew.

    Else a later run of this loop would take it for its own.
    """
    session = run.sessions.current
    if session is not None and STATE_KEY in session.state:
        del session.state[STATE_KEY]


def wait(
    run: RunState,
    number: int,
    inner: LoopResult | None,
    *,
    requests: Sequence[ToolApprovalRequestContent] = (),
    question: Question | None = None,
    stopped: StoppedRun | None = None,
) -> None:
    """Keep in the session what a run needs that continues this one; an inner loop may have replaced the session.

    Args:
        run: The run that ends.
        number: How many iterations it has had.
        inner: The result of a loop within it that waits.
        requests: The tool calls that wait for approval.
        question: What a person is asked.
        stopped: Where it was when a budget stopped it.
    """
    if inner is not None and inner.session is not None:
        run.sessions.current = inner.session
    session = run.sessions.current
    assert session is not None  # noqa: S101 - there has been an iteration
    is_unjudged = bool(requests) or (stopped is not None and not stopped.is_judged)  # or judged by half
    judged = run.records[:-1] if is_unjudged else run.records
    is_answer_new = question is not None  # what was before says nothing of what a person's answer leads to
    waits = PendingRun(
        request_ids=[request.request_id for request in requests],
        messages=list(run.messages),
        feedback=list(run.feedback),
        iteration=number,
        snapshot=run.sessions.snapshot,
        inner=session.state.get(STATE_KEY),
        question=question,
        stopped=stopped,
        spent=run.metered.spent,
        stall_steps=0 if run.stalls is None else run.stalls.steps,
        watched=[] if run.stalls is None or is_answer_new else run.stalls.records,
        best=best_of(judged if run.best_before is None else [run.best_before, *judged]),
        memory=run.memory,
    )
    keep(session, waits)
