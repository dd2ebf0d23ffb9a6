"""Small flows for tests, and how they are run."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from agents_loop import ChatClient, ChatMessage, LoopEvent, LoopResult
from agents_loop.files import RunSettings
from agents_loop.files.flomorphic.file import FloMorphicFile, load_flomorphic
from agents_loop.messages import FunctionCallContent

DINNER = Path(__file__).parents[2] / "samples" / "dinner_flow.json"
DINNER_REPLIES = DINNER.with_name("dinner_replies.jsonl")
RICHER_DINNER = Path(__file__).parent / "data" / "dinner_export.json"

START: dict[str, Any] = {"ref": "start", "kind": "startNode"}
Edge = tuple[str, str] | tuple[str, str, str]


def js(ref: str, code: str, **more: Any) -> dict[str, Any]:
    return {"ref": ref, "kind": "js", "data": {"logic_rule": code}, **more}


def llm(
    ref: str,
    prompt: str = "Say something.",
    *functions: str,
    system: str | None = None,
    settings: str | None = None,
    clear: bool | None = None,
    **more: Any,
) -> dict[str, Any]:
    messages = [{"role": "user", "content": prompt}]
    if system is not None:
        messages.insert(0, {"role": "system", "content": system})
    body: dict[str, Any] = {"messages": messages}
    if clear is not None:
        body["clear_history"] = clear
    data: dict[str, Any] = {"body": body}
    if functions:
        data["functions"] = [{"name": name, "description": f"{name} it"} for name in functions]
    if settings is not None:
        data["settingsId"] = settings
    return {"ref": ref, "kind": "llm", "data": data, **more}


def edge(ends: Edge) -> dict[str, str]:
    return dict(zip(("from", "to", "port"), ends, strict=False))


def flow_text(nodes: Sequence[dict[str, Any]], *edges: Edge, **more: Any) -> str:
    """A flow: its start node is added, and without edges its nodes stand in a row."""
    listed = [START, *nodes]
    row = [(a["ref"], b["ref"]) for a, b in itertools.pairwise(listed)]
    return json.dumps({"nodes": listed, "edges": [edge(each) for each in edges or row], **more})


def flow_file(nodes: Sequence[dict[str, Any]], *edges: Edge, **more: Any) -> FloMorphicFile:
    return load_flomorphic("flow.json", flow_text(nodes, *edges, **more))


def call(name: str, **arguments: Any) -> ChatMessage:
    return calls((name, arguments))


def calls(*named: tuple[str, Any]) -> ChatMessage:
    contents = [FunctionCallContent(f"c{number}", name, given) for number, (name, given) in enumerate(named)]
    return ChatMessage("assistant", contents)


async def run_events(
    loop_file: FloMorphicFile,
    client: ChatClient | Callable[[str], ChatClient],
    settings: RunSettings | None = None,
    *,
    inputs: dict[str, Any] | None = None,
    streaming: bool = False,
) -> tuple[list[LoopEvent], LoopResult]:
    client_for = client if not isinstance(client, ChatClient) else lambda name: client
    built = loop_file.build(inputs or {}, client_for, settings)
    events: list[LoopEvent] = []
    async with built.agent.events(built.message, streaming=streaming) as running:
        events += [event async for event in running]
    assert running.result is not None
    return events, running.result


async def run(*arguments: Any, **options: Any) -> LoopResult:
    return (await run_events(*arguments, **options))[1]
