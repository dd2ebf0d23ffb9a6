"""What every evaluator keeps to."""

from __future__ import annotations

import asyncio
import copy
import inspect
from collections.abc import Callable

import pytest
from fakes import RecordingAgent, leaving_nothing

import agents_loop
from agents_loop import (
    AgentResponse,
    AgentRunOptions,
    AgentSession,
    AIJudgeLoopEvaluator,
    BackgroundAgentsProvider,
    BackgroundTask,
    BackgroundTaskCompletionLoopEvaluator,
    BackgroundTaskCompletionLoopEvaluatorOptions,
    ChatMessage,
    CompletionMarkerLoopEvaluator,
    DelegateLoopEvaluator,
    EvidenceLoopEvaluator,
    FunctionCallContent,
    FunctionCallLoopEvaluator,
    IterationSignals,
    IterationStrategyLoopEvaluator,
    LoopContext,
    LoopEvaluation,
    LoopEvaluator,
    PanelLoopEvaluator,
    PassTokenLoopEvaluator,
    PreferenceLoopEvaluator,
    RubricCriterion,
    RubricLoopEvaluator,
    TodoCompletionLoopEvaluator,
    TodoProvider,
    ValidationFailure,
    check,
)
from agents_loop.testing import ScriptedChatClient, assert_evaluator_is_stateless


def judged(messages, options) -> str:
    done = "DONE" in messages[1].text
    return f'{{"gapAnalysis": "{"" if done else "say it"}", "answered": {str(done).lower()}}}'


def judge() -> LoopEvaluator:
    return AIJudgeLoopEvaluator(ScriptedChatClient(judged))


def marker() -> LoopEvaluator:
    return CompletionMarkerLoopEvaluator("DONE")


def delegate() -> LoopEvaluator:
    return DelegateLoopEvaluator(lambda context: "DONE" not in context.last_response.text)


def checked() -> LoopEvaluator:
    return check("done", lambda text: "DONE" in text)


def evidence() -> LoopEvaluator:
    return EvidenceLoopEvaluator(judge(), [checked()])


def panel() -> LoopEvaluator:
    return PanelLoopEvaluator([[checked()], [judge(), marker()]])


def graded(messages, options) -> str:
    verdict = "met" if "DONE" in messages[1].text else "not_met"
    return f'{{"criteria": {{"done": {{"reason": "", "verdict": "{verdict}"}}}}}}'


def rubric() -> LoopEvaluator:
    return RubricLoopEvaluator(ScriptedChatClient(graded), [RubricCriterion("done", "It says so.")])


def token(messages, options) -> str:
    return "ALL CITATIONS SUPPORTED" if "DONE" in messages[1].text else "MISSING: say it"


def pass_token() -> LoopEvaluator:
    return PassTokenLoopEvaluator(ScriptedChatClient(token))


def called(messages, options) -> ChatMessage:
    name, said = ("answered", {}) if "DONE" in messages[1].text else ("continue", {"question": "say it"})
    return ChatMessage("assistant", [FunctionCallContent("c1", name, said)])


def function_call() -> LoopEvaluator:
    return FunctionCallLoopEvaluator(ScriptedChatClient(called))


def signalled(context: LoopContext) -> IterationSignals:
    done = "DONE" in context.last_response.text
    return IterationSignals(validation_failures=() if done else [ValidationFailure("MISSING", "say it")])


def strategy() -> LoopEvaluator:
    return IterationStrategyLoopEvaluator([signalled])


def todos() -> LoopEvaluator:
    return TodoCompletionLoopEvaluator()


def background_tasks() -> LoopEvaluator:
    return BackgroundTaskCompletionLoopEvaluator(BackgroundTaskCompletionLoopEvaluatorOptions(wait_timeout_s=0))


class StandingTasks(BackgroundAgentsProvider):
    """Has a task that is running until the work is done, without anything that runs."""

    def __init__(self, *, is_done: bool) -> None:
        super().__init__({"helper": RecordingAgent()})
        self._running = () if is_done else (BackgroundTask(1, "helper", "look it up"),)

    def get_running(self, session: AgentSession) -> tuple[BackgroundTask, ...]:
        return self._running


TODOS = TodoProvider()
TASKS = {is_done: StandingTasks(is_done=is_done) for is_done in (True, False)}


class ProvidedAgent(RecordingAgent):
    """A recording agent with providers, which say that the work is done or not."""

    def __init__(self, session: AgentSession, *, is_done: bool) -> None:
        super().__init__()
        self._providers = [TODOS, TASKS[is_done]]
        item = TODOS.add(session, "say it")
        if is_done:
            TODOS.complete(session, [item.id])

    def get_service(self, service_type, key=None):
        return next((provider for provider in self._providers if isinstance(provider, service_type)), None)


MAKERS = [
    judge,
    marker,
    delegate,
    checked,
    evidence,
    panel,
    rubric,
    pass_token,
    function_call,
    strategy,
    todos,
    background_tasks,
]
"""Each makes an evaluator that is satisfied with an iteration whose answer holds DONE, and with no other."""


@pytest.fixture(params=MAKERS, ids=lambda make: make.__name__)
def evaluator(request: pytest.FixtureRequest) -> LoopEvaluator:
    make: Callable[[], LoopEvaluator] = request.param
    return make()


def context(answer: str) -> LoopContext:
    session = AgentSession(session_id="s", state={"k": [1]})
    session.messages.append(ChatMessage("user", "earlier"))
    return LoopContext(
        ProvidedAgent(session, is_done="DONE" in answer),
        session,
        [ChatMessage("system", "be brief"), ChatMessage("user", "do it")],
        AgentResponse(answer, response_id="r"),
        AgentRunOptions(),
        iteration=3,
        feedback=["first", None],
    )


def told(context: LoopContext) -> object:
    """All that a context tells, as a deep copy; not the bag, which an evaluator may write."""
    parts = (
        context.session.session_id,
        context.session.state,
        context.session.messages,
        context.initial_messages,
        context.last_response,
        context.run_options,
        context.iteration,
        list(context.feedback),
        list(context.evidence),
    )
    return copy.deepcopy(parts)


def test_every_evaluator_is_here():
    """The contract is checked for every evaluator that is exported."""
    exported = {getattr(agents_loop, name) for name in agents_loop.__all__}
    concrete = {
        thing
        for thing in exported
        if inspect.isclass(thing) and issubclass(thing, LoopEvaluator) and not inspect.isabstract(thing)
    }
    assert concrete - {PreferenceLoopEvaluator} == {type(make()) for make in MAKERS}  # that one asks for nothing


async def test_it_judges(evaluator: LoopEvaluator):
    """Law 6: an evaluator gives a LoopEvaluation: stop, or the wish to go on."""
    done, more = await evaluator.evaluate(context("DONE")), await evaluator.evaluate(context("a draft"))
    assert isinstance(done, LoopEvaluation)
    assert (done.decision, more.decision) == ("stop", "continue")


async def test_it_is_pure(evaluator: LoopEvaluator):
    """Law 20: an evaluator changes neither the context, but for the bag, nor itself, and never runs the agent."""
    for answer in ("DONE", "a draft"):
        given = context(answer)
        before = told(given)
        state = {name: id(value) for name, value in vars(evaluator).items()}
        await evaluator.evaluate(given)
        assert told(given) == before
        assert {name: id(value) for name, value in vars(evaluator).items()} == state
        assert given.agent.calls == given.agent.created == []


async def test_it_keeps_no_state(evaluator: LoopEvaluator):
    """Law 20: the same context gets the same word, whatever was asked in between."""
    first = await evaluator.evaluate(context("a draft"))
    await evaluator.evaluate(context("DONE"))
    again = await evaluator.evaluate(context("a draft"))
    assert again == first
    assert again is not first


async def test_runs_of_a_loop_do_not_mix(evaluator: LoopEvaluator):
    """Law 20: in loops that run at once it judges each as if it were alone, and changes nothing that it keeps."""
    await assert_evaluator_is_stateless(evaluator, agent=ProvidedAgent(AgentSession(), is_done=False))


async def test_it_serves_many_at_once(evaluator: LoopEvaluator):
    """Law 20: one instance serves any number of runs at once."""
    answers = ["DONE" if number % 3 else "a draft" for number in range(60)]
    async with leaving_nothing():
        words = await asyncio.gather(*[evaluator.evaluate(context(answer)) for answer in answers])
    assert [word.decision for word in words] == ["stop" if answer == "DONE" else "continue" for answer in answers]
