"""`assert_evaluator_is_stateless` holds for evaluators as they should be, and names what a stateful one keeps."""

import asyncio
import itertools
from collections import Counter, deque
from dataclasses import dataclass, field
from functools import cached_property

import pytest

from agents_loop import (
    AIJudgeLoopEvaluator,
    AIJudgeLoopEvaluatorOptions,
    BackgroundAgentsProvider,
    BackgroundTaskCompletionLoopEvaluator,
    ChatClientAgent,
    CompletionMarkerLoopEvaluator,
    DelegateLoopEvaluator,
    LoopEvaluation,
    LoopEvaluator,
    TodoCompletionLoopEvaluator,
    TodoProvider,
)
from agents_loop.testing import ScriptedChatClient, ScriptedJudge, ScriptedVerdict, assert_evaluator_is_stateless

STOP, MORE = LoopEvaluation.stop(), LoopEvaluation.continue_("more")


def verdict(messages, options):
    return ScriptedVerdict("dates" in messages[1].text, "no dates")


class RemembersInTheContext(LoopEvaluator):
    """As the contract says."""

    def __init__(self):
        self.least = 2

    @cached_property
    def limit(self):
        return self.least * 2

    async def evaluate(self, context):
        seen = context.additional_properties.setdefault("seen", [])
        seen.append(context.last_response.text)
        await asyncio.sleep(0)
        return STOP if seen.count(seen[-1]) >= self.least or len(seen) > self.limit else MORE


PROPER = [
    RemembersInTheContext(),
    CompletionMarkerLoopEvaluator("DONE"),
    DelegateLoopEvaluator(lambda context: "dates" not in context.last_response.text),
    AIJudgeLoopEvaluator(ScriptedJudge(verdict)),
    AIJudgeLoopEvaluator(ScriptedJudge(verdict), AIJudgeLoopEvaluatorOptions(judge_sees="conversation")),
    AIJudgeLoopEvaluator(ScriptedJudge(lambda messages, options: "Hmm.")),
]


@pytest.mark.parametrize("evaluator", PROPER, ids=lambda evaluator: type(evaluator).__name__)
async def test_proper_evaluators_keep_no_state(evaluator):
    """Law 20: ours keep none, nor does one that remembers in the context."""
    await assert_evaluator_is_stateless(evaluator)


@pytest.mark.parametrize("evaluator", [TodoCompletionLoopEvaluator(), BackgroundTaskCompletionLoopEvaluator()])
async def test_an_evaluator_that_needs_a_service_is_given_an_agent(evaluator):
    """Testing: the agent that is given offers its services; it is not run."""
    client = ScriptedChatClient([])
    providers = [TodoProvider(), BackgroundAgentsProvider({"helper": ChatClientAgent(client)})]
    await assert_evaluator_is_stateless(evaluator, agent=ChatClientAgent(client, context_providers=providers))
    assert client.calls == []
    with pytest.raises(LookupError):
        await assert_evaluator_is_stateless(evaluator)


class Counts(LoopEvaluator):
    """changed 'asked' from 0 to"""

    def __init__(self):
        self.asked = 0

    async def evaluate(self, context):
        self.asked += 1
        return STOP


class Collects(Counts):
    """changed 'kept' from dict('answers': deque(), 'of': Counter()) to"""

    def __init__(self):
        self.kept = {"answers": deque(maxlen=3), "of": Counter()}

    async def evaluate(self, context):
        self.kept["answers"].append(context.last_response.text)
        return STOP


class InSlots(LoopEvaluator):
    """changed '_InSlots__last' from nothing to"""

    __slots__ = ("__last",)

    async def evaluate(self, context):
        self.__last = context.iteration
        return STOP


class OnTheClass(LoopEvaluator):
    """changed 'OnTheClass.asked' from 0 to"""

    asked = 0

    async def evaluate(self, context):
        type(self).asked += 1
        return STOP


class InASet(LoopEvaluator):
    """changed 'kept' from tuple(set(), bytearray(b''), list(...)) to tuple(set(1), bytearray(b'1'), list(...))"""

    def __init__(self):
        ring = []
        ring.append(ring)
        self.kept = (set(), bytearray(), ring)

    async def evaluate(self, context):
        self.kept[0].add(context.iteration)
        self.kept[1].extend(str(context.iteration).encode())
        return STOP


class Numbers(LoopEvaluator):
    """changed 'numbers' from count(1) to"""

    def __init__(self):
        self.numbers = itertools.count(1)

    async def evaluate(self, context):
        next(self.numbers)
        return STOP


class Memory:
    """An object of the evaluator's own module."""

    def __init__(self):
        self.last = None


class InAnObject(LoopEvaluator):
    """changed 'memory' from Memory(last=None) to"""

    def __init__(self):
        self.memory = Memory()

    async def evaluate(self, context):
        self.memory.last = context.iteration
        return STOP


@dataclass
class OfAMember(LoopEvaluator):
    """changed 'members' from list(Counts(asked=0)) to"""

    members: list = field(default_factory=lambda: [Counts()])

    async def evaluate(self, context):
        return await self.members[0].evaluate(context)


class WhileItAsks(LoopEvaluator):
    """changed 'context' from None to"""

    def __init__(self):
        self.context = None

    async def evaluate(self, context):
        self.context = context
        for _ in range(20):
            await asyncio.sleep(0)
        self.context = None
        return STOP


HIDDEN = {}


class InAModule(LoopEvaluator):
    """judged a run with the answers"""

    async def evaluate(self, context):
        before, HIDDEN["last"] = HIDDEN.get("last"), context.last_response.text
        return STOP if before == context.last_response.text else MORE


class MixesRuns(LoopEvaluator):
    """in another way among other runs at once"""

    def __init__(self):
        HIDDEN.clear()

    async def evaluate(self, context):
        HIDDEN["context"] = context
        await asyncio.sleep(0)
        return LoopEvaluation.continue_(HIDDEN["context"].last_response.text)


class OnlyOnce(LoopEvaluator):
    """Iteration 1, first: LoopEvaluation(decision='continue'"""

    def __init__(self):
        HIDDEN.clear()

    async def evaluate(self, context):
        return MORE if HIDDEN.setdefault("first", context) is context and context.iteration == 1 else STOP


STATEFUL = [
    Counts,
    Collects,
    InSlots,
    OnTheClass,
    InASet,
    Numbers,
    InAnObject,
    OfAMember,
    WhileItAsks,
    InAModule,
    MixesRuns,
    OnlyOnce,
]


@pytest.mark.parametrize("stateful", STATEFUL, ids=lambda kind: kind.__name__)
async def test_state_is_found_and_named(stateful):
    """Law 20: whatever form it has, state is found, and the message says where, or what it did."""
    with pytest.raises(AssertionError) as raised:
        await assert_evaluator_is_stateless(stateful())
    assert stateful.__doc__ in str(raised.value)
    assert stateful.__name__ in str(raised.value)


async def test_state_of_a_function_is_found():
    """Law 20: a function that was given keeps it in its variables or its defaults."""
    asked = 0

    def counts(context):
        nonlocal asked
        asked += 1
        return False

    def collects(context, seen=[]):  # noqa: B006 - the fault that is looked for
        seen.append(context.iteration)
        return False

    with pytest.raises(AssertionError, match=r"'function\.asked' from 0 to 1"):
        await assert_evaluator_is_stateless(DelegateLoopEvaluator(counts))

    def learns(context):
        nonlocal learnt
        learnt = context.iteration
        return False

    with pytest.raises(AssertionError, match=r"'function\.learnt' from not set to 1"):
        await assert_evaluator_is_stateless(DelegateLoopEvaluator(learns))
    learnt = None
    with pytest.raises(AssertionError, match="__defaults__"):
        await assert_evaluator_is_stateless(DelegateLoopEvaluator(collects))


async def test_replies_in_order_are_state():
    """Testing: a judge whose model answers from a list judges equal runs in other ways, and the message says why."""
    judge = AIJudgeLoopEvaluator(ScriptedJudge([number % 3 == 0 for number in range(200)]))
    with pytest.raises(AssertionError, match="the reply must depend on the messages alone"):
        await assert_evaluator_is_stateless(judge)


async def test_a_cache_may_change_if_it_is_said():
    """Testing: a place that is named may change; the judgments may not."""
    await assert_evaluator_is_stateless(Counts(), may_change=["asked"])
    with pytest.raises(AssertionError, match="asked"):
        await assert_evaluator_is_stateless(Counts(), may_change=["kept"])


async def test_what_an_evaluator_raises_is_raised():
    """Testing: an evaluator that can't judge these answers is not called stateless; nothing is left running."""

    def fails(context):
        raise ValueError(context.last_response.text)

    with pytest.raises(ValueError, match="draft"):
        await assert_evaluator_is_stateless(DelegateLoopEvaluator(fails), answers=["draft"])
    assert asyncio.all_tasks() == {asyncio.current_task()}


@pytest.mark.parametrize(("evaluator", "answers"), [(None, ["a"]), ("text", ["a"]), (Counts(), "a"), (Counts(), [])])
async def test_wrong_use_is_told(evaluator, answers):
    """Testing: what is no evaluator, and answers that are none, are TypeErrors."""
    with pytest.raises(TypeError, match=r"evaluator|answers"):
        await assert_evaluator_is_stateless(evaluator, answers=answers)
