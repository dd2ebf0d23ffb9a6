"""That an evaluator keeps no state, as an assertion: for whoever writes one."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Collection, Sequence
from itertools import zip_longest

from agents_loop.adapting import AgentLike, as_agent
from agents_loop.agent import AgentResponse, AgentRunOptions, AgentSession, AIAgent, DelegatingAIAgent
from agents_loop.chat_client_agent import ChatClientAgent
from agents_loop.loop.agent import LoopAgent
from agents_loop.loop.evaluation import LoopEvaluation
from agents_loop.loop.evaluator import LoopEvaluator
from agents_loop.loop.options import LoopAgentOptions
from agents_loop.loop.result import LoopResult
from agents_loop.messages import ChatMessage, ChatRole
from agents_loop.testing.scripted import ScriptedChatClient
from agents_loop.testing.sketch import changed_places, sketch_of

ANSWERS = ("A first draft.", "A second draft, with dates.", "", '{"answered": true}', "DONE", "A first draft.")
"""What the agent answers by default: something, the same again, nothing, and what looks like an end."""
_RUNS = 6
_ITERATIONS = 4
_MIXTURES = 4
_LONGEST_WAIT = 5
"""In turns of the event loop."""

_Said = list[LoopEvaluation]
"""What the evaluator said in one run."""


async def assert_evaluator_is_stateless(
    evaluator: LoopEvaluator,
    *,
    agent: AgentLike | None = None,
    answers: Sequence[str] = ANSWERS,
    may_change: Collection[str] = (),
) -> None:
    """Check that one instance of an evaluator may serve any number of runs at once.

    It judges six runs of up to four iterations in real loops, each with its own session and its own order of the
    answers, two of them with the same: one run after another, in the reverse order, and four times all at once, mixed
    in other ways. Each run must be judged in the same way every time; and nothing that the evaluator keeps may be
    changed: its attributes, those of its class, the variables of functions that it was given, in containers and in
    objects of its own module too. That is looked at between runs and while other runs wait.

    Not found is state that shows in none of these answers and stands elsewhere: in a module, a file, a closed object.
    Memory of a run in `context.additional_properties` is right, and so is what `functools.cached_property` keeps.

    Args:
        evaluator: The instance. It is asked about 140 times, so give it a scripted model, and one whose reply depends
            on what it is asked alone: a list of replies would be state.
        agent: The inner agent that the evaluator sees, if it needs a service of one; it is not run.
        answers: What the agent answers, in any order: give some that pass and some that don't.
        may_change: Places that may change, as a failure names them: of a cache, say.

    Raises:
        AssertionError: It keeps state; the message says what changed, or which run was judged in another way.
        TypeError: It is no evaluator, or the answers are one str.
    """
    if not isinstance(evaluator, LoopEvaluator):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise TypeError(f"evaluator must be a LoopEvaluator, not {type(evaluator).__name__}")
    if isinstance(answers, str) or not answers:
        raise TypeError(f"answers must be a list of str, not {answers!r}")
    inner = ChatClientAgent(ScriptedChatClient([])) if agent is None else as_agent(agent)
    await _Check(evaluator, inner, answers, may_change)()


class _Check:
    def __init__(
        self, evaluator: LoopEvaluator, agent: AIAgent, answers: Sequence[str], may_change: Collection[str]
    ) -> None:
        self._evaluator = evaluator
        self._agent = agent
        self._may_change = may_change
        self._kept = sketch_of(evaluator)
        order = random.Random(1)  # noqa: S311 - a fixed order is the point
        self._scripts = [order.choices(answers, k=_ITERATIONS) for _ in range(_RUNS - 1)]
        self._scripts.append(self._scripts[0])

    async def __call__(self) -> None:
        alone = [await self._run(number) for number in range(_RUNS)]
        self.look("it judged six runs, one after another")
        for number in reversed(range(_RUNS)):
            self._compare(number, alone[number], await self._run(number), "after other runs")
        self._compare(_RUNS - 1, alone[0], alone[-1], "after other runs with the same answers")
        for mixture in range(_MIXTURES):
            chance = random.Random(mixture)  # noqa: S311 - same
            numbers = chance.sample(range(_RUNS), _RUNS)
            said_in_all = await _all([self._run(number, chance) for number in numbers])
            for number, said in zip(numbers, said_in_all, strict=True):
                self._compare(number, alone[number], said, "among other runs at once")
        self.look("it judged runs at once")

    async def _run(self, number: int, chance: random.Random | None = None) -> _Said:
        async def turn() -> None:
            for _ in range(0 if chance is None else chance.randrange(_LONGEST_WAIT)):
                await asyncio.sleep(0)
            self.look("a run waited for its agent")

        agent = _ScriptedAgent(self._agent, self._scripts[number], turn)
        options = LoopAgentOptions(max_iterations=_ITERATIONS, evaluate_final_iteration=True)
        response = await LoopAgent(agent, self._evaluator, options).run(f"Request {number % (_RUNS - 1) + 1}.")
        result = LoopResult.of(response)
        assert result is not None  # noqa: S101 - a loop's response has one
        return [evaluation for record in result.iterations for evaluation in record.evaluations]

    def look(self, when: str) -> None:
        for place, was, now in changed_places(self._kept, sketch_of(self._evaluator)):
            if place not in self._may_change:
                name = type(self._evaluator).__name__
                raise AssertionError(
                    f"an evaluator keeps no state: {name} changed {place!r} from {was[:200]} to {now[:200]} while "
                    f"{when}. What it remembers of a run belongs in context.additional_properties"
                )

    def _compare(self, number: int, alone: _Said, said: _Said, when: str) -> None:
        if said == alone:
            return
        at = next((at for at, (first, then) in enumerate(zip_longest(alone, said)) if first != then), 0)
        first, then = [repr(heard[at]) if at < len(heard) else "not asked" for heard in (alone, said)]
        raise AssertionError(
            f"an evaluator keeps no state: {type(self._evaluator).__name__} judged a run with the answers "
            f"{self._scripts[number]!r} in another way {when}. Iteration {at + 1}, first: {first}; then: {then}. "
            "If it asks a model, the reply must depend on the messages alone"
        )


class _ScriptedAgent(DelegatingAIAgent):
    """Answers from a list, and otherwise is the agent that it wraps."""

    def __init__(self, inner_agent: AIAgent, answers: Sequence[str], turn: Callable[[], Awaitable[None]]) -> None:
        super().__init__(inner_agent)
        self._answers = iter(answers)
        self._turn = turn

    async def run_core(
        self, messages: list[ChatMessage], *, session: AgentSession | None, options: AgentRunOptions | None
    ) -> AgentResponse:
        del messages, session, options
        await self._turn()
        return AgentResponse([ChatMessage(ChatRole.ASSISTANT, next(self._answers))])


async def _all(runs: Sequence[Awaitable[_Said]]) -> list[_Said]:
    """What all runs gave, once all have ended; what the first of them raised that did."""
    ended = await asyncio.gather(*runs, return_exceptions=True)
    for outcome in ended:
        if isinstance(outcome, BaseException):
            raise outcome
    return [outcome for outcome in ended if not isinstance(outcome, BaseException)]
