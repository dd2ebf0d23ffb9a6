"""A loop that stands in a file, whatever its format: what can be asked of it, and what is built of it."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import ClassVar, Protocol

from agents_loop.agent import AgentRunOptions, AgentSession, Messages
from agents_loop.chat_client import ChatClient
from agents_loop.files.inputs import InputValue
from agents_loop.files.run_settings import RunSettings
from agents_loop.loop.events import LoopEvent
from agents_loop.loop.result import LoopResult
from agents_loop.messages import ChatMessage


class RunEvents(Protocol):
    """The events of a run, as they happen, and its result once it is over. `LoopEvents` is one."""

    @property
    def result(self) -> LoopResult | None:
        """How the run went; `None` while it goes on."""
        ...

    def __aiter__(self) -> AsyncIterator[LoopEvent]:
        """The events."""
        ...


class RunsLoop(Protocol):
    """What gives the events of a run: a `LoopAgent`, or what runs a file that is more than one loop."""

    def events(
        self,
        messages: Messages = None,
        *,
        session: AgentSession | None = None,
        options: AgentRunOptions | None = None,
        streaming: bool = False,
    ) -> AbstractAsyncContextManager[RunEvents]:
        """Run it, and give its events as they happen; leaving the block early closes the run."""
        ...


@dataclass(frozen=True, slots=True)
class BuiltLoop:
    """A loop that is ready to run, once."""

    agent: RunsLoop
    """A `LoopAgent` where the file is one loop."""
    message: ChatMessage | None
    """The request; `None` where the file itself holds all that is asked."""

    async def run(self) -> LoopResult:
        """Run it to its end.

        Raises:
            Exception: What the agent or an evaluator raised; `LoopResult.of` finds the result so far in it.
        """
        async with self.agent.events(self.message) as events:
            async for _ in events:
                pass
        assert events.result is not None  # noqa: S101 - a run that ends has one
        return events.result

    def run_sync(self) -> LoopResult:
        """`run`, for scripts: not within a running event loop."""
        return asyncio.run(self.run())


class LoopFile(ABC):
    """A file that describes a loop. Made by `load_loop_file`; each format has its own.

    Args:
        source: The file's name, for messages.
    """

    can_resume: ClassVar[bool] = False
    """Whether `RunSettings.run_folder` keeps what its nodes have finished."""

    def __init__(self, source: str) -> None:
        self.source = source

    @property
    @abstractmethod
    def name(self) -> str:
        """What the file calls itself."""

    @property
    @abstractmethod
    def models(self) -> list[str]:
        """The names of its models, each once."""

    @property
    @abstractmethod
    def waves(self) -> list[list[str]]:
        """The nodes' ids, in the order in which they run; those of a wave run at once."""

    def describe(self) -> list[str]:
        """What `agents-loop validate` says of a valid file: a line each."""
        waves = self.waves
        nodes = sum(map(len, waves))
        first = f"✓ {self.name}: {nodes} nodes, {len(waves)} wave(s)"
        return [first, *[f"  wave {number}: {wave}" for number, wave in enumerate(waves, start=1)]]

    @abstractmethod
    def unused_inputs(self, given: Mapping[str, InputValue]) -> list[str]:
        """Those inputs that nothing in the file uses."""

    @abstractmethod
    def build(
        self,
        inputs: Mapping[str, InputValue],
        client_for: Callable[[str], ChatClient],
        settings: RunSettings | None = None,
    ) -> BuiltLoop:
        """The loop, with inputs and models. No model is called.

        Args:
            inputs: Values by name; a str is read as the type that the file declares.
            client_for: Gives the client of a model's name; asked once for each.
            settings: What stands in for what the file says.

        Raises:
            InputError: An input is missing, unknown, or not of its type.
            LoopFileError: A prompt can't be rendered; an input makes something invalid; the file names Python objects,
                and may not, or they can't be imported.
        """
