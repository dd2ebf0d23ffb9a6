"""The conversation with a graph: messages that we keep, or a thread that its checkpointer keeps."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import Any

from agents_loop.approvals import Pending
from agents_loop.ids import new_id
from agents_loop.messages import JsonValue


@dataclass(slots=True)
class GraphConversation:
    """A thread of the graph's checkpointer; without one, the messages so far."""

    thread_id: str = field(default_factory=new_id)
    messages: list[Any] = field(default_factory=list[Any])
    waiting: dict[str, JsonValue] = field(default_factory=dict[str, JsonValue])
    """What the graph waits for, by interrupt."""
    pending: Pending = field(default_factory=Pending)
    """The requests in it, and the answers so far."""
    origin: dict[str, str] | None = None
    """The thread and the checkpoint that this one is to begin as a copy of."""


async def begin_thread(checkpointer: Any, conversation: GraphConversation) -> None:
    """Copy the checkpoint that a conversation comes from into a thread of its own, if that has not been done.

    Interrupts that wait are copied with it. What a subgraph keeps in checkpoints of its own is not.
    """
    if conversation.origin is None:
        return
    origin = {"configurable": {"checkpoint_ns": "", **conversation.origin}}
    stored = await checkpointer.aget_tuple(origin)
    if stored is not None:
        own = {"configurable": {"thread_id": conversation.thread_id, "checkpoint_ns": ""}}
        versions = stored.checkpoint["channel_versions"]
        copied = await checkpointer.aput(own, stored.checkpoint, stored.metadata, versions)
        writes: defaultdict[str, list[tuple[str, Any]]] = defaultdict(list)
        for task_id, channel, value in stored.pending_writes or ():
            writes[task_id].append((channel, value))
        for task_id, values in writes.items():
            await checkpointer.aput_writes(copied, values, task_id)
    conversation.origin = None


async def checkpoint_of(checkpointer: Any, conversation: GraphConversation) -> dict[str, str] | None:
    """Where a thread stands: its id and that of its last checkpoint; `None` if it has not begun."""
    if conversation.origin is not None:
        return conversation.origin
    own = {"configurable": {"thread_id": conversation.thread_id, "checkpoint_ns": ""}}
    stored = await checkpointer.aget_tuple(own)
    if stored is None:
        return None
    checkpoint_id: str = stored.config["configurable"]["checkpoint_id"]
    return {"thread_id": conversation.thread_id, "checkpoint_id": checkpoint_id}
