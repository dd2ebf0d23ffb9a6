"""Whether a run ends with an iteration, and why."""

from __future__ import annotations

from agents_loop.agent import AgentResponse
from agents_loop.loop.asking import Outcome
from agents_loop.loop.bad_response import NUDGES, BadResponse, bad_response_of
from agents_loop.loop.pausing import forget_run_within, wait
from agents_loop.loop.questions import Question
from agents_loop.loop.result import LoopResult, StopReason
from agents_loop.loop.resuming import pending_approvals
from agents_loop.loop.run_state import Ending, RunState
from agents_loop.loop.stalls.ladder import AnotherAgentStep, AskPersonStep, StopStep
from agents_loop.loop.stalls.watch import Stall


def ending_before_evaluation(run: RunState, response: AgentResponse) -> Ending | None:
    """Why the run ends before its evaluators are asked about an answer; `None` where they or the agent are asked."""
    pending = pending_approvals(response)
    if pending:
        wait(run, run.number, LoopResult.of(response), requests=pending)
        tools = ", ".join(request.tool_call.name for request in pending)
        return StopReason.PENDING_APPROVAL, f"waiting for approval of: {tools}"
    inner = None if response.loop_result is None else LoopResult.of(response)
    if inner is not None and inner.stop_reason == StopReason.PENDING_INPUT:
        question = inner.stop_detail or ""
        wait(run, run.number, inner, question=Question(text=question, response=response))
        return StopReason.PENDING_INPUT, question
    forget_run_within(run)
    if run.options.on_bad_response != "evaluate":
        run.bad = bad_response_of(response)
        if run.bad is not None and not _may_ask_again(run, run.bad):
            return StopReason.FAILED, f"the agent's answer is no answer: {run.bad}"
    return None if run.number < run.max_iterations or run.is_judged else _capped(run)


def _may_ask_again(run: RunState, bad: BadResponse) -> bool:
    """Whether the agent is run once more, rather than the run ended; not if too many in a row were bad already."""
    earlier = run.records[-1 - run.options.bad_response_retries : -1]
    if len(earlier) == run.options.bad_response_retries and all(record.bad_response for record in earlier):
        return False
    return run.options.on_bad_response == "retry" and bad in NUDGES and run.number < run.max_iterations


def ending_after_evaluation(run: RunState, outcome: Outcome) -> Ending | None:
    """Why the run ends, once its evaluators have spoken; `None` where it goes on."""
    if outcome.aborted is not None:
        return StopReason.ABORTED, outcome.aborted.reason
    if outcome.question is not None:
        _ask(run, outcome, outcome.question)
        return StopReason.PENDING_INPUT, outcome.question
    if not outcome.goes_on:
        return StopReason.SATISFIED, None
    return _capped(run) if run.number >= run.max_iterations else None


def take_step(run: RunState, stall: Stall) -> None:
    """Take the step of the ladder that a stall leads to: the run ends, or goes on in another way."""
    run.records[-1].stall = stall.signal.name
    step = stall.step
    if isinstance(step, StopStep):
        run.ending = StopReason.STALLED, stall.detail
    elif isinstance(step, AskPersonStep):
        question = step.text(stall.signal.observation, run.outcome.feedback)
        _ask(run, run.outcome, question)
        run.ending = StopReason.PENDING_INPUT, question
    elif isinstance(step, AnotherAgentStep):
        run.use(step.as_agent)
    run.outcome = stall.retold(run.outcome)


def _ask(run: RunState, outcome: Outcome, text: str) -> None:
    response = run.records[-1].response
    question = Question(text=text, response=response, feedback=outcome.feedback, messages=outcome.messages)
    wait(run, run.number, None, question=question)


def _capped(run: RunState) -> Ending:
    run.logger.info("Loop run %s ended at max_iterations=%d", run.run_id, run.number)
    detail = f"{run.number} of {run.max_iterations} iterations"
    if run.options.evaluate_final_iteration:
        number = run.number - 1  # the first answer is a draft
        revisions = f"{number} revision{'' if number == 1 else 's'}"
        detail += f": after {revisions} the answer still does not pass its check"
    return StopReason.MAX_ITERATIONS, detail
