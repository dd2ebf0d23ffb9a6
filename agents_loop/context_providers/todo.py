"""A todo list that an agent keeps for itself, in the session."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Annotated, Literal

from pydantic import BaseModel, Field, StringConstraints

from agents_loop.agent import AgentSession
from agents_loop.context_providers.provider import ContextProvider, ProvidedContext, ProviderContext
from agents_loop.context_providers.stored_state import StoredState
from agents_loop.errors import ConfigurationError
from agents_loop.messages import JsonValue
from agents_loop.tools import FunctionTool, ToolContext


@dataclass(frozen=True, slots=True)
class TodoItem:
    """One thing to do."""

    id: int
    """Counted from 1; never used again, also after the item was removed."""
    title: str
    description: str | None = None
    is_complete: bool = False


@dataclass(slots=True)
class _Todos:
    next_id: int = 1
    items: list[TodoItem] = field(default_factory=list[TodoItem])

    def add(self, title: str, description: str | None) -> TodoItem:
        if not title.strip():
            raise ConfigurationError("title must not be blank")
        has_description = description is not None and description.strip()
        item = TodoItem(self.next_id, title.strip(), description if has_description else None)
        self.next_id += 1
        self.items.append(item)
        return item


class _NewTodo(BaseModel):
    title: Annotated[str, StringConstraints(strip_whitespace=True, min_length=1), Field(description="one short line")]
    description: Annotated[str | None, Field(description="what belongs to it, if the title does not say it")] = None


_Ids = Annotated[list[int], Field(description="the ids of the items", min_length=1)]
_STATE = StoredState(_Todos)


class TodoProvider(ContextProvider):
    """Lets an agent plan its work as a list of todos, which stands in the session.

    The model gets `todo_add`, `todo_list`, `todo_complete` and `todo_remove`; callers and evaluators use the methods.

    Args:
        instructions: Told to the model with each run; `None`: `DEFAULT_INSTRUCTIONS`.
    """

    DEFAULT_INSTRUCTIONS = """\
You keep a todo list for this conversation. When a request takes more than one step, first write its steps down with \
todo_add, all of them in one call. Work through them, and call todo_complete as soon as a step is really done, not \
before. Add what you discover on the way; use todo_remove for what has become needless. todo_list shows what is open: \
look there when you are not sure what is left."""

    def __init__(self, *, instructions: str | None = None) -> None:
        self.instructions = self.DEFAULT_INSTRUCTIONS if instructions is None else instructions
        self._tools = (
            FunctionTool.of(self._add, name="todo_add"),
            FunctionTool.of(self._list, name="todo_list"),
            FunctionTool.of(self._complete, name="todo_complete"),
            FunctionTool.of(self._remove, name="todo_remove"),
        )

    async def provide(self, context: ProviderContext) -> ProvidedContext:  # noqa: ARG002 - it is the same in every run
        """The instructions and the tools."""
        return ProvidedContext(instructions=self.instructions, tools=self._tools)

    def get_items(self, session: AgentSession) -> tuple[TodoItem, ...]:
        """All todos, in the order in which they were added.

        Raises:
            SessionStateError: What the session holds is no todo list. Every method may raise it.
        """
        return tuple(_STATE.read(session, self.state_key).items)

    def get_remaining(self, session: AgentSession) -> tuple[TodoItem, ...]:
        """The todos that are not complete."""
        return tuple([item for item in self.get_items(session) if not item.is_complete])

    def add(self, session: AgentSession, title: str, description: str | None = None) -> TodoItem:
        """Add a todo. A blank description is none.

        Raises:
            ConfigurationError: The title is blank.
        """
        todos = _STATE.read(session, self.state_key)
        item = todos.add(title, description)
        _STATE.write(session, self.state_key, todos)
        return item

    def complete(self, session: AgentSession, ids: Iterable[int]) -> tuple[TodoItem, ...]:
        """Mark todos complete, and give them. Ids that there are not are left out."""
        todos, wanted = _STATE.read(session, self.state_key), set(ids)
        todos.items = [replace(item, is_complete=True) if item.id in wanted else item for item in todos.items]
        _STATE.write(session, self.state_key, todos)
        return tuple([item for item in todos.items if item.id in wanted])

    def remove(self, session: AgentSession, ids: Iterable[int]) -> tuple[TodoItem, ...]:
        """Take todos off the list, and give them. Ids that there are not are left out."""
        todos, wanted = _STATE.read(session, self.state_key), set(ids)
        removed = tuple([item for item in todos.items if item.id in wanted])
        todos.items = [item for item in todos.items if item.id not in wanted]
        _STATE.write(session, self.state_key, todos)
        return removed

    # The tools are async so that they run in the event loop: sync ones would run in threads, several at once.

    async def _add(
        self, items: Annotated[list[_NewTodo], Field(description="in order", min_length=1)], context: ToolContext
    ) -> list[TodoItem]:
        """Add todos, several at once. Gives them with their ids."""
        return [self.add(context.session, item.title, item.description) for item in items]

    async def _list(
        self, context: ToolContext, include: Literal["remaining", "all"] = "remaining"
    ) -> tuple[TodoItem, ...]:
        """The todos that remain, or all of them."""
        return self.get_items(context.session) if include == "all" else self.get_remaining(context.session)

    async def _complete(self, ids: _Ids, context: ToolContext) -> dict[str, JsonValue]:
        """Mark todos complete, once they are done."""
        return self._report("completed", self.complete(context.session, ids), ids, context.session)

    async def _remove(self, ids: _Ids, context: ToolContext) -> dict[str, JsonValue]:
        """Take todos off the list that need not be done after all."""
        return self._report("removed", self.remove(context.session, ids), ids, context.session)

    def _report(
        self, did: str, changed: tuple[TodoItem, ...], ids: list[int], session: AgentSession
    ) -> dict[str, JsonValue]:
        """What a tool did, what it did not find, and what is left: for the model."""
        known = [item.id for item in changed]
        report: dict[str, JsonValue] = {did: known, "remaining": [item.id for item in self.get_remaining(session)]}
        unknown = sorted(set(ids) - set(known))
        return report | {"there_is_no": unknown} if unknown else report
