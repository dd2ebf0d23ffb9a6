"""The mode that an agent works in, in the session."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Annotated

from pydantic import Field

from agents_loop.agent import AgentSession
from agents_loop.context_providers.provider import ContextProvider, ProvidedContext, ProviderContext
from agents_loop.context_providers.stored_state import StoredState
from agents_loop.errors import ConfigurationError, SessionStateError
from agents_loop.tools import FunctionTool, ToolContext


@dataclass(slots=True)
class _Mode:
    mode: str | None = None


_STATE = StoredState(_Mode)


class AgentModeProvider(ContextProvider):
    """Lets an agent work in one of several named modes. The session keeps which; caller and model may change it.

    The model is told of all modes and of the current one with each run, and gets `mode_get` and `mode_set`. Modes match
    exactly: `Plan` is not `plan`.

    Args:
        modes: What is done in each mode, by name; `None`: `DEFAULT_MODES`.
        default_mode: The mode of a session that has none yet; `None`: the first of `modes`.
        model_may_change: Whether the model gets `mode_set`.

    Raises:
        ConfigurationError: There is no mode, a name is blank, or the default is none of them.
    """

    DEFAULT_MODES: Mapping[str, str] = MappingProxyType(
        {
            "plan": "Find out what is wanted, ask where it is unclear, and work out a plan. Change nothing yet.",
            "execute": "Carry the plan out on your own, to the end, and without asking back.",
        }
    )

    def __init__(
        self,
        modes: Mapping[str, str] | None = None,
        *,
        default_mode: str | None = None,
        model_may_change: bool = True,
    ) -> None:
        self.modes: Mapping[str, str] = MappingProxyType(dict(self.DEFAULT_MODES if modes is None else modes))
        if not self.modes:
            raise ConfigurationError("modes must not be empty")
        if any(not name.strip() for name in self.modes):
            raise ConfigurationError(f"a mode's name must not be blank; modes are {_listed(self.modes)}")
        self.default_mode = (
            next(iter(self.modes)) if default_mode is None else self._checked(default_mode, "default_mode: ")
        )
        self.model_may_change = model_may_change
        self._tools = [FunctionTool.of(self._get, name="mode_get")]
        if model_may_change:
            self._tools.append(self._setter())

    async def provide(self, context: ProviderContext) -> ProvidedContext:
        """The modes, the current one, and the tools."""
        listed = "\n".join(f"- {name}: {description}" for name, description in self.modes.items())
        current = self.get_mode(context.session)
        instructions = (
            f"You work in one of these modes:\n\n{listed}\n\n"
            f"The current mode is {current}. Keep to it until it changes; mode_get says which it is by now."
        )
        return ProvidedContext(instructions=instructions, tools=self._tools)

    def get_mode(self, session: AgentSession) -> str:
        """The session's current mode.

        Raises:
            SessionStateError: The session holds a mode that is none of these; `set_mode` mends it.
        """
        mode = _STATE.read(session, self.state_key).mode
        if mode is None:
            return self.default_mode
        if mode not in self.modes:
            raise SessionStateError(
                f"the session is in mode {mode!r}; there are: {_listed(self.modes)}. Call set_mode with one of these"
            )
        return mode

    def set_mode(self, session: AgentSession, mode: str) -> None:
        """Change the session's mode.

        Raises:
            ConfigurationError: There is no such mode.
        """
        _STATE.write(session, self.state_key, _Mode(self._checked(mode)))

    def _checked(self, mode: str, place: str = "") -> str:
        if mode not in self.modes:
            raise ConfigurationError(f"{place}there is no mode {mode!r}; there are: {_listed(self.modes)}")
        return mode

    def _setter(self) -> FunctionTool:
        """The tool that changes the mode; its schema lists the modes."""
        setter = FunctionTool.of(self._set, name="mode_set")
        setter.parameters["properties"]["mode"]["enum"] = list(self.modes)
        return setter

    async def _get(self, context: ToolContext) -> dict[str, str]:
        """The mode you are in, and what is done in it."""
        return self._described(context.session)

    async def _set(
        self, mode: Annotated[str, Field(description="the mode's exact name")], context: ToolContext
    ) -> dict[str, str]:
        """Change to another mode."""
        try:
            self.set_mode(context.session, mode)
        except ConfigurationError as error:
            return {"error": str(error)}
        return self._described(context.session)

    def _described(self, session: AgentSession) -> dict[str, str]:
        mode = self.get_mode(session)
        return {"mode": mode, "description": self.modes[mode]}


def _listed(modes: Mapping[str, str]) -> str:
    return ", ".join(repr(name) for name in modes)
