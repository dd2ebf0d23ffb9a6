"""The steps of one iteration: the agent is run, its answer is judged, and the next input is made of what was said."""

from __future__ import annotations

from agents_loop.agent import AgentResponse, AgentSession
from agents_loop.errors import EvaluatorFailedError
from agents_loop.loop.asking import outcome_of
from agents_loop.loop.bad_response import NUDGES
from agents_loop.loop.context import FeedbackLog, LoopContext
from agents_loop.loop.ending import ending_after_evaluation, ending_before_evaluation
from agents_loop.loop.next_input import next_input, nudged_input
from agents_loop.loop.result import IterationRecord, StopReason
from agents_loop.loop.run_state import RunState


def begin_iteration(run: RunState) -> AgentResponse | None:
    """Count the iteration; gives its answer where the run before this one had no budget left to judge it."""
    run.number += 1
    run.began_at = run.clock()
    run.seconds = 0.0
    run.stall = None
    run.metered.phase.iteration = run.number
    stopped = run.stopped_run
    if stopped is None:
        return None
    run.stopped_run = None
    return None if stopped.is_judged else stopped.response


def begin_agent(run: RunState) -> AgentSession:
    """See that the agent may be run; gives the session in which it is."""
    metered = run.metered
    if metered.meter.is_guarded:
        metered.check_agent(is_judged=run.is_judged)
    session = run.sessions.current
    assert session is not None  # noqa: S101 - the run has begun
    metered.begin_agent(session)
    return session


def end_agent(run: RunState, response: AgentResponse) -> None:
    """The agent has answered: see to it that its run is metered."""
    metered = run.metered
    run.seconds = run.clock() - run.began_at
    if not metered.has_seen(response):
        metered.agent_ran(run.next_input[0], response, run.seconds)
    if metered.meter.is_guarded and response.loop_result is not None and not response.messages:
        metered.check_agent(is_judged=run.is_judged)  # a loop within did not begin


def record_of(run: RunState, response: AgentResponse) -> IterationRecord:
    """The iteration's record, before its evaluators have spoken."""
    metered, (sent, on_behalf_of) = run.metered, run.next_input
    usage = metered.iteration_usage() if metered.phase.has_usage else None
    return IterationRecord(run.number, sent, response, (), usage, run.seconds, on_behalf_of)


def begin_judgment(run: RunState, response: AgentResponse) -> LoopContext | None:
    """What the evaluators see of the answer; `None` where the run ends with it or asks the agent again."""
    run.ending = ending_before_evaluation(run, response)
    if run.ending is not None or run.bad is not None:
        return None
    context = _context_of(run, response)
    run.judgment.begin()
    run.metered.judge()
    return context


def end_judgment(run: RunState, context: LoopContext) -> None:
    """The evaluators have spoken: see whether the run ends, or stalls."""
    judgment = run.judgment
    failed = judgment.failed
    if failed is not None and not isinstance(failed, EvaluatorFailedError):
        raise failed
    complete_record(run, context)
    judgment.is_open = False
    if failed is not None:
        run.records[-1].is_half_judged = True
        run.ending = StopReason.EVALUATOR_FAILED, str(failed)
        return
    run.outcome = outcome = outcome_of(judgment.evaluations)
    run.ending = ending_after_evaluation(run, outcome)
    if run.stalls is not None and run.ending is None:
        run.stall = run.stalls.after(run.records[-1])


def complete_record(run: RunState, context: LoopContext) -> None:
    """Keep in the iteration's record what was said of its answer."""
    record, metered = run.records[-1], run.metered
    record.evaluations = tuple(run.judgment.evaluations)
    record.duration_s = run.clock() - run.began_at
    if metered.judged(context):
        record.usage = metered.iteration_usage()


def prepare_next(run: RunState) -> bool:
    """Say what the agent hears next; gives whether it does so in a session of its own."""
    is_fresh = run.options.fresh_context_per_iteration
    if run.bad is not None:
        run.feedback.append(None)
        run.next_input = nudged_input(NUDGES[run.bad], run.messages, run.feedback, run.options)
        return is_fresh
    is_fresh = is_fresh or (run.stall is not None and run.stall.renews_session)
    run.feedback.append(run.outcome.feedback)
    run.next_input = next_input(run.outcome, run.messages, run.feedback, run.options, is_fresh=is_fresh)
    return is_fresh


def _context_of(run: RunState, response: AgentResponse) -> LoopContext:
    session, context = run.sessions.current, run.context
    assert session is not None  # noqa: S101 - the agent has been run
    if context is None:
        run.context = LoopContext(
            run.agent,
            session,
            run.messages,
            response,
            run.run_options,
            iteration=run.number,
            feedback=FeedbackLog(run.feedback),
            max_iterations=run.max_iterations,
            iterations=run.records,
            memory=run.memory,
            best_before=run.best_before,
        )
        return run.context
    context.agent = run.agent
    context.session = session
    context.last_response = response
    context.iteration = run.number
    return context
