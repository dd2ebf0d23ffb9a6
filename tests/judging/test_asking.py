"""Law 25: what happens when a judge gives no verdict, by the policy, and what it never becomes."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace

import pytest
from fakes import RecordingAgent

from agents_loop import (
    AIJudgeLoopEvaluator,
    AIJudgeLoopEvaluatorOptions,
    BudgetExceededError,
    ChatClient,
    ChatMessage,
    ChatOptions,
    ChatResponse,
    ConfigurationError,
    EvaluatorFailedError,
    JudgeFailedError,
    JudgeFailurePolicy,
    LoopAgent,
    LoopAgentOptions,
    LoopResult,
    RubricCriterion,
    RubricLoopEvaluator,
    StopReason,
    UsageDetails,
)
from agents_loop.failures import FailureCause
from agents_loop.testing import ScriptedChatClient

YES = '{"gapAnalysis": "", "answered": true}'
NO = '{"gapAnalysis": "no dates", "answered": false}'
HMM = "Hmm."


def ended(reason: str, text: str = YES) -> ChatResponse:
    return ChatResponse([ChatMessage("assistant", text)], finish_reason=reason, usage=UsageDetails(10, 1))


class Judge:
    """A judge with a script, in a loop, that waits in no time."""

    def __init__(self, *replies, chat_options: ChatOptions | None = None, cap: int = 9, mode="first", **policy):
        self.waits: list[float] = []
        self.client = ScriptedChatClient(replies)
        self.policy = JudgeFailurePolicy(**{"sleep": self._sleep, "draw": lambda: 0.0, **policy})
        options = AIJudgeLoopEvaluatorOptions(
            chat_options=chat_options, on_failure=self.policy, feedback_message_template="{gap_analysis}"
        )
        self.agent = RecordingAgent()
        self.evaluator = AIJudgeLoopEvaluator(self.client, options)
        evaluators = [self.evaluator]
        if mode == "all":
            evaluators.append(AIJudgeLoopEvaluator(ScriptedChatClient(lambda *_: YES), options))
        self.loop = LoopAgent(self.agent, evaluators, LoopAgentOptions(max_iterations=cap, evaluation_mode=mode))

    async def _sleep(self, seconds: float) -> None:
        self.waits.append(seconds)

    async def run(self) -> LoopResult:
        return LoopResult.of(await self.loop.run("the request"))

    @property
    def feedback(self) -> list[list[str]]:
        """What the agent heard after the request."""
        return self.agent.inputs[1:]


@pytest.mark.parametrize("error", [ConnectionError("x"), TimeoutError("x")])
async def test_what_may_pass_is_tried_again_by_default_and_charges_nothing(error):
    """F3: a transient failure, then success: one iteration, one verdict, nothing for the agent."""
    judge = Judge(error, error, YES)
    result = await judge.run()
    assert result.stop_reason == StopReason.SATISFIED
    assert [len(result.iterations), len(judge.client.calls)] == [1, 3]
    assert judge.waits == [0.5, 1.0]
    assert judge.feedback == []


async def test_an_outage_that_stays_is_raised_as_it_was_raised():
    """F1: after the retries the client's own exception is raised, with the agent's work and what came before."""
    errors = [ConnectionError(str(number)) for number in range(3)]
    judge = Judge(NO, *errors)
    with pytest.raises(ConnectionError) as caught:
        await judge.run()
    assert caught.value is errors[2]
    assert "asked 3 times" in caught.value.__notes__[0]
    assert "ConnectionError: 0" in caught.value.__notes__[0]
    result = LoopResult.of(caught.value)
    assert result.stop_reason == StopReason.EVALUATOR_FAILED
    assert [record.response.text for record in result.iterations] == ["reply 1", "reply 2"]


async def test_an_unknown_error_while_an_outage_is_remedied_does_not_hide_it():
    """F1: the outage is what is raised; the other error is in its notes."""
    outage = ConnectionError("down")
    with pytest.raises(ConnectionError) as caught:
        await Judge(outage).run()
    assert caught.value is outage
    assert "ScriptExhaustedError" in caught.value.__notes__[0]


@pytest.mark.parametrize("error", [ValueError("x"), PermissionError("x")])
async def test_what_will_not_pass_is_not_tried_again(error):
    """F1: an error that nothing is known of is raised at once."""
    judge = Judge(error, YES)
    with pytest.raises(type(error)):
        await judge.run()
    assert len(judge.client.calls) == 1


async def test_a_spent_budget_is_never_tried_again():
    """Law 25: a budget that is used up ends the run, whatever the policy."""
    judge = Judge(BudgetExceededError("spent"), YES, error=("retry", "continue"))
    with pytest.raises(BudgetExceededError):
        await judge.run()
    assert len(judge.client.calls) == 1


@pytest.mark.parametrize("mode", ["first", "all"])
@pytest.mark.parametrize(
    ("policy", "replies"),
    [
        ({"error": "stop", "retries": 0}, [ConnectionError("down")]),
        ({"refusal": "stop"}, [ended("refusal")]),
        ({"length": "stop"}, [ended("length")]),
        ({"content_filter": "stop"}, [ended("content_filter")]),
        ({"unreadable": "stop"}, [HMM]),
    ],
)
async def test_a_judge_may_stop_the_run_without_an_exception(policy, replies, mode):
    """Law 25: `stop` ends the run as `evaluator_failed`, and the result is returned."""
    judge = Judge(*replies, mode=mode, **policy)
    result = await judge.run()
    assert result.stop_reason == StopReason.EVALUATOR_FAILED
    assert "the judge gave no verdict" in result.stop_detail
    assert (result.output, len(result.iterations)) == ("reply 1", 1)


async def test_a_judge_asked_outside_a_loop_raises_what_would_stop_it():
    """Law 25: the error that stops a run has the judge's failure as its cause."""
    judge = Judge(ended("refusal"), refusal="stop")
    with pytest.raises(EvaluatorFailedError) as caught:
        await judge.evaluator.evaluate(_context(judge))
    assert isinstance(caught.value.__cause__, JudgeFailedError)


def _context(judge: Judge):
    from agents_loop import AgentResponse, AgentSession, LoopContext

    return LoopContext(judge.agent, AgentSession(), "the request", AgentResponse("an answer"))


async def test_a_cut_off_verdict_is_asked_for_with_more_room():
    """V9: a reply cut off by the token limit is asked for again, once, with a larger limit; both are counted."""
    judge = Judge(ended("length"), ended("stop"), chat_options=ChatOptions(max_output_tokens=50))
    result = await judge.run()
    assert result.stop_reason == StopReason.SATISFIED
    assert [call.options.max_output_tokens for call in judge.client.calls] == [50, 200]
    assert result.usage == UsageDetails(20, 2)


async def test_more_room_is_bounded():
    """V9: as often as it is named, and not at all where no limit of ours cut the reply off."""
    judge = Judge(*[ended("length")] * 3, chat_options=ChatOptions(max_output_tokens=50), length=("more_room",) * 2)
    with pytest.raises(JudgeFailedError, match="length"):
        await judge.run()
    assert [call.options.max_output_tokens for call in judge.client.calls] == [50, 200, 800]
    without = Judge(ended("length"))
    with pytest.raises(JudgeFailedError, match="length"):
        await without.run()
    assert len(without.client.calls) == 1


async def test_a_reply_may_be_asked_for_again_without_a_wait():
    """F2: for an unreadable reply `retry` asks again at once, up to its number."""
    judge = Judge(HMM, HMM, YES, unreadable=("retry", "continue"))
    assert (await judge.run()).stop_reason == StopReason.SATISFIED
    assert (judge.waits, judge.feedback) == ([], [])
    judge = Judge(HMM, HMM, YES, unreadable=("retry", "raise"), retries=1)
    with pytest.raises(JudgeFailedError, match="unreadable"):
        await judge.run()


async def test_the_next_judge():
    """F1: another judge takes over, with retries of its own; the first is asked first in the next iteration."""
    second = ScriptedChatClient([ConnectionError("2"), NO])
    judge = Judge(ConnectionError("1"), ConnectionError("1"), YES, next_judges=[second], retries=1)
    result = await judge.run()
    assert result.stop_reason == StopReason.SATISFIED
    assert (len(judge.client.calls), len(second.calls)) == (3, 2)
    assert judge.feedback == [["no dates"]]


async def test_a_refusal_may_go_to_the_next_judge():
    """Law 25: by the policy a refusal goes to the next judge; when all have refused, the ending holds."""
    second = ScriptedChatClient([ended("refusal"), YES])
    judge = Judge(ended("refusal"), refusal=("next_judge", "continue"), next_judges=[second], cap=2)
    result = await judge.run()
    assert result.stop_reason == StopReason.MAX_ITERATIONS
    assert result.iterations[0].evaluations[0].note == "the judge gave no verdict: refusal"


@pytest.mark.parametrize("reason", ["refusal", "length", "content_filter"])
async def test_going_on_says_nothing_to_the_agent(reason):
    """Law 25: a failure is no feedback, no pass and no score."""
    judge = Judge(ended(reason), YES, **{reason: "continue"})
    result = await judge.run()
    assert judge.feedback == [[]]
    evaluation = result.iterations[0].evaluations[0]
    assert (evaluation.decision, evaluation.feedback, evaluation.score) == ("continue", None, None)


async def test_unreadable_verdicts_in_a_row_have_a_limit():
    """F2: after so many in a row the run ends; a readable one begins anew, and outages are counted apart."""
    judge = Judge(HMM, NO, HMM, ValueError("x"), HMM, unreadable_limit=2, error="continue")
    with pytest.raises(JudgeFailedError, match="unreadable"):
        await judge.run()
    assert len(judge.client.calls) == 5


async def test_outages_in_a_row_have_a_limit():
    """F2: passed-over outages in a row are counted apart from unreadable verdicts, which end the row."""
    judge = Judge(
        ValueError("1"), HMM, ValueError("2"), ValueError("3"), outage_limit=2, error="continue", at_limit="stop"
    )
    result = await judge.run()
    assert result.stop_reason == StopReason.EVALUATOR_FAILED
    assert result.stop_detail == "the judge gave no verdict (other): ValueError: 3"
    assert len(judge.client.calls) == 4


async def test_no_limit():
    """F2: with no limit the cap ends the run."""
    judge = Judge(*[HMM] * 8, unreadable_limit=None)
    assert (await judge.run()).stop_reason == StopReason.MAX_ITERATIONS


async def test_failures_in_a_row_are_a_runs_own():
    """Law 20: one judge serves many runs at once, and none is charged for another's failures."""
    client = ScriptedChatClient(lambda messages, _: HMM)
    options = AIJudgeLoopEvaluatorOptions(on_failure=JudgeFailurePolicy(unreadable_limit=3))
    loop = LoopAgent(RecordingAgent(), AIJudgeLoopEvaluator(client, options), LoopAgentOptions(max_iterations=3))
    responses = await asyncio.gather(*[loop.run("x") for _ in range(5)])
    assert {LoopResult.of(response).stop_reason for response in responses} == {StopReason.MAX_ITERATIONS}


class Hanging(ChatClient):
    """Never answers."""

    async def get_response(self, messages, options=None):
        await asyncio.Event().wait()


async def test_a_judge_that_does_not_answer_in_time():
    """Law 25: a judge's timeout is a failure of its own cause, tried again like others that may pass."""
    waits = []

    async def sleep(seconds):
        waits.append(seconds)

    options = AIJudgeLoopEvaluatorOptions(on_failure=JudgeFailurePolicy(timeout_s=0.001, sleep=sleep))
    loop = LoopAgent(RecordingAgent(), AIJudgeLoopEvaluator(Hanging(), options))
    with pytest.raises(TimeoutError, match=r"did not answer within 0\.001 s") as caught:
        await loop.run("x")
    assert len(waits) == 2
    result = LoopResult.of(caught.value)
    assert result.output == "reply 1"
    assert [entry.outcome for entry in result.ledger if entry.role == "evaluator"] == ["timeout"] * 3


async def test_a_timeout_that_the_client_raised_is_raised_as_it_was():
    """Law 25: a client's own timeout, before the judge's, is the client's exception."""
    outage = TimeoutError("the client's")
    with pytest.raises(TimeoutError) as caught:
        await Judge(outage, retries=0, timeout_s=60).run()
    assert caught.value is outage


async def test_a_timeout_of_the_callers_own_is_not_the_judges():
    """F5: the caller's timeout ends the run; nothing is tried again."""
    options = AIJudgeLoopEvaluatorOptions(on_failure=JudgeFailurePolicy(timeout_s=60, error="continue"))
    loop = LoopAgent(RecordingAgent(), AIJudgeLoopEvaluator(Hanging(), options))
    with pytest.raises(TimeoutError) as caught:
        async with asyncio.timeout(0.01):
            await loop.run("x")
    assert LoopResult.of(caught.value).stop_reason == StopReason.CANCELLED


async def test_a_cancellation_is_not_a_failure():
    """F5: cancelled while it waits to ask again, the run ends at once."""
    waiting = asyncio.Event()

    async def sleep(seconds):
        waiting.set()
        await asyncio.Event().wait()

    judge = Judge(ConnectionError("x"), YES, sleep=sleep, error="continue")
    task = asyncio.create_task(judge.run())
    await waiting.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert len(judge.client.calls) == 1


@pytest.mark.parametrize(
    ("given", "error", "words"),
    [
        ({"error": "ignore"}, ConfigurationError, "error"),
        ({"error": ()}, ConfigurationError, "error"),
        ({"error": None}, ConfigurationError, "error"),
        ({"length": ("raise", "more_room")}, ConfigurationError, "only at its end"),
        ({"server": "next_judge"}, ConfigurationError, "next_judges"),
        ({"retries": -1}, ConfigurationError, "retries"),
        ({"retries": True}, TypeError, "retries"),
        ({"unreadable_limit": 0}, ConfigurationError, "unreadable_limit"),
        ({"outage_limit": "x"}, TypeError, "outage_limit"),
        ({"timeout_s": 0}, ConfigurationError, "timeout_s"),
        ({"first_wait_s": None}, TypeError, "first_wait_s"),
        ({"longest_wait_s": float("inf")}, ConfigurationError, "longest_wait_s"),
        ({"at_limit": "continue"}, ConfigurationError, "at_limit"),
        ({"next_judges": [None]}, TypeError, "next_judges"),
    ],
)
def test_wrong_policies_are_told(given, error, words):
    """Design: wrong use is found before anything runs."""
    with pytest.raises(error, match=words):
        JudgeFailurePolicy(**given)


@pytest.mark.parametrize("cause", FailureCause)
@pytest.mark.parametrize("of_reply", [False, True])
def test_every_cause_has_an_ending(cause, of_reply):
    """Law 25: the policy is total, and its defaults raise, but for an unreadable reply."""
    *remedies, ending = JudgeFailurePolicy().actions_for(cause, of_reply=of_reply)
    assert ending == ("continue" if of_reply and cause == "unreadable" else "raise")
    assert ("retry" in remedies) == (cause in ("rate_limit", "timeout", "network", "server"))


def test_waits_grow_and_have_a_cap():
    """P8: backoff doubles, up to half of it is drawn, and neither it nor a server's wish exceeds the cap."""
    policy = JudgeFailurePolicy(longest_wait_s=3, draw=lambda: 0.0)
    assert [policy.wait_s(attempt, None) for attempt in (1, 2, 3, 4, 5000)] == [0.5, 1.0, 2.0, 3, 3]
    assert JudgeFailurePolicy(draw=lambda: 1.0).wait_s(1, None) == 0.25
    assert (policy.wait_s(1, 2.5), policy.wait_s(1, 3.5)) == (2.5, None)


class TooLongError(Exception):
    code = "context_length_exceeded"


@pytest.mark.parametrize("kind", ["judge", "rubric"])
async def test_a_prompt_that_is_too_long_is_sent_again_with_the_answer_cut(kind):
    """S1: head and tail of the answer stay, with a note; criteria and request are never cut."""
    met = '{"criteria": {"a": {"reason": "", "verdict": "met"}}, "answered": true}'
    request = "the request " * 400
    client = ScriptedChatClient([TooLongError(), TooLongError(), YES if kind == "judge" else met])
    evaluator = (
        AIJudgeLoopEvaluator(client, AIJudgeLoopEvaluatorOptions(criteria=["each criterion"]))
        if kind == "judge"
        else RubricLoopEvaluator(client, [RubricCriterion("a", "each criterion")])
    )
    answer = f"BEGIN {'word ' * 2000} END"
    result = LoopResult.of(await LoopAgent(RecordingAgent(answer), evaluator).run(request))
    assert result.stop_reason == StopReason.SATISFIED
    sizes = [len(call.messages[1].text) - len(request) for call in client.calls]
    assert sizes[0] > 10_000
    assert 4_000 > sizes[1] > sizes[2]
    for call in client.calls:
        assert "each criterion" in call.messages[0].text
        assert request in call.messages[1].text
        assert "BEGIN" in call.messages[1].text
        assert "END" in call.messages[1].text
    assert "characters are left out" in client.calls[1].messages[1].text


async def test_what_can_not_be_cut_is_raised():
    """S1: a short answer is not sent again: what is too long is not it."""
    judge = Judge(TooLongError("too long"), YES)
    with pytest.raises(TooLongError):
        await judge.run()
    assert len(judge.client.calls) == 1


async def test_trimming_has_an_end():
    """S1: it is cut twice at most by default, and then the error is raised."""
    client = ScriptedChatClient(lambda *_: TooLongError("too long"))
    with pytest.raises(TooLongError):
        await LoopAgent(RecordingAgent("word " * 50_000), AIJudgeLoopEvaluator(client)).run("x")
    assert len(client.calls) == 3


async def test_a_parsed_reply_that_was_cut_off_is_an_exception_of_the_cause_length():
    """P1: the SDK's `LengthFinishReasonError` is no `APIError`: known by its cause, and what it used is counted."""
    openai = pytest.importorskip("openai")
    used = SimpleNamespace(prompt_tokens=7, completion_tokens=3, total_tokens=10)
    cut_off = openai.LengthFinishReasonError(completion=SimpleNamespace(usage=used))
    judge = Judge(cut_off, YES, chat_options=ChatOptions(max_output_tokens=9))
    result = await judge.run()
    assert (result.stop_reason, result.usage) == (StopReason.SATISFIED, UsageDetails(7, 3, 10))
    assert [call.options.max_output_tokens for call in judge.client.calls] == [9, 36]
    filtered = openai.ContentFilterFinishReasonError()
    with pytest.raises(openai.ContentFilterFinishReasonError):
        await Judge(filtered).run()
    assert (await Judge(filtered, YES, content_filter="continue").run()).stop_reason == StopReason.SATISFIED


async def test_two_judges_of_one_client_are_counted_apart():
    """F2: what one judge could not say is not charged to another of the same model."""
    client = ScriptedChatClient(lambda *_: HMM)
    judges = [
        AIJudgeLoopEvaluator(client, AIJudgeLoopEvaluatorOptions(on_failure=JudgeFailurePolicy(unreadable_limit=3)))
        for _ in range(2)
    ]
    loop = LoopAgent(RecordingAgent(), judges, LoopAgentOptions(max_iterations=3, evaluation_mode="all"))
    assert LoopResult.of(await loop.run("x")).stop_reason == StopReason.MAX_ITERATIONS
