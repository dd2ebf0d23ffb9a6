"""Graphs as files, with scripted models."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from agents_loop import ChatMessage, ChatResponse, LoopEvent, LoopResult, UsageDetails
from agents_loop.files import BuiltLoop, RunSettings, load_loop_file
from agents_loop.testing import ScriptedChatClient

TRIP = Path(__file__).parent / "data" / "trip.yaml"
YES, NO = '{"approved": true, "feedback": "fine"}', '{"approved": false, "feedback": "shorter"}'


class Cast:
    """Scripted models by name: a list of replies, or a function, for each."""

    def __init__(self, **replies: Any) -> None:
        self.clients = {name: ScriptedChatClient(each, name=name) for name, each in replies.items()}

    def build(self, path: Path, inputs: Mapping[str, Any] | None = None, **settings: Any) -> BuiltLoop:
        return load_loop_file(path).build(inputs or {}, self.clients.__getitem__, RunSettings(**settings))

    def heard(self, name: str) -> list[str]:
        return [call.messages[0].text.strip() for call in self.clients[name].calls]

    @property
    def calls(self) -> int:
        return sum(len(client.calls) for client in self.clients.values())


def travellers(*words: str, **others: Any) -> Cast:
    replies = {
        "scout": ["the tower", "more towers"],
        "cook": ["soup"],
        "planner": ["plan 1", "plan 2"],
        "editor": words or (NO, YES),
        "clerk": ["Dear all"],
    }
    return Cast(**{**replies, **others})


def nodes(result: LoopResult) -> dict[str, dict[str, Any]]:
    return json.loads(result.to_json())["nodes"]


async def run(built: BuiltLoop, *, streaming: bool = False) -> tuple[LoopResult, list[LoopEvent]]:
    async with built.agent.events(built.message, streaming=streaming) as events:
        heard = [event async for event in events]
    return events.result, heard


def agent(name: str, *more: str, model: str = "m", prompt: str = "do it") -> str:
    return "- {" + ", ".join([f"id: {name}, type: agent, model: {model}, prompt: {prompt!r}", *more]) + "}\n"


def graph(*lines: str, head: str = "") -> str:
    return f"name: g\n{head}nodes:\n{''.join(lines)}"


class DownError(Exception):
    """What an SDK raises where a server is down."""

    status_code = 503


def used(tokens: int, text: str = "x") -> ChatResponse:
    return ChatResponse([ChatMessage("assistant", text)], usage=UsageDetails(tokens - 1, 1))
