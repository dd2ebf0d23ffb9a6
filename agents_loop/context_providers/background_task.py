"""What is known of a background task, and what its agent's run amounts to."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from agents_loop.agent import AgentResponse, AIAgent
from agents_loop.messages import ToolApprovalRequestContent, ToolApprovalResponseContent

_LOGGER = logging.getLogger("agents_loop")

BackgroundTaskStatus: TypeAlias = Literal["running", "completed", "failed", "lost"]
"""`lost`: it was running, and nothing runs for it any more; so there is no result, and there will be none."""

LOST = "nothing runs for this task any more: its session was restored or copied, or the program stopped it"


@dataclass(frozen=True, slots=True)
class BackgroundTask:
    """What is known of a task that an agent does in the background."""

    id: int
    """Counted from 1 within the session."""
    agent: str
    """The name of the agent that does it."""
    description: str
    """What it is about, in a few words."""
    status: BackgroundTaskStatus = "running"
    result: str | None = None
    """The agent's answer, once the task is `completed`."""
    error: str | None = None
    """Why there is no answer, where it `failed` or is `lost`."""

    def completed(self, result: str) -> BackgroundTask:
        """The task, now that its agent has answered."""
        return replace(self, status="completed", result=result)

    def failed(self, error: str) -> BackgroundTask:
        """The task, now that there will be no answer."""
        return replace(self, status="failed", error=error)

    def lost(self) -> BackgroundTask:
        """The task, without anything that runs for it."""
        return replace(self, status="lost", error=LOST)


@dataclass(frozen=True, slots=True)
class Ending:
    """How the run of a background agent ended."""

    result: str | None = None
    error: str | None = None

    def of(self, task: BackgroundTask) -> BackgroundTask:
        """The task with this ending."""
        return task.completed(self.result) if self.result is not None else task.failed(self.error or "")


async def run_to_its_end(name: str, agent: AIAgent, given: str, timeout_s: float | None) -> Ending:
    """Run an agent in a session of its own. Whatever it raises is told as text; only a cancellation is raised."""
    deadline = asyncio.timeout(timeout_s)
    try:
        async with deadline:
            response = await agent.run(given)
    except Exception as error:
        if isinstance(error, TimeoutError) and deadline.expired():
            return Ending(error=f"no answer within {timeout_s:g} seconds")
        _LOGGER.warning("Background agent %s failed", name, exc_info=error)
        return Ending(error=f"{type(error).__name__}: {error}")
    return _ending_of(response)


def _ending_of(response: AgentResponse) -> Ending:
    contents = [content for message in response.messages for content in message.contents]
    answered = {content.request_id for content in contents if isinstance(content, ToolApprovalResponseContent)}
    for content in contents:
        if isinstance(content, ToolApprovalRequestContent) and content.request_id not in answered:
            return Ending(error=f"it asks for approval of {content.tool_call.name!r}, which nobody gives in background")
    replies = [message.text for message in response.messages if message.role == "assistant" and message.text.strip()]
    return Ending(result=replies[-1] if replies else "")
