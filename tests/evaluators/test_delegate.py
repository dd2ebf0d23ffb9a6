from __future__ import annotations

import functools
from typing import Any

import pytest
from fakes import RecordingAgent, Way

from agents_loop import (
    AgentResponse,
    AgentSession,
    DelegateLoopEvaluator,
    LoopAgent,
    LoopContext,
    LoopEvaluation,
    LoopResult,
    StopReason,
)


def context() -> LoopContext:
    return LoopContext(RecordingAgent(), AgentSession(), "go", AgentResponse("an answer"))


@pytest.mark.parametrize("wrong", [None, 7, "more", True])
def test_it_needs_a_callable(wrong: Any):
    """`None` for a callable is a TypeError that names the parameter."""
    with pytest.raises(TypeError, match="evaluate"):
        DelegateLoopEvaluator(wrong)


GIVEN = LoopEvaluation.abort("no", score=0.1)


@pytest.mark.parametrize("is_async", [False, True])
@pytest.mark.parametrize(
    ("word", "meant"),
    [
        (True, LoopEvaluation.continue_()),
        (False, LoopEvaluation.stop()),
        (None, LoopEvaluation.stop()),
        ("add tests", LoopEvaluation.continue_("add tests")),
        ("  spaced  ", LoopEvaluation.continue_("  spaced  ")),
        (GIVEN, GIVEN),
    ],
)
async def test_what_a_word_means(word: Any, meant: LoopEvaluation, is_async: bool):
    """True: go on; a str: go on with that feedback; False or None: stop; an evaluation is itself."""

    async def later(context: LoopContext) -> Any:
        return word

    evaluator = DelegateLoopEvaluator(later if is_async else lambda context: word)
    assert await evaluator.evaluate(context()) == meant


@pytest.mark.parametrize("blank", ["", " ", "\n\t"])
async def test_a_blank_str_is_unclear(blank: str):
    """A blank str is a ValueError that names both alternatives."""
    with pytest.raises(ValueError, match=r"True.*False"):
        await DelegateLoopEvaluator(lambda context: blank).evaluate(context())


@pytest.mark.parametrize("word", [0, 1, 0.0, [], ["more"], {}, b"more", object()])
async def test_anything_else_is_a_type_error(word: Any):
    """Anything else is a TypeError; truthiness counts for nothing."""
    with pytest.raises(TypeError, match="LoopEvaluation"):
        await DelegateLoopEvaluator(lambda context: word).evaluate(context())


async def test_any_callable():
    """A method, a partial and an object with `__call__` are callables too."""

    class Judge:
        def __call__(self, context: LoopContext) -> bool:
            return True

        async def judge(self, context: LoopContext) -> bool:
            return True

    def judge(word: str, context: LoopContext) -> str:
        return word

    for callable_ in (Judge(), Judge().judge, functools.partial(judge, "more")):
        assert (await DelegateLoopEvaluator(callable_).evaluate(context())).should_reinvoke


async def test_it_gets_the_context():
    """The function gets the context itself."""
    given, seen = context(), []
    await DelegateLoopEvaluator(seen.append).evaluate(given)
    assert seen[0] is given


@pytest.mark.parametrize("is_async", [False, True])
async def test_what_it_raises(agent: RecordingAgent, invoke: Way, is_async: bool):
    """Law 18: what the function raises reaches the caller as it was raised."""
    error = KeyError("k")

    def fail(context: LoopContext) -> bool:
        raise error

    async def fail_later(context: LoopContext) -> bool:
        raise error

    with pytest.raises(KeyError) as raised:
        await invoke(LoopAgent(agent, DelegateLoopEvaluator(fail_later if is_async else fail)))
    assert raised.value is error
    assert LoopResult.of(error).stop_reason is StopReason.EVALUATOR_FAILED
