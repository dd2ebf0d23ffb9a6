from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from agents_loop.chat_client import ChatClient, ChatOptions
from agents_loop.evals import evaluate_file, load_questions
from agents_loop.messages import ChatMessage
from agents_loop.testing import ScriptedChatClient

SAMPLES = Path(__file__).parents[2] / "samples"
QUESTIONS = load_questions(SAMPLES / "questions.jsonl")


def scholar(name: str) -> ChatClient:
    """Knows the right answers, approves of all, and passes what it grades."""

    def reply(messages: Sequence[ChatMessage], options: ChatOptions | None) -> str:
        asked = messages[-1].text
        if "PASS or FAIL?" in asked:
            return "PASS"
        if name == "checker":
            return '{"approved": true, "feedback": ""}'
        question = next(each for each in QUESTIONS if each.question in asked)
        return f"{question.answer} {' '.join(f'[{citation}]' for citation in question.must_cite)}"

    return ScriptedChatClient(reply, model_id=name)


@pytest.mark.parametrize("file", ["answers.yaml", "answers_code_check.yaml"])
async def test_the_right_answers_to_the_samples_questions_are_graded_right(file: str):
    """The sample's files run on its thirty questions, and what the questions call right is right, with its citations."""
    result = await evaluate_file(SAMPLES / file, QUESTIONS, scholar)

    assert [record.id for record in result.records if record.grade is None or not record.grade.passed] == []
    assert (result.summary.n, result.summary.loop.score, result.summary.satisfied_share) == (30, 1.0, 1.0)
    assert result.summary.loop.citation_hit_rate == 1.0


@pytest.mark.parametrize("file", ["answers.yaml", "answers_code_check.yaml"])
async def test_an_answer_that_says_nothing_is_never_right(file: str):
    """No question of the sample is passed by an empty phrase."""
    result = await evaluate_file(
        SAMPLES / file, QUESTIONS, lambda name: ScriptedChatClient(lambda *_: "Well, it depends.")
    )

    assert result.summary.loop.score == 0.0
    assert result.summary.cap_hit_rate == 1.0
