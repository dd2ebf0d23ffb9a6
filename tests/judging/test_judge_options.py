"""What a judge is given that it can't use is an error that names it."""

from __future__ import annotations

import pytest

from agents_loop import (
    AgentResponse,
    AgentSession,
    AIJudgeLoopEvaluator,
    AIJudgeLoopEvaluatorOptions,
    ChatClient,
    ChatClientAgent,
    ChatResponse,
    ConfigurationError,
    JudgeFailurePolicy,
    LoopContext,
    PassTokenLoopEvaluatorOptions,
    RubricCriterion,
    RubricLoopEvaluator,
    RubricLoopEvaluatorOptions,
    check,
    command_check,
)
from agents_loop.testing import ScriptedChatClient

WRONG = [
    ("instructions", 5),
    ("feedback_message_template", 5),
    ("feedback_filter", "x"),
    ("chat_options", {}),
    ("on_failure", None),
    ("on_failure", "raise"),
    ("new_nonce", None),
    ("max_answer_chars", "x"),
]


@pytest.mark.parametrize(
    "options", [AIJudgeLoopEvaluatorOptions, PassTokenLoopEvaluatorOptions, RubricLoopEvaluatorOptions]
)
@pytest.mark.parametrize(("name", "value"), WRONG)
def test_an_option_of_a_wrong_type(options, name, value):
    """A wrong type is a TypeError that names the option, when the options are made."""
    with pytest.raises(TypeError, match=name):
        options(**{name: value})


@pytest.mark.parametrize("name", ["sleep", "draw"])
def test_a_policy_of_a_wrong_type(name):
    """What a policy calls must be callable."""
    with pytest.raises(TypeError, match=name):
        JudgeFailurePolicy(**{name: None})


class Odd(ChatClient):
    async def get_response(self, messages, options=None):
        return '{"gapAnalysis": "", "answered": true}'


@pytest.mark.parametrize(
    "judge",
    [
        AIJudgeLoopEvaluator(Odd()),
        AIJudgeLoopEvaluator(Odd(), AIJudgeLoopEvaluatorOptions(design="requirements")),
        RubricLoopEvaluator(Odd(), [RubricCriterion("price", "It names the price.")]),
    ],
)
async def test_a_client_that_gives_no_response(judge):
    """A client of one's own that gives a str is named as the fault; that is no verdict."""
    context = LoopContext(ChatClientAgent(Odd()), AgentSession(), "Plan it.", AgentResponse("A plan."))
    with pytest.raises(TypeError, match="must give a ChatResponse, not str"):
        await judge.evaluate(context)


@pytest.mark.parametrize("logprobs", [5, "x", {"token": "yes"}, [None], [{"token": "yes", "logprob": float("nan")}]])
async def test_odd_log_probabilities(logprobs):
    """Log probabilities that are none are none: the word decides."""
    reply = ChatResponse("yes", additional_properties={"logprobs": logprobs})
    client = ScriptedChatClient(lambda *_: reply)
    judge = AIJudgeLoopEvaluator(client, AIJudgeLoopEvaluatorOptions(design="requirements"))
    context = LoopContext(ChatClientAgent(client), AgentSession(), "Plan it.", AgentResponse("A plan."))
    assert (await judge.evaluate(context)).decision == "stop"


def test_an_answer_does_not_replace_the_tests():
    """The answer's file must not be one of the further files: tests that are overwritten test nothing."""
    with pytest.raises(ConfigurationError, match=r"answer_file 'test\.py'"):
        command_check("tests", ["true"], answer_file="test.py", files={"./test.py": "assert False"})


def test_a_checks_template_is_a_text():
    """A template of another type is found when the check is made."""
    with pytest.raises(TypeError, match="feedback_message_template"):
        check("short", lambda text: True, feedback_message_template=5)
