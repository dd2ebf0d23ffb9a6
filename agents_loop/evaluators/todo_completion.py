"""An evaluator that looks at the agent's todo list."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import ClassVar

from agents_loop.context_providers.agent_mode import AgentModeProvider
from agents_loop.context_providers.todo import TodoItem, TodoProvider
from agents_loop.errors import ConfigurationError, ServiceNotFoundError
from agents_loop.loop.context import LoopContext
from agents_loop.loop.evaluation import LoopEvaluation
from agents_loop.loop.evaluator import LoopEvaluator
from agents_loop.templates import fill


@dataclass(frozen=True, slots=True, kw_only=True)
class TodoCompletionLoopEvaluatorOptions:
    """When the todo list counts, and what the agent hears while something is left.

    Raises:
        ConfigurationError: `modes` is empty, or one of them is blank.
        TypeError: `modes` is one str, or holds something else than str.
    """

    feedback_message_template: str | None = None
    """A template in which `{remaining_todos}` is replaced. `None`: the default template."""
    modes: Sequence[str] | None = None
    """The modes in which the list counts; they match exactly. `None`: it counts whatever the mode is."""

    def __post_init__(self) -> None:
        if self.modes is None:
            return
        if isinstance(self.modes, str):
            raise TypeError("modes must be a sequence of str, not one str")
        if not self.modes:
            raise ConfigurationError("modes must not be empty: leave it out, and the list counts in every mode")
        for mode in self.modes:
            if not isinstance(mode, str):  # pyright: ignore[reportUnnecessaryIsInstance]
                raise TypeError(f"modes must hold str, not {type(mode).__name__}")
            if not mode.strip():
                raise ConfigurationError(f"modes must not hold a blank mode: {list(self.modes)!r}")


class TodoCompletionLoopEvaluator(LoopEvaluator):
    """Goes on while the agent's `TodoProvider` has todos that are not complete.

    With `modes` it does so only while the agent's `AgentModeProvider` says one of these, and stops in any other. The
    list is that of the session the iteration ran in. In fresh context each iteration begins without the todos of the
    one before.

    Args:
        options: When the list counts, and what the agent hears.
    """

    REMAINING_TODOS_PLACEHOLDER: ClassVar[str] = "{remaining_todos}"
    DEFAULT_FEEDBACK_MESSAGE_TEMPLATE: ClassVar[str] = (
        "Your todo list is not finished. These are still to be done:\n\n"
        f"{REMAINING_TODOS_PLACEHOLDER}\n\n"
        "Carry on with them, and mark each as complete once it is done. Then answer."
    )

    def __init__(self, options: TodoCompletionLoopEvaluatorOptions | None = None) -> None:
        options = self.options = options or TodoCompletionLoopEvaluatorOptions()
        template = options.feedback_message_template
        self._template = self.DEFAULT_FEEDBACK_MESSAGE_TEMPLATE if template is None else template
        self._modes = None if options.modes is None else frozenset(options.modes)

    async def evaluate(self, context: LoopContext) -> LoopEvaluation:
        """Look at the list.

        Raises:
            ServiceNotFoundError: The agent has no `TodoProvider`; or there are `modes` and no `AgentModeProvider`.
        """
        todos = context.agent.get_service(TodoProvider)
        if todos is None:
            raise ServiceNotFoundError(
                "TodoCompletionLoopEvaluator needs a TodoProvider, and the agent has none: "
                "pass one in the agent's context_providers"
            )
        if not self._is_in_mode(context):
            return LoopEvaluation.stop()
        remaining = todos.get_remaining(context.session)
        if not remaining:
            return LoopEvaluation.stop()
        return LoopEvaluation.continue_(fill(self._template, {self.REMAINING_TODOS_PLACEHOLDER: _listed(remaining)}))

    def _is_in_mode(self, context: LoopContext) -> bool:
        if self._modes is None:
            return True
        modes = context.agent.get_service(AgentModeProvider)
        if modes is None:
            raise ServiceNotFoundError(
                "TodoCompletionLoopEvaluator with modes needs an AgentModeProvider, and the agent has none: "
                "pass one in the agent's context_providers"
            )
        return modes.get_mode(context.session) in self._modes


def _listed(items: Iterable[TodoItem]) -> str:
    """One line a todo: `- 1: title`, and where there is a description `- 1: title — description`."""
    return "\n".join([f"- {item.id}: {item.title}{_described(item.description)}" for item in items])


def _described(description: str | None) -> str:
    return f" — {description}" if description and description.strip() else ""
