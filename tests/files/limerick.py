"""The limerick file, and two scripted models for it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from agents_loop import ModelPrice
from agents_loop.chat_client import ChatClient
from agents_loop.files import BuiltLoop, LoopFile, RunSettings, load_loop_file
from agents_loop.testing import Reply, ScriptedChatClient

DATA = Path(__file__).parent / "data"
PRICES = {"*": ModelPrice(input_usd_per_million=1, output_usd_per_million=2)}


def verdict(approved: Any, feedback: str = "no", **more: Any) -> str:
    return json.dumps({"approved": approved, "feedback": feedback, **more})


class Models:
    """Two scripted models, and a loop built on them."""

    def __init__(self, drafts: Sequence[Reply], words: Sequence[Reply]) -> None:
        self.poet = ScriptedChatClient(drafts, name="poet")
        self.critic = ScriptedChatClient(words, name="critic")

    def client_for(self, model: str) -> ChatClient:
        return {"poet-small-1": self.poet, "critic-large-1": self.critic}[model]

    def build(self, loop_file: LoopFile | None = None, **options: Any) -> BuiltLoop:
        loop_file = loop_file or load_loop_file(DATA / "limerick.yaml")
        return loop_file.build({"place": "Delft"}, self.client_for, RunSettings(**{"prices": PRICES, **options}))

    def prompts(self) -> list[str]:
        return [call.messages[0].text for call in self.poet.calls]
