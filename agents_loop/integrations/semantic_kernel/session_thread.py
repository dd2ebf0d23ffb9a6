"""A session of ours as a thread of Semantic Kernel."""

from __future__ import annotations

from semantic_kernel.agents.agent import AgentThread
from semantic_kernel.contents.chat_message_content import ChatMessageContent

from agents_loop.agent import AgentSession, AIAgent
from agents_loop.integrations.semantic_kernel.contents import our_message
from agents_loop.messages import ChatMessage


class AgentSessionThread(AgentThread):
    """A thread of Semantic Kernel that is one of our sessions.

    Messages that others add to it are sent with the agent's next input.

    Args:
        agent: Whose session it is.
        session: The session, if there is one already.
    """

    def __init__(self, agent: AIAgent, session: AgentSession | None = None) -> None:
        super().__init__()
        self._agent = agent
        self.session = session
        self.pending: list[ChatMessage] = []
        self._id = None if session is None else session.session_id

    async def started(self) -> AgentSession:
        """The session, made if there is none yet."""
        await self.create()
        assert self.session is not None  # noqa: S101 - creating a thread makes its session
        return self.session

    async def _create(self) -> str:
        if self.session is None:
            self.session = await self._agent.create_session()
        return self.session.session_id

    async def _delete(self) -> None:
        self.session = None
        self.pending.clear()

    async def _on_new_message(self, new_message: ChatMessageContent) -> None:
        self.pending.append(our_message(new_message))
