"""The events of a streamed run as updates."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from agents_loop.agent import AgentResponse, AgentResponseUpdate
from agents_loop.ids import new_id
from agents_loop.integrations.pydantic_ai.parts import from_part
from agents_loop.messages import ChatRole, Content, TextContent, TextReasoningContent, UsageContent

_DELTAS: dict[str, type[TextContent | TextReasoningContent]] = {"text": TextContent, "thinking": TextReasoningContent}


class StreamedParts:
    """Makes updates of the framework's events: the same messages that the whole run's history makes.

    Args:
        agent_id: The agent's id.
        name: The agent's name.
    """

    def __init__(self, agent_id: str, name: str | None) -> None:
        self._agent_id = agent_id
        self._name = name
        self._response_id = new_id()
        self._message_id = new_id()
        self._role: str | None = None
        self._sent: list[int] = []
        """How many contents each message has, as far as it was sent: texts count once."""
        self._last: type[Content] | None = None

    def updates(self, event: Any) -> Iterator[AgentResponseUpdate]:
        """The updates of one event; most have none."""
        match event.event_kind:
            case "part_start":
                if event.index == 0:
                    self._role = None
                if event.part.part_kind in _DELTAS and event.part.content:
                    yield self._update(ChatRole.ASSISTANT, [_DELTAS[event.part.part_kind](event.part.content)])
            case "part_delta":
                kind = _DELTAS.get(event.delta.part_delta_kind)
                if kind is not None and event.delta.content_delta:
                    yield self._update(ChatRole.ASSISTANT, [kind(event.delta.content_delta)])
            case "part_end":
                content = None if event.part.part_kind in _DELTAS else from_part(event.part)
                if content is not None:
                    yield self._update(ChatRole.ASSISTANT, [content])
            case "function_tool_result" | "output_tool_result":
                content = from_part(event.part)
                if content is not None:
                    yield self._update(ChatRole.TOOL, [content])
            case _:
                pass

    def ending(self, response: AgentResponse) -> Iterator[AgentResponseUpdate]:
        """What had no event, as the whole response has it: requests, a structured output; and the usage."""
        response.response_id = self._response_id
        known = len(self._sent)
        if 0 < known <= len(response.messages):
            last = response.messages[known - 1]
            if last.contents[self._sent[-1] :]:
                yield self._update(last.role, last.contents[self._sent[-1] :])
        for message in response.messages[known:]:
            self._role = None
            yield self._update(message.role, message.contents)
        if response.usage is not None:
            yield AgentResponseUpdate(
                contents=UsageContent(response.usage), agent_id=self._agent_id, response_id=self._response_id
            )

    def _update(self, role: str, contents: Sequence[Content]) -> AgentResponseUpdate:
        if role != self._role:
            self._role, self._message_id, self._last = role, new_id(), None
            self._sent.append(0)
        for content in contents:
            continues = isinstance(content, TextContent | TextReasoningContent) and type(content) is self._last
            self._sent[-1] += 0 if continues else 1
            self._last = type(content)
        return AgentResponseUpdate(
            role,
            contents,
            author_name=self._name if role == ChatRole.ASSISTANT else None,
            agent_id=self._agent_id,
            response_id=self._response_id,
            message_id=self._message_id,
        )
