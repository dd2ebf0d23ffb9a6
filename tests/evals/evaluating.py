"""A loop file, questions, and models that answer by what they are asked, for tests of evaluations."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from agents_loop.chat_client import ChatClient, ChatOptions, ChatResponse
from agents_loop.evals import Question
from agents_loop.files import LoopFile, load_loop_file
from agents_loop.messages import ChatMessage, UsageDetails
from agents_loop.testing import ScriptedChatClient

FILE = """
name: answers
nodes:
  - id: answer
    type: evaluator_loop
    max_iterations: 3
    generator:
      model: writer
      max_output_tokens: 50
      prompt: "Q: {{ question }}{% if iteration > 1 %} Again ({{ iteration }}): {{ evaluator_feedback }}{% endif %}"
    evaluator: {model: checker, max_output_tokens: 20, prompt: "Check: {{ candidate }}"}
"""
APPROVED = json.dumps({"approved": True, "feedback": ""})
NOT_YET = json.dumps({"approved": False, "feedback": "mend it"})
Answer = str | BaseException


def loop_file(tmp_path: Path, text: str = FILE) -> LoopFile:
    path = tmp_path / "answers.yaml"
    path.write_text(text, encoding="utf-8")
    return load_loop_file(path)


def ask(name: str, *, accept: Sequence[str] = ("right",), kind: str = "lookup", **more: Any) -> Question:
    return Question.model_validate({"id": name, "question": name, "kind": kind, "accept": list(accept), **more})


class Models:
    """Answers by model: a writer whose drafts stand in a table by question, and a checker that approves what is right."""

    def __init__(self, drafts: Mapping[str, Sequence[Answer]], **others: Callable[[str], Answer]) -> None:
        self._drafts = drafts
        self._others = others
        self.clients: dict[str, ScriptedChatClient] = {}

    def client_for(self, name: str) -> ChatClient:
        answer = self._others.get(name, self._write if name == "writer" else _check)

        def reply(messages: Sequence[ChatMessage], options: ChatOptions | None) -> ChatResponse:
            given = answer(messages[-1].text)
            if isinstance(given, BaseException):
                raise given
            return ChatResponse(given, model_id=name, usage=UsageDetails(10, 5))

        self.clients[name] = ScriptedChatClient(reply, model_id=name)
        return self.clients[name]

    def _write(self, prompt: str) -> Answer:
        question, _, again = prompt.removeprefix("Q: ").partition(" Again (")
        number = int(again.partition(")")[0]) if again else 1
        drafts = self._drafts[question]
        return drafts[min(number, len(drafts)) - 1]

    @property
    def calls(self) -> int:
        return sum(len(client.calls) for client in self.clients.values())


def _check(prompt: str) -> str:
    return APPROVED if "right" in prompt or "approve" in prompt else NOT_YET
