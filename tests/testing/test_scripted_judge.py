"""`ScriptedJudge`: verdicts from a script, whatever form they have."""

import asyncio

import pytest

from agents_loop import (
    AgentResponse,
    AgentSession,
    AIJudgeLoopEvaluator,
    AIJudgeLoopEvaluatorOptions,
    ChatClientAgent,
    ChatResponse,
    ConfigurationError,
    FinishReason,
    JudgeFailedError,
    JudgeVerdict,
    LoopAgent,
    LoopContext,
    LoopResult,
    StopReason,
    UsageDetails,
)
from agents_loop.testing import ScriptedChatClient, ScriptedJudge, ScriptedVerdict, ScriptExhaustedError


def context():
    agent = ChatClientAgent(ScriptedChatClient([]))
    return LoopContext(agent, AgentSession(), "Plan it.", AgentResponse("A plan."))


async def judged(*verdicts):
    options = AIJudgeLoopEvaluatorOptions(feedback_message_template="{gap_analysis}")
    evaluator = AIJudgeLoopEvaluator(ScriptedJudge(verdicts), options)
    evaluations = [await evaluator.evaluate(context()) for _ in verdicts]
    return [(evaluation.decision, evaluation.feedback) for evaluation in evaluations]


async def test_verdicts_of_every_form_are_read_as_meant():
    """Testing: a bool, a verdict with its gap, the model's own class, raw text and a whole response."""
    assert await judged(
        False,
        ScriptedVerdict(False, "no dates", score=0.4, more={"reasoning": "it has steps"}),
        JudgeVerdict(answered=False, gap_analysis="no owner"),
        "No price.\nVERDICT: MORE",
        ChatResponse('{"answered": false, "gapAnalysis": "no map"}'),
        ScriptedVerdict(True),
        True,
    ) == [
        ("continue", "<unknown>"),
        ("continue", "no dates"),
        ("continue", "no owner"),
        ("continue", "No price."),
        ("continue", "no map"),
        ("stop", None),
        ("stop", None),
    ]


async def test_what_is_written_is_what_a_judge_would_write():
    """Testing: the gap comes first and the boolean last, as in the schema; a score only where there is one."""
    judge = ScriptedJudge([ScriptedVerdict(False, "x", score=0.5, more={"impossible": True}), True])
    first, second = [(await judge.get_response([])).text for _ in range(2)]
    assert first == '{"gapAnalysis": "x", "score": 0.5, "impossible": true, "answered": false}'
    assert second == '{"gapAnalysis": "", "answered": true}'


@pytest.mark.parametrize("cause", [FinishReason.LENGTH, FinishReason.CONTENT_FILTER, FinishReason.REFUSAL])
async def test_a_failure_is_one(cause):
    """Testing: a reply that ended early is no verdict, and the loop ends as it does with a real one."""
    loop = LoopAgent(ChatClientAgent(ScriptedChatClient(["draft"])), AIJudgeLoopEvaluator(ScriptedJudge([cause])))
    with pytest.raises(JudgeFailedError) as caught:
        await loop.run("Plan it.")
    assert caught.value.cause == cause.value
    assert LoopResult.of(caught.value).stop_reason == StopReason.EVALUATOR_FAILED


async def test_an_exception_is_raised_and_calls_are_recorded():
    """Testing: an outage is raised as it is; what the judge was asked can be read."""
    judge = ScriptedJudge([RuntimeError("broken"), True])
    evaluator = AIJudgeLoopEvaluator(judge)
    with pytest.raises(RuntimeError, match="broken"):
        await evaluator.evaluate(context())
    await evaluator.evaluate(context())
    assert [[message.role for message in call.messages] for call in judge.calls] == [["system", "user"]] * 2
    assert "A plan." in judge.calls[0].messages[1].text


@pytest.mark.parametrize("is_async", [False, True])
async def test_a_function_gives_the_verdict(is_async):
    """Testing: verdicts may depend on what is asked; sync or async."""

    def decide(messages, options):
        return "plan" in messages[-1].text

    async def decide_later(messages, options):
        await asyncio.sleep(0)
        return ScriptedVerdict("plan" in messages[-1].text, usage=UsageDetails(1, 2))

    judge = ScriptedJudge(decide_later if is_async else decide)
    loop = LoopAgent(ChatClientAgent(ScriptedChatClient(["a plan"])), AIJudgeLoopEvaluator(judge))
    result = LoopResult.of(await loop.run("Plan it."))
    assert result.stop_reason == StopReason.SATISFIED
    assert result.ledger.by_role()["evaluator"].usage == (UsageDetails(1, 2) if is_async else None)


async def test_a_script_ends():
    """Testing: a call too many is told."""
    judge = ScriptedJudge([], name="the strict judge")
    with pytest.raises(ScriptExhaustedError, match="the strict judge has 0 replies"):
        await AIJudgeLoopEvaluator(judge).evaluate(context())


async def test_it_gives_way():
    """Testing: other tasks run while it thinks, so that runs at once really mix."""
    order = []
    judge = ScriptedJudge([True, True])

    async def ask(name):
        order.append(f"{name} asks")
        await judge.get_response([])
        order.append(f"{name} hears")

    await asyncio.gather(ask("a"), ask("b"))
    assert order == ["a asks", "b asks", "a hears", "b hears"]


@pytest.mark.parametrize(
    ("verdicts", "error"),
    [("yes", TypeError), ([None], TypeError), ([1.0], TypeError), ([FinishReason.STOP], ConfigurationError)],
)
def test_what_is_no_verdict_is_told(verdicts, error):
    """Testing: a script that can't be meant is found before the test runs."""
    with pytest.raises(error):
        ScriptedJudge(verdicts)
